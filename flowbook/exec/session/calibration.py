"""Measuring this machine, so that plans tell how long steps take here."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from flowbook.exec.placement.machine import Figures, Link, Machine, keep
from flowbook.exec.report import Report, Table, in_bytes, in_seconds, scaled
from flowbook.exec.session.session import Session
from flowbook.graph.building.graph import Graph
from flowbook.graph.building.scopes import device
from flowbook.graph.model.dtypes import float32
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import placeholder
from flowbook.graph.ops.linalg.matrix_products import matmul

__all__ = ["calibrate"]

# So many seconds each figure is measured for; the fastest step counts, since what else runs on the
# machine only makes steps slower.
_PATIENCE = 0.5
_LENGTH = 60  # Of chains of small operations.
_MATRIX = 512
_LARGE = 1 << 20  # Elements of what is moved.
_CROSSINGS = 10


class Calibration(Report):
    """What was measured of this machine.

    Attributes:
        flops: floating-point operations in a second, as products of matrices do them.
        bytes: how many bytes elementwise operations read and write in a second.
        overhead: seconds that each operation takes besides.
        latency: seconds for the smallest transfer between two CPU devices.
        transferred: how many bytes go from one to the other in a second.
        kept: the file from which later processes know it; None if it cannot be written.
    """

    def __init__(self, measured: Machine, kept: Path | None) -> None:
        self.flops, self.bytes, self.overhead = measured.cpu
        self.latency, self.transferred = measured.link
        self.kept = kept

    @property
    def table(self) -> Table:
        """A row for each figure."""
        rows = [
            ("floating-point operations in a second", f"{scaled(self.flops)}FLOP"),
            ("memory read and written in a second", in_bytes(int(self.bytes))),
            ("each operation takes besides", in_seconds(self.overhead)),
            ("the smallest transfer between CPU devices", in_seconds(self.latency)),
            ("transferred in a second", in_bytes(int(self.transferred))),
        ]
        notes = [] if self.kept is not None else ["It cannot be kept for later processes."]
        return Table("This machine", ("figure", "measured"), rows, notes, (1,))


def calibrate() -> Calibration:
    """Measure what this machine does in a second; it takes some seconds.

    Placement and `sess.explain` use what was measured from now on, in later processes too: it is
    kept in the user's folder for caches, or in that which the environment's `FLOWBOOK_CACHE` names.
    Signatures that a session has prepared already keep their placement.
    """
    overhead = _seconds(_chain(_LENGTH, _step), 1) / _LENGTH
    products = _seconds(_chain(4, lambda h: matmul(h, h)), _MATRIX, _MATRIX) / 4 - overhead
    moves = _seconds(_chain(4, _step), _LARGE) / 4 - overhead
    latency = _seconds(_across, 1, cpus=2) / _CROSSINGS - overhead
    crossing = _seconds(_across, _LARGE, cpus=2) / _CROSSINGS - moves - overhead - latency
    size = _LARGE * float32.size
    measured = Machine(
        Figures(2 * _MATRIX**3 / _positive(products), 2 * size / _positive(moves), overhead),
        Link(_positive(latency), size / _positive(crossing)),
    )
    return Calibration(measured, keep(measured))


def _step(tensor: Tensor) -> Tensor:
    """An operation that does little; two of them are not one."""
    return tensor + 1.0


def _chain(length: int, step: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """What applies a step so many times."""

    def chained(tensor: Tensor) -> Tensor:
        for _ in range(length):
            tensor = step(tensor)
        return tensor

    return chained


def _across(tensor: Tensor) -> Tensor:
    """What goes to and fro between two devices."""
    for number in range(_CROSSINGS):
        with device(f"cpu:{number % 2}"):
            tensor = _step(tensor)
    return tensor


def _seconds(build: Callable[[Tensor], Tensor], *shape: int, cpus: int = 1) -> float:
    """The seconds of the fastest step of a graph."""
    with Graph().as_default() as graph:
        given = placeholder(float32, shape)
        fetch = build(given).op
    value = np.full(shape, 1 / max(shape), np.float32)
    times: list[float] = []
    with Session(graph, cpus=cpus) as sess:
        run = sess.make_callable(fetch, [given])
        run(value)
        end = time.perf_counter() + _PATIENCE
        while not times or time.perf_counter() < end:
            begun = time.perf_counter()
            run(value)
            times.append(time.perf_counter() - begun)
    return min(times)


def _positive(seconds: float) -> float:
    """What is left of a measurement when others are taken off: never nothing."""
    return max(seconds, 1e-7)
