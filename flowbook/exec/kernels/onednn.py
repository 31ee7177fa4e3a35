"""oneDNN through its C interface: the library, and computations made of its primitives.

The library is looked for when the first computation is wanted: in the wheel `onednn-cpu-gomp`, or
where the system keeps its libraries. Where it is missing, `library` gives None and kernels go on
without it; `told` says why.

A computation belongs to shapes, and may be called from many threads at once. oneDNN would keep the
scratch memory of a primitive, and memory objects say where arrays lie: both would be shared by all
calls. So scratch memory is each call's own, and memory objects are lent to one call at a time.

Its threads are OpenMP's, which do not survive a fork: a forked process goes on without the library.
"""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, lru_cache, partial, wraps
from itertools import accumulate
from math import prod
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from flowbook.exec.devices.processors import processors
from flowbook.exec.kernels.gemm_plan import Gemm
from flowbook.graph.model.errors import InternalError
from flowbook.graph.model.options import options

Result = TypeVar("Result")

# oneDNN's numbers for what is used here; those of its version 3 do not change.
FORWARD, FORWARD_INFERENCE = 64, 96
CONVOLUTION_DIRECT = 1
POOLING_MAX, POOLING_MEAN_OF_EXISTING = 0x1FF, 0x3FF
LRN_ACROSS_CHANNELS = 0xAFF
SRC, DST, WEIGHTS, WORKSPACE, SCRATCHPAD = 1, 17, 33, 64, 80
DIFF_SRC, DIFF_DST, DIFF_WEIGHTS = 129, 145, 161
_RESULTS = {DST, WORKSPACE, DIFF_SRC, DIFF_WEIGHTS}
_CPU, _OPENMP, _FLOAT32, _ANY_LAYOUT = 1, 2, 3, 1
_IN_ORDER, _USERS_SCRATCHPAD = 1, 1
_IMPLEMENTATION, _LAYOUT_OF_ARGUMENT = 8, 255

_WHEEL, _FILE = "onednn-cpu-gomp", "libdnnl.so.3"
_ALIGNED = 64
# Computations of one kind: more than large networks have shapes. Each holds some kilobytes.
_KEPT = 512

Axes = Sequence[int | None]


class Unsupported(Exception):
    """oneDNN has no good implementation of something."""


class Handle(ctypes.c_void_p):
    """An object of the library's, destroyed with this one."""

    destroy: Any = None

    def __del__(self) -> None:
        if self.destroy is not None:
            self.destroy(self)


class _Version(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("patch", ctypes.c_int),
        ("hash", ctypes.c_char_p),
        ("cpu_runtime", ctypes.c_uint),
        ("gpu_runtime", ctypes.c_uint),
    )


class _Argument(ctypes.Structure):
    _fields_ = (("number", ctypes.c_int), ("memory", ctypes.c_void_p))


def numbers(values: Sequence[int]) -> Any:
    """Numbers as the library takes them for the axes of an array."""
    return (ctypes.c_int64 * 12)(*values)


class Library:
    """The loaded library.

    Args:
        path: its file, or its name for the system to find.

    Attributes:
        version: such as "3.2.0".
        gemm: multiplies matrices, on one thread inside of `limited`.

    Raises:
        OSError: if it cannot be loaded.
        AttributeError: if it lacks a function.
        Unsupported: if it is no build that is right here.
    """

    def __init__(self, path: str) -> None:
        # Short calls keep Python's lock: to get it back costs more than they do.
        self.quick = ctypes.PyDLL(path)
        self._long = ctypes.CDLL(path)
        self.quick.dnnl_version.restype = ctypes.POINTER(_Version)
        self.quick.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p
        self.quick.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        version = self.quick.dnnl_version().contents
        self.version = f"{version.major}.{version.minor}.{version.patch}"
        if version.cpu_runtime != _OPENMP:
            raise Unsupported(f"oneDNN {self.version} is built without OpenMP")
        self._get_threads = self.quick.omp_get_max_threads
        self._set_threads = self.quick.omp_set_num_threads
        address = ctypes.cast(self.quick.dnnl_sgemm, ctypes.c_void_p).value
        self.gemm = Gemm(address or 0, "f", is_onednns=True)
        self.execute = self._long.dnnl_primitive_execute
        self.engine = self.make("engine", "engine_create", _CPU, ctypes.c_size_t(0))
        # What is made with it may be destroyed after this object.
        self.engine.destroy = None
        self.attributes = self.make("primitive_attr", "primitive_attr_create")
        self.quick.dnnl_primitive_attr_set_scratchpad_mode(self.attributes, _USERS_SCRATCHPAD)

    def make(self, kind: str, function: str, *arguments: Any) -> Handle:
        """One of the library's objects.

        Args:
            kind: of object, as in the name of the function that destroys it.
            function: the one that makes it, which takes first where to put it.

        Raises:
            Unsupported: if the library does not make it.
        """
        handle = Handle()
        status = self._long[f"dnnl_{function}"](ctypes.byref(handle), *arguments)
        if status:
            raise Unsupported(f"{function} gave the status {status}")
        handle.destroy = self.quick[f"dnnl_{kind}_destroy"]
        return handle

    def limited(self, threads: int, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function while OpenMP's limit, which is the calling thread's, is so many threads.

        Args:
            threads: how many.
            function: which.
            arguments: what it is given.
        """
        before = self._get_threads()
        if before == threads:
            return function(*arguments)
        self._set_threads(threads)
        try:
            return function(*arguments)
        finally:
            self._set_threads(before)


_lock = Lock()
# The library; or why there is none; or None, before it is looked for.
_found: Library | str | None = None


def library() -> Library | None:
    """The library, if this machine has it."""
    global _found
    if _found is None:
        with _lock:
            if _found is None:
                _found = _load()
    return _found if isinstance(_found, Library) else None


@cache
def for_products() -> Library | None:
    """The library, if this machine has it: a forked process too, as products have one thread."""
    return library()


def told() -> str:
    """Which library there is, or that there is none and why."""
    found = library()
    return f"oneDNN {found.version}" if found is not None else f"NumPy: {_found}"


def threads() -> int:
    """How many threads a computation uses that runs now in this thread; 0 without the library."""
    found = library()
    if found is None:
        return 0
    return options.intra_op_threads or min(int(found.quick.omp_get_max_threads()), processors())


def _load() -> Library | str:
    reason = f"oneDNN is not installed: pip install {_WHEEL}"
    for path in _candidates():
        try:
            with _sleeping_threads():
                return Library(path)
        except (OSError, AttributeError, Unsupported) as error:
            if path != _FILE:
                reason = f"{type(error).__name__}: {error}"
    return reason


@contextmanager
def _sleeping_threads() -> Iterator[None]:
    """OpenMP, if it is loaded inside, has its threads sleep while they wait.

    By default they spin for milliseconds, on processors that the threads of a matrix product need:
    beside those, and beside other processes, a step took twice as long. To wake them takes
    microseconds. What a user sets in the environment holds.
    """
    if {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
        yield
        return
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    try:
        yield
    finally:
        del os.environ["OMP_WAIT_POLICY"]


def _candidates() -> Iterator[str]:
    # It takes longer to import than the rest of this module's work.
    from importlib import metadata

    try:
        files = metadata.files(_WHEEL) or []
    except metadata.PackageNotFoundError:
        files = []
    yield from (str(file.locate()) for file in files if file.name == _FILE)
    yield _FILE


def _forget() -> None:
    global _found, _lock
    _lock = Lock()
    if isinstance(_found, Library):
        _found = "OpenMP's threads do not survive a fork"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Computation:
    """Primitives, one after the other, from float32 arrays of known shapes to others.

    Args:
        library: whose primitives.
        threads: how many threads it uses.

    First `array` and `result` name what it takes and what it gives, in this order; then `describe`,
    `between` and `add` make what leads from those to these.
    """

    def __init__(self, library: Library, threads: int) -> None:
        self._library = library
        self._threads = threads
        self._inputs: list[tuple[int, ...]] = []
        self._results: list[tuple[int, ...]] = []
        # Of these, then of what lies between.
        self._layouts: list[Any] = []
        self._steps: list[tuple[Handle, dict[int, int]]] = []
        # They own the layouts that they want arrays in.
        self._descriptions: list[Handle] = []
        self._calls: deque[_Call] = deque()

    def array(self, shape: Sequence[int], axes: Axes) -> int:
        """One more array that it takes; arguments as for `plain`."""
        self._inputs.append(tuple(shape))
        return self._between(self.plain(shape, axes))

    def result(self, shape: Sequence[int], axes: Axes) -> int:
        """One more array that it gives; arguments as for `plain`."""
        self._results.append(tuple(shape))
        return self._between(self.plain(shape, axes))

    def plain(self, shape: Sequence[int], axes: Axes) -> Handle:
        """The layout of a row-major array.

        Args:
            shape: the array's.
            axes: for each of oneDNN's axes which of the array's it is; None for one that it has
                not, of a single element.
        """
        steps = numbers([1 if axis is None else prod(shape[axis + 1 :]) for axis in axes])
        return self._layout("strides", shape, axes, steps)

    def any(self, shape: Sequence[int], axes: Axes) -> Handle:
        """A layout that is left to the primitive; arguments as for `plain`."""
        return self._layout("tag", shape, axes, _ANY_LAYOUT)

    def _layout(self, by: str, shape: Sequence[int], axes: Axes, how: Any) -> Handle:
        dims = numbers([1 if axis is None else shape[axis] for axis in axes])
        name = f"memory_desc_create_with_{by}"
        return self._library.make("memory_desc", name, len(axes), dims, _FLOAT32, how)

    def _between(self, layout: Any) -> int:
        self._layouts.append(layout)
        return len(self._layouts) - 1

    def describe(self, function: str, *parameters: Any) -> Handle:
        """A description of a primitive.

        Args:
            function: the library's, less its `dnnl_` and `_primitive_desc_create`.
            parameters: what it takes after the engine, before the attributes.

        Raises:
            Unsupported: if the library has none, or only its slow reference.
        """
        library = self._library
        found = library.make(
            "primitive_desc",
            f"{function}_primitive_desc_create",
            library.engine,
            *parameters,
            library.attributes,
        )
        name = ctypes.c_char_p()
        library.quick.dnnl_primitive_desc_query(found, _IMPLEMENTATION, 0, ctypes.byref(name))
        if name.value is None or name.value.startswith(b"ref"):
            raise Unsupported(f"{function} has only its reference implementation")
        self._descriptions.append(found)
        return found

    def add(self, description: Handle, arguments: Mapping[int, int]) -> None:
        """Run a primitive next.

        Args:
            description: what it is.
            arguments: by oneDNN's numbers, which arrays it takes and gives. Where it wants them in
                another layout, they are reordered.
        """
        after = []
        actual = dict(arguments)
        for number, array in arguments.items():
            layout = self._wanted(description, number)
            if not self._library.quick.dnnl_memory_desc_equal(self._layouts[array], layout):
                actual[number] = other = self._between(layout)
                if number in _RESULTS:
                    after.append((other, array))
                else:
                    self._reorder(array, other)
        self._step(description, actual)
        for other, array in after:
            self._reorder(other, array)

    def between(self, description: Handle, number: int) -> int:
        """A new array between primitives, as an argument of one wants it."""
        return self._between(self._wanted(description, number))

    def _wanted(self, description: Handle, number: int) -> Any:
        query = self._library.quick.dnnl_primitive_desc_query_md
        return ctypes.c_void_p(query(description, _LAYOUT_OF_ARGUMENT, number))

    def _reorder(self, source: int, target: int) -> None:
        engine = self._library.engine
        description = self._library.make(
            "primitive_desc",
            "reorder_primitive_desc_create",
            self._layouts[source],
            engine,
            self._layouts[target],
            engine,
            self._library.attributes,
        )
        self._descriptions.append(description)
        self._step(description, {SRC: source, DST: target})

    def _step(self, description: Handle, arguments: dict[int, int]) -> None:
        scratchpad = self.between(description, SCRATCHPAD)
        primitive = self._library.make("primitive", "primitive_create", description)
        self._steps.append((primitive, {**arguments, SCRATCHPAD: scratchpad}))

    @cached_property
    def _offsets(self) -> Sequence[int]:
        """Where the arrays between the primitives begin in memory, and how much all take."""
        size = self._library.quick.dnnl_memory_desc_get_size
        outer = len(self._inputs) + len(self._results)
        sizes = (-(-size(layout) // _ALIGNED) * _ALIGNED for layout in self._layouts[outer:])
        return list(accumulate(sizes, initial=0))

    def fits(self, *inputs: Any) -> bool:
        """Whether it was made for arrays like these."""
        for x, shape in zip(inputs, self._inputs, strict=True):
            if x.shape != shape or x.dtype != np.float32:
                return False
        return True

    def __call__(self, *inputs: Any) -> list[Any]:
        """The results, new arrays.

        Args:
            inputs: arrays that it fits.
        """
        arrays = [np.ascontiguousarray(x) for x in inputs]
        results = [np.empty(shape, np.float32) for shape in self._results]
        between = np.empty(self._offsets[-1], np.uint8)
        addresses = [_address(array) for array in (*arrays, *results)]
        first = _address(between)
        addresses += [first + offset for offset in self._offsets[:-1]]
        try:
            call = self._calls.pop()
        except IndexError:
            call = _Call(self._library, self._layouts, self._steps)
        self._library.limited(self._threads, call.run, addresses)
        self._calls.append(call)
        return results


class _Call:
    """What a call of a computation has for itself."""

    def __init__(
        self,
        library: Library,
        layouts: Sequence[Any],
        steps: Sequence[tuple[Handle, Mapping[int, int]]],
    ) -> None:
        self._execute = library.execute
        self._place = library.quick.dnnl_memory_set_data_handle
        self._stream = library.make("stream", "stream_create", library.engine, _IN_ORDER)
        self._memories = [
            library.make("memory", "memory_create", layout, library.engine, None)
            for layout in layouts
        ]
        self._steps = [
            (
                primitive,
                len(arguments),
                (_Argument * len(arguments))(
                    *[_Argument(n, self._memories[array]) for n, array in arguments.items()]
                ),
            )
            for primitive, arguments in steps
        ]

    def run(self, addresses: Sequence[int]) -> None:
        """Run all primitives on arrays that lie there."""
        for memory, address in zip(self._memories, addresses, strict=True):
            self._place(memory, ctypes.c_void_p(address))
        for primitive, count, arguments in self._steps:
            status = self._execute(primitive, self._stream, count, arguments)
            if status:
                raise InternalError(f"oneDNN gave the status {status}")


def computation(build: Callable[..., None]) -> Callable[..., Computation | None]:
    """Keep the computations that a function builds, by all that they depend on, as a decorator.

    Args:
        build: `build(made, *given, **how)` tells a new Computation what it is, and raises
            Unsupported if oneDNN cannot do that. What is given is hashable.

    Returns:
        `find(*given, **how)`: the computation, or None where there is none.
    """

    @lru_cache(maxsize=_KEPT)
    def made(threads: int, *given: Any, **how: Any) -> Computation | None:
        found = library()
        assert found is not None
        new = Computation(found, threads)
        try:
            found.limited(threads, partial(build, new, *given, **how))
        except Unsupported:
            return None
        return new

    @wraps(build)
    def find(*given: Any, **how: Any) -> Computation | None:
        count = threads()
        return made(count, *given, **how) if count else None

    return find


def _address(array: Any) -> int:
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]
