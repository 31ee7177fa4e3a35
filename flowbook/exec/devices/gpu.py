"""A GPU, through CuPy: arrays stay there from kernel to kernel, and step to step.

Kernels are called one after the other and run when their turn comes; the host waits for a GPU once
in a step, for all that is fetched from it, and where a kernel needs a value to go on. What goes
over and back is the business of `streams.py`. CuPy's memory pool is used as it is: what else uses
CuPy in this process shares it, and `CUPY_GPU_MEMORY_LIMIT` bounds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from flowbook.exec.devices.cuda import cupy, why_not
from flowbook.exec.devices.device import Device, Moment
from flowbook.exec.devices.figures import GPU, OVER_FAST_BUS
from flowbook.exec.devices.kinds import DeviceKind, define_kind
from flowbook.exec.devices.quiet import quietly
from flowbook.exec.devices.streams import streams_of
from flowbook.graph.model import dtypes
from flowbook.graph.model.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    ResourceExhaustedError,
)

Result = TypeVar("Result")

# The dtypes that CuPy computes with, and what is no array. It stores others, such as bfloat16, and
# no more.
HELD = frozenset(
    {
        *(dtypes.bool, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
        *(dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
        *(dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128),
        *(dtypes.resource, dtypes.variant),
    }
)


class Gpu(Device):
    """A GPU of this process.

    Args:
        index: its number, as CUDA counts them.

    Raises:
        InvalidArgumentError: if there is no such GPU, or no CuPy, with what to do about it.
    """

    fetches_together = True

    def __init__(self, index: int = 0) -> None:
        reason = why_not(index)
        if reason is not None:
            raise InvalidArgumentError(f"this process has no device 'gpu:{index}': {reason}")
        super().__init__(f"/job:localhost/task:0/device:gpu:{index}", cupy())
        self._streams = streams_of(index)
        pool = self.xp.get_default_memory_pool()
        with self._streams.device:
            self.memory_limit = pool.get_limit() or self.xp.cuda.runtime.memGetInfo()[1]

    @property
    def used(self) -> int:
        """How many bytes arrays take in CuPy's pool, whoever's they are."""
        with self._streams.device:
            return int(self.xp.get_default_memory_pool().used_bytes())

    def taken(self) -> tuple[int, int]:
        """See `Device`; what CuPy's pool has taken from the GPU counts as the most."""
        with self._streams.device:
            return self.used, int(self.xp.get_default_memory_pool().total_bytes())

    def moment(self) -> Moment:
        """See `Device`: when the stream that computes is as far as it has been told."""
        return self._streams.moment()

    def run(self, function: Callable[..., Result], arguments: Sequence[Any] = ()) -> Result:
        """Call a function that calls kernels: they run on the stream that computes."""
        found: Result = quietly(self._within, (function, arguments))
        return found

    def _within(self, function: Callable[..., Result], arguments: Sequence[Any]) -> Result:
        with self._streams.device, self._streams.compute:
            return function(*arguments)

    def own(self, array: Any) -> Any:
        """A copy of a host array or scalar on the GPU, which kernels called from now on can take.

        Raises:
            ResourceExhaustedError: if it does not fit there.
            InvalidTypeError: if CuPy does not compute with its dtype.
        """
        host = np.asarray(array, order="C")
        if dtypes.as_dtype(host.dtype) not in HELD:
            raise InvalidTypeError(f"{self.name} holds no {dtypes.as_dtype(host.dtype).name}")
        try:
            return self._streams.upload(host)
        except MemoryError as error:
            raise ResourceExhaustedError(f"{self.name}: {error}") from error

    def fetch(self, array: Any) -> Any:
        """A copy of an array in host memory, for which the host waits."""
        return self.fetch_all([array])[0]

    def fetch_all(self, values: Sequence[Any]) -> list[Any]:
        """Copies in host memory of those values that are arrays; the host waits once."""
        found = list(values)
        there = [place for place, value in enumerate(found) if self.check(value)]
        if there:
            arrays = self._streams.download([found[place] for place in there])
            for place, array in zip(there, arrays, strict=True):
                found[place] = array if array.ndim else array[()]
        return found

    def check(self, value: Any) -> bool:
        """Whether a value is an array of this very GPU."""
        return isinstance(value, self.xp.ndarray) and value.device == self._streams.device


define_kind(DeviceKind("gpu", Gpu, GPU, OVER_FAST_BUS), HELD.__contains__)
