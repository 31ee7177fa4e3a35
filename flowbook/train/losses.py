"""Losses of a model's predictions, weighted and reduced to a scalar.

Each is a loss of every element or example, times its weight, reduced as `Reduction` says: by
default the mean over what has a weight other than 0. Labels and weights count in the dtype of the
predictions, integers as single precision; half precision is summed up in single.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.graph.building.scopes import control_dependencies
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.descriptions import arguments_as
from flowbook.graph.model.attributes import check_choice
from flowbook.graph.model.dtypes import DType, float32, int64
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.broadcasting import broadcast_to, reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity, stop_gradient
from flowbook.graph.ops.basis.filling import ones, ones_like
from flowbook.graph.ops.basis.shaping import rank, reshape, size, squeeze
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.checks.assertions import assert_rank_in
from flowbook.graph.ops.math.arithmetic import maximum, minimum, squared_difference
from flowbook.graph.ops.math.comparison import not_equal
from flowbook.graph.ops.math.complex import abs as absolute
from flowbook.graph.ops.math.elementwise import log, square
from flowbook.graph.ops.math.no_nan import div_no_nan
from flowbook.graph.ops.nn.activations import relu
from flowbook.graph.ops.nn.losses import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from flowbook.graph.ops.reduction.reductions import reduce_mean, reduce_prod

__all__ = [
    "Reduction",
    "absolute_difference",
    "compute_weighted_loss",
    "cosine_distance",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]


class Reduction:
    """How the losses of elements or examples, times their weights, become one."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"


def _weighing(losses: Tensor, weights: Tensor) -> Tensor:
    """How many losses have a weight other than 0."""
    return _spread(cast(not_equal(weights, 0.0), losses.dtype), losses)


def _spread(weights: Tensor, losses: Tensor) -> Tensor:
    """The sum of weights, each as often as it counts."""
    if weights.shape.rank == 0:
        return weights * cast(size(losses, out_type=int64), weights.dtype)
    return reduce_sum(weights)


_DIVISORS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    Reduction.SUM: lambda losses, weights: None,
    Reduction.SUM_OVER_BATCH_SIZE: lambda losses, _: cast(
        size(losses, out_type=int64), losses.dtype
    ),
    Reduction.MEAN: lambda losses, weights: _spread(weights, losses),
    Reduction.SUM_BY_NONZERO_WEIGHTS: _weighing,
}


@composed("weighted_loss")
def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    name: str | None = None,
) -> Tensor:
    """Reduce the losses of elements or examples to one.

    Args:
        losses: a tensor of any shape.
        weights: a scalar, or a tensor of the losses' rank whose dimensions are theirs or 1: what
            each loss is multiplied by. A loss of weight 0 does not count.
        reduction: a `Reduction`: `SUM` adds up; `MEAN` divides the sum by that of the weights,
            `SUM_OVER_BATCH_SIZE` by the number of losses, `SUM_BY_NONZERO_WEIGHTS` by the number
            of those whose weight is not 0; the quotient of nothing is 0. `NONE` leaves all.

    Returns:
        A scalar of the losses' dtype; for `NONE` a tensor of their shape.

    Raises:
        InvalidArgumentError: if the weights do not broadcast to the losses.

    >>> import flowbook as fb
    >>> loss = fb.losses.compute_weighted_loss([1.0, 2.0, 4.0], weights=[1.0, 1.0, 0.0])
    >>> with fb.Session() as sess:
    ...     print(sess.run(loss))
    1.5
    """
    losses = _floating(losses)
    check_choice("reduction", reduction, (Reduction.NONE, *_DIVISORS))
    wide = float32 if losses.dtype.size < 4 else losses.dtype
    values, weights = cast(losses, wide), cast(_checked_weights(losses, weights), wide)
    if weights.shape.rank != 0:
        weights = _spread_over(weights, losses)
    weighted = values * weights
    if reduction != Reduction.NONE:
        divisor = _DIVISORS[reduction](values, weights)
        weighted = reduce_sum(weighted)
        weighted = weighted if divisor is None else div_no_nan(weighted, divisor)
    return identity(cast(weighted, losses.dtype), name="value")


def spread_weights(values: Tensor, weights: Any, dtype: DType) -> Tensor:
    """Weights in the shape of what they weigh, a scalar's too, and in a dtype."""
    return _spread_over(cast(_checked_weights(values, weights), dtype), values)


def _spread_over(weights: Tensor, losses: Tensor) -> Tensor:
    # In the run too, weights have the losses' rank, and add none by broadcasting.
    with control_dependencies(_rank_checks(losses, weights)):
        return broadcast_to(weights, shape_of(losses))


def _rank_checks(losses: Tensor, weights: Tensor) -> list[Operation]:
    """What fails the step if weights are neither a scalar nor of the losses' rank."""
    if weights.shape.rank == 0 or None not in (losses.shape.rank, weights.shape.rank):
        return []
    return [assert_rank_in(weights, [0, rank(losses)], message="weights do not fit their losses")]


def _checked_weights(losses: Tensor, weights: Any) -> Tensor:
    """Weights whose shape, as far as it is known, is a scalar's or broadcasts to the losses'."""
    if weights is None:
        raise InvalidArgumentError("weights is a number or a tensor, not None")
    weights = convert_to_tensor(weights)
    given, wanted = weights.shape.dims, losses.shape.dims
    fits = not given or wanted is None or len(given) == len(wanted)
    if fits and given and wanted:
        fits = all(w in (1, None, d) or d is None for w, d in zip(given, wanted, strict=True))
    if not fits:
        raise InvalidArgumentError(
            f"weights of shape {weights.shape} do not broadcast to losses of shape {losses.shape}",
            hint="they are a scalar, or have as many dimensions, each of the same size or 1",
        )
    return weights  # type: ignore[no-any-return]


def _floating(x: Any, dtype: DType | None = None) -> Tensor:
    """A tensor of a floating-point dtype: this one, its own, or that of single precision."""
    x = convert_to_tensor(x)
    if x.dtype.is_complex:
        raise InvalidTypeError(
            f"losses are real, and {x!r} is not", hint="take its parts: fb.real(x), fb.abs(x)"
        )
    return cast(x, dtype or (x.dtype if x.dtype.is_floating else float32))


def _pair(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Labels and predictions of one dtype and shape."""
    predictions = _floating(predictions)
    labels = _floating(labels, predictions.dtype)
    if not labels.shape.is_compatible_with(predictions.shape):
        raise InvalidArgumentError(
            f"labels of shape {labels.shape} and predictions of shape {predictions.shape} differ"
        )
    return labels, predictions


def _compared(
    loss: Callable[[Tensor, Tensor], Tensor],
    labels: Any,
    predictions: Any,
    weights: Any,
    reduction: str,
    name: str | None,
) -> Tensor:
    """The weighted loss of predictions that have the labels' shape."""
    labels, predictions = _pair(labels, predictions)
    return compute_weighted_loss(loss(labels, predictions), weights, reduction, name)


@composed
def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    name: str | None = None,
) -> Tensor:
    """The loss `|predictions - labels|` of each element.

    Args:
        labels: what is wanted.
        predictions: of the same shape.
        weights: a scalar, or a tensor of the same rank whose dimensions are equal or 1.
        reduction: a `Reduction`.

    Returns:
        A scalar of the predictions' dtype; for `Reduction.NONE` a tensor of their shape.

    Raises:
        InvalidArgumentError: if shapes do not go together.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.losses.absolute_difference([1.0, 2.0], [1.5, 4.0])))
    1.25
    """
    return _compared(
        lambda wanted, given: absolute(given - wanted),
        labels,
        predictions,
        weights,
        reduction,
        name,
    )


@composed
@arguments_as(absolute_difference)
def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    name: str | None = None,
) -> Tensor:
    """The loss `(predictions - labels)²` of each element."""
    return _compared(squared_difference, labels, predictions, weights, reduction, name)


@composed
@arguments_as(absolute_difference)
def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    name: str | None = None,
) -> Tensor:
    """Half the square of each difference; beyond `delta`, the line that goes on from there.

    Args:
        delta: where the line begins.

    Source: Huber, "Robust estimation of a location parameter", 1964.
    """

    def loss(wanted: Tensor, given: Tensor) -> Tensor:
        distance = absolute(given - wanted)
        near = minimum(distance, delta)
        return square(near) * 0.5 + (distance - near) * delta

    return _compared(loss, labels, predictions, weights, reduction, name)


@composed
@arguments_as(absolute_difference)
def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    name: str | None = None,
) -> Tensor:
    """The cross entropy of labels in [0, 1] and predicted probabilities, elementwise.

    It is `-labels log(predictions + epsilon) - (1 - labels) log(1 - predictions + epsilon)`. From
    logits, `sigmoid_cross_entropy` is more exact.

    Args:
        epsilon: what keeps the logarithms finite.
    """

    def loss(wanted: Tensor, given: Tensor) -> Tensor:
        no = (1.0 - wanted) * log(1.0 - given + epsilon)
        return -(wanted * log(given + epsilon)) - no

    return _compared(loss, labels, predictions, weights, reduction, name)


@composed
@arguments_as(absolute_difference)
def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    name: str | None = None,
) -> Tensor:
    """The loss `max(0, 1 - y logits)`, where y is 1 for labels of 1 and -1 for labels of 0.

    Args:
        labels: 0 or 1, or anything between.
        logits: of the same shape.
    """
    return _compared(
        lambda wanted, given: relu(1.0 - (wanted * 2.0 - 1.0) * given),
        labels,
        logits,
        weights,
        reduction,
        name,
    )


@composed
@arguments_as(absolute_difference)
def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int,
    weights: Any = 1.0,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    name: str | None = None,
) -> Tensor:
    """One minus the inner product of labels and predictions, both of norm 1, along an axis.

    Args:
        axis: along which both have the norm 1.
        weights: a scalar, or a tensor of the same rank whose dimensions are equal or 1, and 1 along
            the axis.
    """
    return _compared(
        lambda wanted, given: 1.0 - reduce_sum(wanted * given, axis, keepdims=True),
        labels,
        predictions,
        weights,
        reduction,
        name,
    )


@composed
def mean_pairwise_squared_error(
    labels: Any, predictions: Any, weights: Any = 1.0, name: str | None = None
) -> Tensor:
    """How the differences between an example's elements differ from those between its labels.

    For each example it is the mean of `((p_i - p_j) - (l_i - l_j))²` over all pairs of elements;
    examples are added up.

    Args:
        labels: [batch, ...], what is wanted.
        predictions: of the same shape.
        weights: a scalar, or a tensor of the same rank whose dimensions are equal or 1: usually
            [batch, 1, ...], those of the examples. Where an example has several, its loss counts
            once for each, and has as many elements as there are weights other than 0.

    Returns:
        A scalar of the predictions' dtype.

    Raises:
        InvalidArgumentError: if shapes do not go together.
    """
    labels, predictions = _pair(labels, predictions)
    if predictions.shape.rank == 0:
        raise InvalidArgumentError("predictions are [batch, ...], not a scalar")
    weights = _checked_weights(predictions, weights)
    differences = predictions - labels
    dims, dtype = shape_of(differences), differences.dtype
    with control_dependencies(_rank_checks(differences, weights)):
        # A scalar gets the rank, too.
        weights = cast(weights, dtype) * ones(ones_like(dims), dtype)
    counts = broadcast_to(cast(not_equal(weights, 0.0), dtype), dims)
    rows, present = _rows(differences), reduce_sum(_rows(counts), 1)
    # All pairs' squares add up to as many times those of the distances from the mean.
    spread = reduce_sum(square(rows - reduce_mean(rows, 1, keepdims=True)), 1)
    share = div_no_nan(ones([], dtype), cast(shape_of(rows)[1], dtype))
    beyond = square(reduce_sum(rows, 1)) * (share - div_no_nan(ones([], dtype), present))
    losses = div_no_nan((spread + beyond) * 2.0, maximum(present - 1.0, 0.0))
    return compute_weighted_loss(losses, reduce_sum(_rows(weights), 1), Reduction.SUM, name)


def _rows(x: Tensor) -> Tensor:
    """What is [batch, ...] as [batch, elements]."""
    dims = shape_of(x)
    return reshape(x, [dims[0], reduce_prod(dims[1:])])


@composed("sigmoid_cross_entropy_loss")
@arguments_as(absolute_difference)
def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0.0,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    name: str | None = None,
) -> Tensor:
    """The cross entropy of independent yes-or-no labels and the sigmoid of logits, elementwise.

    Args:
        multi_class_labels: the wanted probabilities.
        logits: of the same shape.
        label_smoothing: how far labels are moved towards one half, from 0 to 1.

    Returns:
        A scalar of the logits' dtype; for `Reduction.NONE` a tensor of their shape.

    Raises:
        InvalidArgumentError: if shapes do not go together.
    """
    return _compared(
        lambda wanted, given: sigmoid_cross_entropy_with_logits(
            labels=_smoothed(wanted, label_smoothing, 2), logits=given
        ),
        multi_class_labels,
        logits,
        weights,
        reduction,
        name,
    )


def _smoothed(labels: Tensor, smoothing: float, classes: Any) -> Tensor:
    if not smoothing:
        return labels
    return labels * (1.0 - smoothing) + smoothing / classes  # type: ignore[no-any-return]


@composed("softmax_cross_entropy_loss")
def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0.0,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    name: str | None = None,
) -> Tensor:
    """The cross entropy of labels and the softmax of logits, for each example.

    Args:
        onehot_labels: [..., classes], the wanted probabilities; no gradient flows to them.
        logits: [..., classes].
        weights: a scalar, or [...] with dimensions that are equal or 1.
        label_smoothing: how far labels are moved towards 1 / classes, from 0 to 1.
        reduction: a `Reduction`.

    Returns:
        A scalar of the logits' dtype; for `Reduction.NONE` a tensor [...].

    Raises:
        InvalidArgumentError: if shapes do not go together.
    """

    def loss(wanted: Tensor, given: Tensor) -> Tensor:
        classes = cast(shape_of(given)[-1], given.dtype) if label_smoothing else None
        return softmax_cross_entropy_with_logits(
            labels=_smoothed(stop_gradient(wanted), label_smoothing, classes), logits=given
        )

    return _compared(loss, onehot_labels, logits, weights, reduction, name)


@composed("sparse_softmax_cross_entropy_loss")
def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    name: str | None = None,
) -> Tensor:
    """The cross entropy of classes and the softmax of logits, for each example.

    Args:
        labels: [...] or [..., 1], int32 or int64: the class of each example.
        logits: [..., classes].
        weights: a scalar, or [...] or [..., 1] with dimensions that are equal or 1.
        reduction: a `Reduction`.

    Returns:
        A scalar of the logits' dtype; for `Reduction.NONE` a tensor [...].

    Raises:
        InvalidArgumentError: if shapes do not go together.
        InvalidIndexError: in the run, if a label is no class.

    >>> import flowbook as fb
    >>> loss = fb.losses.sparse_softmax_cross_entropy([1, 0], [[0.0, 9.0], [0.0, 0.0]])
    >>> with fb.Session() as sess:
    ...     print(round(float(sess.run(loss)), 4))
    0.3466
    """
    logits, labels = _floating(logits), convert_to_tensor(labels)
    labels = _without_column(labels, logits)
    if weights is not None:
        weights = _without_column(convert_to_tensor(weights), logits)
    losses = sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return compute_weighted_loss(losses, weights, reduction, name)


def _without_column(x: Tensor, logits: Tensor) -> Tensor:
    """What has one value for each example, if it has a last dimension of 1 for that."""
    if x.shape.rank is None or logits.shape.rank is None:
        # Only the run knows whether there is one; more than one value does not fit what is left.
        return reshape(x, shape_of(x)[: rank(logits) - 1])
    if x.shape.dims and x.shape.rank == logits.shape.rank and x.shape.dims[-1] == 1:
        return squeeze(x, -1)
    return x
