"""The pruned graph as the passes see it: nodes in a topological order, values as numbers.

A node stands for one operation and says what is computed now, which a pass may have changed
(another definition, other inputs); the operation says where it came from. Values 0, 1, ... are the
fed tensors, in the order of the signature; the others are the outputs of nodes.

A subgraph may begin with another one, through which all passes have gone (`Subgraph.extended`).
Every pass looks at the nodes from `start` on only, and goes on with the tables that it left; so
what is added to a large graph is prepared in proportion to what is new.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Order, resource_kind
from flowbook.graph.rewrite.layered import Table, grown


class CannotFollow(Exception):
    """What is new would change what a subgraph begins with: it has to be prepared as a whole."""


class Node:
    """One operation of a pruned graph.

    Attributes:
        operation: where it came from.
        op_def: what it computes now.
        attributes: the attributes of that definition; many nodes may share them.
        inputs: the values that it takes.
        outputs: the values that it produces.
        after: nodes that must end before it starts, besides the producers of its inputs.
        behind: nodes that must have ended, or be dead, before it starts: the order of what touches
            one resource, which keeps nothing from running.
        closes: of a NextIteration the Merge that takes its output in the next iteration. This goes
            backwards in the order, and no pass follows it.
        owner: the operation that owns the resource which it touches or owns, if there is one.
        joined: further operations that it stands for.
        number: its place in the plan that was made of it; -1 before.
    """

    __slots__ = (
        "after",
        "attributes",
        "behind",
        "closes",
        "inputs",
        "joined",
        "number",
        "op_def",
        "operation",
        "outputs",
        "owner",
    )

    def __init__(
        self,
        operation: Operation,
        op_def: OpDef[Any],
        attributes: Mapping[str, Any],
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        after: tuple[Node, ...],
        owner: Operation | None = None,
    ) -> None:
        self.operation = operation
        self.op_def = op_def
        self.attributes = attributes
        self.inputs = inputs
        self.outputs = outputs
        self.after = after
        self.owner = owner
        self.joined: tuple[Operation, ...] = ()
        self.behind: tuple[Node, ...] = ()
        self.closes: Node | None = None
        self.number = -1

    @property
    def key(self) -> ResourceKey | None:
        """The key of the resource that it touches or owns; several operations may own one."""
        return self.owner.key if self.owner is not None else None

    @property
    def order(self) -> Order | None:
        """How touches of its resource are ordered; None if it has none."""
        owns = self.owner.op_def.owns if self.owner is not None else None
        return resource_kind(owns).order if owns is not None else None

    def __repr__(self) -> str:
        return f"<Node {self.op_def.type} {self.operation.name!r} {self.inputs}->{self.outputs}>"


@dataclass(slots=True)
class Subgraph:
    """What one signature needs.

    Attributes:
        operations: all operations that are needed, before any rewriting.
        stateful: those of them that own or touch something.
        touching: the nodes of those that are new.
        asking: the new operations that ask for a device, or to be beside others.
        feeds: the fed tensors; a variable's handle stands for all its reads.
        fetches: the values to return.
        targets: nodes to run without returning anything.
        nodes: all nodes, each after what it needs.
        constants: values known before the run, by number.
        producer: the node that produces each value.
        went: where operations went that have no node any more: what became of them.
        start: the place of the first node that the passes have not gone through.
        count: how many values there are.
        values: the number that each tensor got when it was pruned.
        node_of: the node that each operation got then; None for a constant.
        instead: for a value of a node that a pass removed the value that replaces it, which may
            have been removed later.
        waited: likewise, for such a node those that its control successors wait for.
        takers: the first node of each type that takes the same values (`cse.py`).
        equal: of the nodes that share these with another one, the first of each meaning.
        is_routed: whether there are loops or branches in it.
        alike: the first small constant of each meaning; it may not be there any more.
        compared: how many constants have been compared with others.
        last_write: the last node that writes to each resource, by its key; for None, the last that
            acts outside the graph (`order_state.py`).
        reads: what reads each resource.
        bits: a bit for each write.
        reached: the writes that each node surely runs after, as bits; others are left out.
    """

    operations: list[Operation]
    feeds: list[Tensor]
    fetches: list[int]
    targets: list[Node]
    nodes: list[Node]
    constants: Table[int, np.ndarray[Any, Any]] = field(default_factory=dict)
    producer: Table[int, Node] = field(default_factory=dict)
    went: Table[Operation, str] = field(default_factory=dict)
    start: int = 0
    count: int = 0
    stateful: list[Operation] = field(default_factory=list)
    touching: list[Node] = field(default_factory=list)
    asking: list[Operation] = field(default_factory=list)
    values: Table[Tensor, int] = field(default_factory=dict)
    node_of: Table[Operation, Node | None] = field(default_factory=dict)
    instead: Table[int, int] = field(default_factory=dict)
    waited: Table[Node, tuple[Node, ...]] = field(default_factory=dict)
    takers: Table[Any, Node] = field(default_factory=dict)
    equal: Table[Any, Node] = field(default_factory=dict)
    is_routed: bool = False
    alike: Table[Any, int] = field(default_factory=dict)
    compared: int = 0
    last_write: Table[ResourceKey | None, Node] = field(default_factory=dict)
    reads: Table[ResourceKey | None, list[Node]] = field(default_factory=dict)
    bits: Table[Node, int] = field(default_factory=dict)
    reached: Table[Node, int] = field(default_factory=dict)

    def extended(self) -> Subgraph:
        """A copy of it to which more nodes can be added; it fetches and aims at nothing yet."""
        return Subgraph(
            operations=self.operations.copy(),
            feeds=self.feeds,
            fetches=[],
            targets=[],
            nodes=self.nodes.copy(),
            constants=grown(self.constants),
            producer=grown(self.producer),
            went=grown(self.went),
            start=len(self.nodes),
            count=self.count,
            stateful=self.stateful.copy(),
            values=grown(self.values),
            node_of=grown(self.node_of),
            instead=grown(self.instead),
            waited=grown(self.waited),
            takers=grown(self.takers),
            equal=grown(self.equal),
            is_routed=self.is_routed,
            alike=grown(self.alike),
            compared=len(self.constants),
            last_write=grown(self.last_write),
            reads=grown(self.reads),
            bits=grown(self.bits),
            reached=grown(self.reached),
        )

    @property
    def new(self) -> list[Node]:
        """The nodes that the passes have not gone through."""
        return self.nodes[self.start :] if self.start else self.nodes

    def __contains__(self, operation: Operation) -> bool:
        """Whether an operation is needed, and what it gives is there for others to take.

        This is asked of a subgraph of which a plan was made.
        """
        stands_for = operation.op_def.stands_for
        if stands_for is not None:
            return all(tensor.op in self for tensor in stands_for(operation).results)
        given = operation.outputs
        return operation in self.node_of and all(self._is_there(self.value_of(t)) for t in given)

    def _is_there(self, value: int) -> bool:
        if value < len(self.feeds) or value in self.constants:
            return True
        return value in self.producer and self.producer[value].number >= 0

    def value_of(self, tensor: Tensor) -> int:
        """The value that a tensor has after what passes have done."""
        value = self.values[tensor]
        while value in self.instead:
            value = self.instead[value]
        return value

    def nodes_for(self, operation: Operation) -> tuple[Node, ...]:
        """The nodes to wait for where an operation is waited for; none if nothing runs for it."""
        if operation.op_def.stands_for is not None:
            ends = [tensor.op for tensor in operation.op_def.stands_for(operation).results]
            return tuple(dict.fromkeys(node for end in ends for node in self.nodes_for(end)))
        node = self.node_of.get(operation)
        return () if node is None else self._standing_for(node)

    def _standing_for(self, node: Node) -> tuple[Node, ...]:
        others = self.waited.get(node)
        if others is None:
            return (node,)
        return tuple(dict.fromkeys(n for other in others for n in self._standing_for(other)))

    def replace(
        self,
        nodes: list[Node],
        values: dict[int, int],
        instead: dict[Node, tuple[Node, ...]],
    ) -> None:
        """Keep only `nodes` of the new ones, and let others stand for what a pass removed.

        Args:
            nodes: the new nodes that stay.
            values: for a value of a removed node the value that replaces it.
            instead: for a removed node those that its control successors now wait for.
        """
        self.nodes[self.start :] = nodes
        self.instead.update(values)
        self.waited.update(instead)
        self.fetches = [values.get(v, v) for v in self.fetches]
        targets = [n for t in self.targets for n in instead.get(t, (t,))]
        self.targets = list(dict.fromkeys(targets))
        if instead:
            for node in nodes:
                if node.after:
                    node.after = _standing(node.after, instead, node)
                if node.behind:
                    node.behind = _standing(node.behind, instead, node)

    def producers(self, node: Node) -> list[Node]:
        """The nodes that produce a node's inputs."""
        producer, constants = self.producer, self.constants
        return [producer[v] for v in node.inputs if v in producer and v not in constants]

    def sweep(self) -> None:
        """Drop new nodes and constants that nothing needs any more."""
        needed: list[Node] = []
        values: set[int] = set(self.fetches)
        wanted = set(self.targets)
        for node in reversed(self.new):
            # What closes a loop is there for the Merge before it.
            if not values.isdisjoint(node.outputs) or node in wanted or node.closes is not None:
                needed.append(node)
                values.update(node.inputs)
                if node.after or node.behind:
                    wanted.update(node.after, node.behind)
        self.nodes[self.start :] = reversed(needed)
        if self.constants and not self.start:
            self.constants = {v: c for v, c in self.constants.items() if v in values}

    def sort(self, priority: Callable[[Node], Any]) -> None:
        """Bring new nodes into the topological order in which smaller priorities come first."""
        position = {node: index for index, node in enumerate(self.new)}
        waiting: dict[Node, int] = {}
        successors: dict[Node, list[Node]] = {}
        ready: list[tuple[Any, int, Node]] = []
        for node, index in position.items():
            before = {*self.producers(node), *node.after, *node.behind} & position.keys()
            waiting[node] = len(before)
            for other in before:
                successors.setdefault(other, []).append(node)
            if not before:
                ready.append((priority(node), index, node))
        heapq.heapify(ready)
        order: list[Node] = []
        while ready:
            _, _, node = heapq.heappop(ready)
            order.append(node)
            for other in successors.get(node, ()):
                waiting[other] -= 1
                if not waiting[other]:
                    heapq.heappush(ready, (priority(other), position[other], other))
        self.nodes[self.start :] = order


def _standing(
    waited: tuple[Node, ...], instead: dict[Node, tuple[Node, ...]], waiting: Node
) -> tuple[Node, ...]:
    """The nodes that stand for those which are waited for."""
    found = [n for w in waited for n in instead.get(w, (w,))]
    return tuple(dict.fromkeys(n for n in found if n is not waiting))
