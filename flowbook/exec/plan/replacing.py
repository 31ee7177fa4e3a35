"""Another placement for what is prepared already: where all of it goes, before anything moves.

Pure: whether a placement can be had at all, and which resources go with it, is found out on the
graphs of what is prepared. Who keeps the resources moves them (`master.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from flowbook.exec.devices.device import Device
from flowbook.exec.placement.constraints import carried
from flowbook.exec.placement.decisions import Placement, Settled
from flowbook.exec.placement.homes import place_with_homes
from flowbook.exec.plan.pipeline import reduced
from flowbook.exec.report import Report, Table, in_bytes
from flowbook.exec.signature.signature import Signature
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.rewrite.subgraph import Subgraph


class MovedState(NamedTuple):
    """A resource that lives elsewhere now.

    Attributes:
        name: of what owns it.
        source: the name of the device that it lived on.
        destination: of that which it lives on now.
        bytes: of its value, if it is a variable with one; else 0.
    """

    name: str
    source: str
    destination: str
    bytes: int


class Replacement(Report):
    """What a session has put elsewhere.

    Attributes:
        operations: the names of the devices of the operations that ran on others before, by theirs.
        state: the resources that moved.
        dropped: how many prepared steps are prepared anew when they run next.
    """

    def __init__(
        self, operations: Mapping[str, str], state: Sequence[MovedState], dropped: int
    ) -> None:
        self.operations = operations
        self.state = state
        self.dropped = dropped

    @property
    def table(self) -> Table:
        """A row for each resource that moved."""
        rows = [(s.name, s.source, s.destination, in_bytes(s.bytes)) for s in self.state]
        total = in_bytes(sum(each.bytes for each in self.state))
        return Table(
            f"elsewhere: {counted(len(self.operations), 'operation')}, "
            f"{counted(len(rows), 'resource')} of {total}; "
            f"prepared anew: {counted(self.dropped, 'step')}",
            ("resource", "from", "to", "bytes"),
            rows,
            (),
            (3,),
        )


def settle(
    moves: Mapping[Operation, Device],
    signatures: Iterable[Signature],
    devices: Sequence[Device],
    settled: Settled,
) -> dict[ResourceKey, Device]:
    """Where resources live once operations are elsewhere; nothing is changed.

    Args:
        moves: where some operations are to be.
        signatures: what is prepared, and what else has to be possible.
        devices: those that there are.
        settled: what is to hold then, but for where resources go with the moves.

    Returns:
        The devices of the resources that the signatures touch.

    Raises:
        InvalidArgumentError: if an operation cannot be where it should.
        ResourceExhaustedError: if a device has not enough memory for what would be there.
    """
    graphs = [reduced(signature) for signature in signatures]
    going: dict[ResourceKey, Device] = {}
    count = -1
    while len(going) > count:
        count = len(going)
        for graph in graphs:
            going |= carried(graph, moves, going)
    homes = {**settled.homes, **going}
    for graph in graphs:
        holding = settled._replace(homes=homes)
        placement = place_with_homes(graph, devices, None, holding)
        _check(graph, placement, moves)
        for node in graph.nodes:
            if node.owner is not None and node.owner.key is not None:
                homes.setdefault(node.owner.key, placement.device_of(node.operation))
    return homes


def _check(graph: Subgraph, placement: Placement, moves: Mapping[Operation, Device]) -> None:
    for node in graph.nodes:
        wanted, found = moves.get(node.operation), placement.device_of(node.operation)
        if wanted is not None and found is not wanted:
            raise InvalidArgumentError(
                f"it cannot be put on {wanted.name}, only on {found.name}: "
                f"{placement.reason(node.operation)}",
                node.operation,
                hint="put what it cannot part from there too, or leave it where it is",
            )
