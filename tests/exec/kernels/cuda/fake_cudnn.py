"""A cuDNN that needs no GPU: the functions that are called of it, on memory of the host."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from flowbook.exec.kernels.cuda.cudnn import Direction
from flowbook.graph.ops.windows import convolution_kernels as own

HANDLE = 77
NOT_SUPPORTED, WRONG = 3000, 2000


class FakeCudnn:
    """The library's functions, by their names in C.

    Attributes:
        described: what each descriptor says that is there.
        algorithms: what is said of algorithms: number, status, determinism and memory of each.
        ran: what was computed, with which algorithm, on which stream.
        version: the library's.
    """

    def __init__(self) -> None:
        self.described: dict[int, Any] = {}
        self.algorithms = [
            (5, NOT_SUPPORTED, 1, 0),
            (6, 0, 0, 0),
            (7, 0, 1, 1 << 40),
            (1, 0, 1, 24),
        ]
        self.ran: list[tuple[str, int, int]] = []
        self.version = 91900
        self._stream = 0
        self._next = 1000
        self.cudnnGetVersion = lambda: self.version
        self.cudnnGetErrorString = lambda status: f"status {status}".encode()
        for kind in ("Tensor", "Filter", "Convolution"):
            setattr(self, f"cudnnCreate{kind}Descriptor", self._create)
            setattr(self, f"cudnnDestroy{kind}Descriptor", self._destroy)
        for direction in Direction:
            name = direction.value
            setattr(self, f"cudnnGetConvolution{name}Algorithm_v7", self._get_algorithms)
            setattr(self, f"cudnnConvolution{name}", self._computing(direction))

    def cudnnCreate(self, handle: Any) -> int:
        handle._obj.value = HANDLE
        return 0

    def cudnnSetStream(self, handle: Any, stream: Any) -> int:
        assert handle.value == HANDLE
        self._stream = stream.value
        return 0

    def _create(self, pointer: Any) -> int:
        self._next += 1
        pointer._obj.value = self._next
        self.described[self._next] = SimpleNamespace()
        return 0

    def _destroy(self, pointer: Any) -> int:
        del self.described[pointer.value]
        return 0

    def cudnnSetTensorNdDescriptor(
        self, told: Any, dtype: int, count: int, dims: Any, strides: Any
    ) -> int:
        batch, channels, height, width = dims[:count]
        assert dtype == 0
        assert strides[:] == [height * width * channels, 1, width * channels, channels]
        self.described[told.value].shape = batch, height, width, channels
        return 0

    def cudnnSetFilterNdDescriptor(
        self, told: Any, dtype: int, layout: int, count: int, dims: Any
    ) -> int:
        out, into, height, width = dims[:count]
        assert (dtype, layout) == (0, 1)
        self.described[told.value].shape = out, height, width, into
        return 0

    def cudnnSetConvolutionNdDescriptor(
        self, told: Any, count: int, padding: Any, strides: Any, dilations: Any, *kinds: int
    ) -> int:
        assert (count, kinds) == (2, (1, 0))
        places = self.described[told.value]
        places.padding = tuple((n, n) for n in padding)
        places.strides, places.dilations = tuple(strides), tuple(dilations)
        return 0

    def cudnnSetConvolutionGroupCount(self, told: Any, groups: int) -> int:
        self.described[told.value].groups = groups
        return 0

    def cudnnSetConvolutionMathType(self, told: Any, math: int) -> int:
        assert math == 3, "it may round to fewer bits"
        return 0

    def _get_algorithms(
        self, handle: Any, one: Any, other: Any, places: Any, result: Any, most: int, *found: Any
    ) -> int:
        assert handle.value == HANDLE
        count, performances = found
        count._obj.value = len(self.algorithms)
        assert count._obj.value <= most
        for each, told in zip(performances, self.algorithms, strict=False):
            each.algorithm, each.status, each.determinism, each.memory = told
        return 0

    def _computing(self, direction: Direction) -> Callable[..., int]:
        def compute(
            handle: Any, alpha: Any, told_one: Any, one: Any, told_other: Any, other: Any,
            told_places: Any, algorithm: int, workspace: Any, size: Any, beta: Any,
            told_result: Any, result: Any,
        ) -> int:  # fmt: skip
            assert (handle.value, alpha._obj.value, beta._obj.value) == (HANDLE, 1, 0)
            self.ran.append((direction.value, algorithm, self._stream))
            arrays = [
                _array(pointer, self.described[told.value].shape)
                for told, pointer in ((told_one, one), (told_other, other), (told_result, result))
            ]
            _compute(direction, *arrays, self.described[told_places.value])
            # What is computed with lies nowhere else.
            ctypes.memset(workspace.value, 255, size.value)
            return 0

        return compute


def _array(pointer: Any, shape: tuple[int, ...]) -> np.ndarray:
    data = ctypes.cast(pointer.value, ctypes.POINTER(ctypes.c_float))
    return np.ctypeslib.as_array(data, shape)


def _compute(direction: Direction, one: Any, other: Any, result: Any, places: Any) -> None:
    how = (places.strides, places.padding, places.dilations)
    count = places.groups

    def turned(filters: Any) -> Any:
        return np.moveaxis(filters, 0, -1)

    def parts(data: Any) -> Any:
        return np.split(data, count, -1)

    def of(filters: Any) -> Any:
        return np.split(filters, count, 0)

    if direction is Direction.FORWARD:
        found = [
            own.convolve(np, x, turned(f), *how) for x, f in zip(parts(one), of(other), strict=True)
        ]
        result[...] = np.concatenate(found, -1)
    elif direction is Direction.BY_INPUT:
        sizes = np.array([*result.shape[:-1], result.shape[-1] // count])
        found = [
            own.input_gradient(np, sizes, turned(f), dy, *how)
            for f, dy in zip(of(one), parts(other), strict=True)
        ]
        result[...] = np.concatenate(found, -1)
    else:
        first, *between, last = result.shape
        sizes = np.array([*between, last, first // count])
        found = [
            np.moveaxis(own.filter_gradient(np, x, sizes, dy, *how), -1, 0)
            for x, dy in zip(parts(one), parts(other), strict=True)
        ]
        result[...] = np.concatenate(found, 0)
