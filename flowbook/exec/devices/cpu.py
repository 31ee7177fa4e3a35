"""The CPU: NumPy's arrays in host memory."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from flowbook.exec.devices.device import Device, DeviceDescription
from flowbook.exec.devices.host_memory import host_memory
from flowbook.exec.devices.kinds import DeviceKind, define_kind


@cache
def _keep_freed_memory() -> None:
    """Have the C library keep up to 64 MiB that arrays leave behind, for those that follow.

    By default glibc returns memory to the system as soon as two arrays of 4 MB lie free at the end
    of its heap, so that every step waits for the system to clear new pages: longer than it takes to
    compute what fills them. How much it keeps is twice the largest block ever freed, of those up to
    32 MiB; so one is freed here. Its pages are never touched, and take no memory.
    """
    np.empty((32 << 20) - (1 << 16), np.uint8)


# Bytes: a line of the processor's cache, and what is so small that it does not matter.
_LINE = 64
_SMALL = 16 << 10


class _Memory(np.ndarray):
    """The memory of an array, which begins somewhere inside.

    Its being a type of its own has NumPy's views of the array keep that, and not this: who counts
    what refers to the array counts them too.
    """


class Cpu(Device):
    """A CPU device of this process, whose memory is the host's.

    Args:
        index: its number.
    """

    array_type = np.ndarray

    def __init__(self, index: int = 0) -> None:
        _keep_freed_memory()
        super().__init__(f"/job:localhost/task:0/device:cpu:{index}", np)

    def described(self) -> DeviceDescription:
        """What it is to users."""
        return super().described()._replace(memory=self.memory_limit or host_memory())

    def own(self, array: Any) -> Any:
        """A copy of a host array or scalar."""
        return np.array(array)

    def room(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array that begins with a line of the cache, where it is large.

        NumPy's begin at any 16 bytes, and most of the writes to them touch two lines each. Where
        another processor has read the lines, as helpers at products of matrices do, such writes
        took twice as long: a tenth of a perceptron's step.
        """
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size < _SMALL or np.dtype(dtype).hasobject:
            return np.empty(shape, dtype)
        memory = _Memory(size + _LINE, np.uint8)
        return np.ndarray(shape, dtype, memory, -memory.ctypes.data % _LINE)

    def put(self, array: Any) -> Any:
        """The array itself."""
        return array

    def show(self, array: Any) -> Any:
        """The array itself."""
        return array

    def send(self, value: Any) -> Any:
        """A copy of an array; what is none goes as it is."""
        return np.array(value) if isinstance(value, np.ndarray | np.generic) else value

    def take(self, value: Any) -> Any:
        """The value as it came: nobody else has it."""
        return value

    def fetch(self, array: Any) -> Any:
        """A copy of an array; what has no dimensions is a scalar."""
        if type(array) is np.ndarray:
            return array.copy() if array.ndim else array[()]
        return array

    def fetch_own(self, array: Any) -> Any:
        """An array itself; what has no dimensions is a scalar."""
        return array[()] if type(array) is np.ndarray and not array.ndim else array

    def fetch_view(self, array: Any) -> Any:
        """An array itself, or a copy where it cannot be written to."""
        if type(array) is np.ndarray and array.ndim:
            return array if array.flags.writeable else array.copy()
        return self.fetch_own(array)

    def lock(self, array: Any, is_locked: bool) -> None:
        """Have an array refuse to be written to, or take it again."""
        # NumPy lets whoever has a view unlock it as long as the memory below can be written to.
        if array.base is not None:
            array.base.flags.writeable = not is_locked
        array.flags.writeable = not is_locked

    def check(self, value: Any) -> bool:
        """Whether a value is NumPy's."""
        return isinstance(value, np.ndarray | np.generic)


# What it computes in a second is measured: see `fb.calibrate`.
define_kind(DeviceKind("cpu", Cpu, link=None))
