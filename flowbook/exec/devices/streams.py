"""The three queues of work of a GPU: what it computes, and what is copied there and back.

The host puts work into them and goes on. They run beside each other, but for what events order:

- a kernel begins after the copies of what it takes have ended;
- a copy back begins after the kernels that make what it takes;
- memory that was copied to is copied to again only after the kernels that read it;
- the host reads what was copied back after the event that says so, one for all of it.

The memory of what kernels make belongs to the compute stream, in whose order CuPy gives it out
again; that of what is copied there, to the stream that copies.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from time import perf_counter_ns as clock
from typing import Any, NamedTuple

import numpy as np

from flowbook.exec.devices.cuda import cupy
from flowbook.exec.devices.pinned import Bytes, Pinned, aligned, part
from flowbook.graph.model.errors import InternalError

# Nanoseconds from which on times are measured from another moment: CUDA gives them in single
# precision, which then has steps of a tenth of a microsecond.
_LONGEST = 1_000_000_000


@cache
def streams_of(index: int) -> Streams:
    """Those of the GPU of a number: all of a process's sessions share them."""
    return Streams(index)


class Streams:
    """The streams of a GPU.

    Args:
        index: its number.

    Attributes:
        device: the GPU as CuPy has it.
        compute: where kernels run.
    """

    def __init__(self, index: int) -> None:
        self._cupy = cupy()
        self.device = self._cupy.cuda.Device(index)
        with self.device:
            self.compute = self._stream()
            self._upload = self._stream()
            self._download = self._stream()
        self._pinned = Pinned(self._cupy)
        self._begun: _Begun | None = None

    def upload(self, array: Any) -> Any:
        """An array of the GPU with the values of a host array, which may change right after.

        Nobody waits, but where the array is too large for pinned memory.

        Args:
            array: contiguous, of a dtype that CuPy has.

        Raises:
            InternalError: if a kernel that ran before has failed.
        """
        if not array.nbytes:
            with self.device, self.compute:
                return self._cupy.empty(array.shape, array.dtype)
        with self._reported(), self.device, self._upload:
            memory = self._cupy.cuda.alloc(array.nbytes)
            block = self._pinned.take(array.nbytes)
            source = array if block is None else part(block, 0, array)
            if block is not None:
                source[...] = array
            memory.copy_from_host_async(source.ctypes.data, array.nbytes, self._upload)
            copied = self._event(self._upload)
            self.compute.wait_event(copied)
            if block is None:
                copied.synchronize()
            else:
                self._pinned.give_after(copied, block)
            owner = _Uploaded(self, memory)
            whole = self._cupy.cuda.UnownedMemory(memory.ptr, array.nbytes, owner, self.device.id)
            pointer = self._cupy.cuda.MemoryPointer(whole, 0)
            return self._cupy.ndarray(array.shape, array.dtype, memptr=pointer)

    def download(self, arrays: Sequence[Any]) -> list[Any]:
        """Host arrays with the values of arrays of the GPU, for all of which the host waits once.

        Raises:
            InternalError: if a kernel that ran before has failed.
        """
        with self._reported(), self.device:
            with self.compute:
                # What is a view with gaps is copied on the GPU before.
                arrays = [self._cupy.ascontiguousarray(a).reshape(a.shape) for a in arrays]
                made = self._event(self.compute)
            self._download.wait_event(made)
            block = self._pinned.take(sum(aligned(array.nbytes) for array in arrays))
            places = _places(block, arrays)
            for array, place in zip(arrays, places, strict=True):
                array.data.copy_to_host_async(place.ctypes.data, array.nbytes, self._download)
            self._event(self._download).synchronize()
        if block is None:
            return places
        found = [place.copy() for place in places]
        self._pinned.give(block)
        return found

    def moment(self) -> Reached:
        """When what has been called until now has run."""
        with self.device:
            begun = self._begun
            if begun is None or clock() - begun.host > _LONGEST:
                begun = self._begun = self._begin()
            return Reached(self._cupy, begun, self._timing_event())

    def _begin(self) -> _Begun:
        event = self._timing_event()
        event.synchronize()
        return _Begun(clock(), event)

    def _timing_event(self) -> Any:
        return self.compute.record(self._cupy.cuda.Event())

    def release(self) -> None:
        """Have what is copied next wait for the kernels that were called until now."""
        # After a kernel has failed nothing is copied any more.
        with suppress(self._cupy.cuda.runtime.CUDARuntimeError), self.device:
            self._upload.wait_event(self._event(self.compute))

    def _stream(self) -> Any:
        # What does not block has nothing to do with the stream that CUDA uses by default.
        return self._cupy.cuda.Stream(non_blocking=True)

    def _event(self, stream: Any) -> Any:
        return stream.record(self._cupy.cuda.Event(disable_timing=True))

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """What CUDA reports as an error of ours; once a kernel has failed, all else reports it."""
        try:
            yield
        except self._cupy.cuda.runtime.CUDARuntimeError as error:
            raise InternalError(
                f"the GPU reports {error}, of this operation or one that ran before it",
                hint="with CUDA_LAUNCH_BLOCKING=1 in the environment the one that fails reports "
                "it; the process has to start anew",
            ) from error


def _places(block: Bytes | None, arrays: Sequence[Any]) -> list[Any]:
    """Where arrays are copied to: one behind the other in a block, or each to memory of its own."""
    if block is None:
        return [np.empty(array.shape, array.dtype) for array in arrays]
    places, start = [], 0
    for array in arrays:
        places.append(part(block, start, array))
        start += aligned(array.nbytes)
    return places


class _Begun(NamedTuple):
    """A moment that both the host and the GPU know.

    Attributes:
        host: the host's time then, in nanoseconds on the clock of `time.perf_counter_ns`.
        event: the GPU's.
    """

    host: int
    event: Any


class Reached:
    """When a GPU came to an event.

    Args:
        cupy: the module.
        begun: a moment not long before.
        event: what the GPU comes to.
    """

    __slots__ = ("_begun", "_cupy", "_event", "_ns")

    def __init__(self, cupy: Any, begun: _Begun, event: Any) -> None:
        self._cupy = cupy
        self._begun = begun
        self._event = event
        self._ns = 0

    def ns(self) -> int:
        """See `Moment`."""
        if self._event is not None:
            self._event.synchronize()
            now = clock()  # The host hears of events a little later than they come.
            passed = self._cupy.cuda.get_elapsed_time(self._begun.event, self._event)
            self._ns = min(self._begun.host + round(passed * 1e6), now)
            self._event = None
        return self._ns


class _Uploaded:
    """Memory that was copied to, for as long as an array lies in it.

    Args:
        streams: the GPU's.
        memory: as CuPy gave it out, in the order of the copies there.
    """

    def __init__(self, streams: Streams, memory: Any) -> None:
        self._streams = streams
        self._memory = memory

    def __del__(self) -> None:
        # The kernels that read it may still be waiting for their turn.
        if not sys.is_finalizing():
            self._streams.release()
