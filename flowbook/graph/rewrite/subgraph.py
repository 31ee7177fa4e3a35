"""The pruned graph as the passes see it: nodes in a topological order, values as numbers.

A node stands for one operation and says what is computed now, which a pass may have changed
(another definition, other inputs); the operation says where it came from. Values 0, 1, ... are the
fed tensors, in the order of the signature; the others are the outputs of nodes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor


class Node:
    """One operation of a pruned graph.

    Attributes:
        operation: where it came from.
        op_def: what it computes now.
        attributes: the attributes of that definition; many nodes may share them.
        inputs: the values that it takes.
        outputs: the values that it produces.
        after: nodes that must end before it starts, besides the producers of its inputs.
    """

    __slots__ = ("after", "attributes", "inputs", "op_def", "operation", "outputs")

    def __init__(
        self,
        operation: Operation,
        op_def: OpDef,
        attributes: Mapping[str, Any],
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        after: tuple[Node, ...],
    ) -> None:
        self.operation = operation
        self.op_def = op_def
        self.attributes = attributes
        self.inputs = inputs
        self.outputs = outputs
        self.after = after

    def __repr__(self) -> str:
        return f"<Node {self.op_def.type} {self.operation.name!r} {self.inputs}->{self.outputs}>"


@dataclass
class Subgraph:
    """What one signature needs.

    Attributes:
        operations: all operations that are needed, before any rewriting.
        feeds: the fed tensors; a variable's handle stands for all its reads.
        fetches: the values to return.
        targets: nodes to run without returning anything.
        nodes: all nodes, each after what it needs.
        constants: values known before the run, by number.
        producer: the node that produces each value.
        went: where operations went that have no node any more: what became of them.
    """

    operations: list[Operation]
    feeds: list[Tensor]
    fetches: list[int]
    targets: list[Node]
    nodes: list[Node]
    constants: dict[int, np.ndarray[Any, Any]] = field(default_factory=dict)
    producer: dict[int, Node] = field(default_factory=dict)
    went: dict[Operation, str] = field(default_factory=dict)

    def replace(
        self,
        nodes: list[Node],
        values: dict[int, int],
        instead: dict[Node, tuple[Node, ...]],
    ) -> None:
        """Keep only `nodes`, and let others stand for what a pass removed.

        Args:
            nodes: the nodes that stay.
            values: for a value of a removed node the value that replaces it.
            instead: for a removed node those that its control successors now wait for.
        """
        self.nodes = nodes
        self.fetches = [values.get(v, v) for v in self.fetches]
        targets = [n for t in self.targets for n in instead.get(t, (t,))]
        self.targets = list(dict.fromkeys(targets))
        if instead:
            for node in nodes:
                if node.after:
                    waited = [n for w in node.after for n in instead.get(w, (w,))]
                    node.after = tuple(dict.fromkeys(n for n in waited if n is not node))

    def producers(self, node: Node) -> list[Node]:
        """The nodes that produce a node's inputs."""
        producer, constants = self.producer, self.constants
        return [producer[v] for v in node.inputs if v in producer and v not in constants]

    def sweep(self) -> None:
        """Drop nodes and constants that nothing needs any more."""
        needed: set[Node] = set()
        values: set[int] = set(self.fetches)
        wanted = set(self.targets)
        for node in reversed(self.nodes):
            if node in wanted or not values.isdisjoint(node.outputs):
                needed.add(node)
                values.update(node.inputs)
                wanted.update(node.after)
        if len(needed) < len(self.nodes):
            self.nodes = [n for n in self.nodes if n in needed]
        self.constants = {v: c for v, c in self.constants.items() if v in values}

    def sort(self, priority: Callable[[Node], Any]) -> None:
        """Bring the nodes into the topological order in which smaller priorities come first."""
        waiting: dict[Node, int] = {}
        successors: dict[Node, list[Node]] = {}
        ready: list[tuple[Any, int, Node]] = []
        for index, node in enumerate(self.nodes):
            before = set(self.producers(node))
            before.update(node.after)
            waiting[node] = len(before)
            for other in before:
                successors.setdefault(other, []).append(node)
            if not before:
                ready.append((priority(node), index, node))
        position = {node: index for index, node in enumerate(self.nodes)}
        heapq.heapify(ready)
        order: list[Node] = []
        while ready:
            _, _, node = heapq.heappop(ready)
            order.append(node)
            for other in successors.get(node, ()):
                waiting[other] -= 1
                if not waiting[other]:
                    heapq.heappush(ready, (priority(other), position[other], other))
        self.nodes = order
