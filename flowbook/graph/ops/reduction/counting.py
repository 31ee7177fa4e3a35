"""Counting: how often values occur, alone, in ranges, and in pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.axes import as_axis
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import elementwise
from flowbook.graph.definition.op_def import NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import (
    INDICES,
    NUMBERS,
    REALS,
    DType,
    as_dtype,
    int32,
    int64,
    string,
)
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, ones_like_op
from flowbook.graph.ops.basis.shaping import squeeze
from flowbook.graph.ops.math.comparison import not_equal
from flowbook.graph.ops.reduction.segments import combined

__all__ = [
    "bincount",
    "confusion_matrix",
    "count_nonzero",
    "histogram_fixed_width",
    "histogram_fixed_width_bins",
]


def _flops(op: Operation) -> int:
    return op.inputs[0].shape.size or 0


# Whole numbers


def _counts_shape(
    arr: Tensor, *weights: Any, minlength: int, maxlength: int | None, **_: Any
) -> Shape:
    if weights and not arr.shape.is_compatible_with(weights[0].shape):
        raise InvalidArgumentError(
            f"each of {arr.shape} numbers has a weight, but those have the shape {weights[0].shape}"
        )
    return Shape.of((maxlength if minlength == maxlength else None,))


def _positions(xp: Any, arr: Any, minlength: int, maxlength: int | None) -> tuple[Any, Any, int]:
    """The numbers that count as a vector, which they were, and how many counts there are."""
    values = xp.reshape(arr, -1)
    if values.size and values.min() < 0:
        raise InvalidArgumentError(f"a negative number, {int(values.min())}, is counted")
    length = max(minlength, int(values.max()) + 1 if values.size else 0)
    if maxlength is not None:
        length = min(length, maxlength)
    is_counted = values < length
    return values[is_counted], is_counted, length


def _bincount(xp: Any, arr: Any, minlength: int, maxlength: int | None, dtype: DType) -> Any:
    values, _, length = _positions(xp, arr, minlength, maxlength)
    return xp.bincount(values, minlength=length).astype(dtype.numpy)


def _weighted_bincount(
    xp: Any, arr: Any, weights: Any, minlength: int, maxlength: int | None
) -> Any:
    if arr.shape != weights.shape:
        raise InvalidArgumentError(
            f"{list(arr.shape)} numbers have weights of the shape {list(weights.shape)}"
        )
    values, counted, length = _positions(xp, arr, minlength, maxlength)
    chosen = xp.reshape(weights, -1)[counted]
    if weights.dtype.kind != "f":  # Sums of large integers have no place in a float64.
        return combined(xp, "add", chosen, values, length, 0)
    if xp is np:
        return xp.bincount(values, chosen, minlength=length).astype(weights.dtype)
    # Others add in any order, and so not to the same sum in every run.
    sums = combined(xp, "add", chosen.astype(np.float64), values, length, 0)
    return sums.astype(weights.dtype)


bincount_op = OpDef(
    "Bincount",
    "arr: I -> counts: dtype",
    I=INDICES,
    attributes={"minlength": 0, "maxlength": None, "dtype": int32},
    infer=_counts_shape,
    kernel=_bincount,
    grad=NO_GRADIENT,
    cost=_flops,
)

weighted_bincount_op = OpDef(
    "WeightedBincount",
    "arr: I, weights: T -> sums: T",
    I=INDICES,
    T=REALS,
    attributes={"minlength": 0, "maxlength": None},
    infer=_counts_shape,
    kernel=_weighted_bincount,
    grad=NO_GRADIENT,
    cost=_flops,
)


@bincount_op.front
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: int | None = None,
    maxlength: int | None = None,
    dtype: Any = int32,
    name: str | None = None,
) -> Tensor:
    """How often each whole number from 0 occurs.

    Args:
        arr: int32 or int64 of any shape, not negative.
        weights: of `arr`'s shape and a real dtype: what each element counts; by default 1.
        minlength: the least number of counts.
        maxlength: the greatest number of counts; larger numbers do not count.
        dtype: the dtype of the counts, where there are no weights.

    Returns:
        A vector as long as the largest number needs, within the limits; with weights, sums of them
        of their dtype. No gradient flows to the weights.

    Raises:
        InvalidArgumentError: in the run, if a number is negative.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.bincount([1, 1, 3])))
    [0 2 0 1]
    """
    least = 0 if minlength is None else _length("minlength", minlength)
    most = None if maxlength is None else _length("maxlength", maxlength)
    wanted = _numeric_dtype(dtype)
    if weights is None:
        return bincount_op(arr, minlength=least, maxlength=most, dtype=wanted, name=name)
    return weighted_bincount_op(arr, weights, minlength=least, maxlength=most, name=name)


def _length(what: str, value: Any) -> int:
    length = as_axis(value)
    if length < 0:
        raise InvalidArgumentError(f"{what} is a length, not {length}")
    return length


def _numeric_dtype(dtype: Any) -> DType:
    wanted = as_dtype(dtype)
    if not wanted.is_numeric:
        raise InvalidTypeError(f"counts are numbers, not {wanted.name}")
    return wanted


# Ranges


def _bins_shape(values: Tensor, value_range: Tensor, **_: Any) -> Shape:
    if not value_range.shape.is_compatible_with(Shape([2])):
        raise InvalidArgumentError(
            f"value_range is [lowest, highest], not of the shape {value_range.shape}"
        )
    return values.shape


def _bins(xp: Any, values: Any, value_range: Any, nbins: int, dtype: DType) -> Any:
    if value_range.shape != (2,):
        raise InvalidArgumentError(
            f"value_range is [lowest, highest], not of the shape {list(value_range.shape)}"
        )
    low, high = (float(end) for end in value_range)
    if not low < high:
        raise InvalidArgumentError(f"value_range is [lowest, highest], not [{low}, {high}]")
    wide = xp.asarray(values, np.float64)
    place = xp.floor((wide - low) / (high - low) * nbins)
    # NaN is in no bin: the first takes it, as anything below.
    place = xp.clip(xp.where(xp.isnan(place), 0, place), 0, nbins - 1)
    return place.astype(dtype.numpy)


bins_op = OpDef(
    "HistogramFixedWidthBins",
    "values: T, value_range: T -> bins: dtype",
    T=REALS,
    attributes={"nbins": REQUIRED, "dtype": int32},
    infer=_bins_shape,
    kernel=_bins,
    host_args=("value_range",),
    grad=NO_GRADIENT,
    cost=elementwise(flops=5),
)


@bins_op.front
def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: int = 100, dtype: Any = int32, name: str | None = None
) -> Tensor:
    """In which of equally wide bins each value lies.

    Args:
        values: of a real dtype and any shape.
        value_range: `[lowest, highest]` of the same dtype. Values below are in the first bin, and
            those from the highest on in the last; NaN is in the first.
        nbins: how many bins, at least 1.
        dtype: int32 or int64.

    Returns:
        Numbers from 0 to `nbins - 1`, of the shape of `values`.

    Raises:
        InvalidArgumentError: if there is no bin; in the run, if the range is empty.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.histogram_fixed_width_bins([-1.0, 0.5, 2.5, 9.0], [0.0, 5.0], 5)))
    [0 0 2 4]
    """
    count = _bin_count(nbins)
    wanted = as_dtype(dtype)
    if wanted not in INDICES:
        raise InvalidTypeError(f"bins are numbered by int32 or int64, not {wanted.name}")
    values = convert_to_tensor(values)
    return bins_op(values, value_range, nbins=count, dtype=wanted, name=name)


def _bin_count(nbins: Any) -> int:
    count = as_axis(nbins)
    if count < 1:
        raise InvalidArgumentError(f"there are {count} bins, but at least one is wanted")
    return count


@composed
def histogram_fixed_width(
    values: Any, value_range: Any, nbins: int = 100, dtype: Any = int32, name: str | None = None
) -> Tensor:
    """How many values lie in each of equally wide bins: a vector [nbins].

    Arguments and errors as for `histogram_fixed_width_bins`; `dtype` is that of the counts.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.histogram_fixed_width([-1.0, 0.5, 2.5, 9.0], [0.0, 5.0], 5)))
    [2 0 1 0 1]
    """
    bins = histogram_fixed_width_bins(values, value_range, nbins)
    return bincount(bins, minlength=nbins, maxlength=nbins, dtype=dtype, name=name)


@composed
def count_nonzero(
    input: Any,
    axis: Any = None,
    keepdims: bool = False,
    dtype: Any = int64,
    name: str | None = None,
) -> Tensor:
    """How many elements are not zero, over axes.

    Args:
        input: of any dtype. NaN is not zero; of strings the empty one is.
        axis: an int or a sequence of ints, negative ones counted from the last; None takes all.
        keepdims: keep the axes, with size 1.
        dtype: the dtype of the counts.
    """
    x = convert_to_tensor(input)
    wanted = _numeric_dtype(dtype)
    is_counted = x if x.dtype is bool_ else not_equal(x, b"" if x.dtype is string else 0)
    total = reduce_sum(cast(is_counted, int64), axis, keepdims)
    return cast(total, wanted, name=name)


# Pairs


def _confusion_shape(
    labels: Tensor, predictions: Tensor, weights: Tensor, num_classes: int | None, **_: Any
) -> Shape:
    for other in (predictions, weights):
        if not labels.shape.is_compatible_with(other.shape):
            raise InvalidArgumentError(
                f"labels, predictions and weights have one shape, not {labels.shape}, "
                f"{predictions.shape} and {weights.shape}"
            )
    return Shape.of((num_classes, num_classes))


def _confusion(
    xp: Any, labels: Any, predictions: Any, weights: Any, num_classes: int | None, dtype: DType
) -> Any:
    if not labels.shape == predictions.shape == weights.shape:
        raise InvalidArgumentError(
            f"labels, predictions and weights have one shape, not {list(labels.shape)}, "
            f"{list(predictions.shape)} and {list(weights.shape)}"
        )
    sides = [xp.reshape(side, -1).astype(np.int64) for side in (labels, predictions)]
    largest = max([int(side.max()) for side in sides if side.size], default=-1)
    count = largest + 1 if num_classes is None else num_classes
    for what, side in zip(("label", "prediction"), sides, strict=True):
        wrong = side[(side < 0) | (side >= count)]
        if wrong.size:
            raise InvalidArgumentError(
                f"the {what} {int(wrong[0])} is none of {counted(count, 'class', 'classes')}, "
                "from 0"
            )
    pairs = sides[0] * np.int64(count) + sides[1]
    # Each weight counts in the dtype of the result, as if it were added alone.
    added = xp.reshape(weights, -1).astype(dtype.numpy)
    return combined(xp, "add", added, pairs, count * count, 0).reshape(count, count)


confusion_op = OpDef(
    "ConfusionMatrix",
    "labels: I, predictions: I, weights: T -> matrix: dtype",
    I=INDICES,
    T=NUMBERS,
    attributes={"num_classes": None, "dtype": int32},
    infer=_confusion_shape,
    kernel=_confusion,
    grad=NO_GRADIENT,
    cost=_flops,
)


def _classes(values: Any) -> Tensor:
    """Numbers of classes in a dtype of indices."""
    tensor = convert_to_tensor(values)
    return (
        cast(tensor, int64) if tensor.dtype.is_integer and tensor.dtype not in INDICES else tensor
    )


@confusion_op.front
def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: int | None = None,
    dtype: Any = int32,
    weights: Any = None,
    name: str | None = None,
) -> Tensor:
    """How often examples of each class were predicted to be of each class.

    Args:
        labels: [n] or [n, 1] of an integer dtype, the right classes.
        predictions: likewise, the predicted ones.
        num_classes: how many classes there are; by default as many as the largest number needs.
        dtype: the dtype of the counts.
        weights: [n] of a numeric dtype: what each example counts; by default 1.

    Returns:
        [num_classes, num_classes], labels in rows and predictions in columns.

    Raises:
        InvalidArgumentError: in the run, if a number is none of the classes.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.confusion_matrix([0, 1, 1], [0, 1, 0])))
    [[1 0]
     [1 1]]
    """
    count = None if num_classes is None else _length("num_classes", num_classes)
    wanted = _numeric_dtype(dtype)
    labels, predictions = _classes(labels), _classes(predictions)
    if labels.dtype is not predictions.dtype:
        labels, predictions = cast(labels, int64), cast(predictions, int64)
    ranks = labels.shape.rank, predictions.shape.rank
    labels = squeeze(labels, -1) if ranks == (2, 1) else labels
    predictions = squeeze(predictions, -1) if ranks == (1, 2) else predictions
    if weights is None:
        weights = ones_like_op(labels)
    return confusion_op(labels, predictions, weights, num_classes=count, dtype=wanted, name=name)
