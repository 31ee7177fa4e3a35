"""What nodes and transfers are expected to cost on each kind of device (white paper, 3.2.1).

From what definitions say of an operation (floating-point operations), from what is known of shapes
(bytes), and from the figures of a device. Where only the run knows a size, the smallest counts:
what is not known gives no reason to send anything anywhere.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from flowbook.exec.devices.device import Device
from flowbook.exec.placement.machine import Figures, Link, machine
from flowbook.graph.definition.op_def import HOST
from flowbook.graph.model.context import Frame, chain, runs_in
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.rewrite.subgraph import Node

# How often the body of a loop is taken to run.
TRIPS = 10


# An accelerator of some years ago, and what lies between it and the host.
ACCELERATOR = Figures(1e13, 5e11, 5e-6)
OVER_BUS = Link(6e-5, 1e10)
# An H100 in single precision, as its data sheet and CuPy's users tell: nothing was measured here.
GPU = Figures(5e13, 2.5e12, 1e-5)
OVER_FAST_BUS = Link(3e-5, 4e10)

# By kind of device; others are such accelerators.
_FIGURES = {"gpu": GPU}
_LINKS = {"gpu": OVER_FAST_BUS}


class Work(NamedTuple):
    """What a node does in one step, on whatever device.

    Attributes:
        flops: floating-point operations.
        bytes: of what it takes and gives.
        trips: how often it runs.
    """

    flops: int
    bytes: int
    trips: int


def size_of(dtype_size: int, shape: Shape) -> int:
    """The bytes of a value; what is not known of its shape counts as one."""
    size = dtype_size
    for dim in shape.dims or ():
        size *= 1 if dim is None else dim
    return size


def trips_of(node: Node) -> int:
    """How often a node is taken to run in a step."""
    frames = [each for each in chain(runs_in(node.operation)) if isinstance(each, Frame)]
    return math.prod([TRIPS] * len(frames))


def work_of(node: Node, operation: Operation) -> Work:
    """What a node does; the operation is its own, or a copy of which more shapes are known."""
    taken = [(t.dtype.size, t.shape) for t in operation.inputs]
    given = [(d.size, s) for d, s in zip(operation.dtypes, operation.shapes, strict=True)]
    only_names = operation.op_def.aliases and operation.op_def.only_moves
    total = 0 if only_names else sum(size_of(*spec) for spec in (*taken, *given))
    cost = operation.op_def.cost
    return Work(cost(operation) if cost is not None else 0, total, trips_of(node))


def seconds(work: Work, kind: str) -> float:
    """How long it takes on a kind of device."""
    figures = machine().cpu if kind in HOST else _FIGURES.get(kind, ACCELERATOR)
    once = max(work.flops / figures.flops, work.bytes / figures.bytes) + figures.overhead
    return once * work.trips


def link_between(source: Device, destination: Device) -> Link:
    """What lies between two devices."""
    kinds = {source.kind, destination.kind}.difference(HOST)
    if not kinds:
        return machine().link
    # The slowest on the way counts.
    return min([_LINKS.get(kind, OVER_BUS) for kind in kinds], key=lambda link: link.bytes)
