"""A CuPy that needs no GPU: what `flowbook/exec/devices/gpu.py` uses of it, on NumPy.

Arrays are those of the simulated device, and refuse what it refuses. Streams and events keep clocks
(of each stream, how much of it has surely happened before), by which it is noticed when work on one
stream takes what another has not surely made, or writes where another may still read. A copy from
or to pinned memory happens as late as it may: the host finds 255 in every byte until it has waited.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from time import perf_counter
from types import SimpleNamespace
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np
import pytest
import scipy.special

from flowbook.exec.devices import cuda, kinds, simulated, streams
from flowbook.exec.devices.pinned import OUT_OF_MEMORY
from flowbook.exec.devices.simulated import ArrayModule, Simulated, SimulatedArray
from flowbook.graph.numerics import scipy_special
from tests.exec.kernels.cuda.emulated import RawModule

Clock = dict[str, int]


class Race(AssertionError):
    """Something may happen before what it needs has happened."""


class OutOfMemoryError(MemoryError):
    """As CuPy's."""


class CUDARuntimeError(RuntimeError):
    """As CuPy's."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


# CuPy's pool gives out multiples of this.
UNIT = 512


def _merge(clock: Clock, other: Clock) -> None:
    for name, time in other.items():
        clock[name] = max(clock.get(name, 0), time)


class Stream:
    """A queue of work, and the clock of its end."""

    def __init__(self, gpu: FakeGpu, name: str) -> None:
        self.gpu = gpu
        self.name = name
        self.clock: Clock = {}

    def does(self, what: str) -> int:
        """One more piece of work, which the host puts there now."""
        with self.gpu.lock:
            _merge(self.clock, self.gpu.host)
            self.clock[self.name] = self.clock.get(self.name, 0) + 1
            self.gpu.record.append((self.name, what))
            return self.clock[self.name]

    def record(self, event: Event) -> Event:
        self.gpu.check()
        with self.gpu.lock:
            self.does("record")
            event.clock = dict(self.clock)
            event.time = perf_counter()
            return event

    def wait_event(self, event: Event) -> None:
        self.gpu.check()
        with self.gpu.lock:
            self.does("wait")
            _merge(self.clock, event.clock)

    def __enter__(self) -> Stream:
        self.gpu.current.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        assert self.gpu.current.pop() is self


class Event:
    """A place in a stream."""

    def __init__(self, gpu: FakeGpu, is_timed: bool) -> None:
        self.gpu = gpu
        self.clock: Clock = {}
        self.is_timed = is_timed
        self.time = 0.0

    @property
    def done(self) -> bool:
        return all(self.gpu.host.get(name, 0) >= time for name, time in self.clock.items())

    def synchronize(self) -> None:
        self.gpu.waited += 1
        self.gpu.check()
        with self.gpu.lock:
            _merge(self.gpu.host, self.clock)
            self.gpu.land()


def elapsed(first: Event, last: Event) -> float:
    """`cupy.cuda.get_elapsed_time`, in milliseconds."""
    assert first.is_timed
    assert last.is_timed
    assert first.done
    assert last.done
    return (last.time - first.time) * 1e3


class Memory(simulated._Memory):
    """A piece of the GPU's memory, and who has used it when."""

    __slots__ = ("__weakref__", "arena", "copying", "uses", "written")

    def __init__(self, gpu: FakeGpu, owner: Any) -> None:
        super().__init__(gpu, owner)
        stream = gpu.stream()
        self.arena = gpu.arenas.setdefault(stream.name, [])
        self.written = stream.name, stream.does("write")
        self.uses = [self.written]
        self.copying: Any = None

    @property
    def root(self) -> Memory:
        return self

    def used_on(self, stream: Stream, what: str, is_write: bool = False) -> None:
        with stream.gpu.lock:
            self._used_on(stream, what, is_write)

    def _used_on(self, stream: Stream, what: str, is_write: bool) -> None:
        time = stream.does(what)
        needed = [*self.uses, *self.arena] if is_write else [self.written]
        for name, before in needed:
            if stream.clock.get(name, 0) < before:
                raise Race(f"{what} on {stream.name} does not wait for {name}")
        self.uses.append((stream.name, time))
        if is_write:
            self.written = stream.name, time
        else:
            self.land()

    def land(self) -> None:
        """Make the copy that goes here, if it has not been made."""
        if self.copying is not None:
            self.copying()
            self.copying = None

    def __del__(self) -> None:
        super().__del__()
        self.arena.extend(self.uses)


class Unowned:
    """`cupy.cuda.UnownedMemory`."""

    is_freed = False

    def __init__(self, gpu: FakeGpu, ptr: int, size: int, owner: Any) -> None:
        self.root = gpu.allocated[ptr]
        assert self.root.owner.nbytes >= size
        self.keeps = owner
        self.owner = self.root.owner


class Pointer:
    """`cupy.cuda.MemoryPointer`."""

    def __init__(self, mem: Any, offset: int, start: int | None = None) -> None:
        assert offset == 0
        self.mem = mem
        self.ptr = mem.owner.ctypes.data if start is None else start

    def copy_from_host_async(self, source: int, size: int, stream: Stream) -> None:
        gpu, memory = stream.gpu, self.mem.root
        memory.used_on(stream, "upload", is_write=True)

        def copy(target: int = self.ptr) -> None:
            ctypes.memmove(target, source, size)

        if not gpu.is_pinned(source):
            copy()
            return
        memory.copying = copy
        gpu.later.append((stream.name, stream.clock[stream.name], ref(memory)))

    def copy_to_host_async(self, target: int, size: int, stream: Stream) -> None:
        gpu = stream.gpu
        self.mem.root.used_on(stream, "download")
        content = ctypes.string_at(self.ptr, size)
        if not gpu.is_pinned(target):
            ctypes.memmove(target, content, size)
            return
        ctypes.memset(target, 255, size)
        landing = stream.name, stream.clock[stream.name]
        gpu.landing.append((*landing, lambda: ctypes.memmove(target, content, size)))


class FakeArray(SimulatedArray):
    """`cupy.ndarray`."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(cls)

    def __init__(self, first: Any, *rest: Any, memptr: Pointer | None = None) -> None:
        if memptr is None:
            super().__init__(first, *rest)
            return
        (dtype,) = rest
        size = np.dtype(dtype).itemsize * int(np.prod(first, dtype=np.int64))
        buffer = memptr.mem.owner[:size].view(dtype).reshape(first)
        super().__init__(memptr.mem.root.device, memptr.mem, buffer)

    @property
    def buffer(self) -> Any:
        found = super().buffer
        gpu = self.device
        # What is asked of it elsewhere is its shape, or the like.
        if gpu.current:
            self.memory.root.used_on(gpu.stream(), "read")
        return found

    @property
    def data(self) -> Pointer:
        return Pointer(self.memory, 0, self._buffer.ctypes.data)


class FakeGpu(Simulated):
    """A GPU, which is its own `cupy.cuda.Device`.

    Attributes:
        record: what was put into which stream, in order.
        waited: how often the host waited for an event.
        failure: what the GPU reports from now on, whatever is asked of it.
        pinnable: how many bytes of the host's memory the system keeps in their place.
        host: what has surely happened before what the host does now.
    """

    id = 0

    def __init__(self) -> None:
        super().__init__()
        self.record: list[tuple[str, str]] = []
        self.waited = 0
        self.failure: str | None = None
        self.pinnable = 1 << 40
        self.host: Clock = {}
        self.lock = threading.RLock()
        self.arenas: dict[str, list[tuple[str, int]]] = {}
        self.later: list[tuple[str, int, ref[Memory]]] = []
        self.landing: list[tuple[str, int, Any]] = []
        # CUDA frees pinned memory when nothing is copied there any more: here never.
        self.pinned: list[Any] = []
        self.allocated: WeakValueDictionary[int, Memory] = WeakValueDictionary()
        self.module = FakeCupy(self)
        self._local = threading.local()
        self.streams: list[Stream] = []

    @property
    def current(self) -> list[Stream]:
        """The streams that this thread has entered."""
        if not hasattr(self._local, "entered"):
            self._local.entered = []
        return self._local.entered  # type: ignore[no-any-return]

    def stream(self) -> Stream:
        assert self.current, "a kernel runs on the default stream"
        return self.current[-1]

    @contextmanager
    def errstate(self, *, linalg: str) -> Iterator[None]:
        """`cupyx.errstate`: whether factorisations wait for what the GPU reports of them."""
        assert linalg == "raise"
        self._local.raises = True
        try:
            yield
        finally:
            self._local.raises = False

    def unnoticed(self, error: np.linalg.LinAlgError) -> Exception:
        return error if getattr(self._local, "raises", False) else super().unnoticed(error)

    def new_stream(self, non_blocking: bool) -> Stream:
        assert non_blocking
        names = ("compute", "upload", "download")
        self.streams.append(Stream(self, names[len(self.streams)]))
        return self.streams[-1]

    def check(self) -> None:
        if self.failure is not None:
            raise CUDARuntimeError(self.failure)

    def allocate(self, size: int) -> None:
        self.check()
        if self.memory_limit is not None and self.used + size > self.memory_limit:
            raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes")
        self.used += -(-size // UNIT) * UNIT
        self.peak = max(self.peak, self.used)

    def release(self, size: int) -> None:
        self.used -= -(-size // UNIT) * UNIT

    def alloc(self, size: int) -> Pointer:
        self.allocate(size)
        memory = Memory(self, np.full(size, 255, np.uint8))
        pointer = Pointer(memory, 0)
        self.allocated[pointer.ptr] = memory
        return pointer

    def is_pinned(self, address: int) -> bool:
        return any(0 <= address - ctypes.addressof(each) < len(each) for each in self.pinned)

    def pin(self, size: int) -> Any:
        self.check()
        if sum(map(len, self.pinned)) + size > self.pinnable:
            raise CUDARuntimeError("cudaErrorMemoryAllocation: out of memory", OUT_OF_MEMORY)
        block = (ctypes.c_ubyte * size)()
        self.pinned.append(block)
        return block

    def land(self) -> None:
        """Make the copies for which the host has waited."""
        for name, time, memory in self.later:
            found = memory()
            if self.host.get(name, 0) >= time and found is not None:
                found.land()
        for name, time, copy in list(self.landing):
            if self.host.get(name, 0) >= time:
                self.landing.remove((name, time, copy))
                copy()

    def __enter__(self) -> FakeGpu:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class FakeCupy(ArrayModule):
    """The module."""

    def __init__(self, gpu: FakeGpu) -> None:
        super().__init__(gpu, np, "cupy")
        self.__spec__ = ModuleSpec("cupy", None)
        self.ndarray = FakeArray
        self.RawModule = RawModule
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(
                getDevice=lambda: 0,
                getDeviceCount=lambda: 1,
                memGetInfo=lambda: (3 << 30, 4 << 30),
                CUDARuntimeError=CUDARuntimeError,
            ),
            Device=lambda index: gpu,
            Stream=gpu.new_stream,
            Event=lambda disable_timing=False: Event(gpu, not disable_timing),
            get_elapsed_time=elapsed,
            MemoryPointer=Pointer,
            UnownedMemory=lambda ptr, size, owner, device_id: Unowned(gpu, ptr, size, owner),
            PinnedMemory=gpu.pin,
            PinnedMemoryPointer=lambda memory, offset: memory,
            alloc=gpu.alloc,
            get_current_stream=lambda: SimpleNamespace(ptr=id(gpu.stream())),
        )

    def get_default_memory_pool(self) -> Any:
        gpu = self._device
        return SimpleNamespace(
            get_limit=lambda: gpu.memory_limit or 0,
            used_bytes=lambda: gpu.used,
            total_bytes=lambda: gpu.peak,
        )


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A process with CuPy and one GPU."""
    monkeypatch.setattr(simulated, "SimulatedArray", FakeArray)
    monkeypatch.setattr(simulated, "_Memory", Memory)
    gpu = FakeGpu()
    monkeypatch.setitem(sys.modules, "cupy", gpu.module)
    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace(errstate=gpu.errstate))
    monkeypatch.setitem(sys.modules, "cupyx.scipy.special", scipy.special)
    caches = (cuda.cupy, kinds._kinds["gpu"].device, streams.streams_of, scipy_special._loaded)
    for cache in caches:
        cache.cache_clear()
    yield gpu
    for cache in caches:
        cache.cache_clear()
