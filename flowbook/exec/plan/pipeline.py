"""The passes from a signature to a program, top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import repeat
from operator import attrgetter
from typing import Any, NamedTuple

from flowbook.exec.devices.device import Device
from flowbook.exec.placement.decisions import Placement, Settled
from flowbook.exec.placement.homes import place_with_homes
from flowbook.exec.placement.jobs import jobs_of
from flowbook.exec.placement.place import AS_BUILT
from flowbook.exec.placement.receiving import delays_in
from flowbook.exec.placement.simulation import Job
from flowbook.exec.plan.memory import ownership
from flowbook.exec.plan.partition import partition
from flowbook.exec.plan.program import Block, Feed, Part, PlanNode, Program
from flowbook.exec.plan.schedule import schedule
from flowbook.exec.plan.watching import Instrument
from flowbook.exec.signature.signature import Signature
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.model.context import Context, Frame, chain, frame_of, runs_in
from flowbook.graph.model.dtypes import INDICES, resource
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.rewrite.cse import merge_common
from flowbook.graph.rewrite.fold import fold
from flowbook.graph.rewrite.growth import grows
from flowbook.graph.rewrite.join_products import join_products
from flowbook.graph.rewrite.order_state import order_state
from flowbook.graph.rewrite.prune import prune
from flowbook.graph.rewrite.simplify import simplify
from flowbook.graph.rewrite.subgraph import Node, Subgraph

# All tensors or none, or those that are named.
Lossy = bool | Collection[Tensor]

# What is smaller is prepared in a millisecond.
LEAST_TO_GROW = 200

_NOTHING = Settled()


@dataclass(frozen=True, eq=False)
class Prepared:
    """A signature made ready to run: the handle by which a session asks for runs of it.

    Attributes:
        signature: what is asked for.
        program: what runs.
        operations: all operations that the signature needs, before rewriting.
        stateful: those of them that own or touch something.
        went: what became of operations that have no node of their own.
        runs_as: for each operation that is to be run the ids of those whose nodes run for it: its
            own, or that of another which does the same; none where nothing is left to run.
        placement: where everything runs, and why.
        instruments: what has rewritten the program.
    """

    signature: Signature
    program: Program
    operations: Sequence[Operation] = field(repr=False)
    stateful: Sequence[Operation] = field(repr=False)
    went: Mapping[Operation, str] = field(repr=False)
    runs_as: Mapping[Operation, Sequence[int]] = field(repr=False)
    placement: Placement = field(repr=False)
    instruments: tuple[Instrument, ...] = ()

    @cached_property
    def sources(self) -> Mapping[int, Operation]:
        """The operations that the program's nodes stand for, and others, by their ids."""
        return {operation.id: operation for operation in self.operations}


class Growing(NamedTuple):
    """A prepared signature, and what others can begin with.

    Attributes:
        prepared: the prepared signature.
        graph: what the passes have left of it.
        part: the same frozen, before it was taken apart for several devices.
        jobs: its nodes as the simulation of a step sees them; none on one device.
    """

    prepared: Prepared
    graph: Subgraph
    part: Part
    jobs: Sequence[Job]

    @property
    def is_large(self) -> bool:
        """Whether it is worth the while to begin with it."""
        return len(self.graph.nodes) >= LEAST_TO_GROW

    def grows_into(self, signature: Signature) -> bool:
        """Whether what another signature needs is all of this and a little more."""
        own = self.prepared.signature
        waits = own.is_late or signature.is_late or self.graph.is_routed
        if waits or signature.feeds != own.feeds:
            return False
        asked = own.fetches, own.targets, signature.fetches, signature.targets
        return grows(self.graph, *asked)


def prepare(signature: Signature, devices: Sequence[Device]) -> Prepared:
    """Compile a signature to a program; as `grow`, from nothing."""
    return grow(signature, devices).prepared


def grow(
    signature: Signature,
    devices: Sequence[Device],
    base: Growing | None = None,
    settled: Settled = _NOTHING,
    lossy: Lossy = False,
) -> Growing:
    """Compile a signature to a program.

    Args:
        signature: what is asked for.
        devices: those that there are.
        base: what to begin with, if it `grows_into` the signature.
        settled: what holds already of placement.
        lossy: of which tensors, if they are float32, half of the bits may go to other devices.

    Raises:
        InvalidArgumentError: if a needed placeholder is not fed, or a device request cannot be met.
        CannotFollow: if what is new would change what it is to begin with.
    """
    fetches, _, feeds, _ = signature
    before = base.prepared if base is not None else None
    graph = reduced(signature, base.graph if base is not None else None)
    placed = before.placement if before is not None else None
    jobs: Sequence[Job] = ()
    if len(devices) > 1:
        kinds = [device.kind for device in devices]
        jobs = jobs_of(graph, kinds, AS_BUILT, begun=base.jobs if base is not None else ())
    placement = place_with_homes(graph, devices, placed, settled, jobs=jobs)
    begun = base.part if base is not None else None
    if graph.is_routed:
        part = freeze_frames(graph, placement.default.name)
    else:
        part = freeze(graph, placement.default.name, begun)
    program = Program(
        tuple([_feed(tensor) for tensor in feeds]),
        _of_one_part(len(fetches)),
        (part,),
    )
    if len(devices) > 1:
        ordered = sorted(graph.nodes, key=attrgetter("number"))
        where = [placement.device_of(node.operation).name for node in ordered]
        delays = delays_in(graph, devices, placement, jobs)
        late = {key: node.number for key, node in delays.items()}
        program = partition(program, where, late, lossy_values(graph, lossy))
    prepared = Prepared(
        signature,
        program,
        graph.operations,
        graph.stateful,
        graph.went,
        {op: [n.operation.id for n in graph.nodes_for(op)] for op in signature.targets},
        placement,
    )
    return Growing(prepared, graph, part, jobs)


@lru_cache
def _of_one_part(count: int) -> tuple[tuple[int, int], ...]:
    """Where so many fetches are if there is one part; most programs have the same few."""
    return tuple(zip(repeat(0), range(count)))


def lossy_values(graph: Subgraph, lossy: Lossy) -> Callable[[int], bool]:
    """Whether half of the bits of a value may go to other devices."""
    if isinstance(lossy, bool):
        return lambda value: lossy
    there = {graph.value_of(tensor) for tensor in lossy if tensor in graph.values}
    return there.__contains__


def reduced(signature: Signature, base: Subgraph | None = None) -> Subgraph:
    """What is left to run for a signature, in the order in which it runs."""
    graph = prune(signature.fetches, signature.targets, signature.feeds, base)
    order_state(graph)
    rewrite(graph)
    schedule(graph)
    return graph


def rewrite(graph: Subgraph) -> None:
    """The passes that make the same step cheaper."""
    fold(graph)
    simplify(graph)
    merge_common(graph)
    join_products(graph)
    graph.sweep()


def freeze(graph: Subgraph, device: str, base: Part | None = None) -> Part:
    """The part that a subgraph is; one that was grown begins with the nodes of its base."""
    new = graph.new
    for number, node in enumerate(new, graph.start):
        node.number = number
    nodes = [_frozen(node) for node in new]
    block = Block((*base.block.nodes, *nodes) if base is not None else tuple(nodes))
    return _part(graph, device, block)


def freeze_frames(graph: Subgraph, device: str) -> Part:
    """The part that a subgraph with loops or branches is: a block for each frame."""
    members: dict[Frame | None, list[Node]] = {None: []}
    for node in graph.nodes:
        frame = frame_of(runs_in(node.operation))
        for each in (frame, *map(frame_of, _around(frame))):
            members.setdefault(each, [])
        members[frame].append(node)
        if node.op_def.retag is Retag.PUSH:
            members.setdefault(frame_of(node.operation.context), [])
    names = _frame_names([frame for frame in members if frame is not None])
    ordered = list(_walked(None, members))
    for number, node in enumerate(node for frame in ordered for node in members[frame]):
        node.number = number
    closing = {node.closes: node.outputs for node in graph.nodes if node.closes is not None}

    def block(frame: Frame | None) -> Block:
        nodes = []
        for node in members[frame]:
            made = _frozen(node)
            if node in closing:
                made = made._replace(inputs=made.inputs + closing[node])
            if node.op_def.retag is Retag.PUSH:
                entered = frame_of(node.operation.context)
                assert entered is not None
                made = made._replace(attributes={**made.attributes, "frame_name": names[entered]})
            nodes.append(made)
        inner = tuple([block(f) for f in members if f is not None and _parent(f) is frame])
        if frame is None:
            return Block(tuple(nodes), inner)
        return Block(tuple(nodes), inner, names[frame], frame.parallel_iterations)

    return _part(graph, device, block(None))


def _parent(frame: Frame) -> Frame | None:
    return frame_of(frame.outer)


def _around(frame: Frame | None) -> Iterator[Context]:
    return chain(frame.outer) if frame is not None else iter(())


def _walked(frame: Frame | None, members: Mapping[Frame | None, Any]) -> Iterator[Frame | None]:
    """A frame and those in it, in the order in which their nodes are numbered."""
    yield frame
    for other in members:
        if other is not None and _parent(other) is frame:
            yield from _walked(other, members)


def _frame_names(frames: Sequence[Frame]) -> dict[Frame, str]:
    """A name for each frame: its own, with a number if another one in the program has it."""
    names: dict[Frame, str] = {}
    for frame in frames:
        name, number = frame.name, 1
        while name in names.values():
            number += 1
            name = f"{frame.name}@{number}"
        names[frame] = name
    return names


def _frozen(node: Node) -> PlanNode:
    """A node as plain data."""
    operation = node.operation
    return PlanNode(
        node.inputs,
        node.outputs,
        tuple([n.number for n in node.after]) if node.after else (),
        node.op_def.key,
        node.attributes,
        operation.dtypes,
        operation.shapes,
        node.owner.key if node.owner is not None else None,
        operation.name,
        (operation.id, *[other.id for other in node.joined]) if node.joined else (operation.id,),
        tuple([n.number for n in node.behind]) if node.behind else (),
    )


def _part(graph: Subgraph, device: str, block: Block) -> Part:
    return Part(
        device,
        tuple(range(len(graph.feeds))),
        graph.count,
        block,
        tuple(graph.fetches),
        ownership(graph),
        tuple([n.number for n in graph.targets]) if graph.targets else (),
        graph.constants,
    )


def _feed(tensor: Tensor) -> Feed:
    """What is fed for a tensor; a variable's handle stands for its reads."""
    dtype, shape = tensor.dtype, tensor.shape
    if dtype is resource:
        dtype, shape = tensor.op.attributes["dtype"], tensor.op.attributes["shape"]
    is_known = dtype.is_integer and dtype in INDICES and constant_value(tensor) is not None
    return Feed(tensor.name, dtype, shape, is_known)
