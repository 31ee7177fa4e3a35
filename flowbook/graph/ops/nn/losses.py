"""Losses on logits, fused so that no probability is rounded to 0 before its logarithm is taken.

The two softmax losses compute the derivative along with the loss, as a second output: both need the
same exponentials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import as_axis, in_range
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import elementwise, scalar
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import FLOATS, INDICES
from flowbook.graph.model.errors import InvalidArgumentError, InvalidIndexError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape, broadcast
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.bounds import are_within
from flowbook.graph.numerics.sums import sum_of_products, sum_of_squares, sum_over
from flowbook.graph.ops.basis.broadcasting import gradients_of_two, sum_op, sum_to_shape
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import ones_like, zeros_like
from flowbook.graph.ops.basis.permuting import transpose
from flowbook.graph.ops.basis.shaping import expand_dims_op
from flowbook.graph.ops.math.arithmetic import add, subtract
from flowbook.graph.ops.math.comparison import greater_equal, less_equal, logical_and, where
from flowbook.graph.ops.math.elementwise import exp, log, sigmoid
from flowbook.graph.ops.math.no_nan import multiply_no_nan
from flowbook.graph.ops.nn.activations import (
    exponentials,
    less_largest,
    log_softmax_op,
    softmax_op,
    softplus,
)

__all__ = [
    "in_top_k",
    "l2_loss",
    "log_poisson_loss",
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
    "weighted_cross_entropy_with_logits",
]


def _same_shapes(labels: Tensor, logits: Tensor) -> Shape:
    if not labels.shape.is_compatible_with(logits.shape):
        raise InvalidArgumentError(
            f"labels of shape {labels.shape} and logits of shape {logits.shape} differ"
        )
    return labels.shape.merge(logits.shape)


def _check_same(labels: Any, logits: Any) -> None:
    if labels.shape != logits.shape:
        raise InvalidArgumentError(
            f"labels of shape {list(labels.shape)} and logits of shape {list(logits.shape)} differ"
        )


def _loss_shapes(labels: Tensor, logits: Tensor) -> list[Shape]:
    both = _same_shapes(labels, logits)
    if both.rank == 0:
        raise InvalidArgumentError("logits have at least one dimension: the classes")
    return [both[:-1] if both.dims is not None else both, both]


def _cross_entropy(xp: Any, labels: Any, logits: Any) -> Any:
    _check_same(labels, logits)
    if not logits.ndim:
        raise InvalidArgumentError("logits have at least one dimension: the classes")
    if not logits.size:
        return xp.zeros(logits.shape[:-1], logits.dtype), logits.copy()
    shifted = less_largest(xp, logits, -1)
    raised, total = exponentials(xp, shifted, -1)
    mass = sum_over(xp, labels, (-1,), keepdims=True)
    shifted -= xp.log(total)
    gain = sum_of_products(xp, labels, shifted)
    if xp.isnan(gain).any():
        # Where a label of 0 meets a logit of -inf, their product counts as 0.
        gain = sum_of_products(xp, labels, xp.where(labels == 0, 0, shifted))
    raised *= mass / total
    raised -= labels
    return -xp.squeeze(gain, -1).astype(logits.dtype, copy=False), raised


def _times_rows(rows: Tensor, matrix: Tensor) -> Tensor:
    return expand_dims_op(rows, axis=(-1,)) * matrix


def _sum_classes(tensor: Tensor) -> Tensor:
    return sum_op(tensor, axis=(-1,), keepdims=True)


def _through_softmax(logits: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of `softmax(logits)`."""
    y = softmax_op(logits)
    return (gradient - _sum_classes(gradient * y)) * y


def _cross_entropy_gradient(
    op: Operation, dloss: Tensor, dbackprop: Tensor, *, used: Sequence[bool]
) -> Any:
    labels, logits = op.inputs
    dlabels = _times_rows(-dloss, log_softmax_op(logits))
    dlogits = _times_rows(dloss, op.outputs[1])
    if used[1]:
        # backprop = softmax(logits) * sum(labels) - labels
        mass = _sum_classes(labels)
        dlogits += _through_softmax(logits, dbackprop) * mass
        dlabels += _sum_classes(dbackprop * softmax_op(logits)) - dbackprop
    return dlabels, dlogits


cross_entropy_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "SoftmaxCrossEntropyWithLogits",
    "labels: T, logits: T -> loss: T, backprop: T",
    T=FLOATS,
    infer=_loss_shapes,
    kernel=_cross_entropy,
    grad=_cross_entropy_gradient,
    cost=lambda op: 18 * (op.inputs[1].shape.size or 0),
)


def _classes_last(tensor: Tensor, axis: int) -> Tensor:
    if tensor.shape.rank is None:
        raise InvalidArgumentError(
            f"for axis {axis} the rank must be known, which {tensor!r} lacks"
        )
    axis = in_range(axis, tensor.shape.rank)
    order = [i for i in range(tensor.shape.rank) if i != axis]
    return transpose(tensor, [*order, axis])


@cross_entropy_op.front
def softmax_cross_entropy_with_logits(
    *, labels: Any, logits: Any, axis: int = -1, name: str | None = None
) -> Tensor:
    """The cross entropy between labels and the softmax of logits.

    Args:
        labels: [..., classes], the wanted probabilities, of a floating-point dtype. Gradients flow
            to them too: see `stop_gradient`. Where they do not add up to 1, the gradient to the
            logits is that of the loss, `sum(labels) * softmax(logits) - labels`.
        logits: [..., classes] of the same dtype, not normalised.
        axis: the axis of the classes, for tensors of a known rank if it is not the last.

    Returns:
        [...], the loss of each example: the shape of the logits without that axis.
    """
    axis = as_axis(axis)
    if axis != -1:
        logits = convert_to_tensor(logits)
        labels = convert_to_tensor(labels, logits.dtype)
        labels, logits = _classes_last(labels, axis), _classes_last(logits, axis)
    return cross_entropy_op(labels, logits, name=name)[0]


def _sparse_shapes(labels: Tensor, logits: Tensor) -> list[Shape]:
    if logits.shape.dims is None:
        return [labels.shape, logits.shape]
    if not logits.shape.dims:
        raise InvalidArgumentError("logits have at least one dimension: the classes")
    if not labels.shape.is_compatible_with(logits.shape[:-1]):
        raise InvalidArgumentError(
            f"labels of shape {labels.shape} do not fit logits of shape {logits.shape}: one label "
            "for each row of logits",
            hint="softmax_cross_entropy_with_logits takes one probability per class"
            if labels.shape.rank == logits.shape.rank
            else None,
        )
    loss = labels.shape.merge(logits.shape[:-1])
    return [loss, loss.concatenate(logits.shape[-1:])]


def _sparse_cross_entropy(xp: Any, labels: Any, logits: Any) -> Any:
    if not logits.ndim or labels.shape != logits.shape[:-1]:
        raise InvalidArgumentError(
            f"labels of shape {list(labels.shape)} do not fit logits of shape {list(logits.shape)}"
        )
    classes = logits.shape[-1]
    if not are_within(labels, classes):
        wrong = next(i for i in labels.ravel().tolist() if not 0 <= i < classes)
        raise InvalidIndexError(
            f"label {wrong} is out of range: there are {classes} classes, from 0"
        )
    if not logits.size:
        return xp.zeros(labels.shape, logits.dtype), logits.copy()
    # In row-major order, whatever the logits' is, so that reshaping gives a view to write to.
    shifted = xp.ascontiguousarray(less_largest(xp, logits, -1))
    flat = xp.reshape(shifted, (-1,))
    at_labels = xp.arange(0, flat.size, classes) + xp.reshape(labels, (-1,))
    wanted = xp.reshape(flat.take(at_labels), labels.shape)
    raised, total = exponentials(xp, shifted, -1, out=shifted)
    loss = xp.log(xp.squeeze(total, -1)) - wanted
    backprop = xp.divide(raised, total, raised)
    if xp is np:
        flat[at_labels] -= 1
    else:  # Elements by their indices, which a GPU is slow at, are taken once.
        is_label = xp.arange(classes) == xp.expand_dims(labels, -1)
        backprop = xp.subtract(backprop, is_label, backprop)
    return loss, backprop


def _sparse_gradient(
    op: Operation, dloss: Tensor, dbackprop: Tensor, *, used: Sequence[bool]
) -> Any:
    dlogits = _times_rows(dloss, op.outputs[1])
    if used[1]:
        dlogits += _through_softmax(op.inputs[1], dbackprop)
    return None, dlogits


sparse_cross_entropy_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "SparseSoftmaxCrossEntropyWithLogits",
    "labels: I, logits: T -> loss: T, backprop: T",
    I=INDICES,
    T=FLOATS,
    infer=_sparse_shapes,
    kernel=_sparse_cross_entropy,
    grad=_sparse_gradient,
    cost=lambda op: 14 * (op.inputs[1].shape.size or 0),
)


@sparse_cross_entropy_op.front
def sparse_softmax_cross_entropy_with_logits(
    *, labels: Any, logits: Any, name: str | None = None
) -> Tensor:
    """The cross entropy between classes and the softmax of logits, over the last dimension.

    Args:
        labels: [...], int32 or int64: the class of each example, in [0, classes).
        logits: [..., classes] of a floating-point dtype, not normalised.

    Returns:
        [...] of the logits' dtype, the loss of each example.

    Raises:
        InvalidIndexError: in the run, if a label is no class.
    """
    if isinstance(labels, Tensor) and not labels.dtype.is_integer:
        raise InvalidTypeError(
            f"labels are the numbers of classes, int32 or int64, not {labels.dtype.name}",
            hint="fb.nn.softmax_cross_entropy_with_logits takes a probability for each class",
        )
    return sparse_cross_entropy_op(labels, logits, name=name)[0]


sigmoid_cross_entropy_op = OpDef(
    "SigmoidCrossEntropyWithLogits",
    "labels: T, logits: T -> loss: T",
    T=FLOATS,
    infer=_same_shapes,
    # max(x, 0) - x z is exact for labels of 0 and 1: a small loss keeps all of its digits.
    expression="add(subtract(maximum(logits, 0), multiply(logits, labels)), "
    "log1p(exp(negative(absolute(logits)))))",
    # Shapes that only the run knows may broadcast there.
    grad=lambda op, dy: gradients_of_two(
        op, -dy * op.inputs[1], dy * (sigmoid(op.inputs[1]) - op.inputs[0])
    ),
    cost=elementwise(flops=26),
)


@sigmoid_cross_entropy_op.front
def sigmoid_cross_entropy_with_logits(
    *, labels: Any, logits: Any, name: str | None = None
) -> Tensor:
    """The cross entropy of independent yes-or-no labels, elementwise.

    Args:
        labels: the wanted probabilities, of a floating-point dtype.
        logits: of the same dtype and shape; their sigmoid is the probability.

    Returns:
        The loss of each element.
    """
    return sigmoid_cross_entropy_op(labels, logits, name=name)


def _weighted_shape(labels: Tensor, logits: Tensor, pos_weight: Tensor) -> Shape:
    both = _same_shapes(labels, logits)
    if not broadcast(both, pos_weight.shape).is_compatible_with(both):
        raise InvalidArgumentError(
            f"pos_weight of shape {pos_weight.shape} does not broadcast to the logits of shape "
            f"{logits.shape}"
        )
    return both


def _weighted_cross_entropy(xp: Any, labels: Any, logits: Any, pos_weight: Any) -> Any:
    _check_same(labels, logits)
    try:
        weights = xp.broadcast_to(pos_weight, labels.shape)
    except ValueError:
        raise InvalidArgumentError(
            f"pos_weight of shape {list(pos_weight.shape)} does not broadcast to the logits of "
            f"shape {list(logits.shape)}"
        ) from None
    positive, negative = weights * labels, 1 - labels
    small = xp.log1p(xp.exp(-xp.absolute(logits)))
    loss = negative * xp.maximum(logits, 0) - positive * xp.minimum(logits, 0)
    return xp.add(loss, (negative + positive) * small)


def _weighted_gradient(op: Operation, dy: Tensor) -> Any:
    labels, logits, weight = op.inputs
    is_yes, is_no = softplus(-logits), softplus(logits)
    down = weight * labels * sigmoid(-logits)
    dlogits = multiply_no_nan((1.0 - labels) * sigmoid(logits) - down, dy)
    dweight = sum_to_shape(multiply_no_nan(labels * is_yes, dy), weight, labels)
    return multiply_no_nan(weight * is_yes - is_no, dy), dlogits, dweight


weighted_cross_entropy_with_logits = OpDef(
    "WeightedCrossEntropyWithLogits",
    "labels: T, logits: T, pos_weight: T -> loss: T",
    T=FLOATS,
    infer=_weighted_shape,
    kernel=_weighted_cross_entropy,
    grad=_weighted_gradient,
    cost=elementwise(flops=30),
    doc="""The cross entropy of yes-or-no labels, where a missed "yes" counts differently.

    Args:
        labels: the wanted probabilities, of a floating-point dtype.
        logits: of the same dtype and shape; their sigmoid is the probability.
        pos_weight: the factor on the loss of "yes", of the same dtype and of a shape that
            broadcasts to the logits'. Above 1 it favours recall, below 1 precision.

    Returns:
        The loss of each element: `pos_weight * z * -log(p) + (1 - z) * -log(1 - p)` for the label
        z and the probability p.
    """,
)


@composed
def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """The negative logarithm of the Poisson likelihood of counts, elementwise.

    Args:
        targets: the counts z, of a floating-point dtype. The full loss of a negative one is NaN.
        log_input: the logarithm of the expected count, of the same dtype and shape.
        compute_full_loss: add Stirling's approximation of log(z!) for counts above 1, which does
            not change the gradient to `log_input`.

    Returns:
        The loss of each element, `exp(log_input) - targets * log_input` and the above.
    """
    log_input = convert_to_tensor(log_input)
    targets = convert_to_tensor(targets, log_input.dtype)
    _same_shapes(targets, log_input)
    if not compute_full_loss:
        return subtract(exp(log_input), log_input * targets, name=name)
    loss = exp(log_input) - log_input * targets
    is_small = logical_and(greater_equal(targets, 0), less_equal(targets, 1))
    # Where it is not wanted, its logarithm must still have a gradient.
    count = where(is_small, ones_like(targets), targets)
    stirling = count * log(count) - count + 0.5 * log(count * (2 * math.pi))
    return add(loss, where(is_small, zeros_like(stirling), stirling), name=name)


def _half_of_squares(xp: Any, t: Any) -> Any:
    half = sum_of_squares(xp, t) * 0.5
    return half if half.dtype == t.dtype else half.astype(t.dtype)


l2_loss = OpDef(
    "L2Loss",
    "t: T -> output: T",
    T=FLOATS,
    infer=scalar,
    kernel=_half_of_squares,
    grad=lambda op, dy: dy * op.inputs[0],
    cost=lambda op: 2 * (op.inputs[0].shape.size or 0),
    doc="Half the sum of squares of a tensor, a scalar.",
)


def _in_top_k_shape(predictions: Tensor, targets: Tensor, k: Tensor) -> Shape:
    batch = targets.shape.with_rank(1)
    scores = predictions.shape.with_rank(2)
    return batch.merge(scores[:1])


def _in_top_k(xp: Any, predictions: Any, targets: Any, k: Any) -> Any:
    classes = predictions.shape[-1]
    if not predictions.size:
        return xp.zeros(targets.shape, bool)
    is_class = (targets >= 0) & (targets < classes)
    places = xp.expand_dims(xp.where(is_class, targets, 0), 1)
    better = xp.sum(predictions > xp.take_along_axis(predictions, places, 1), axis=1)
    return is_class & (better < int(k)) & xp.all(xp.isfinite(predictions), axis=1)


in_top_k = OpDef(
    "InTopK",
    "predictions: T, targets: I, k: K -> is_in: bool",
    T=FLOATS,
    I=INDICES,
    K=INDICES,
    infer=_in_top_k_shape,
    kernel=_in_top_k,
    host_args=("k",),
    cost=lambda op: op.inputs[0].shape.size or 0,
    doc="""Whether each example's class is among the `k` that scored highest.

    Args:
        predictions: [examples, classes], scores of a floating-point dtype.
        targets: [examples], int32 or int64, the right classes.
        k: an int32 or int64 scalar.

    Returns:
        bool [examples]. Classes that score the same as the right one do not push it out; a row with
        a score that is not finite is False, and so is one whose target is no class.
    """,
)
