"""What `fb.Session(checkpoint=path)` goes on from: a checkpoint that is given out bit by bit.

A graph grows, in notebooks from cell to cell. What a checkpoint has for a variable, or for a random
operation, is theirs when they join, and nothing before and nothing after. The values wait in
memory: the checkpoint may be removed meanwhile, in favour of later ones.
"""

from __future__ import annotations

from typing import Any

from flowbook.exec.checkpoints.checkpoint import Checkpoint, checkpoint_at
from flowbook.exec.checkpoints.saver import check_fits
from flowbook.exec.checkpoints.snapshot import Snapshot, read_state
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.errors import NotFoundError
from flowbook.graph.model.operation import Operation
from flowbook.graph.ops.state.variables import Variable


class Resumption:
    """A checkpoint of which a session has not taken everything yet.

    Args:
        found: the checkpoint.

    Attributes:
        found: the checkpoint.

    Raises:
        DataLossError: if it is damaged.
    """

    def __init__(self, found: Checkpoint) -> None:
        self.found = found
        self._values: dict[str, Any] = found.read(found.entries)
        self._state = read_state(found.state)
        self._seen = 0

    def next(self, graph: Graph) -> Snapshot | None:
        """What of it belongs to what has joined the graph since the last time; None if nothing.

        Raises:
            InvalidArgumentError: if a value does not fit its variable; it is there still.
        """
        joined = graph.variables_registered(self._seen)
        variables: list[Variable] = [v for v in joined if v.op.name in self._values]
        for variable in variables:
            check_fits(self.found, variable.op.name, variable, reshape=False)
        values: dict[Operation, Any] = {v.op: self._values.pop(v.op.name) for v in variables}
        there = {n: s for n, s in self._state.states.items() if graph.has_operation(n)}
        left = {n: s for n, s in self._state.states.items() if n not in there}
        is_first, self._seen = not self._seen, self._seen + len(joined)
        if not values and not there and not is_first:
            return None
        given = self._state._replace(values=values, states=there)
        self._state = Snapshot({}, {}, None, left)
        return given

    def __str__(self) -> str:
        step = self.found.about.step
        return f"{self.found.path!r}" + ("" if step is None else f", step {step}")


def resumption_of(path: Any) -> Resumption | None:
    """What there is to go on from; None if there is no checkpoint of this path.

    Args:
        path: a checkpoint, or a folder of checkpoints, whose latest it is.
    """
    try:
        return Resumption(checkpoint_at(path))
    except NotFoundError:
        return None
