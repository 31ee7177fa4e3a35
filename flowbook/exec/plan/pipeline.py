"""The passes from a signature to a plan, top to bottom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flowbook.exec.devices.device import Device
from flowbook.exec.plan.memory import ownership
from flowbook.exec.plan.place import Placement, place
from flowbook.exec.plan.plan import Plan, PlanNode
from flowbook.exec.plan.schedule import schedule
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.rewrite.cse import merge_common
from flowbook.graph.rewrite.fold import fold
from flowbook.graph.rewrite.join_products import join_products
from flowbook.graph.rewrite.order_state import order_state
from flowbook.graph.rewrite.prune import prune
from flowbook.graph.rewrite.simplify import simplify
from flowbook.graph.rewrite.subgraph import Node, Subgraph


class Prepared(NamedTuple):
    """A plan, and how it relates to the graph.

    Attributes:
        plan: what runs.
        feeds: the tensors whose values it is given.
        operations: for each of the plan's nodes the operation that it came from.
        pruned: all operations that the signature needs, before rewriting.
        went: what became of operations that have no node of their own.
        placement: where everything runs, and why.
    """

    plan: Plan
    feeds: tuple[Tensor, ...]
    operations: tuple[Operation, ...]
    pruned: tuple[Operation, ...]
    went: dict[Operation, str]
    placement: Placement


def prepare(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
    devices: Sequence[Device],
) -> Prepared:
    """Compile a signature to a plan for one device.

    Raises:
        InvalidArgumentError: if a needed placeholder is not fed, or a device request cannot be met.
    """
    graph = prune(fetches, targets, feeds)
    pruned = tuple(graph.operations)
    order_state(graph)
    rewrite(graph)
    placement = place(pruned, graph.nodes, devices)
    # One device, one part: partitioning has its place here.
    schedule(graph)
    return Prepared(
        freeze(graph, placement.default.name),
        tuple(feeds),
        tuple([node.operation for node in graph.nodes]),
        pruned,
        graph.went,
        placement,
    )


def rewrite(graph: Subgraph) -> None:
    """The passes that make the same step cheaper."""
    fold(graph)
    simplify(graph)
    merge_common(graph)
    join_products(graph)
    graph.sweep()


def freeze(graph: Subgraph, device: str) -> Plan:
    """The plan of a subgraph."""
    index: dict[Node, int] = {node: i for i, node in enumerate(graph.nodes)}
    nodes = tuple(
        [
            PlanNode(
                node.operation.name,
                node.op_def.type,
                node.attributes,
                node.inputs,
                node.outputs,
                tuple([index[n] for n in node.after]) if node.after else (),
            )
            for node in graph.nodes
        ]
    )
    values = 1 + max(
        [len(graph.feeds) - 1, *graph.constants, *[v for n in graph.nodes for v in n.outputs]]
    )
    return Plan(
        device=device,
        feeds=len(graph.feeds),
        values=values,
        nodes=nodes,
        fetches=tuple(graph.fetches),
        ownership=ownership(graph),
        targets=tuple([index[n] for n in graph.targets]),
        constants=graph.constants,
    )
