"""Connectionist temporal classification."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np

from flowbook.graph.dtypes import float32
from flowbook.graph.ops import ctc
from tests.op_cases.case import Array, Case, i

LOGITS = np.random.default_rng(3).normal(size=(4, 3, 4)) * 2
INDICES = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]])
VALUES = i([2, 0, 1, 1, 2])
LENGTHS = i([4, 3, 2])
EXTREME = np.where(np.arange(4) == 1, 1e4, LOGITS)


def _spelt(path: Any, merge: bool, blank: int) -> tuple[int, ...]:
    merged = [k for k, _ in itertools.groupby(path)] if merge else path
    return tuple(k for k in merged if k != blank)


def _loss(
    logits: Array, indices: Array, values: Array, lengths: Array, merge: bool = True
) -> Array:
    """By all paths, one after the other."""
    found = []
    for b, length in enumerate(lengths):
        labels = tuple(v for (row, _), v in zip(indices, values, strict=True) if row == b)
        logs = logits[:, b] - logits[:, b].max(-1, keepdims=True, initial=-1e300)
        logs = logs - np.log(np.exp(logs).sum(-1, keepdims=True))
        paths = itertools.product(range(logits.shape[2]), repeat=int(length))
        scores = [
            sum(logs[t, k] for t, k in enumerate(path))
            for path in paths
            if _spelt(path, merge, logits.shape[2] - 1) == labels
        ]
        found.append(-np.logaddexp.reduce(np.array(scores, float)))
    return np.array(found)


def _built(*arrays: Any, **options: Any) -> Any:
    return ctc.ctc_loss_op(*arrays, **options)[0]


def _in_tensorflow(tf: Any, logits: Any, indices: Any, values: Any, lengths: Any, **options: Any):
    rows = int(logits.shape[1])
    labels = tf.SparseTensor(indices, values, [rows, 3])
    return tf.compat.v1.nn.ctc_loss(labels, logits, lengths, **options)


def _in_tensorflow_with_gradient(tf: Any, logits: Any, *others: Any) -> Any:
    logits = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = _in_tensorflow(tf, logits, *others)
    return [loss, tape.gradient(loss, logits)]


def _loss_and_gradient(logits: Array, *others: Array) -> Any:
    """The gradient by differences."""
    gradient = np.zeros_like(logits)
    for place in np.ndindex(logits.shape):
        step = np.zeros_like(logits)
        step[place] = 1e-5
        ends = _loss(logits + step, *others) - _loss(logits - step, *others)
        gradient[place] = np.nansum(ends) / 2e-5
    # Where nothing spells the labels, what TensorFlow gives: the classes' probabilities.
    loss, lengths = _loss(logits, *others), others[2]
    chances = np.exp(logits - np.logaddexp.reduce(logits, axis=2, keepdims=True))
    is_hopeless = np.isinf(loss) & (np.arange(len(logits))[:, None] < lengths)
    return loss, np.where(is_hopeless[:, :, None], chances, gradient)


CASES = [
    Case(
        "CTCLoss",
        _built,
        [LOGITS, INDICES, VALUES, LENGTHS],
        _loss,
        [0],
        empty=[np.zeros((0, 0, 2)), np.zeros((0, 2), int), i([]), i([])],
        special=[EXTREME, INDICES, VALUES, LENGTHS],
        # The second output is the first's gradient; its own is not worth its price.
        twice=False,
        tolerance=8,
    ),
    Case(
        "CTCLoss",
        partial(_built, ctc_merge_repeated=False),
        [LOGITS, INDICES, VALUES, LENGTHS],
        partial(_loss, merge=False),
        [0],
        twice=False,
        tolerance=8,
        note="unmerged",
    ),
    Case(
        "CTCLoss",
        _built,
        [LOGITS, INDICES[:0], VALUES[:0], LENGTHS],
        _loss,
        [0],
        twice=False,
        tolerance=8,
        note="no-labels",
    ),
    Case(
        "CTCLoss",
        ctc.ctc_loss_op,
        [LOGITS, INDICES, VALUES, LENGTHS],
        _loss_and_gradient,
        only=[float32],
        special=[np.where(np.arange(4) == 0, -np.inf, LOGITS), INDICES, VALUES, LENGTHS],
        tolerance=16,
        tensorflow=_in_tensorflow_with_gradient,
        note="gradient",
    ),
    *(
        Case(
            "CTCLoss",
            partial(_built, **options),
            [LOGITS, INDICES, VALUES, i([4, 1, 2]) if "ignore" in note else LENGTHS],
            reference,
            only=[float32],
            tolerance=8,
            tensorflow=partial(_in_tensorflow, **options),
            note=note,
        )
        for note, options, reference in (
            (
                "ignore",
                {"ignore_longer_outputs_than_inputs": True},
                lambda x, k, v, n: np.where(n == 1, 0, _loss(x, k, v, n)),
            ),
            (
                "collapse",
                {"preprocess_collapse_repeated": True},
                lambda x, k, v, n: _loss(x, k[[0, 1, 2, 4]], v[[0, 1, 2, 4]], n),
            ),
            (
                "unmerged-float32",
                {"ctc_merge_repeated": False},
                partial(_loss, merge=False),
            ),
        )
    ),
]
