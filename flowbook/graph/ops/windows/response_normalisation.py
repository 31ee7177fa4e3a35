"""Local response normalisation: elements by a power of the sum of squares of channels near them.

The kernels go over parts that stay in the cache. Sums over windows of channels are made by
doubling: a sum over eight channels is one over four and the next four.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from flowbook.graph.definition.inference import elementwise
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.gradients.backward import gradients
from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.padding import pad
from flowbook.graph.ops.math.elementwise import square
from flowbook.graph.ops.windows.pooling import avg_pool_op

# Bytes of a part: what a kernel makes of it stays in the cache.
_PART = 1 << 18


class _Windows:
    """Sums over the channels around each, in memory that serves part after part.

    Args:
        xp: NumPy or a module like it.
        rows: the most rows of a part.
        channels: how many channels a row has.
        radius: how many on either side count.
        dtype: of the values.
    """

    def __init__(self, xp: Any, rows: int, channels: int, radius: int, dtype: Any) -> None:
        self._xp = xp
        # Channels that are not there count as zeros; those between two rows serve both.
        self._padded = xp.zeros((rows + 1, channels + radius), dtype)
        self._sums = xp.empty((2, self._padded.size), dtype)
        self._radius, self._channels, self._width = radius, channels, 2 * radius + 1

    def values(self, rows: int) -> Any:
        """Where the values of so many rows go, [rows, channels]."""
        return self._padded[:rows, self._radius :]

    def sums(self, rows: int) -> Any:
        """The sums over the windows of those values: a new vector, for `as_rows`."""
        xp, step = self._xp, self._channels + self._radius
        self._padded[rows] = 0
        sums, span, start = self._padded.reshape(-1)[: (rows + 1) * step], 1, 0
        count, target = rows * step, 0
        total = xp.zeros(count, sums.dtype)
        while True:
            if self._width & span:
                # The windows of the last row's padding reach too far; nobody asks for them.
                part = sums[start : start + count]
                total[: len(part)] += part
                start += span
            if 2 * span > self._width:
                break
            doubled = self._sums[target, : len(sums) - span]
            xp.add(sums[:-span], sums[span:], out=doubled)
            sums, span, target = doubled, 2 * span, 1 - target
        return total

    def as_rows(self, total: Any) -> Any:
        """The elements of a vector of sums that are sums over whole windows: [rows, channels]."""
        return total.reshape(-1, self._channels + self._radius)[:, : self._channels]


def _parts(xp: Any, x: Any, radius: int) -> Iterator[tuple[slice, _Windows, int]]:
    """The rows of a matrix in parts, each with memory for sums over its windows."""
    rows = max(1, _PART // max(1, x.shape[-1] * x.itemsize))
    windows = _Windows(xp, min(rows, len(x)), x.shape[-1], radius, x.dtype)
    for start in range(0, len(x), rows):
        stop = min(start + rows, len(x))
        yield slice(start, stop), windows, stop - start


def _as_matrix(array: Any) -> Any:
    """[..., channels] as rows; half precision as single."""
    dtype = np.float32 if array.dtype == np.float16 else array.dtype
    return array.reshape(-1, array.shape[-1]).astype(dtype, copy=False)


def _check_rank(shape: Any) -> None:
    if len(shape) != 4:
        raise InvalidArgumentError(
            f"the input is [batch, height, width, channels], not of the shape {list(shape)}"
        )


def _scales(xp: Any, windows: _Windows, x: Any, count: int, bias: float, alpha: float) -> Any:
    xp.square(x, out=windows.values(count))
    scales = windows.sums(count)
    scales *= x.dtype.type(alpha)
    scales += x.dtype.type(bias)
    return scales


def _power(xp: Any, scales: Any, beta: float) -> Any:
    """`scales ** -beta`; of the usual exponents by roots, which are faster."""
    if beta not in (0.5, 0.75):
        return xp.power(scales, scales.dtype.type(-beta))
    result = xp.sqrt(scales)
    if beta == 0.75:
        result *= xp.sqrt(result)
    return xp.divide(1, result, out=result)


def _normalized(
    xp: Any, input: Any, depth_radius: int, bias: float, alpha: float, beta: float
) -> Any:
    _check_rank(input.shape)
    if not input.size:
        return input.copy()
    x = _as_matrix(input)
    result = xp.empty(x.shape, x.dtype)
    for part, windows, count in _parts(xp, x, depth_radius):
        scales = _scales(xp, windows, x[part], count, bias, alpha)
        powers = windows.as_rows(_power(xp, scales, beta))
        xp.multiply(x[part], powers, out=result[part])
    return result.reshape(input.shape).astype(input.dtype, copy=False)


def _normalized_gradient(
    xp: Any, input: Any, dy: Any, depth_radius: int, bias: float, alpha: float, beta: float
) -> Any:
    _check_rank(input.shape)
    if dy.shape != input.shape:
        raise InvalidArgumentError(
            f"the output has the shape {list(input.shape)}, but its gradient {list(dy.shape)}"
        )
    if not input.size:
        return input.copy()
    x, slopes = _as_matrix(input), _as_matrix(dy)
    result = xp.empty(x.shape, x.dtype)
    for part, windows, count in _parts(xp, x, depth_radius):
        some, target = x[part], result[part]
        scales = _scales(xp, windows, some, count, bias, alpha)
        powers = _power(xp, scales, beta)
        xp.multiply(slopes[part], windows.as_rows(powers), out=target)
        xp.divide(powers, scales, out=powers)
        values = windows.values(count)
        xp.multiply(slopes[part], some, out=values)
        values *= windows.as_rows(powers)
        others = windows.sums(count)
        others *= x.dtype.type(2 * alpha * beta)
        target -= windows.as_rows(others) * some
    return result.reshape(input.shape).astype(input.dtype, copy=False)


def _shape(input: Tensor, **_: Any) -> Shape:
    input.shape.with_rank(4)
    return input.shape


def _gradient_shape(input: Tensor, dy: Tensor, **_: Any) -> Shape:
    return input.shape.with_rank(4).merge(dy.shape)


def _summed(x: Tensor, radius: int) -> Tensor:
    """Sums over the channels around each, as operations."""
    around = pad(x, [[0, 0], [0, 0], [0, 0], [radius] * 2])
    width = 2 * radius + 1
    once = (1, 1, 1, 1)
    means = avg_pool_op(
        around, ksize=(1, 1, 1, width), strides=once, padding="VALID", dilations=once
    )
    return means * width


def _second_gradient(op: Operation, given: Tensor) -> Any:
    """The gradient of the first gradient written out as operations."""
    x, dy = op.inputs
    radius, bias, alpha, beta = (op.attributes[n] for n in _SETTINGS)
    scales = _summed(square(x), radius) * alpha + bias
    slopes = dy * scales**-beta
    written_out = slopes - x * _summed(slopes * x / scales, radius) * (2 * alpha * beta)
    return gradients([written_out], [x, dy], [given], [x, dy])


_SETTINGS = ("depth_radius", "bias", "alpha", "beta")

normalize_responses_op: OpDef = OpDef(
    "LRN",
    "input: T -> output: T",
    T=FLOATS,
    attributes=dict.fromkeys(_SETTINGS, REQUIRED),
    infer=_shape,
    kernel=_normalized,
    grad=lambda op, dy: normalize_responses_gradient_op(op.inputs[0], dy, **op.attributes),
    cost=elementwise(flops=20),
)

normalize_responses_gradient_op: OpDef = OpDef(
    "LRNGrad",
    "input: T, dy: T -> dx: T",
    T=FLOATS,
    attributes=dict.fromkeys(_SETTINGS, REQUIRED),
    infer=_gradient_shape,
    kernel=_normalized_gradient,
    grad=_second_gradient,
    cost=elementwise(flops=30),
)
