"""Threads that help with products of matrices, and are at hand in microseconds.

What `crew.py` does for any function, a `NativeCrew` does for gemm of a BLAS library, in machine
code (`native_crew.ll`): nobody waits for Python's lock in it. As both follow the same plans
(`gemm_plan.py`), they make the same bits.

A helper has a box, a word of memory in which it is told its work and tells how it stands; threads
share nothing else but the number of the part that is next. Who has a product offers it in the boxes
of helpers that are free, takes parts like them, and takes back what no helper has begun. A helper
that is at a part is waited for. Several threads may have products at once; a helper has one.

Who waits looks for a millisecond, and then sleeps: on a quiet machine, where it takes a tenth of
one to be woken, the products of a step find their helpers awake. Meanwhile it offers the cpu to
others; if somebody takes it, the machine is busy, and it sleeps after microseconds from then on. A
helper asks the system for short turns: where all processors are taken, it is let in sooner.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numpy as np

from flowbook.exec.kernels import blas, onednn
from flowbook.exec.kernels.gemm_plan import Gemm, Plan, check, plan
from flowbook.exec.kernels.machine_code import compiled, machine_code
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.numerics.hot_loop import Hot, loops

# Helpers at most.
_MOST = 63
# A box is its first word; no two are in one line of the cache.
_Box = ctypes.c_int64 * 16


class NativeCrew:
    """The helpers of this process.

    Args:
        engine: has the machine code.
        if_busy: on a busy machine so many times as many threads take part: each gets less of a
            processor there.
    """

    def __init__(self, engine: Any, if_busy: int = 2) -> None:
        self._engine = engine
        self._if_busy = if_busy
        self._boxes = (_Box * _MOST)()
        self._lock = Lock()
        self._size = 0
        pointer, size, array = ctypes.c_void_p, ctypes.c_int64, ctypes.py_object
        self._help = ctypes.CFUNCTYPE(None, pointer)(engine.get_function_address("help"))
        self._share = ctypes.CFUNCTYPE(
            size, pointer, size, size, ctypes.POINTER(Plan), *[array] * 3
        )(engine.get_function_address("share"))
        # Helpers still look at them when Python takes itself apart at its end.
        for needed in (engine, self._boxes):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(needed))

    def without_helpers(self) -> NativeCrew:
        """The same machine code for a forked process, which has no helpers."""
        return NativeCrew(self._engine, self._if_busy)

    def multiply(self, plan: Plan, x: Any, y: Any, out: Any, threads: int) -> None:
        """Make a product, here and in helpers at the same time. An interrupt has to wait.

        Args:
            plan: of these arrays.
            x: the first factor,
            y: the second
            out: and the product, which BLAS gets on one thread.
            threads: how many may take part, this one included.

        Raises:
            MemoryError: if gemm has not enough.
        """
        most = min(self._if_busy * threads, plan.count, _MOST + 1) - 1
        if self._size < most:
            self._grow(most)
        most = min(most, self._size)
        usual = min(threads - 1, most)
        status = self._share(self._boxes, usual, most, plan, x, y, out)
        check(status)

    def _grow(self, size: int) -> None:
        with self._lock:
            while self._size < size:
                name = f"flowbook native helper {self._size}"
                box = ctypes.byref(self._boxes[self._size])
                try:
                    Thread(target=self._live, args=(box,), name=name, daemon=True).start()
                except RuntimeError:
                    return  # There can be no more: who has the product does it.
                self._size += 1

    def _live(self, box: Any) -> None:
        with suppress(OSError):  # A sandbox may forbid to ask.
            take_short_turns()
        library = onednn.for_products()
        if library is None:
            self._help(box)
        else:
            library.limited(1, self._help, box)


class _SchedAttr(ctypes.Structure):
    """What Linux is told of how to schedule a thread: `struct sched_attr`, as it began."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


# The call's number on x86-64, and the shortest turn that Linux gives, in nanoseconds.
_SCHED_SETATTR = 314
_SHORTEST_TURN = 100_000


def take_short_turns() -> None:
    """Have this thread run in the shortest turns, as much in all; Linux before 6.12 does not."""
    if os.sched_getscheduler(0) == os.SCHED_OTHER:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        attr = _SchedAttr(ctypes.sizeof(_SchedAttr), os.SCHED_OTHER, 0, nice)
        attr.runtime = _SHORTEST_TURN
        ctypes.pythonapi.syscall(_SCHED_SETATTR, 0, ctypes.byref(attr), 0)


# Where the machine code is known to run, and what it takes Python's objects to be.
_IS_SUPPORTED = (sys.platform, platform.machine()) == (
    "linux",
    "x86_64",
) and object.__basicsize__ == 2 * ctypes.sizeof(ctypes.c_void_p)


class _Gemms(Hot):
    """Products in parts that gemm can make. Python's crew does, until the native one is there."""

    native: NativeCrew | None

    def ran(self, seconds: float) -> None:
        if _IS_SUPPORTED:
            super().ran(seconds)


gemms = _Gemms("products of matrices in parts")
"""Has the native crew when that has turned out to be worth compiling."""

if _IS_SUPPORTED:
    loops[gemms.name] = gemms


@machine_code.register
def _(products: _Gemms) -> NativeCrew:
    crew = NativeCrew(compiled(Path(__file__).with_suffix(".ll").read_text))
    library = blas.library(blas.NUMPYS)
    if library is not None:
        library.limited(1, _try, crew, library.gemms.values())
    other = onednn.for_products()
    if other is not None:
        other.limited(1, _try, crew, [other.gemm])
    return crew


def _try(crew: NativeCrew, gemms: Iterable[Gemm]) -> None:
    for gemm in gemms:
        x, y = (
            np.linspace(0, 1, 48 * 32).astype(gemm.char).reshape(shape)
            for shape in ((32, 48), (48, 32))
        )
        expected, found = np.zeros((2, 32, 32), gemm.char)
        planned = plan(gemm, x, y, found, -2, (0, 16, 32))
        if planned is None:
            continue
        planned.make(range(planned.count), x, y, expected)
        crew.multiply(planned, x, y, found, 1)
        if found.tobytes() != expected.tobytes():
            raise UnimplementedError("the machine code makes other numbers than Python")


def _forget_helpers() -> None:
    if gemms.native is not None:
        gemms.native = gemms.native.without_helpers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)
