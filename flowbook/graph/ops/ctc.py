"""Connectionist temporal classification: labels without alignment to the steps of a sequence.

A path gives each step a class, the last of which is "blank"; it spells the labels that remain when
repeats are merged and then blanks removed. The loss sums over all paths that spell the wanted
labels, by the forward-backward recursion over the labels with a blank around each (Graves et al.,
"Connectionist Temporal Classification", 2006, section 4.1).

Invariant: all sequences of a batch and all of their labels advance together; the only loop is over
steps. It computes logarithms in float64, so that neither long nor unlikely sequences vanish; in
place of -inf stands `_NEVER`, whose differences are not NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.dtypes import FLOATS
from flowbook.graph.errors import InvalidArgumentError, OutOfRangeError
from flowbook.graph.op_def import OpDef
from flowbook.graph.operation import Operation
from flowbook.graph.ops.constants import convert_to_tensor, prevent_gradient
from flowbook.graph.ops.located import located
from flowbook.graph.ops.shaping import expand_dims_op, transpose
from flowbook.graph.ops.sparse_arguments import sparse_parts
from flowbook.graph.shape import Shape
from flowbook.graph.tensor import Tensor

_NEVER = -1e100


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


def check_lengths(inputs: Any, sequence_length: Any) -> None:
    """See in a run that a batch [time, batch, classes] has sequences of these lengths.

    Raises:
        InvalidArgumentError: if it has not, or has no class for the blank.
    """
    if inputs.ndim != 3 or sequence_length.shape != inputs.shape[1:2]:
        raise InvalidArgumentError(
            f"sequence_length of shape {list(sequence_length.shape)} does not fit inputs of shape "
            f"{list(inputs.shape)}: one length for each of the batch"
        )
    steps, _, classes = inputs.shape
    if not classes:
        raise InvalidArgumentError("inputs have at least one class: the blank")
    for i, length in enumerate(sequence_length.tolist()):
        if not 0 <= length <= steps:
            raise InvalidArgumentError(f"sequence {i} has length {length}, of {steps} steps")


def _dense_labels(
    xp: Any, indices: Any, values: Any, shape: tuple[int, int], collapse: bool
) -> tuple[Any, Any]:
    """Labels as a matrix [batch, longest] filled up with -1, and how many there are in each row."""
    batch, classes = shape
    if values.ndim != 1 or indices.shape != (values.size, 2):
        raise InvalidArgumentError(
            f"labels have one index [example, position] for each value; their indices are of shape "
            f"{list(indices.shape)} and their values of {list(values.shape)}"
        )
    if values.size and (values.min() < 0 or values.max() >= classes - 1):
        wrong = next(v for v in values.tolist() if not 0 <= v < classes - 1)
        raise OutOfRangeError(
            f"label {wrong} is out of range: there are {classes - 1}, from 0, beside the blank"
        )
    rows, columns = indices[:, 0], indices[:, 1]
    if rows.size and (rows.min() < 0 or rows.max() >= batch or columns.min() < 0):
        raise OutOfRangeError(f"an index of the labels is out of range for a batch of {batch}")
    order = xp.lexsort(xp.stack([columns, rows]))
    rows, columns, values = rows[order], columns[order], values[order]
    if collapse and values.size:
        is_kept = xp.ones(values.shape, bool)
        is_kept[1:] = (values[1:] != values[:-1]) | (rows[1:] != rows[:-1])
        rows, values = rows[is_kept], values[is_kept]
    counts = xp.bincount(rows, minlength=batch)
    places = xp.arange(rows.size) - (xp.cumsum(counts) - counts)[rows]
    labels = xp.full((batch, int(counts.max(initial=0))), -1, np.int64)
    labels[rows, places] = values
    return labels, counts


def _log_add(xp: Any, a: Any, b: Any, c: Any) -> Any:
    """`log(exp(a) + exp(b) + exp(c))`, elementwise."""
    top = xp.maximum(xp.maximum(a, b), c)
    return top + xp.log(xp.exp(a - top) + xp.exp(b - top) + xp.exp(c - top))


def _log_sum(xp: Any, scores: Any) -> Any:
    """`log(sum(exp(scores)))` along the last axis."""
    top = xp.max(scores, axis=-1, keepdims=True)
    return (top + xp.log(xp.sum(xp.exp(scores - top), axis=-1, keepdims=True)))[..., 0]


def _moved(xp: Any, scores: Any, by: int) -> Any:
    """Scores moved along the states, forwards or backwards."""
    result = xp.full(scores.shape, _NEVER)
    if by > 0:
        result[:, by:] = scores[:, :-by]
    else:
        result[:, :by] = scores[:, -by:]
    return result


def _ctc_loss(
    xp: Any,
    inputs: Any,
    labels_indices: Any,
    labels_values: Any,
    sequence_length: Any,
    preprocess_collapse_repeated: bool,
    ctc_merge_repeated: bool,
    ignore_longer_outputs_than_inputs: bool,
) -> Any:
    check_lengths(inputs, sequence_length)
    steps, batch, classes = inputs.shape
    labels, counts = _dense_labels(
        xp, labels_indices, labels_values, (batch, classes), preprocess_collapse_repeated
    )
    is_longer = counts > sequence_length
    if is_longer.any() and not ignore_longer_outputs_than_inputs:
        i = int(xp.argmax(is_longer))
        raise InvalidArgumentError(
            f"sequence {i} has {int(counts[i])} labels for {int(sequence_length[i])} steps",
            hint="ignore_longer_outputs_than_inputs=True leaves such sequences out",
        )
    states, is_label = _states(xp, labels, classes - 1)
    shifted = inputs.astype(np.float64)
    shifted -= xp.max(shifted, axis=2, keepdims=True)
    rows = xp.arange(batch)[:, None]
    emitted = shifted[:, rows, states]
    gradient = xp.exp(shifted, shifted)
    total = xp.sum(gradient, axis=2, keepdims=True)
    gradient /= total
    emitted = xp.maximum(emitted - xp.log(total), _NEVER)
    paths = _Paths(xp, emitted, states, is_label, counts, sequence_length, ctc_merge_repeated)
    paths.subtract_occupancy(gradient)
    gradient[xp.arange(steps)[:, None] >= xp.where(is_longer, 0, sequence_length)] = 0
    loss = xp.where(is_longer, 0.0, paths.loss)
    return loss.astype(inputs.dtype), gradient.astype(inputs.dtype)


def _states(xp: Any, labels: Any, blank: int) -> Any:
    """The states of each example, blank, label, blank, ..., label, blank, and which are labels."""
    states = xp.full((labels.shape[0], 2 * labels.shape[1] + 1), blank)
    states[:, 1::2] = xp.where(labels < 0, blank, labels)
    is_label = xp.zeros(states.shape, bool)
    is_label[:, 1::2] = labels >= 0
    return states, is_label


class _Paths:
    """The paths that spell the labels of each example.

    Args:
        xp: NumPy or a module like it.
        emitted: [time, batch, states], the logarithm of how probable each state's class is.
        states: [batch, states], the classes.
        is_label: [batch, states], False for blanks.
        counts: [batch], the number of labels.
        lengths: [batch], the number of steps.
        merge: whether repeats on a path are one label.

    Attributes:
        loss: [batch], minus the logarithm of the sum of all paths' probabilities.
    """

    def __init__(
        self,
        xp: Any,
        emitted: Any,
        states: Any,
        is_label: Any,
        counts: Any,
        lengths: Any,
        merge: bool,
    ) -> None:
        self.xp, self.emitted, self.states, self.lengths = xp, emitted, states, lengths
        # From a label straight to the next, unless they would merge.
        may_skip = is_label.copy()
        may_skip[:, :2] = False
        if merge:
            may_skip[:, 2:] &= states[:, 2:] != states[:, :-2]
        self.skip = xp.where(may_skip, 0.0, _NEVER)
        self.stay = xp.where(is_label & (not merge), _NEVER, 0.0)
        place = xp.arange(states.shape[1])
        ends = 2 * counts[:, None]
        self.ending = xp.where((place == ends) | (place == ends - 1), 0.0, _NEVER)
        self.beginning = xp.where((place == 0) | ((place == 1) & is_label), 0.0, _NEVER)
        self.forward = self._forward()
        rows = xp.arange(len(lengths))
        self.total = _log_sum(xp, self.forward[xp.maximum(lengths - 1, 0), rows] + self.ending)
        # Without steps only an example without labels has a path.
        self.total = xp.where(lengths == 0, xp.where(counts == 0, 0.0, _NEVER), self.total)
        self.is_impossible = self.total <= _NEVER / 2
        self.loss = xp.where(self.is_impossible, np.inf, -self.total)

    def _forward(self) -> Any:
        """For each step and state, the sum of the beginnings of all paths that are there then."""
        xp, steps = self.xp, len(self.emitted)
        found = xp.empty((max(steps, 1), *self.states.shape))
        found[0] = _NEVER
        for t in range(steps):
            if t:
                before = found[t - 1]
                one, two = _moved(xp, before, 1), _moved(xp, before, 2) + self.skip
                score = _log_add(xp, before + self.stay, one, two)
            else:
                score = self.beginning
            found[t] = xp.maximum(score + self.emitted[t], _NEVER)
        return found

    def subtract_occupancy(self, gradient: Any) -> None:
        """Subtract from [time, batch, classes] how probable each class is, given the labels."""
        xp, (batch, classes) = self.xp, gradient.shape[1:]
        flat = (xp.arange(batch)[:, None] * classes + self.states).ravel()
        after = self.ending
        for t in range(len(gradient) - 1, -1, -1):
            weights = xp.exp(self.forward[t] + after - self.total[:, None])
            weights = xp.where(self.is_impossible[:, None], 0.0, weights).ravel()
            occupied = xp.bincount(flat, weights, batch * classes)
            gradient[t] -= xp.reshape(occupied, (batch, classes))
            ahead = after + self.emitted[t]
            one, two = _moved(xp, ahead, -1), _moved(xp, ahead + self.skip, -2)
            score = xp.maximum(_log_add(xp, ahead + self.stay, one, two), _NEVER)
            after = xp.where((t < self.lengths)[:, None], score, self.ending)


def _ctc_gradient(op: Operation, dloss: Tensor, dgradient: Tensor) -> Any:
    gradient = prevent_gradient(
        op.outputs[1], message="the CTC loss has no second gradient: it is computed with the first"
    )
    return expand_dims_op(dloss, axis=(0, 2)) * gradient, None, None, None


ctc_loss_op = OpDef(
    "CTCLoss",
    "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32 "
    "-> loss: T, gradient: T",
    T=FLOATS,
    attributes={
        "preprocess_collapse_repeated": False,
        "ctc_merge_repeated": True,
        "ignore_longer_outputs_than_inputs": False,
    },
    infer=_loss_shapes,
    kernel=_ctc_loss,
    grad=_ctc_gradient,
    aliases={},
    cost=lambda op: 100 * (op.inputs[0].shape.size or 0),
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
        name: the operation's name.

    Returns:
        [batch], the negative logarithm of the probability of each sequence's labels; infinite where
        repeated labels leave no path.

    Raises:
        InvalidArgumentError: in the run, if there are more labels than steps.
        OutOfRangeError: in the run, if a label is no class, or the blank.

    Source: Graves et al., "Connectionist Temporal Classification", 2006.
    """
    __tracebackhide__ = True
    with located("CTCLoss"):
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
    return loss  # type: ignore[no-any-return]
