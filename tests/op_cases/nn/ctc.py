"""Connectionist temporal classification."""

from __future__ import annotations

import itertools
from functools import cache, partial
from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import float32, float64
from flowbook.graph.ops.nn import ctc, ctc_decoding
from tests.op_cases.case import Array, Case, i

LOGITS = np.random.default_rng(3).normal(size=(4, 3, 4)) * 2
INDICES = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]])
VALUES = i([2, 0, 1, 1, 2])
LENGTHS = i([4, 3, 2])
EXTREME = np.where(np.arange(4) == 1, 1e4, LOGITS)


def _spelt(path: Any, merge: bool, blank: int) -> tuple[int, ...]:
    merged = [k for k, _ in itertools.groupby(path)] if merge else path
    return tuple(k for k in merged if k != blank)


@cache
def _paths(classes: int, length: int, merge: bool) -> dict[tuple[int, ...], Array]:
    """For each row of labels all paths that spell it, the last class being the blank."""
    found: dict[tuple[int, ...], list[Any]] = {}
    for path in itertools.product(range(classes), repeat=length):
        found.setdefault(_spelt(path, merge, classes - 1), []).append(path)
    return {labels: np.array(paths, int) for labels, paths in found.items()}


def _loss(
    logits: Array, indices: Array, values: Array, lengths: Array, merge: bool = True
) -> Array:
    """By all paths, one after the other."""
    found = []
    for b, length in enumerate(lengths):
        labels = tuple(v for (row, _), v in zip(indices, values, strict=True) if row == b)
        logs = logits[:, b] - logits[:, b].max(-1, keepdims=True, initial=-1e300)
        logs = logs - np.log(np.exp(logs).sum(-1, keepdims=True))
        paths = _paths(logits.shape[2], int(length), merge).get(labels, np.empty((0, 0), int))
        scores = logs[np.arange(paths.shape[1]), paths].sum(1)
        found.append(-np.logaddexp.reduce(scores))
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


DECODED = np.random.default_rng(8).normal(size=(7, 3, 3)) * 2


def _as_sparse(rows: list[tuple[int, ...]]) -> tuple[Array, Array, Array]:
    indices = [(b, place) for b, row in enumerate(rows) for place in range(len(row))]
    longest = max(map(len, rows))
    values = np.array([label for row in rows for label in row], int)
    return np.array(indices, int).reshape(-1, 2), values, np.array([len(rows), longest])


def _greedy(logits: Array, lengths: Array, merge: bool) -> Any:
    paths = [logits[:n, b].argmax(1).tolist() for b, n in enumerate(np.asarray(lengths, int))]
    sums = [-logits[:n, b].max(1).sum() for b, n in enumerate(np.asarray(lengths, int))]
    blank = logits.shape[2] - 1
    return *_as_sparse([_spelt(p, merge, blank) for p in paths]), np.array(sums)[:, None]


def _in_order(decoded: Any, last: Any) -> list[Any]:
    parts = ("indices", "values", "dense_shape")
    return [*(getattr(d, part) for part in parts for d in decoded), last]


def _greedy_in_tensorflow(tf: Any, *arrays: Any, **options: Any) -> Any:
    return _in_order(*tf.compat.v1.nn.ctc_greedy_decoder(*arrays, **options))


def _beam_search(inputs: Any, lengths: Any, **options: Any) -> Any:
    return _in_order(*ctc_decoding.ctc_beam_search_decoder(inputs, lengths, **options))


def _beam_search_in_tensorflow(tf: Any, *arrays: Any, **options: Any) -> Any:
    return _in_order(*tf.compat.v1.nn.ctc_beam_search_decoder(*arrays, **options))


def _beam_search_by_all(logits: Array, lengths: Array, top_paths: int, merge_repeated: bool) -> Any:
    """By all paths: exact where the beam is as wide as there are prefixes."""
    logs = logits - np.logaddexp.reduce(logits, axis=2, keepdims=True)
    classes = logits.shape[2]
    best: list[list[tuple[int, ...]]] = [[] for _ in range(top_paths)]
    scores = []
    for b, length in enumerate(np.asarray(lengths, int)):
        chances: dict[tuple[int, ...], float] = {}
        for path in itertools.product(range(classes), repeat=int(length)):
            score = sum(logs[t, b, k] for t, k in enumerate(path))
            key = _spelt(path, True, classes - 1)
            chances[key] = np.logaddexp(chances.get(key, -np.inf), score)
        ordered = sorted(chances, key=chances.__getitem__, reverse=True)[:top_paths]
        scores.append([chances[key] for key in ordered])
        for place, key in enumerate(ordered):
            best[place].append(_spelt(key, merge_repeated, -1))
    parts = [_as_sparse(rows) for rows in best]
    return *(part[k] for k in range(3) for part in parts), np.array(scores)


DIRECTIONS = [np.random.default_rng(k).normal(size=LOGITS.shape) for k in range(2)]


def _gradient_along(
    logits: Array, indices: Array, values: Array, lengths: Array, *ds: Array
) -> Any:
    """By differences along each direction of differences."""

    def total(moved: Array) -> float:
        return float(_loss(moved, indices, values, lengths).sum())

    def along(function: Any, direction: Array) -> Any:
        step = 0.02

        def derivative(x: Array) -> float:
            near, far = (
                function(x + k * step * direction) - function(x - k * step * direction)
                for k in (1, 2)
            )
            return (8 * near - far) / (12 * step)

        return derivative

    function: Any = total
    for direction in ds:
        function = along(function, direction)
    found = np.zeros_like(logits)
    for place in np.ndindex(logits.shape):
        unit = np.zeros_like(logits)
        unit[place] = 1
        found[place] = along(function, unit)(logits)
    return found


CASES = [
    *(
        Case(
            "CTCLossGradAlong",
            lambda *arrays: ctc.ctc_gradient_along(*arrays[:4], list(arrays[4:])),
            [LOGITS, INDICES, VALUES, LENGTHS, *DIRECTIONS[:count]],
            _gradient_along,
            [0, *range(4, 4 + count)],
            only=[float64],
            empty=[np.zeros((0, 0, 2)), np.zeros((0, 2), int), i([]), i([])]
            + [np.zeros((0, 0, 2))] * count,
            tolerance=3e9,  # Differences of differences.
            note=f"{count}-directions",
        )
        for count in (1, 2)
    ),
    Case(
        "CTCLoss",
        _built,
        [LOGITS, INDICES, VALUES, LENGTHS],
        _loss,
        [0],
        empty=[np.zeros((0, 0, 2)), np.zeros((0, 2), int), i([]), i([])],
        special=[EXTREME, INDICES, VALUES, LENGTHS],
        tolerance=8,
    ),
    Case(
        "CTCLoss",
        partial(_built, ctc_merge_repeated=False),
        [LOGITS, INDICES, VALUES, LENGTHS],
        partial(_loss, merge=False),
        [0],
        tolerance=8,
        note="unmerged",
    ),
    Case(
        "CTCLoss",
        _built,
        [LOGITS, INDICES[:0], VALUES[:0], LENGTHS],
        _loss,
        [0],
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
    Case(
        "CTCGreedyDecoder",
        ctc_decoding.greedy_op,
        [DECODED, i([7, 5, 0])],
        partial(_greedy, merge=True),
        special=[DECODED * 1e4, i([7, 5, 0])],
        by_value=True,
        only=[float32],
        tensorflow=_greedy_in_tensorflow,
    ),
    Case(
        "CTCGreedyDecoder",
        partial(ctc_decoding.greedy_op, merge_repeated=False),
        [DECODED, i([7, 5, 0])],
        partial(_greedy, merge=False),
        by_value=True,
        only=[float32],
        tensorflow=partial(_greedy_in_tensorflow, merge_repeated=False),
        note="unmerged",
    ),
    *(
        Case(
            "CTCBeamSearchDecoder",
            partial(_beam_search, beam_width=width, top_paths=paths, merge_repeated=merge_repeated),
            [DECODED, i([7, 5, 3])],
            partial(_beam_search_by_all, top_paths=paths, merge_repeated=merge_repeated),
            by_value=True,
            only=[float32],
            tolerance=4,
            tensorflow=partial(
                _beam_search_in_tensorflow,
                beam_width=width,
                top_paths=paths,
                merge_repeated=merge_repeated,
            ),
            note=f"{paths}-{merge_repeated}",
        )
        for width, paths, merge_repeated in ((100, 1, True), (100, 3, False))
    ),
]
