"""Convolutions as products of matrices, for data [batch, ..., channels].

Forward, and for the gradient by the filters, the windows are laid out as the rows of a matrix
("im2col", Chellapilla et al. 2006): one product does the arithmetic. The gradient by the input goes
the other way: a product gives such rows, which are added up where they belong ("col2im"). All work
in chunks of the batch, and of large images, so that what lies between stays in the cache and memory
is bounded. Half precision is summed up in single precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.numerics import products
from flowbook.graph.ops.windows.windows import AxisWindows, Padding, laid, taps

Ints = tuple[int, ...]

# Bytes of one chunk of rows: it stays in the cache, and is not so small that a product in parts
# takes longer than a whole one. And of one chunk that is gone over elementwise.
_COLUMNS = 8 << 20
_CHUNK = 1 << 20
# Products of matrices with fewer columns are slow.
_THIN = 16


def wide(array: Any) -> Any:
    """In row-major order, half precision as single: sums are long."""
    dtype = np.float32 if array.dtype == np.float16 else array.dtype
    return array if array.flags.c_contiguous and array.dtype == dtype else array.astype(dtype, "C")


def placed(
    input: Sequence[int], filters: Sequence[int], strides: Ints, padding: Padding, dilations: Ints
) -> tuple[AxisWindows, ...]:
    """The windows of a convolution whose filters are [..., in, out]."""
    if len(input) != len(strides) + 2 or len(filters) != len(strides) + 2:
        raise InvalidArgumentError(
            f"input and filters have {len(strides) + 2} dimensions, not the shapes "
            f"{list(input)} and {list(filters)}"
        )
    if input[-1] != filters[-2]:
        raise InvalidArgumentError(
            f"the input's {input[-1]} channels are not the filters' {filters[-2]}: "
            f"{list(input)} by {list(filters)}"
        )
    return laid(input[1:-1], filters[:-2], strides, dilations, padding, 1)


def check_gradients(gradients: Any, batch: int, windows: Any, channels: int) -> None:
    """See that gradients have the shape of the convolution's output."""
    expected = (batch, *(w.output for w in windows), channels)
    if gradients.shape != expected:
        raise InvalidArgumentError(
            f"the convolution's output has the shape {list(expected)}, but its gradient "
            f"{list(gradients.shape)}"
        )


def _columns(xp: Any, x: Any, windows: Sequence[AxisWindows]) -> Iterator[tuple[slice, Any]]:
    """The windows as rows of a matrix, in chunks that share memory: which rows, and the rows.

    A row holds a window's elements in the order of the filters: [..., channels].
    """
    outputs, sizes = tuple(w.output for w in windows), tuple(w.size for w in windows)
    channels, length = x.shape[-1], prod(sizes) * x.shape[-1]
    below = prod(outputs[1:])
    images, lines = _portions(x.shape[0], outputs, length * x.itemsize)
    store = xp.empty(images * lines * below * length, x.dtype)
    padded = None
    if any(w.before or w.after for w in windows):
        dims = (w.before + w.input + w.after for w in windows)
        padded = xp.zeros((images, *dims, channels), x.dtype)
        inner = tuple(slice(w.before, w.before + w.input) for w in windows)
    # What is contiguous in memory decides the order of a copy: short windows of few channels are
    # copied place by place, and the matrix is the transpose of one in memory.
    run = (sizes[-1] if windows[-1].dilation == 1 else 1) * channels
    by_place = run < min(outputs[-1], 16)
    for n in range(0, x.shape[0], images):
        part = x[n : n + images]
        if padded is not None:
            padded[(slice(len(part)), *inner)] = part
            part = padded[: len(part)]
        view = _windows_of(xp, part, windows)
        for line in range(0, outputs[0], lines):
            chunk = view[:, line : line + lines]
            count = chunk.shape[0] * chunk.shape[1] * below
            kept = store[: count * length]
            if by_place:
                k = len(windows)
                order = (*range(k + 1, 2 * k + 2), *range(k + 1))
                turned = xp.transpose(chunk, order)
                kept.reshape(turned.shape)[...] = turned
                columns = kept.reshape(length, count).T
            else:
                kept.reshape(chunk.shape)[...] = chunk
                columns = kept.reshape(count, length)
            first = (n * outputs[0] + line) * below
            yield slice(first, first + count), columns


def _windows_of(xp: Any, padded: Any, windows: Sequence[AxisWindows]) -> Any:
    """A view [batch, windows..., places..., channels]."""
    k = len(windows)
    view = xp.lib.stride_tricks.sliding_window_view(
        padded, tuple(w.extent for w in windows), tuple(range(1, k + 1))
    )
    chosen = tuple(slice(None, (w.output - 1) * w.stride + 1, w.stride) for w in windows)
    places = tuple(slice(None, None, w.dilation) for w in windows)
    view = view[(slice(None), *chosen, slice(None), *places)]
    return xp.transpose(view, (*range(k + 1), *range(k + 2, 2 * k + 2), k + 1))


def convolve(
    xp: Any, input: Any, filters: Any, strides: Ints, padding: Padding, dilations: Ints
) -> Any:
    """The convolution (in the sense of neural networks: a correlation)."""
    windows = placed(input.shape, filters.shape, strides, padding, dilations)
    x = wide(input)
    matrix = wide(filters).reshape(prod(filters.shape[:-1]), filters.shape[-1])
    dims = (x.shape[0], *(w.output for w in windows), filters.shape[-1])
    result = xp.zeros(dims, x.dtype) if not matrix.size else xp.empty(dims, x.dtype)
    if result.size and matrix.size:
        rows = result.reshape(-1, dims[-1])
        if all(w.is_trivial for w in windows):
            products.matmul(xp, x.reshape(-1, x.shape[-1]), matrix, out=rows)
        else:
            for chunk, columns in _columns(xp, x, windows):
                products.matmul(xp, columns, matrix, out=rows[chunk])
    return result.astype(input.dtype, copy=False)


def filter_gradient(
    xp: Any,
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Ints,
    padding: Padding,
    dilations: Ints,
) -> Any:
    """The gradient of the sum of `convolve(input, filters) * out_backprop` by the filters."""
    dims = tuple(filter_sizes.tolist())
    windows = placed(input.shape, dims, strides, padding, dilations)
    check_gradients(out_backprop, input.shape[0], windows, dims[-1])
    x, dy = wide(input), wide(out_backprop)
    total = xp.zeros((prod(dims[:-1]), dims[-1]), x.dtype)
    if total.size and dy.size:
        rows = dy.reshape(-1, dims[-1])
        if all(w.is_trivial for w in windows):
            products.matmul(xp, x.reshape(-1, x.shape[-1]).T, rows, out=total)
        else:
            for chunk, columns in _columns(xp, x, windows):
                total += products.matmul(xp, columns.T, rows[chunk])
    return total.reshape(dims).astype(input.dtype, copy=False)


def input_gradient(
    xp: Any,
    input_sizes: Any,
    filters: Any,
    out_backprop: Any,
    strides: Ints,
    padding: Padding,
    dilations: Ints,
) -> Any:
    """The gradient of the sum of `convolve(input, filters) * out_backprop` by the input."""
    dims = tuple(input_sizes.tolist())
    windows = placed(dims, filters.shape, strides, padding, dilations)
    check_gradients(out_backprop, dims[0], windows, filters.shape[-1])
    if _is_convolution(windows, dims[-1]):
        around = tuple((w.extent - 1 - w.before, w.extent - 1 - w.after) for w in windows)
        turned = xp.swapaxes(xp.flip(filters, tuple(range(len(windows)))), -1, -2)
        return convolve(xp, out_backprop, turned, strides, around, dilations)
    w, dy = wide(filters), wide(out_backprop)
    result = xp.zeros(dims, dy.dtype)
    if not (result.size and dy.size):
        return result.astype(out_backprop.dtype, copy=False)
    if all(axis.is_trivial for axis in windows):
        matrix = w.reshape(w.shape[-2:]).T
        products.matmul(
            xp, dy.reshape(-1, matrix.shape[0]), matrix, out=result.reshape(-1, dims[-1])
        )
        return result.astype(out_backprop.dtype, copy=False)
    first, *others = windows
    matrix, outputs = w.reshape(-1, w.shape[-1]).T, dy.shape[1:-1]
    images, lines = _portions(dims[0], outputs, matrix.shape[1] * dy.itemsize)
    store = xp.empty((images * lines * prod(outputs[1:]), matrix.shape[1]), dy.dtype)
    for line in range(0, outputs[0], lines):
        count = min(lines, outputs[0] - line)
        # The windows from this line on are those of an axis that is padded so much less.
        here = replace(first, before=first.before - line * first.stride, output=count)
        places = list(taps((here, *others)))
        for n in range(0, dims[0], images):
            part, target = dy[n : n + images, line : line + count], result[n : n + images]
            rows = part.reshape(-1, dy.shape[-1])
            terms = products.matmul(xp, rows, matrix, out=store[: len(rows)])
            spread = terms.reshape(*part.shape[:-1], *w.shape[:-1])
            for place, where, sources in places:
                target[(slice(None), *sources)] += spread[(slice(None), *where, *place)]
    return result.astype(out_backprop.dtype, copy=False)


def _is_convolution(windows: Sequence[AxisWindows], channels: int) -> bool:
    """Whether the gradient by the input is better had as the convolution by turned filters.

    It is one where windows move by single elements. To lay out windows is cheaper than to add them
    up, but for few channels its product is of a thin matrix.
    """
    return channels >= _THIN and all(
        w.stride == 1 and max(w.before, w.after) < w.extent for w in windows
    )


def _portions(batch: int, outputs: Sequence[int], size: int) -> tuple[int, int]:
    """How many images, and lines of them, go together where a window takes so many bytes."""
    lines = max(1, _COLUMNS // max(1, prod(outputs[1:]) * size))
    return max(1, min(lines // outputs[0], batch)), min(lines, outputs[0])


def chunks(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Where chunks of a batch begin and how long they are, for examples of `size` bytes."""
    step = max(1, _CHUNK // max(1, size))
    return ((n, step) for n in range(0, count, step))
