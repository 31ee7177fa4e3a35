"""What a session's variables hold where it begins, and after it has ended.

They begin with what a checkpoint has for them; or, where a notebook cell has made the session in
the place of one that lives and has values, with these. What a session held that gives way stays for
the one in its place, until that one ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowbook.exec.checkpoints.resumption import Resumption, resumption_of
from flowbook.exec.checkpoints.snapshot import Snapshot
from flowbook.exec.kernels.numerics import check_same
from flowbook.exec.master import Resources, offered
from flowbook.exec.session.taken_values import fitting
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.origin.site import Site
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.ops.state.variables import Variable

_CLOSED = "closed the session that this cell made before"
_STARTS_AFRESH = "; its variables start afresh"
_KEPT = (
    "kept the values of the session that this cell made before, rather than those of the "
    "checkpoint (fb.train.Saver().restore(sess, path) takes these)"
)
_TAKE = " (take_values() of the new one brings their values back)"


def _is_shared(graph: Graph, name: str) -> bool:
    """Whether a named container has what an operation owns."""
    key = graph.get_operation_by_name(name).key
    return key is not None and bool(key.container)


class Holdings:
    """What a session holds, where it is from, and who has its place.

    Args:
        graph: the session's graph.
        site: where the session was made.
        resources: what those of a session that lives hold; None if nobody may ask for that.
        checkpoint: the path of what it goes on from, if anything.
        numerics: what the bits of a deterministic session depend on.

    Attributes:
        predecessor: what was held by the session in whose place the cell made this one.
        successor: where the session was made that has its place.
        numerics: as given.
    """

    def __init__(
        self,
        graph: Graph,
        site: Site,
        resources: Resources | None,
        checkpoint: str | None,
        numerics: dict[str, str] | None,
    ) -> None:
        self.predecessor: Holdings | None = None
        self.successor: Site | None = None
        self.numerics = numerics
        self._graph = graph
        self._site = site
        self._known = resources
        self._checkpoint = checkpoint
        self._resumption: Resumption | None = None
        self._kept: Holdings | None = None
        self._last: Mapping[ResourceKey, Any] | None = None

    @property
    def _resources(self) -> Resources:
        return offered(self._known, "access to what variables hold")

    @property
    def values(self) -> Mapping[ResourceKey, Any]:
        """The values of the variables; of a session that has ended the last, where they stay.

        There are none where nobody may ask for them.
        """
        if self._last is not None:
            return self._last
        return self._known.values() if self._known is not None else {}

    def resume(self, before: Callable[[], Holdings | None]) -> None:
        """Take what is to be gone on from, of what has joined the graph.

        Args:
            before: gives what is held by the live session in whose place this one was made.
        """
        if self._checkpoint is not None:
            held = before()
            if held is not None:
                self.keep(held)
            else:
                self._resumption = resumption_of(self._checkpoint)
                if self._resumption is not None and self._site.author is not None:
                    self._site.author.succession.say(f"restored {self._resumption}")
            self._checkpoint = None
        snapshot = self._resumption.next(self._graph) if self._resumption is not None else None
        if snapshot is not None:
            self.put(snapshot, None)

    def keep(self, before: Holdings) -> None:
        """Hold what another session holds, rather than what a checkpoint has that waits."""
        if self._checkpoint is None:
            return
        held = before.values
        variables = [v for v in self._graph.variables() if v.op.key in held]
        found = before._resources.snapshot(variables, None)
        # What a named container has is there, and may have gone on meanwhile.
        own = {name: s for name, s in found.states.items() if not _is_shared(before._graph, name)}
        self._resources.put(found._replace(states=own), None)
        self._kept, self._checkpoint = before, None

    def snapshot(self, variables: Sequence[Variable], deadline: float | None) -> Snapshot:
        """What variables hold, with what the bits of a deterministic session depend on."""
        return self._resources.snapshot(variables, deadline)._replace(numerics=self.numerics)

    def put(self, snapshot: Snapshot, deadline: float | None) -> None:
        """Have variables hold what a snapshot has.

        Raises:
            FailedPreconditionError: if both are deterministic, and other bits come out here.
        """
        if self.numerics is not None and snapshot.numerics is not None:
            check_same(snapshot.numerics, self.numerics)
        self._resources.put(snapshot, deadline)

    def take(self, source: Holdings) -> list[str]:
        """Take values of another session's variables; return the names of those that took any."""
        taken = fitting(self._graph, source.values, source._graph is self._graph)
        self._resources.take(taken)
        return [operation.name for operation in taken]

    def reset(self) -> None:
        """Have all that is the session's own begin afresh."""
        self._resources.reset()

    def leave(self, successor: Site) -> Holdings | None:
        """Keep the last values: a session made elsewhere has the place of this one.

        Returns:
            The holdings that it can take values of. A cell that runs twice in a row, and gives no
            variable a value in between, loses nothing either.
        """
        self._last, self.successor = self.values, successor
        return self if self._last else self.predecessor

    def succeed(self, before: Holdings, predecessor: Holdings | None) -> str:
        """Have the place of a session that has ended.

        Args:
            before: what it held.
            predecessor: what can be taken of.

        Returns:
            What the cell's output says of it.
        """
        if self._kept is before:
            self._kept = None
            return _KEPT
        self.predecessor = predecessor
        if self._resumption is not None:
            return _CLOSED
        return _CLOSED + _STARTS_AFRESH + (_TAKE if predecessor is not None else "")

    def close(self) -> None:
        """Let go of what others held."""
        self.predecessor = self._kept = self._resumption = None
        if self._last is None:
            self._last = {}
