"""cuDNN through its C interface: the library, and convolutions of float32 that it computes.

The library is looked for when the first convolution is wanted: in the wheels `nvidia-cudnn-cu12`
and `nvidia-cudnn-cu13`, or where the system keeps its libraries. Where it is missing, `library`
gives None and kernels go on without it.

Single precision stays single precision: no algorithm is chosen that rounds to fewer bits (TF32), or
that gives other bits the next time. What is called runs later, on the stream that is current.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from ctypes import byref, c_float, c_int, c_size_t, c_void_p
from enum import Enum
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from flowbook.graph.model.errors import InternalError

# cuDNN's numbers for what is used here.
_FLOAT32, _CHANNELS_LAST, _CROSS_CORRELATION, _NO_ROUNDING, _DETERMINISTIC = 0, 1, 1, 3, 1
_NOT_SUPPORTED = range(3000, 4000)
_OLDEST = 90000  # Of its versions: 9.0.0.

_FILE = "libcudnn.so.9"
_MOST_ALGORITHMS = 10
_LARGEST_WORKSPACE = 256 << 20
_LARGEST = 1 << 31  # Elements of an array: their places are 32-bit integers.

Ints = tuple[int, ...]


class Unsupported(Exception):
    """cuDNN has no good implementation of something."""


class Direction(Enum):
    """What is computed of a convolution: the functions' names hold its name."""

    FORWARD = "Forward"
    BY_INPUT = "BackwardData"
    BY_FILTERS = "BackwardFilter"


class Performance(ctypes.Structure):
    """What is known of an algorithm."""

    _fields_ = (
        ("algorithm", c_int),
        ("status", c_int),
        ("time", c_float),
        ("memory", c_size_t),
        ("determinism", c_int),
        ("math", c_int),
        ("reserved", c_int * 3),
    )


class Library:
    """The loaded library.

    Args:
        functions: its functions, by their names in C.

    Raises:
        Unsupported: if it is too old.
    """

    def __init__(self, functions: Any) -> None:
        self._functions = functions
        functions.cudnnGetVersion.restype = c_size_t
        functions.cudnnGetErrorString.restype = ctypes.c_char_p
        if functions.cudnnGetVersion() < _OLDEST:
            raise Unsupported("cuDNN is older than 9")
        self._lock = Lock()
        self._handles: dict[int, c_void_p] = {}

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function.

        Raises:
            Unsupported: if it does not do that.
            InternalError: if it fails.
        """
        status = getattr(self._functions, f"cudnn{name}")(*arguments)
        if status:
            text = self._functions.cudnnGetErrorString(status)
            kind = Unsupported if status in _NOT_SUPPORTED else InternalError
            raise kind(f"cuDNN's {name} fails: {text.decode()}")

    def call_on(self, xp: Any, name: str, *arguments: Any) -> None:
        """Call a function that runs on the current stream of the current GPU.

        Calls with the handle of a GPU come one after the other.
        """
        device = xp.cuda.runtime.getDevice()
        with self._lock:
            handle = self._handles.get(device)
            if handle is None:
                handle = c_void_p()
                self.call("Create", byref(handle))
                self._handles[device] = handle
            self.call("SetStream", handle, c_void_p(xp.cuda.get_current_stream().ptr))
            self.call(name, handle, *arguments)


@cache
def library() -> Library | None:
    """The library; None if there is none, or none that is right."""
    spec = find_spec("nvidia.cudnn") if find_spec("nvidia") else None
    folders = [Path(folder) / "lib" for folder in (spec and spec.submodule_search_locations) or ()]
    for path in [*(str(folder / _FILE) for folder in folders), _FILE]:
        try:
            return Library(ctypes.CDLL(path))
        except (OSError, AttributeError, Unsupported):
            continue
    return None


class _Descriptor:
    """How something is told to cuDNN.

    Args:
        library: the library.
        kind: what it describes, as the functions are named: "Tensor", "Filter", "Convolution".
        values: what the function that sets it takes.
    """

    def __init__(self, library: Library, kind: str, *values: Any) -> None:
        self.pointer = c_void_p()
        self._library, self._kind = library, kind
        library.call(f"Create{kind}Descriptor", byref(self.pointer))
        library.call(f"Set{kind}NdDescriptor", self.pointer, *values)

    def __del__(self) -> None:
        if self.pointer and not sys.is_finalizing():
            self._library.call(f"Destroy{self._kind}Descriptor", self.pointer)


def _numbers(values: Sequence[int]) -> Any:
    return (c_int * len(values))(*values)


class Convolution:
    """A convolution of float32 in two dimensions, or one of its gradients.

    Args:
        library: the library.
        xp: CuPy.
        direction: what is computed of it.
        input: the shape [batch, height, width, channels].
        filters: the shape [channels out, height, width, channels in of a group].
        output: the shape, as the input's.
        padding: how many zeros lie before each of height and width, and as many after it.
        strides: from one window to the next.
        dilations: from one element of a window to the next.
        groups: into how many the channels are divided.

    Raises:
        Unsupported: if cuDNN has no algorithm for it.
    """

    def __init__(
        self,
        library: Library,
        xp: Any,
        direction: Direction,
        input: Ints,
        filters: Ints,
        output: Ints,
        *,
        padding: Ints,
        strides: Ints,
        dilations: Ints,
        groups: int = 1,
    ) -> None:
        self._library, self._direction = library, direction
        told_input, told_output = _data(library, input), _data(library, output)
        first, *between, last = filters
        dims = _numbers([first, last, *between])
        told_filters = _Descriptor(library, "Filter", _FLOAT32, _CHANNELS_LAST, 4, dims)
        self._places = _Descriptor(
            library,
            "Convolution",
            len(between),
            *map(_numbers, (padding, strides, dilations)),
            _CROSS_CORRELATION,
            _FLOAT32,
        )
        library.call("SetConvolutionGroupCount", self._places.pointer, groups)
        library.call("SetConvolutionMathType", self._places.pointer, _NO_ROUNDING)
        if direction is Direction.FORWARD:
            self._told, self._shape = (told_input, told_filters, told_output), output
        elif direction is Direction.BY_INPUT:
            self._told, self._shape = (told_filters, told_output, told_input), input
        else:
            self._told, self._shape = (told_input, told_output, told_filters), filters
        self._algorithm, self._workspace = self._chosen(xp)

    def _chosen(self, xp: Any) -> tuple[int, int]:
        """The algorithm that is thought to be the fastest, and what memory it takes."""
        one, other, result = (told.pointer for told in self._told)
        count, found = c_int(), (Performance * _MOST_ALGORITHMS)()
        self._library.call_on(
            xp,
            f"GetConvolution{self._direction.value}Algorithm_v7",
            *(one, other, self._places.pointer, result),
            *(_MOST_ALGORITHMS, byref(count), found),
        )
        for each in found[: count.value]:
            is_good = each.status == 0 and each.determinism == _DETERMINISTIC
            if is_good and each.memory <= _LARGEST_WORKSPACE:
                return each.algorithm, each.memory
        raise Unsupported("no algorithm gives the same bits each time")

    def __call__(self, xp: Any, one: Any, other: Any) -> Any:
        """Compute it.

        Args:
            xp: CuPy.
            one: forward the input, for the gradient by the input the filters, and for that by the
                filters the input; contiguous.
            other: forward the filters, else the gradient of the output; contiguous.
        """
        result = xp.empty(self._shape, "float32")
        workspace = xp.empty(max(self._workspace, 1), "uint8")
        told_one, told_other, told_result = (told.pointer for told in self._told)
        self._library.call_on(
            xp,
            f"Convolution{self._direction.value}",
            byref(c_float(1.0)),
            *(told_one, c_void_p(one.data.ptr), told_other, c_void_p(other.data.ptr)),
            *(self._places.pointer, self._algorithm),
            *(c_void_p(workspace.data.ptr), c_size_t(self._workspace)),
            byref(c_float(0.0)),
            *(told_result, c_void_p(result.data.ptr)),
        )
        return result


def _data(library: Library, shape: Ints) -> _Descriptor:
    """An array [batch, height, width, channels], in the order of the axes that cuDNN has."""
    batch, height, width, channels = shape
    if batch * height * width * channels >= _LARGEST:
        raise Unsupported("so many elements")
    dims = _numbers([batch, channels, height, width])
    row = width * channels
    strides = _numbers([height * row, 1, row, channels])
    return _Descriptor(library, "Tensor", _FLOAT32, 4, dims, strides)
