"""Losses on logits, fused so that no probability is rounded to 0 before its logarithm is taken.

The two softmax losses compute the derivative along with the loss, as a second output: both need the
same exponentials.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.dtypes import FLOATS, INDICES
from flowbook.graph.errors import InvalidArgumentError, OutOfRangeError
from flowbook.graph.op_def import NO_GRADIENT, OpDef
from flowbook.graph.operation import Operation
from flowbook.graph.ops.activations import exponentials, log_softmax_op, softmax_op
from flowbook.graph.ops.elementwise import sigmoid
from flowbook.graph.ops.inference import elementwise, scalar
from flowbook.graph.ops.reductions import sum_op
from flowbook.graph.ops.shaping import expand_dims_op
from flowbook.graph.shape import Shape
from flowbook.graph.tensor import Tensor


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
    shifted, raised, total = exponentials(xp, logits, -1)
    mass = xp.sum(labels, axis=-1, dtype=labels.dtype, keepdims=True)
    # 0 * -inf where a label of 0 meets a logit of -inf would be NaN.
    logs = xp.where(labels == 0, 0, xp.subtract(shifted, xp.log(total)))
    loss = -xp.sum(labels * logs, axis=-1, dtype=logits.dtype)
    return loss, raised / total * mass - labels


def _is_nothing(gradient: Tensor) -> bool:
    """Whether no gradient arrived: the backward pass gives zeros for outputs that nothing uses."""
    return gradient.op.type == "ZerosLike"


def _times_rows(rows: Tensor, matrix: Tensor) -> Tensor:
    return expand_dims_op(rows, axis=(-1,)) * matrix  # type: ignore[no-any-return]


def _sum_classes(tensor: Tensor) -> Tensor:
    return sum_op(tensor, axis=(-1,), keepdims=True)  # type: ignore[no-any-return]


def _through_softmax(logits: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of `softmax(logits)`."""
    y = softmax_op(logits)
    return (gradient - _sum_classes(gradient * y)) * y  # type: ignore[no-any-return]


def _cross_entropy_gradient(op: Operation, dloss: Tensor, dbackprop: Tensor) -> Any:
    labels, logits = op.inputs
    dlabels = _times_rows(-dloss, log_softmax_op(logits))
    dlogits = _times_rows(dloss, op.outputs[1])
    if not _is_nothing(dbackprop):
        # backprop = softmax(logits) * sum(labels) - labels
        mass = _sum_classes(labels)
        dlogits += _through_softmax(logits, dbackprop) * mass
        dlabels += _sum_classes(dbackprop * softmax_op(logits)) - dbackprop
    return dlabels, dlogits


cross_entropy_op = OpDef(
    "SoftmaxCrossEntropyWithLogits",
    "labels: T, logits: T -> loss: T, backprop: T",
    T=FLOATS,
    infer=_loss_shapes,
    kernel=_cross_entropy,
    grad=_cross_entropy_gradient,
    aliases={},
    cost=lambda op: 18 * (op.inputs[1].shape.size or 0),
)


@cross_entropy_op.front
def softmax_cross_entropy_with_logits(
    *, labels: Any, logits: Any, name: str | None = None
) -> Tensor:
    """The cross entropy between labels and the softmax of logits, over the last dimension.

    Args:
        labels: [..., classes], the wanted probabilities, of a floating-point dtype. Gradients flow
            to them too: see `stop_gradient`.
        logits: [..., classes] of the same dtype, not normalised.
        name: the operation's name.

    Returns:
        [...], the loss of each example.
    """
    __tracebackhide__ = True
    return cross_entropy_op(labels, logits, name=name)[0]  # type: ignore[no-any-return]


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
    if labels.size and (labels.min() < 0 or labels.max() >= classes):
        wrong = next(i for i in labels.ravel().tolist() if not 0 <= i < classes)
        raise OutOfRangeError(f"label {wrong} is out of range: there are {classes} classes, from 0")
    if not logits.size:
        return xp.zeros(labels.shape, logits.dtype), logits.copy()
    shifted, raised, total = exponentials(xp, logits, -1)
    at_labels = xp.arange(labels.size), xp.reshape(labels, (-1,))
    wanted = xp.reshape(shifted, (-1, classes))[at_labels]
    loss = xp.log(xp.squeeze(total, -1)) - xp.reshape(wanted, labels.shape)
    # In row-major order, whatever the logits' is, so that reshaping gives a view to write to.
    backprop = xp.ascontiguousarray(xp.divide(raised, total, raised))
    xp.reshape(backprop, (-1, classes))[at_labels] -= 1
    return loss, backprop


def _sparse_gradient(op: Operation, dloss: Tensor, dbackprop: Tensor) -> Any:
    dlogits = _times_rows(dloss, op.outputs[1])
    if not _is_nothing(dbackprop):
        dlogits += _through_softmax(op.inputs[1], dbackprop)
    return None, dlogits


sparse_cross_entropy_op = OpDef(
    "SparseSoftmaxCrossEntropyWithLogits",
    "labels: I, logits: T -> loss: T, backprop: T",
    I=INDICES,
    T=FLOATS,
    infer=_sparse_shapes,
    kernel=_sparse_cross_entropy,
    grad=_sparse_gradient,
    aliases={},
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
        name: the operation's name.

    Returns:
        [...] of the logits' dtype, the loss of each example.

    Raises:
        OutOfRangeError: in the run, if a label is no class.
    """
    __tracebackhide__ = True
    return sparse_cross_entropy_op(labels, logits, name=name)[0]  # type: ignore[no-any-return]


sigmoid_cross_entropy_op = OpDef(
    "SigmoidCrossEntropyWithLogits",
    "labels: T, logits: T -> loss: T",
    T=FLOATS,
    infer=_same_shapes,
    expression="subtract(logaddexp(logits, 0), multiply(logits, labels))",
    grad=lambda op, dy: (-dy * op.inputs[1], dy * (sigmoid(op.inputs[1]) - op.inputs[0])),
    cost=elementwise(flops=20),
)


@sigmoid_cross_entropy_op.front
def sigmoid_cross_entropy_with_logits(
    *, labels: Any, logits: Any, name: str | None = None
) -> Tensor:
    """The cross entropy of independent yes-or-no labels, elementwise.

    Args:
        labels: the wanted probabilities, of a floating-point dtype.
        logits: of the same dtype and shape; their sigmoid is the probability.
        name: the operation's name.

    Returns:
        The loss of each element.
    """
    __tracebackhide__ = True
    result: Tensor = sigmoid_cross_entropy_op(labels, logits, name=name)
    return result


l2_loss = OpDef(
    "L2Loss",
    "t: T -> output: T",
    T=FLOATS,
    infer=scalar,
    kernel=lambda xp, t: xp.multiply(xp.sum(xp.square(t), dtype=t.dtype), t.dtype.type(0.5)),
    grad=lambda op, dy: dy * op.inputs[0],
    aliases={},
    cost=lambda op: 2 * (op.inputs[0].shape.size or 0),
    doc="Half the sum of squares of a tensor, a scalar.",
)


def _in_top_k_shape(predictions: Tensor, targets: Tensor, k: Tensor) -> Shape:
    batch = targets.shape.with_rank(1)
    scores = predictions.shape.with_rank(2)
    return batch.merge(scores[:1])


def _in_top_k(xp: Any, predictions: Any, targets: Any, k: Any) -> Any:
    classes = predictions.shape[-1]
    if targets.size and (targets.min() < 0 or targets.max() >= classes):
        wrong = next(i for i in targets.ravel().tolist() if not 0 <= i < classes)
        raise OutOfRangeError(f"target {wrong} is out of range: there are {classes}, from 0")
    wanted = xp.take_along_axis(predictions, xp.expand_dims(targets, 1), 1)
    better = xp.sum(predictions > wanted, axis=1)
    return (better < int(k)) & xp.all(xp.isfinite(predictions), axis=1)


in_top_k = OpDef(
    "InTopK",
    "predictions: T, targets: I, k: int32 -> is_in: bool",
    T=FLOATS,
    I=INDICES,
    infer=_in_top_k_shape,
    kernel=_in_top_k,
    grad=NO_GRADIENT,
    aliases={},
    cost=lambda op: op.inputs[0].shape.size or 0,
    doc="""Whether each example's class is among the `k` that scored highest.

    Args:
        predictions: [examples, classes], scores of a floating-point dtype.
        targets: [examples], int32 or int64, the right classes.
        k: an int32 scalar.

    Returns:
        bool [examples]. Classes that score the same as the right one do not push it out; a row with
        a score that is not finite is False.

    Raises:
        OutOfRangeError: in the run, if a target is no class.
    """,
)
