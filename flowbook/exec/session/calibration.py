"""Measuring this machine, so that plans tell how long steps take here."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from flowbook.exec.devices.figures import Figures, Link
from flowbook.exec.placement.cost_model import Costs, Work
from flowbook.exec.placement.machine import Machine, curve_of, keep
from flowbook.exec.plan.pipeline import reduced
from flowbook.exec.report import Report, Table, in_bytes, in_seconds, scaled
from flowbook.exec.session.probes import Probe, probes
from flowbook.exec.session.session import Session
from flowbook.exec.signature.signature import Signature
from flowbook.graph.building.graph import Graph
from flowbook.graph.building.scopes import device
from flowbook.graph.model.dtypes import float32
from flowbook.graph.model.long_work import track
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import placeholder
from flowbook.graph.ops.linalg.matrix_products import matmul

__all__ = ["calibrate"]

# So many seconds each figure is measured for; the fastest step counts, since what else runs on the
# machine only makes steps slower.
_PATIENCE = 0.15
_TURNS = 3
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
        kernels: for types of operations, by their keys, the seconds that the figures let be
            expected, and those that it took, from the smallest to the largest that was tried.
        kept: the file from which later processes know it; None if it cannot be written.
    """

    def __init__(self, measured: Machine, kept: Path | None) -> None:
        self.flops, self.bytes, self.overhead = measured.cpu
        self.latency, self.transferred = measured.link
        self.kernels = measured.kernels
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
            ("types of operations that were timed", f"{len(self.kernels):,}"),
        ]
        notes = [] if self.kept is not None else ["It cannot be kept for later processes."]
        return Table("This machine", ("figure", "measured"), rows, notes, (1,))


def calibrate() -> Calibration:
    """Measure what this machine does in a second; it takes some seconds.

    Some small networks are trained, and for each type of operation that they have it is noted how
    long it takes where the machine's figures let so much be expected.

    Placement and `sess.explain` use what was measured from now on, in later processes too: it is
    kept in the user's folder for caches, or in that which the environment's `FLOWBOOK_CACHE` names.
    Signatures that a session has prepared already keep their placement.
    """
    # First, since the threads that share products run as machine code after some of these alone.
    timed = _timed()
    overhead = _seconds(_chain(_LENGTH, _step), 1) / _LENGTH
    products = _seconds(_chain(4, lambda h: matmul(h, h)), _MATRIX, _MATRIX) / 4 - overhead
    moves = _seconds(_chain(4, _step), _LARGE) / 4 - overhead
    latency = _seconds(_across, 1, cpus=2) / _CROSSINGS - overhead
    crossing = _seconds(_across, _LARGE, cpus=2) / _CROSSINGS - moves - overhead - latency
    size = _LARGE * float32.size
    cpu = Figures(2 * _MATRIX**3 / _positive(products), 2 * size / _positive(moves), overhead)
    link = Link(_positive(latency), size / _positive(crossing))
    curves = {
        key: curve_of((work.at(cpu), seconds) for work, seconds in found)
        for key, found in sorted(timed.items())
    }
    measured = Machine(cpu, link, curves)
    return Calibration(measured, keep(measured))


def _timed() -> dict[str, list[tuple[Work, float]]]:
    """What the operations of networks do, and the seconds that they take, by their types' keys."""
    found: dict[str, list[tuple[Work, float]]] = defaultdict(list)
    with ExitStack() as block:
        trained = [block.enter_context(_Trained(build)) for build in probes()]
        # Other work comes and goes: whoever it slowed down gets another turn.
        for each in track(trained * _TURNS, "calibrating"):
            each.run()
        for each in trained:
            for work, seconds in each.measured():
                found[work.type].append((work, seconds))
    return found


class _Trained:
    """A network in a session of its own, whose kernels are timed."""

    def __init__(self, build: Callable[[], Probe]) -> None:
        with Graph().as_default() as graph:
            self._probe = build()
        self._session = Session(graph, cpus=1)
        self._fastest: dict[str, float] = {}

    def __enter__(self) -> _Trained:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def run(self) -> None:
        """Train for a while."""
        with self._session.trace() as trace:
            for _ in _for_a_while():
                self._session.run(*self._probe)
        for call in trace.calls:
            before = self._fastest.get(call.operation, math.inf)
            self._fastest[call.operation] = min(before, call.duration * 1e-9)

    def measured(self) -> Iterator[tuple[Work, float]]:
        """What each operation does, and the seconds of its fastest call."""
        fetches, feeds = self._probe
        costs = Costs()
        for node in reduced(Signature((), tuple(fetches), tuple(feeds))).nodes:
            found = self._fastest.get(node.operation.name)
            if found is not None:
                yield costs.work(node), _positive(found)


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
        for _ in _for_a_while():
            begun = time.perf_counter()
            run(value)
            times.append(time.perf_counter() - begun)
    return min(times)


def _for_a_while() -> Iterator[None]:
    """Once at least, and again until a figure has been measured long enough."""
    end = time.perf_counter() + _PATIENCE
    yield
    while time.perf_counter() < end:
        yield


def _positive(seconds: float) -> float:
    """What is left of a measurement when others are taken off: never nothing."""
    return max(seconds, 1e-7)
