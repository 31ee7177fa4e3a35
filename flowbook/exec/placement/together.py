"""Operations that must share a device: what requests say, and what cannot be torn apart."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from flowbook.graph.model.context import Frame, chain, runs_in
from flowbook.graph.model.dtypes import resource, variant
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.retag import Retag
from flowbook.graph.rewrite.subgraph import Node, Subgraph


class Groups:
    """Operations that must share a device: union-find."""

    def __init__(self) -> None:
        self._parent: dict[Operation, Operation] = {}

    def join(self, *operations: Operation) -> None:
        """Have operations share a device."""
        root = self.find(operations[0])
        for operation in operations[1:]:
            self._parent[root] = root = self.find(operation)

    def find(self, op: Operation) -> Operation:
        """The operation that stands for the group of one."""
        parent = self._parent
        parent.setdefault(op, op)
        while parent[op] is not op:
            parent[op] = parent[parent[op]]
            op = parent[op]
        return op

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._parent)

    def groups(self) -> list[list[Operation]]:
        """The groups, each in the order in which its operations were joined."""
        found: dict[Operation, list[Operation]] = {}
        for op in list(self._parent):
            found.setdefault(self.find(op), []).append(op)
        return list(found.values())


def colocated(asking: Sequence[Operation]) -> Groups:
    """Operations that ask for a device, or to be beside others."""
    together = Groups()
    for op in asking:
        together.join(op, *op.colocation)
    return together


def inseparable(graph: Subgraph, homes: Collection[ResourceKey]) -> Groups:
    """All new operations of a graph, and which of them only one device can run together.

    That is what touches one resource; what hands on handles, and what else is no array; what takes
    one variable of a loop round. What else is in a loop stays together too where no device is asked
    for, since what crosses in a loop crosses in each iteration.

    Args:
        graph: what runs.
        homes: the resources that live on some device already.
    """
    together = colocated(graph.asking)
    producer = graph.producer
    owners: dict[ResourceKey | None, Operation] = {}
    for node in graph.new:
        operation = node.operation
        together.join(operation)
        if node.owner is not None:
            together.join(owners.setdefault(node.key, node.owner), operation)
        for value in node.inputs:
            source = producer.get(value)
            if source is None or value in graph.constants:
                continue
            dtype = source.operation.dtypes[source.outputs.index(value)]
            if dtype is resource or dtype is variant or _goes_round(source, node):
                together.join(source.operation, operation)
        if node.closes is not None:
            together.join(node.closes.operation, operation)
    if graph.is_routed:
        _join_loops(graph, together, homes)
    return together


def _join_loops(graph: Subgraph, together: Groups, homes: Collection[ResourceKey]) -> None:
    """Join what is in one loop, but what is asked to be somewhere."""
    asked = {together.find(op) for op in together if op.device or op.key in homes}
    first: dict[Frame, Operation] = {}
    for node in graph.nodes:
        operation = node.operation
        frames = [c for c in chain(runs_in(operation)) if isinstance(c, Frame)]
        if frames and together.find(operation) not in asked:
            together.join(first.setdefault(frames[-1], operation), operation)


def _goes_round(source: Node, node: Node) -> bool:
    """Whether both take one variable of a loop on: what enters, its Merge, its Switch, its Exit."""
    if node.op_def.retag is Retag.POP:
        return True
    if node.op_def.fires_on_any:
        return source.op_def.retag is Retag.PUSH
    takes_first = source.outputs[0] == node.inputs[0]
    return source.op_def.fires_on_any and node.op_def.gives_dead and takes_first
