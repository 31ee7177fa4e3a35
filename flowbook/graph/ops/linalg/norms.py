"""Norms of vectors and matrices along axes. Complex ones are measured by magnitude: norms are real.

Invariant: where everything is zero, so is the gradient, and nothing overflows on the way to a norm
that can be told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import as_axis, in_range
from flowbook.graph.definition.composed import composed
from flowbook.graph.model.dtypes import REALS
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError, UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.sums import Axes, sum_over, wide_dtype
from flowbook.graph.ops.basis.broadcasting import reduce, reduce_sum, reduction, with_reduced_axes
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, ones_like_op, stop_gradient
from flowbook.graph.ops.basis.permuting import transpose
from flowbook.graph.ops.basis.shaping import expand_dims_op, squeeze
from flowbook.graph.ops.linalg.spectra import svd
from flowbook.graph.ops.math.arithmetic import divide, multiply
from flowbook.graph.ops.math.comparison import equal, where_op
from flowbook.graph.ops.math.complex import abs
from flowbook.graph.ops.math.no_nan import div_no_nan
from flowbook.graph.ops.reduction.reductions import reduce_max

__all__ = ["norm", "normalize", "reduce_euclidean_norm"]


def _euclidean_norm(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    if x.dtype.kind != "f":
        wide = xp.sqrt(xp.sum(xp.square(x.astype(np.float64)), axis=axis, keepdims=keepdims))
        return wide.astype(x.dtype)
    wide = wide_dtype(x.dtype)
    values = x.astype(wide, copy=False)
    total = sum_over(xp, xp.square(values), axis, keepdims)
    limits = np.finfo(wide)
    if x.size and not xp.all((total > limits.tiny / limits.eps) & (total < limits.max)):
        total = _scaled_norm(xp, values, axis, keepdims)
    else:
        total = xp.sqrt(total)
    return total.astype(x.dtype, copy=False)


def _scaled_norm(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    """The same by values of at most 1, whose squares neither overflow nor vanish."""
    largest = xp.max(xp.absolute(x), axis=axis, keepdims=True)
    scale = xp.where((largest > 0) & (largest < np.inf), largest, 1)
    total = xp.sum(xp.square(x / scale), axis=axis, keepdims=True)
    scaled = xp.sqrt(total) * scale
    return scaled if keepdims else xp.squeeze(scaled, axis)


def _euclidean_norm_gradient(op: Operation, dy: Tensor) -> Tensor | None:
    x, y = op.inputs[0], op.outputs[0]
    if x.dtype.is_integer:
        return None
    # The direction first: an inverse of the norm alone would overflow.
    direction: Tensor = div_no_nan(x, with_reduced_axes(op, y))
    return direction * with_reduced_axes(op, dy)


euclidean_norm_op = reduction(
    "EuclideanNorm", _euclidean_norm, _euclidean_norm_gradient, REALS, flops=2
)


@euclidean_norm_op.front
def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squares over axes, without overflow; 0 over nothing.

    The gradient where all are zero is 0. Norms of integers lose their fraction; those of complex
    numbers are real. Arguments and errors as for `reduce_sum`.
    """
    x = convert_to_tensor(input_tensor)
    if x.dtype.is_complex:
        x = abs(x)
    return reduce(euclidean_norm_op, x, axis, keepdims, name)


@composed
def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """The norm of vectors or matrices.

    Args:
        tensor: of a floating-point or complex dtype.
        ord: which norm. Of vectors: "euclidean" (2), 1, 2, `numpy.inf`, or any positive number p
            for `sum(abs(x) ** p) ** (1 / p)`. Of matrices: "euclidean" or "fro", the root of the
            sum of squares; 1, the largest sum of a column; `numpy.inf`, of a row; 2, the largest
            singular value.
        axis: None takes all elements as one vector; an int takes vectors along it; a pair of ints
            matrices, with rows along the first of them.
        keepdims: keep the axes, with size 1.

    Returns:
        Norms, of the tensor's dtype; real ones of complex tensors.

    Raises:
        InvalidArgumentError: if there is no such norm or axis.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.norm([[3.0, 4.0], [0.0, 2.0]], axis=1)))
    [5. 2.]
    """
    x = convert_to_tensor(tensor)
    if not (x.dtype.is_floating or x.dtype.is_complex):
        raise InvalidTypeError(
            f"norms are of floating-point or complex tensors, not {x.dtype.name}",
            hint="fb.cast converts",
        )
    axes = _norm_axes(axis, x)
    _check_order(ord, axes)
    if ord in ("euclidean", "fro") or (ord == 2 and not isinstance(axes, tuple)):
        return reduce_euclidean_norm(x, axes, keepdims, name=name)
    if isinstance(axes, tuple):
        return _matrix_norm(x, ord, axes, keepdims, name)
    return _vector_norm(abs(x), ord, axes, keepdims, name)


@composed
def normalize(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Vectors or matrices, each divided by its norm.

    Args:
        tensor: as for `norm`, and so are ord and axis.
        ord: which norm.
        axis: what are its vectors or matrices.

    Returns:
        `(normalized, norm)`: the first of the tensor's shape, NaN where the norm is 0; the norms
        with the axes kept, of size 1.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.normalize([3.0, 4.0])[0]))
    [0.6 0.8]
    """
    x = convert_to_tensor(tensor)
    size = norm(x, ord, axis, keepdims=True)
    return divide(x, cast(size, x.dtype), name=name), size


def _norm_axes(axis: Any, x: Tensor) -> Any:
    """None, an int, or a pair of ints, counted from the first where the rank is known."""
    rank = x.shape.rank
    if axis is None:
        return None
    if not isinstance(axis, list | tuple):
        axis = as_axis(axis)
        return axis if rank is None else in_range(axis, rank)
    if len(axis) != 2:
        raise InvalidArgumentError(f"axis is None, an int or a pair of ints, not {axis!r}")
    pair = tuple(as_axis(a) for a in axis)
    if rank is not None:
        pair = tuple(in_range(a, rank) for a in pair)
    if pair[0] == pair[1]:
        raise InvalidArgumentError(f"axis {tuple(axis)} names a dimension twice")
    return pair


def _check_order(ord: Any, axes: Any) -> None:
    named = ("euclidean", "fro") if isinstance(axes, tuple) else ("euclidean",)
    known: bool
    if isinstance(ord, str):
        known = ord in named
    elif isinstance(axes, tuple):
        known = ord in (1, 2, math.inf)
    else:
        known = isinstance(ord, int | float | np.number) and bool(ord > 0)
    if not known:
        what = "a matrix" if isinstance(axes, tuple) else "a vector"
        numbers = "1, 2 or inf" if isinstance(axes, tuple) else "a positive number"
        raise InvalidArgumentError(
            f"{what} has no norm {ord!r}: it is {', '.join(named)}, {numbers}"
        )


def _vector_norm(x: Tensor, ord: float, axis: Any, keepdims: bool, name: str | None) -> Tensor:
    if ord == 1:
        return reduce_sum(x, axis, keepdims, name=name)
    if ord == math.inf:
        return reduce_max(x, axis, keepdims, name=name)
    # What it is scaled by cancels, so that no gradient flows through it.
    largest = stop_gradient(reduce_max(x, axis, keepdims=True))
    is_zero = equal(largest, 0)
    one = ones_like_op(largest)
    total = reduce_sum((x / where_op(is_zero, one, largest)) ** float(ord), axis, keepdims=True)
    root = where_op(is_zero, one, total) ** (1 / float(ord))
    if keepdims:
        return multiply(largest, root, name=name)
    return reduce_sum(largest * root, axis, name=name)


def _matrix_norm(
    x: Tensor, ord: float, axes: Sequence[int], keepdims: bool, name: str | None
) -> Tensor:
    if ord == 2:
        return _spectral_norm(x, axes, keepdims, name)
    summed, compared = axes if ord == 1 else axes[::-1]
    sums = reduce_sum(abs(x), summed, keepdims=True)
    if keepdims:
        return reduce_max(sums, compared, keepdims=True, name=name)
    return squeeze(reduce_max(sums, compared, keepdims=True), axes, name=name)


def _spectral_norm(x: Tensor, axes: Sequence[int], keepdims: bool, name: str | None) -> Tensor:
    rank = x.shape.rank
    if rank is not None:
        others = [k for k in range(rank) if k not in axes]
        x = transpose(x, [*others, *axes])
    elif set(axes) != {-2, -1}:  # Transposed matrices have the same singular values.
        raise UnimplementedError(
            f"the matrices of {x.name} are not known while its rank is not",
            hint="fb.reshape gives it one",
        )
    values = svd(x, compute_uv=False)
    if not keepdims:
        return reduce_max(values, -1, name=name)
    return expand_dims_op(reduce_max(values, -1), axis=tuple(sorted(axes)), name=name)
