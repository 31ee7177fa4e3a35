"""The paths through a sequence that spell labels, for the CTC loss and its derivatives.

All sequences of a batch and all of their labels advance together; the only loop is over steps.
Logarithms are computed in float64, so that neither long nor unlikely sequences vanish; in place of
-inf stands `_NEVER`, whose differences are not NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidArgumentError, InvalidIndexError

_NEVER = -1e100


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
        raise InvalidIndexError(
            f"label {wrong} is out of range: there are {classes - 1}, from 0, beside the blank"
        )
    rows, columns = indices[:, 0], indices[:, 1]
    if rows.size and (rows.min() < 0 or rows.max() >= batch or columns.min() < 0):
        raise InvalidIndexError(f"an index of the labels is out of range for a batch of {batch}")
    order = xp.lexsort(xp.stack([columns, rows]))
    rows, columns, values = rows[order], columns[order], values[order]
    if collapse and values.size:
        is_kept = xp.ones(values.shape, bool)
        is_kept[1:] = (values[1:] != values[:-1]) | (rows[1:] != rows[:-1])
        rows, values = rows[is_kept], values[is_kept]
    counts = xp.bincount(rows, minlength=batch)
    places = xp.arange(rows.size) - (xp.cumsum(counts) - counts)[rows]
    longest = int(counts.max()) if batch else 0
    labels = xp.full((batch, longest), -1, np.int64)
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


def moved(xp: Any, values: Any, by: int, fill: float = _NEVER) -> Any:
    """Values moved along the states, forwards or backwards."""
    result = xp.full(values.shape, fill)
    if by > 0:
        result[:, by:] = values[:, :-by]
    else:
        result[:, :by] = values[:, -by:]
    return result


def _states(xp: Any, labels: Any, blank: int) -> Any:
    """The states of each example, blank, label, blank, ..., label, blank, and which are labels."""
    states = xp.full((labels.shape[0], 2 * labels.shape[1] + 1), blank)
    states[:, 1::2] = xp.where(labels < 0, blank, labels)
    is_label = xp.zeros(states.shape, bool)
    is_label[:, 1::2] = labels >= 0
    return states, is_label


class Paths:
    """The paths that spell the labels of each example.

    Args:
        xp: NumPy or a module like it.
        inputs: [time, batch, classes], logits.
        labels_indices: [n, 2], the example and position of each label.
        labels_values: [n], the labels' classes.
        sequence_length: [batch], the number of steps.
        preprocess_collapse_repeated: whether equal labels in a row count once.
        ctc_merge_repeated: whether repeats on a path are one label.
        ignore_longer_outputs_than_inputs: whether more labels than steps are no error.

    Attributes:
        chances: [time, batch, classes], the logits' softmax.
        states: [batch, states], the classes of each example's states.
        emitted: [time, batch, states], the logarithm of how probable each state's class is.
        counts: [time, batch], whether a step bears on the loss.
        forward: [time, batch, states], the logarithm of the sum of the beginnings of all paths that
            are there then.
        total: [batch], the logarithm of the sum of all paths' probabilities.
        is_impossible: [batch], whether there is no path.
        loss: [batch], minus the total; infinite where there is no path.

    Raises:
        InvalidArgumentError: if there are more labels than steps, or the arguments do not fit.
        InvalidIndexError: if a label is none.
    """

    def __init__(
        self,
        xp: Any,
        inputs: Any,
        labels_indices: Any,
        labels_values: Any,
        sequence_length: Any,
        preprocess_collapse_repeated: bool,
        ctc_merge_repeated: bool,
        ignore_longer_outputs_than_inputs: bool,
    ) -> None:
        self.xp, self.lengths = xp, sequence_length
        check_lengths(inputs, sequence_length)
        steps, batch, classes = inputs.shape
        labels, sizes = _dense_labels(
            xp, labels_indices, labels_values, (batch, classes), preprocess_collapse_repeated
        )
        is_longer = sizes > sequence_length
        if is_longer.any() and not ignore_longer_outputs_than_inputs:
            i = int(xp.argmax(is_longer))
            raise InvalidArgumentError(
                f"sequence {i} has {counted(int(sizes[i]), 'label')} for "
                f"{counted(int(sequence_length[i]), 'step')}",
                hint="ignore_longer_outputs_than_inputs=True leaves such sequences out",
            )
        self.counts = xp.arange(steps)[:, None] < xp.where(is_longer, 0, sequence_length)
        self.states, is_label = _states(xp, labels, classes - 1)
        self._emit(inputs)
        self._connect(is_label, sizes, ctc_merge_repeated)
        self.forward = self._forward()
        rows = xp.arange(batch)
        ends = self.forward[xp.maximum(sequence_length - 1, 0), rows] + self.ending
        self.total = _log_sum(xp, ends)
        # Without steps only an example without labels has a path.
        self.total = xp.where(sequence_length == 0, xp.where(sizes == 0, 0.0, _NEVER), self.total)
        self.is_impossible = self.total <= _NEVER / 2
        self.loss = xp.where(self.is_impossible, np.inf, -self.total)
        self.loss = xp.where(is_longer, 0.0, self.loss)

    def _emit(self, inputs: Any) -> None:
        xp = self.xp
        shifted = inputs.astype(np.float64)
        shifted -= xp.max(shifted, axis=2, keepdims=True)
        emitted = self.of_states(shifted)
        chances = xp.exp(shifted, shifted)
        total = xp.sum(chances, axis=2, keepdims=True)
        chances /= total
        self.chances = chances
        self.emitted = xp.maximum(emitted - xp.log(total), _NEVER)

    def _connect(self, is_label: Any, sizes: Any, merge: bool) -> None:
        """Say from which state a path may go to which, and where it begins and ends."""
        xp, states = self.xp, self.states
        # From a label straight to the next, unless they would merge.
        may_skip = is_label.copy()
        may_skip[:, :2] = False
        if merge:
            may_skip[:, 2:] &= states[:, 2:] != states[:, :-2]
        self.skip = xp.where(may_skip, 0.0, _NEVER)
        self.stay = xp.where(is_label & (not merge), _NEVER, 0.0)
        place = xp.arange(states.shape[1])
        ends = 2 * sizes[:, None]
        self.ending = xp.where((place == ends) | (place == ends - 1), 0.0, _NEVER)
        self.beginning = xp.where((place == 0) | ((place == 1) & is_label), 0.0, _NEVER)

    def of_states(self, values: Any) -> Any:
        """Of [time, batch, classes] the values of each state's class."""
        return values[:, self.xp.arange(len(self.states))[:, None], self.states]

    def arriving(self, before: Any) -> tuple[Any, Any, Any]:
        """What a state has from itself, from the one before, and from the one before that."""
        xp = self.xp
        return before + self.stay, moved(xp, before, 1), moved(xp, before, 2) + self.skip

    def leaving(self, ahead: Any) -> tuple[Any, Any, Any]:
        """What a state has from itself, from the one behind, and from the one behind that."""
        xp = self.xp
        return ahead + self.stay, moved(xp, ahead, -1), moved(xp, ahead + self.skip, -2)

    def _forward(self) -> Any:
        xp, steps = self.xp, len(self.emitted)
        found = xp.empty((max(steps, 1), *self.states.shape))
        found[0] = _NEVER
        for t in range(steps):
            score = _log_add(xp, *self.arriving(found[t - 1])) if t else self.beginning
            found[t] = xp.maximum(score + self.emitted[t], _NEVER)
        return found

    def backward(self) -> Iterator[tuple[int, Any]]:
        """For each step, the last first, the sum of the ends of all paths that are there then."""
        xp, after = self.xp, self.ending
        for t in range(len(self.emitted) - 1, -1, -1):
            yield t, after
            score = _log_add(xp, *self.leaving(after + self.emitted[t]))
            is_inside = (t < self.lengths)[:, None]
            after = xp.where(is_inside, xp.maximum(score, _NEVER), self.ending)

    def occupancy(self, t: int, after: Any) -> Any:
        """How probable each state is at a step, given the labels; `after` is from `backward`."""
        weights = self.xp.exp(self.forward[t] + after - self.total[:, None])
        return self.xp.where(self.is_impossible[:, None], 0.0, weights)

    def by_class(self, weights: Any) -> Any:
        """The sums [batch, classes] of what the states of each class have."""
        batch, classes = self.chances.shape[1:]
        flat = (self.xp.arange(batch)[:, None] * classes + self.states).ravel()
        sums = self.xp.bincount(flat, weights.ravel(), batch * classes)
        return self.xp.reshape(sums, (batch, classes))
