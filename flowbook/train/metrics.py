"""Metrics of a model's predictions, counted over as many runs as there are batches.

Each adds up what it needs in variables of its own, which are not trained, in double precision: a
sum of single precision would stop growing at some 16 million examples. It gives a `Metric`: what
has been counted so far, and an operation to run with each batch. `fb.variables_initializer` of
the variables in a metric's name scope has it begin anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.building.scopes import control_dependencies
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.descriptions import arguments_as
from flowbook.graph.model.attributes import check_choice
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.dtypes import float32, float64, int64
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.gathering import gather
from flowbook.graph.ops.arrays.positions import searchsorted
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import constant, convert_to_tensor, identity
from flowbook.graph.ops.basis.filling import zeros
from flowbook.graph.ops.basis.shaping import reshape
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.checks.assertions import (
    assert_equal,
    assert_greater_equal,
    assert_less_equal,
)
from flowbook.graph.ops.linalg.diagonals import diag_part
from flowbook.graph.ops.math.arithmetic import squared_difference
from flowbook.graph.ops.math.comparison import equal, less, not_equal
from flowbook.graph.ops.math.complex import abs as absolute
from flowbook.graph.ops.math.elementwise import sqrt
from flowbook.graph.ops.math.no_nan import div_no_nan
from flowbook.graph.ops.reduction.counting import bincount, confusion_matrix
from flowbook.graph.ops.reduction.reductions import reduce_mean
from flowbook.graph.ops.reduction.scans import cumsum
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.ops.state.writing import assign_add
from flowbook.train.losses import spread_weights

__all__ = [
    "Metric",
    "accuracy",
    "auc",
    "false_negatives",
    "false_positives",
    "mean",
    "mean_absolute_error",
    "mean_iou",
    "mean_per_class_accuracy",
    "mean_relative_error",
    "mean_squared_error",
    "percentage_below",
    "precision",
    "precision_at_thresholds",
    "recall",
    "recall_at_thresholds",
    "root_mean_squared_error",
    "true_negatives",
    "true_positives",
]

# Keeps the rates of a curve defined where there are no positives or no negatives.
_LITTLE = 1e-12


class Metric(NamedTuple):
    """A metric's two ends.

    Attributes:
        value: what was counted before the run, float32.
        update: counts what the run is given, and gives the metric with it.
    """

    value: Tensor
    update: Tensor


def _metric(metric: Callable[..., Tensor], **counts: Tensor) -> Metric:
    """A metric of what is counted in all runs, from what is counted in one."""
    totals, updated = [], []
    for name, count in counts.items():
        count = cast(count, float64)
        total = Variable(zeros(count.shape.as_list(), float64), trainable=False, name=name)
        totals.append(total)
        updated.append(assign_add(total, count))
    value = cast(metric(*map(identity, totals)), float32)
    return Metric(identity(value, name="value"), cast(metric(*updated), float32, name="update"))


def _compared(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Labels and predictions of one shape, in the run too."""
    predictions = convert_to_tensor(predictions)
    labels = convert_to_tensor(labels)
    given, wanted = predictions.shape, labels.shape
    if not given.is_compatible_with(wanted):
        raise InvalidArgumentError(
            f"labels of shape {wanted} and predictions of shape {given} differ"
        )
    if given.is_fully_defined and wanted.is_fully_defined:
        return labels, predictions
    message = "labels and predictions differ in shape"
    checks = assert_equal(shape_of(labels), shape_of(predictions), message=message)
    with control_dependencies([checks]):
        return identity(labels), identity(predictions)


def _flat(values: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
    """Values in a vector, and the weight of each."""
    weights = spread_weights(values, 1.0 if weights is None else weights, float64)
    return reshape(values, [-1]), reshape(weights, [-1])


def _mean(
    values: Any, weights: Any, metric: Callable[[Tensor, Tensor], Tensor] = div_no_nan
) -> Metric:
    """The weighted mean of values, or what else their sum and their weight tell."""
    flat, weight = _flat(convert_to_tensor(values), weights)
    total = reduce_sum(cast(flat, float64) * weight)
    return _metric(metric, total=total, count=reduce_sum(weight))


@composed
def mean(values: Any, weights: Any = None, name: str | None = None) -> Metric:
    """The mean of values.

    Args:
        values: a tensor of numbers, of any shape.
        weights: how often each counts: a scalar, or a tensor of the values' rank whose dimensions
            are theirs or 1; by default once.

    Returns:
        A `Metric` of scalars; 0 while nothing counted.

    Raises:
        InvalidArgumentError: if the weights do not broadcast to the values.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [None])
    >>> mean = fb.metrics.mean(x)
    >>> with fb.Session() as sess:
    ...     for batch in ([1.0, 2.0], [6.0]):
    ...         _ = sess.run(mean.update, {x: batch})
    ...     print(sess.run(mean.value))
    3.0
    """
    return _mean(values, weights)


@composed
def percentage_below(
    values: Any, threshold: Any, weights: Any = None, name: str | None = None
) -> Metric:
    """Which part of values is below a threshold, from 0 to 1.

    Args:
        values: a tensor of real numbers, of any shape.
        threshold: a number or a scalar tensor.
        weights: how often each counts, as in `mean`.

    Returns:
        A `Metric` of scalars; 0 while nothing counted.
    """
    return _mean(less(values, threshold), weights)


@composed
def accuracy(labels: Any, predictions: Any, weights: Any = None, name: str | None = None) -> Metric:
    """Which part of predictions is right, from 0 to 1.

    Args:
        labels: the right ones, of any dtype and shape.
        predictions: of the same dtype and shape.
        weights: how often each counts: a scalar, or a tensor of the labels' rank whose dimensions
            are theirs or 1; by default once.

    Returns:
        A `Metric` of scalars; 0 while nothing counted.

    Raises:
        InvalidArgumentError: if the shapes differ, or the weights do not broadcast to them.

    >>> import flowbook as fb
    >>> accuracy = fb.metrics.accuracy([1, 0, 2], [1, 1, 2])
    >>> with fb.Session() as sess:
    ...     print(sess.run(accuracy.update))
    0.6666667
    """
    return _mean(equal(*_compared(labels, predictions)), weights)


@composed
@arguments_as(accuracy)
def mean_absolute_error(
    labels: Any, predictions: Any, weights: Any = None, name: str | None = None
) -> Metric:
    """The mean of `abs(labels - predictions)`."""
    labels, predictions = _compared(labels, predictions)
    return _mean(absolute(labels - predictions), weights)


@composed
@arguments_as(accuracy)
def mean_squared_error(
    labels: Any, predictions: Any, weights: Any = None, name: str | None = None
) -> Metric:
    """The mean of `(labels - predictions)**2`."""
    return _mean(squared_difference(*_compared(labels, predictions)), weights)


@composed
@arguments_as(accuracy)
def root_mean_squared_error(
    labels: Any, predictions: Any, weights: Any = None, name: str | None = None
) -> Metric:
    """The square root of the mean of `(labels - predictions)**2`."""
    squares = squared_difference(*_compared(labels, predictions))
    return _mean(squares, weights, lambda total, count: sqrt(div_no_nan(total, count)))


@composed
def mean_relative_error(
    labels: Any, predictions: Any, normalizer: Any, weights: Any = None, name: str | None = None
) -> Metric:
    """The mean of `abs(labels - predictions) / normalizer`, 0 where the normalizer is.

    Args:
        labels: floating-point, of any shape.
        predictions: of the same dtype and shape.
        normalizer: what each error is divided by, of that dtype and shape.
        weights: how often each counts, as in `accuracy`.

    Returns:
        A `Metric` of scalars; 0 while nothing counted.
    """
    labels, predictions = _compared(labels, predictions)
    normalizer, _ = _compared(normalizer, predictions)
    return _mean(div_no_nan(absolute(labels - predictions), normalizer), weights)


def _counted(
    labels: Any, predictions: Any, weights: Any, which: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """The weight of those examples that a yes-or-no label and prediction make count."""
    labels, predictions = _compared(labels, predictions)
    counts, weight = _flat(which(cast(labels, bool_), cast(predictions, bool_)), weights)
    return reduce_sum(cast(counts, float64) * weight)


def _true_positive(label: Tensor, prediction: Tensor) -> Tensor:
    return label & prediction


def _false_positive(label: Tensor, prediction: Tensor) -> Tensor:
    return ~label & prediction


def _false_negative(label: Tensor, prediction: Tensor) -> Tensor:
    return label & ~prediction


def _true_negative(label: Tensor, prediction: Tensor) -> Tensor:
    return ~(label | prediction)


@composed
def true_positives(
    labels: Any, predictions: Any, weights: Any = None, name: str | None = None
) -> Metric:
    """How many predictions of "yes" are right.

    Args:
        labels: what is right: bools, or numbers that are "no" where they are 0.
        predictions: likewise, of the same shape.
        weights: how often each counts: a scalar, or a tensor of the labels' rank whose dimensions
            are theirs or 1; by default once.

    Returns:
        A `Metric` of scalars.

    Raises:
        InvalidArgumentError: if the shapes differ, or the weights do not broadcast to them.
    """
    return _metric(identity, count=_counted(labels, predictions, weights, _true_positive))


@composed
@arguments_as(true_positives)
def false_positives(
    labels: Any, predictions: Any, weights: Any = None, name: str | None = None
) -> Metric:
    """How many predictions of "yes" are wrong."""
    return _metric(identity, count=_counted(labels, predictions, weights, _false_positive))


@composed
@arguments_as(true_positives)
def false_negatives(
    labels: Any, predictions: Any, weights: Any = None, name: str | None = None
) -> Metric:
    """How many predictions of "no" are wrong."""
    return _metric(identity, count=_counted(labels, predictions, weights, _false_negative))


@composed
@arguments_as(true_positives)
def true_negatives(
    labels: Any, predictions: Any, weights: Any = None, name: str | None = None
) -> Metric:
    """How many predictions of "no" are right."""
    return _metric(identity, count=_counted(labels, predictions, weights, _true_negative))


@composed
@arguments_as(true_positives)
def precision(
    labels: Any, predictions: Any, weights: Any = None, name: str | None = None
) -> Metric:
    """Which part of the predictions of "yes" is right; 0 while there are none."""
    return _metric(
        lambda right, wrong: div_no_nan(right, right + wrong),
        true_positives=_counted(labels, predictions, weights, _true_positive),
        false_positives=_counted(labels, predictions, weights, _false_positive),
    )


@composed
@arguments_as(true_positives)
def recall(labels: Any, predictions: Any, weights: Any = None, name: str | None = None) -> Metric:
    """Which part of the labels of "yes" was predicted; 0 while there are none."""
    return _metric(
        lambda found, missed: div_no_nan(found, found + missed),
        true_positives=_counted(labels, predictions, weights, _true_positive),
        false_negatives=_counted(labels, predictions, weights, _false_negative),
    )


def _above(
    labels: Any, predictions: Any, weights: Any, thresholds: np.ndarray[Any, Any]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The weight of "yes" and "no" that is predicted above each threshold, and of all of each."""
    labels, predictions = _compared(labels, predictions)
    scores, weight = _flat(predictions, weights)
    message = "predictions are probabilities, from 0 to 1"
    zero, one = constant(0, scores.dtype), constant(1, scores.dtype)
    checks = [
        assert_greater_equal(scores, zero, message=message),
        assert_less_equal(scores, one, message=message),
    ]
    with control_dependencies(checks):
        scores = identity(scores)
    order = np.argsort(thresholds)
    # How many thresholds each score is above; from that, for each threshold, what is above it.
    # They are rounded as scores are: 0.1 is not above 0.1.
    passed = searchsorted(constant(thresholds[order], scores.dtype), scores)
    is_yes = cast(reshape(cast(labels, bool_), [-1]), float64)
    found = []
    for kind in (weight * is_yes, weight * (1.0 - is_yes)):
        count = len(thresholds) + 1
        steps = bincount(passed, kind, minlength=count, maxlength=count, dtype=float64)
        steps.set_shape([count])
        # What passes the k-th of the sorted thresholds has passed more than k.
        above = cumsum(steps, reverse=True)[1:]
        found += [gather(above, np.argsort(order)), reduce_sum(kind)]
    yes, all_yes, no, all_no = found
    return yes, all_yes, no, all_no


def _checked_thresholds(thresholds: Any) -> np.ndarray[Any, Any]:
    found = np.asarray(thresholds, np.float64)
    if found.ndim != 1 or not ((found >= 0) & (found <= 1)).all():
        raise InvalidArgumentError(
            f"thresholds are a list of numbers from 0 to 1, not {thresholds!r}"
        )
    return found


@composed
def precision_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Any,
    weights: Any = None,
    name: str | None = None,
) -> Metric:
    """The precision for each of several thresholds that a "yes" is above.

    Args:
        labels: what is right: bools, or numbers that are "no" where they are 0.
        predictions: the probabilities of "yes", of the same shape.
        thresholds: a list of numbers from 0 to 1.
        weights: how often each example counts, as in `precision`.

    Returns:
        A `Metric` of [thresholds]; 0 where nothing is above.

    Raises:
        InvalidArgumentError: if the shapes differ; in the run, if a prediction is no probability.
    """
    yes, _, no, _ = _above(labels, predictions, weights, _checked_thresholds(thresholds))
    return _metric(
        lambda right, wrong: div_no_nan(right, right + wrong),
        true_positives=yes,
        false_positives=no,
    )


@composed
@arguments_as(precision_at_thresholds)
def recall_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Any,
    weights: Any = None,
    name: str | None = None,
) -> Metric:
    """The recall for each of several thresholds that a "yes" is above."""
    yes, all_yes, _, _ = _above(labels, predictions, weights, _checked_thresholds(thresholds))
    return _metric(div_no_nan, true_positives=yes, positives=all_yes)


@composed
def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    curve: str = "ROC",
    name: str | None = None,
) -> Metric:
    """The area under a curve of rates, by the trapezoidal rule.

    Args:
        labels: what is right: bools, or numbers that are "no" where they are 0.
        predictions: the probabilities of "yes", of the same shape.
        weights: how often each example counts, as in `precision`.
        num_thresholds: how many thresholds from 0 to 1 the curve has, at least 2.
        curve: "ROC", recall over the part of "no" that is taken for "yes"; or "PR", precision
            over recall.

    Returns:
        A `Metric` of scalars.

    Raises:
        InvalidArgumentError: if the shapes differ, or there is no such curve; in the run, if a
            prediction is no probability.

    >>> import flowbook as fb
    >>> area = fb.metrics.auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> with fb.Session() as sess:
    ...     print(f"{sess.run(area.update):.2f}")
    0.75
    """
    check_choice("curve", curve, ("ROC", "PR"))
    if num_thresholds < 2:
        raise InvalidArgumentError(f"num_thresholds is at least 2, not {num_thresholds!r}")
    thresholds = np.linspace(0.0, 1.0, num_thresholds)
    # A prediction of 0 is above the first, and none of 1 above the last.
    thresholds[0], thresholds[-1] = -1e-7, 1.0 + 1e-7

    def area(yes: Tensor, no: Tensor, all_yes: Tensor, all_no: Tensor) -> Tensor:
        recalled = (yes + _LITTLE) / (all_yes + _LITTLE)
        if curve == "ROC":
            x, y = no / (all_no + _LITTLE), recalled
        else:
            x, y = recalled, (yes + _LITTLE) / (yes + no + _LITTLE)
        return reduce_sum((x[:-1] - x[1:]) * (y[:-1] + y[1:]) * 0.5)

    yes, all_yes, no, all_no = _above(labels, predictions, weights, thresholds)
    return _metric(
        area, true_positives=yes, false_positives=no, positives=all_yes, negatives=all_no
    )


def _confusion(labels: Any, predictions: Any, num_classes: int, weights: Any) -> Tensor:
    labels, predictions = _compared(labels, predictions)
    flat, weight = _flat(cast(labels, int64), weights)
    found = cast(reshape(predictions, [-1]), int64)
    return confusion_matrix(flat, found, num_classes, float64, weight)


@composed
def mean_iou(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean over classes of how much of labels and predictions together is both.

    Args:
        labels: the right classes, integers in [0, num_classes), of any shape.
        predictions: the predicted classes, of the same shape.
        num_classes: how many there are.
        weights: how often each example counts, as in `accuracy`.

    Returns:
        A `Metric` of scalars: the mean over those classes that were seen; 0 while there are none.

    Raises:
        InvalidArgumentError: if the shapes differ; in the run, if something is no class.
    """

    def mean_over_classes(matrix: Tensor) -> Tensor:
        both = diag_part(matrix)
        either = reduce_sum(matrix, 0) + reduce_sum(matrix, 1) - both
        seen = reduce_sum(cast(not_equal(either, 0.0), float64))
        return div_no_nan(reduce_sum(div_no_nan(both, either)), seen)

    matrix = _confusion(labels, predictions, num_classes, weights)
    return _metric(mean_over_classes, total_confusion_matrix=matrix)


@composed
@arguments_as(mean_iou)
def mean_per_class_accuracy(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean over all classes of which part of a class is found; 0 for one that was not seen."""
    matrix = _confusion(labels, predictions, num_classes, weights)
    return _metric(
        lambda right, seen: reduce_mean(div_no_nan(right, seen)),
        count=diag_part(matrix),
        total=reduce_sum(matrix, 1),
    )
