"""Clipping by values, and by norms, which keeps gradients short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value, elementwise
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import REALS
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.shape import broadcast as broadcast_shapes
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.element_choices import clipped
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.basis.broadcasting import sum_to_shape
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, zeros_like_op
from flowbook.graph.ops.basis.joining import stack
from flowbook.graph.ops.basis.shaping import size
from flowbook.graph.ops.linalg.norms import norm, reduce_euclidean_norm
from flowbook.graph.ops.math.arithmetic import maximum, multiply
from flowbook.graph.ops.math.comparison import less, where_op

__all__ = [
    "clip_by_average_norm",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "global_norm",
]


def _clip_gradient(op: Operation, dy: Tensor) -> Any:
    x, low, high = op.inputs
    zero = zeros_like_op(dy)
    is_low, is_high = less(x, low), less(high, maximum(x, low))
    inner = where_op(is_low | is_high, zero, dy)
    lower = where_op(is_high, zero, where_op(is_low, dy, zero))
    return (
        inner,
        sum_to_shape(lower, low, x, high),
        sum_to_shape(where_op(is_high, dy, zero), high, x, low),
    )


def _clipped(x: Tensor, low: Tensor, high: Tensor) -> Shape:
    whole = broadcast_shapes(x.shape, broadcast_shapes(low.shape, high.shape))
    if not whole.is_compatible_with(x.shape):
        raise InvalidArgumentError(
            f"the limits of shapes {low.shape} and {high.shape} do not broadcast to {x.shape}"
        )
    return x.shape


def _clip(xp: Any, x: Any, low: Any, high: Any) -> Any:
    result = clipped(xp, x, low, high)
    if result.shape != x.shape:
        raise InvalidArgumentError(
            f"the limits of shapes {list(low.shape)} and {list(high.shape)} do not broadcast to "
            f"{list(x.shape)}"
        )
    return result


clip_op = OpDef(
    "ClipByValue",
    "x: T, low: T, high: T -> y: T",
    T=REALS,
    infer=_clipped,
    kernel=_clip,
    grad=_clip_gradient,
    cost=elementwise(flops=2),
)


@clip_op.front
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Values outside two limits replaced by the limit: `minimum(maximum(t, min), max)`.

    Args:
        t: of a real dtype, or IndexedSlices, whose rows are clipped as they are.
        clip_value_min: the lower limit, of `t`'s dtype and a shape that broadcasts to `t`'s.
        clip_value_max: the upper limit, likewise.

    Returns:
        What `t` was: a tensor or IndexedSlices.
    """
    if isinstance(t, IndexedSlices):
        rows = clip_op(t.values, clip_value_min, clip_value_max, name=name)
        return IndexedSlices(rows, t.indices, t.dense_shape)
    return clip_op(t, clip_value_min, clip_value_max, name=name)


def _measured(t: Any) -> Any:
    """What counts for a norm: the rows of a sparse gradient, a tensor as it is."""
    return t.values if isinstance(t, IndexedSlices) else convert_to_tensor(t)


def _scaled(t: Any, factor: Tensor, name: str | None = None) -> Any:
    if isinstance(t, IndexedSlices):
        values = multiply(t.values, factor, name=name)
        return IndexedSlices(values, t.indices, t.dense_shape)
    return multiply(t, factor, name=name)


def _limit(clip_norm: Any, like: Tensor) -> Tensor:
    """The greatest norm, of a tensor's dtype."""
    limit: Tensor = convert_to_tensor(clip_norm, like.dtype)
    known = constant_value(limit)
    if known is not None and (known < 0).any():
        raise InvalidArgumentError(f"a norm is not negative: {known.min()}")
    return limit


@composed
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """A tensor scaled down, where it is longer, to a greatest Euclidean norm.

    Args:
        t: of a floating-point dtype, or IndexedSlices, whose rows are measured as they are.
        clip_norm: the greatest norm, a positive scalar of `t`'s dtype, or one for each that is
            taken.
        axes: an int or a sequence of ints, over which each norm is taken; None takes all.

    Returns:
        `t`, or `t * clip_norm / norm(t)` where that norm is larger than `clip_norm`; what `t` was:
        a tensor or IndexedSlices.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.clip_by_norm([3.0, 4.0], 1.0)))
    [0.6 0.8]
    """
    t = t if isinstance(t, IndexedSlices) else convert_to_tensor(t)
    length = reduce_euclidean_norm(_measured(t), axes, keepdims=True)
    limit = _limit(clip_norm, length)
    clipped = _scaled(t, limit / maximum(length, limit), name)
    given, found = _measured(t).shape, _measured(clipped).shape
    if not given.is_compatible_with(found):
        raise InvalidArgumentError(f"a clip_norm {limit.shape} does not fit t {given}")
    return clipped


@composed
def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """A tensor scaled down, where it is longer, to a greatest norm per element.

    Args:
        t: of a floating-point dtype.
        clip_norm: the greatest `norm(t) / size(t)`, a positive scalar of `t`'s dtype.
    """
    t = convert_to_tensor(t)
    average = norm(t) / cast(size(t), t.dtype)
    limit = _limit(clip_norm, t)
    return multiply(t, limit / maximum(average, limit), name=name)


@composed
def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The Euclidean norm of several tensors taken together: `sqrt(sum(norm(t) ** 2))`.

    Args:
        t_list: tensors of one floating-point dtype, IndexedSlices, or None, which does not count.

    Raises:
        InvalidTypeError: if `t_list` is no list.
        InvalidArgumentError: if nothing in it counts.
    """
    counted = [_measured(t) for t in _listed(t_list) if t is not None]
    if not counted:
        raise InvalidArgumentError("there is no tensor to take a norm of")
    norms = stack([reduce_euclidean_norm(t) for t in counted])
    return reduce_euclidean_norm(norms, name=name)


def _listed(t_list: Any) -> list[Any]:
    if not isinstance(t_list, Sequence) or isinstance(t_list, str | bytes):
        raise InvalidTypeError(f"a list of tensors is wanted, not {t_list!r}")
    return list(t_list)


@composed
def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """Several tensors scaled down by one factor, where they are longer together than a limit.

    Args:
        t_list: gradients, say: tensors of one floating-point dtype, IndexedSlices, or None.
        clip_norm: the greatest norm of all together, a positive scalar of their dtype.
        use_norm: their norm where it is known already; by default `global_norm(t_list)`.

    Returns:
        The list with each element scaled by `clip_norm / max(norm, clip_norm)`, None as it was; and
        the norm. Where the norm is infinite or NaN, so that no factor is right, all are NaN.

    Raises:
        InvalidTypeError: if `t_list` is no list.
        InvalidArgumentError: if nothing in it counts.

    Source: Pascanu et al., "On the difficulty of training recurrent neural networks", 2012.

    >>> import flowbook as fb
    >>> clipped, length = fb.clip_by_global_norm([fb.constant([3.0]), None, fb.constant(4.0)], 1.0)
    >>> with fb.Session() as sess:
    ...     print(*sess.run([clipped[0], clipped[2], length]))
    [0.6] 0.8 5.0
    """
    tensors = _listed(t_list)
    if use_norm is None:
        use_norm = global_norm(tensors)
    length = convert_to_tensor(use_norm)
    limit = _limit(clip_norm, length)
    factor = limit / maximum(length, limit)
    # 0 for a finite norm, NaN for any other.
    factor = factor + (length - length)
    return [None if t is None else _scaled(t, factor) for t in tensors], length
