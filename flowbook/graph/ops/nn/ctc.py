"""Connectionist temporal classification: labels without alignment to the steps of a sequence.

A path gives each step a class, the last of which is "blank"; it spells the labels that remain when
repeats are merged and then blanks removed. The loss sums over all paths that spell the wanted
labels, by the forward-backward recursion over the labels with a blank around each (Graves et al.,
"Connectionist Temporal Classification", 2006, section 4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.ctc_paths import Paths
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.permuting import transpose
from flowbook.graph.ops.basis.shaping import expand_dims_op
from flowbook.graph.ops.nn.ctc_derivatives import derivative_of_gradient
from flowbook.graph.ops.reduction.infinitesimals import gradients_along
from flowbook.graph.ops.sparse.arguments import sparse_parts

__all__ = ["ctc_loss"]


def _loss_shapes(
    inputs: Tensor, indices: Tensor, values: Tensor, sequence_length: Tensor, **_: Any
) -> list[Shape]:
    whole = inputs.shape.with_rank(3)
    entries = values.shape.with_rank(1)
    if not indices.shape.is_compatible_with(entries.concatenate((2,))):
        raise InvalidArgumentError(
            f"labels have one index [example, position] for each value; their indices are of shape "
            f"{indices.shape} and their values of {values.shape}"
        )
    batch = whole[1:2].merge(sequence_length.shape.with_rank(1))
    return [batch, whole.merge(Shape.of((None,)).concatenate(batch).concatenate((None,)))]


_OPTIONS = {
    "preprocess_collapse_repeated": False,
    "ctc_merge_repeated": True,
    "ignore_longer_outputs_than_inputs": False,
}


def _ctc_loss(
    xp: Any,
    inputs: Any,
    labels_indices: Any,
    labels_values: Any,
    sequence_length: Any,
    **options: bool,
) -> Any:
    paths = Paths(xp, inputs, labels_indices, labels_values, sequence_length, **options)
    gradient = paths.chances
    for t, after in paths.backward():
        gradient[t] -= paths.by_class(paths.occupancy(t, after))
    gradient[~paths.counts] = 0
    return paths.loss.astype(inputs.dtype), gradient.astype(inputs.dtype)


def _gradient_along(op: Operation, directions: list[Tensor]) -> Tensor:
    options = {name: op.attributes[name] for name in _OPTIONS}
    return ctc_gradient_along(*op.inputs[:4], directions, **options)


def _loss_gradient(op: Operation, dloss: Tensor, dgradient: Tensor, *, used: Sequence[bool]) -> Any:
    by_inputs = expand_dims_op(dloss, axis=(0, 2)) * op.outputs[1]
    # Only a second derivative asks for more than the loss.
    if used[1]:
        by_inputs = by_inputs + _gradient_along(op, [dgradient])
    return by_inputs, None, None, None


ctc_loss_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "CTCLoss",
    "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32 "
    "-> loss: T, gradient: T",
    T=FLOATS,
    attributes=_OPTIONS,
    infer=_loss_shapes,
    kernel=_ctc_loss,
    grad=_loss_gradient,
    cost=lambda op: 100 * (op.inputs[0].shape.size or 0),
)


def _same_as_inputs(inputs: Tensor, *_: Any, **options: Any) -> Shape:
    return inputs.shape


def _gradient_gradients(op: Operation, dy: Tensor) -> list[Tensor | None]:
    def along(directions: list[Tensor]) -> Tensor:
        return _gradient_along(op, directions)

    by_inputs, *rest = gradients_along(along, list(op.inputs[4:]), dy)
    return [by_inputs, None, None, None, *rest]


ctc_gradient_along: OpDef = OpDef(
    "CTCLossGradAlong",
    "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32, "
    "directions: N*T -> output: T",
    T=FLOATS,
    attributes=_OPTIONS,
    infer=_same_as_inputs,
    kernel=derivative_of_gradient,
    grad=_gradient_gradients,
    cost=lambda op: 300 * 3 ** (len(op.inputs) - 4) * (op.inputs[0].shape.size or 0),
    doc="The derivative of the loss's gradient along directions, of the shape of the inputs.",
)


@ctc_loss_op.front
def ctc_loss(
    labels: Any,
    inputs: Any,
    sequence_length: Any,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    name: str | None = None,
) -> Tensor:
    """How improbable labels are as what a sequence of logits spells, whatever their alignment.

    Args:
        labels: a sparse tensor [batch, longest] of classes in [0, classes - 1): row by row the
            labels of each sequence. Those without entries have none.
        inputs: [time, batch, classes], logits of a floating-point dtype; the last class is the
            blank.
        sequence_length: int32 [batch], the number of steps of each sequence.
        preprocess_collapse_repeated: merge repeated labels before all else.
        ctc_merge_repeated: merge repeated classes of a path, so that equal labels need a blank
            between them, as published. Without it a label takes one step, and only blanks repeat.
        ignore_longer_outputs_than_inputs: give a loss of 0 where there are more labels than steps,
            which else is an error.
        time_major: False where the inputs are [batch, time, classes].

    Returns:
        [batch], the negative logarithm of the probability of each sequence's labels; infinite where
        repeated labels leave no path.

    Raises:
        InvalidArgumentError: in the run, if there are more labels than steps.
        InvalidIndexError: in the run, if a label is no class, or the blank.

    Source: Graves et al., "Connectionist Temporal Classification", 2006.
    """
    indices, values, _ = sparse_parts("labels", labels)
    inputs = convert_to_tensor(inputs)
    if not time_major:
        inputs = transpose(inputs, [1, 0, 2])
    loss, _ = ctc_loss_op(
        inputs,
        indices,
        values,
        sequence_length,
        preprocess_collapse_repeated=bool(preprocess_collapse_repeated),
        ctc_merge_repeated=bool(ctc_merge_repeated),
        ignore_longer_outputs_than_inputs=bool(ignore_longer_outputs_than_inputs),
        name=name,
    )
    return loss
