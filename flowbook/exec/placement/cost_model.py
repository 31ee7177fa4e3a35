"""What nodes and transfers are expected to cost on each kind of device (white paper, 3.2.1).

From what definitions say of an operation (floating-point operations), from what is known of shapes
(bytes), and from the figures of a device; where an operation was measured, from that. Where only
the run knows a size, the smallest counts: what is not known gives no reason to send anything
anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from flowbook.exec.devices.device import Device
from flowbook.exec.devices.figures import Figures, Link
from flowbook.exec.devices.kinds import figures_of, link_of
from flowbook.exec.placement.machine import along, machine
from flowbook.exec.placement.measurements import Measured, Measurements
from flowbook.graph.definition.op_def import HOST
from flowbook.graph.model.context import Frame, chain, runs_in
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.rewrite.subgraph import Node
from flowbook.graph.transfer.shaping import Shaped

# How often the body of a loop is taken to run.
TRIPS = 10


class Work(NamedTuple):
    """What a node does when it runs once, on whatever device.

    Attributes:
        type: what computes it, by its key.
        flops: floating-point operations.
        bytes: of what it takes and gives.
        swapped: bytes that it moves from its device to host memory, or back.
    """

    type: str
    flops: int
    bytes: int
    swapped: int = 0

    def at(self, figures: Figures) -> float:
        """How many seconds a device is busy with it.

        First the one and then the other: matrices are brought into order before they are
        multiplied, and the fewer rows there are, the more that counts.
        """
        return self.flops / figures.flops + self.bytes / figures.bytes


class Costs:
    """What nodes cost, by what is known of them.

    Args:
        shapes: what is known of shapes besides what the graph says.
        measured: what operations took in steps that were traced.

    Attributes:
        shapes: likewise.
    """

    def __init__(self, shapes: Shaped | None = None, measured: Measurements | None = None) -> None:
        self.shapes = shapes if shapes is not None else Shaped()
        self._measured = measured if measured is not None else Measurements()

    def size(self, tensor: Tensor) -> int:
        """The bytes of what an operation gives."""
        known = self.shapes.of(tensor.op).outputs[tensor.index]
        measured = self._measurement(tensor.op)
        if measured is not None and len(tensor.op.outputs) == 1:
            return measured.bytes
        return size_of(known.dtype.size, known.shape)

    def trips(self, node: Node) -> int:
        """How often a node runs in a step."""
        measured = self._measurement(node.operation)
        if measured is not None:
            return measured.trips
        frames = [each for each in chain(runs_in(node.operation)) if isinstance(each, Frame)]
        return math.prod([TRIPS] * len(frames))

    def seconds(self, node: Node, kind: str) -> float:
        """How long a node takes on a kind of device, in all of a step."""
        measured = self._measurement(node.operation, kind)
        once = measured.seconds if measured is not None else seconds(self.work(node), kind)
        return once * self.trips(node)

    def is_measured(self, node: Node, kind: str) -> bool:
        """Whether it was measured how long a node takes on a kind of device."""
        return self._measurement(node.operation, kind) is not None

    def work(self, node: Node) -> Work:
        """What a node does, with all that is joined into it."""
        operations = [self.shapes.of(each) for each in (node.operation, *node.joined)]
        if node.op_def.aliases and node.op_def.only_moves:
            return Work(node.op_def.key, 0, 0)  # It gives another name to what is there.
        flops = sum(each.op_def.cost(each) for each in operations if each.op_def.cost is not None)
        inside = {tensor for each in operations[1:] for tensor in each.outputs}
        moved = sum(
            size_of(tensor.dtype.size, tensor.shape)
            for each in operations
            for tensor in _touched(each)
            if tensor not in inside
        )
        return Work(node.op_def.key, flops, moved, sum(map(_swapped, operations)))

    def _measurement(self, operation: Operation, kind: str | None = None) -> Measured | None:
        """What was measured of an operation, if it has the sizes now that it had then."""
        found = self._measured.of(operation, kind)
        if found is None:
            return None
        outputs = self.shapes.of(operation).outputs
        known = sum(size_of(tensor.dtype.size, tensor.shape) for tensor in outputs)
        is_open = not all(tensor.shape.is_fully_defined for tensor in outputs)
        return found if is_open or known == found.bytes else None


def _swapped(operation: Operation) -> int:
    """The bytes that an operation moves from its device to host memory, or back."""
    op_def = operation.op_def
    if not op_def.swaps:
        return 0
    moved = [operation.inputs[place] for place in op_def.pushes.values()]
    moved += [operation.outputs[port] for port in op_def.pops]
    return sum(size_of(value.dtype.size, value.shape) for value in moved)


def _touched(operation: Operation) -> Iterator[Tensor]:
    yield from operation.inputs
    yield from operation.outputs


def size_of(dtype_size: int, shape: Shape) -> int:
    """The bytes of a value; what is not known of its shape counts as one."""
    size = dtype_size
    for dim in shape.dims or ():
        size *= 1 if dim is None else dim
    return size


def seconds(work: Work, kind: str) -> float:
    """How long some work takes on a kind of device, done once."""
    if kind not in HOST:
        figures, link = figures_of(kind), link_of(kind)
        moved = link.latency + work.swapped / link.bytes if work.swapped and link else 0.0
        return work.at(figures) + figures.overhead + moved
    here = machine()
    curve = here.kernels.get(work.type)
    expected = work.at(here.cpu)
    return along(curve, expected) if curve else expected + here.cpu.overhead


def link_between(source: Device, destination: Device) -> Link:
    """What lies between two devices."""
    links = [link for each in (source, destination) if (link := link_of(each.kind)) is not None]
    # The slowest on the way counts.
    return min(links, key=lambda link: link.bytes) if links else machine().link
