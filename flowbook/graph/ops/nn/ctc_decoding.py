"""What a sequence of logits spells: the other direction of `ctc_loss`, which says what a path is.

Decoded labels are sparse: row by row those of each sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import FLOATS, DType, int64
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.numerics.ctc_paths import check_lengths
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor

__all__ = ["ctc_beam_search_decoder", "ctc_greedy_decoder"]

_SPARSE_SHAPES = [Shape.of((None, 2)), Shape.of((None,)), Shape.of((2,))]


def _batch(inputs: Tensor, sequence_length: Tensor) -> int | None:
    whole = inputs.shape.with_rank(3)
    batch: int | None = whole[1:2].merge(sequence_length.shape.with_rank(1)).as_list()[0]
    return batch


def _greedy_shapes(inputs: Tensor, sequence_length: Tensor, merge_repeated: bool) -> list[Shape]:
    return [*_SPARSE_SHAPES, Shape.of((_batch(inputs, sequence_length), 1))]


def _greedy(xp: Any, inputs: Any, sequence_length: Any, merge_repeated: bool) -> Any:
    check_lengths(inputs, sequence_length)
    steps, batch, classes = inputs.shape
    is_step = xp.arange(steps)[:, None] < sequence_length
    best = xp.argmax(inputs, axis=2) if inputs.size else xp.zeros((steps, batch), np.int64)
    top = xp.max(inputs, axis=2)
    total = xp.sum(xp.where(is_step, -top, 0), axis=0, dtype=np.float64)
    is_kept = is_step & (best != classes - 1)
    if merge_repeated:
        is_kept[1:] &= best[1:] != best[:-1]
    rows, times = xp.nonzero(is_kept.T)
    counts = xp.bincount(rows, minlength=batch)
    places = xp.arange(rows.size) - (xp.cumsum(counts) - counts)[rows]
    longest = int(counts.max()) if batch else 0
    return (
        xp.stack([rows, places], axis=1).astype(np.int64),
        best[times, rows].astype(np.int64),
        xp.asarray(np.array([batch, longest], np.int64)),
        total[:, None].astype(inputs.dtype),
    )


greedy_op: OpDef[tuple[Tensor, Tensor, Tensor, Tensor]] = OpDef(
    "CTCGreedyDecoder",
    "inputs: T, sequence_length: int32 -> decoded_indices: int64, decoded_values: int64, "
    "decoded_shape: int64, neg_sum_logits: T",
    T=FLOATS,
    attributes={"merge_repeated": True},
    infer=_greedy_shapes,
    kernel=_greedy,
    grad=NO_GRADIENT,
    cost=lambda op: 2 * (op.inputs[0].shape.size or 0),
)


@greedy_op.front
def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, name: str | None = None
) -> tuple[list[SparseTensor], Tensor]:
    """The labels that the most probable path spells: the best class of each step.

    Args:
        inputs: [time, batch, classes], logits of a floating-point dtype; the last class is the
            blank.
        sequence_length: int32 [batch], the number of steps of each sequence.
        merge_repeated: merge a class that repeats without a blank between.

    Returns:
        `([decoded], neg_sum_logits)`: an int64 sparse tensor [batch, longest] of labels, and
        [batch, 1], the negative sum of the best logits.
    """
    indices, values, shape, total = greedy_op(
        inputs, sequence_length, merge_repeated=bool(merge_repeated), name=name
    )
    return [SparseTensor(indices, values, shape)], total


class _Beam:
    """The most probable prefixes of one sequence: nodes of a tree whose root is the empty one.

    Attributes:
        nodes: the prefixes, most probable first.
        blank: for each the logarithm of the probability of its paths that end in a blank.
        label: and of those that end in its last label.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.parents, self.labels = [-1], [-1]
        self.children: dict[tuple[int, int], int] = {}
        self.nodes = [0]
        self.blank, self.label = np.zeros(1), np.full(1, -np.inf)

    @property
    def total(self) -> Any:
        """The logarithm of each prefix's probability."""
        return np.logaddexp(self.blank, self.label)

    def step(self, logs: Any) -> None:
        """Advance by one step of logarithms of the classes' probabilities."""
        *logs_of_labels, log_of_blank = logs
        longer = self.total[:, None] + np.array(logs_of_labels)
        last = [self.labels[node] for node in self.nodes]
        label = np.full(len(last), -np.inf)
        for i, k in enumerate(last):
            if k >= 0:
                # The same label once more is a new one only after a blank.
                longer[i, k] = self.blank[i] + logs[k]
                label[i] = self.label[i] + logs[k]
        position = {node: i for i, node in enumerate(self.nodes)}
        for i, node in enumerate(self.nodes):
            parent = position.get(self.parents[node])
            if parent is not None:
                # Both are the same prefix.
                label[i] = np.logaddexp(label[i], longer[parent, last[i]])
                longer[parent, last[i]] = -np.inf
        blank = self.total + log_of_blank
        scores = np.concatenate([np.logaddexp(blank, label), longer.ravel()])
        chosen = np.argsort(-scores, kind="stable")[: self.width].tolist()
        kept = [i for i in chosen if scores[i] > -np.inf]
        count, classes = len(last), longer.shape[1]
        nodes = [
            self.nodes[i]
            if i < count
            else self._child(self.nodes[(i - count) // classes], (i - count) % classes)
            for i in kept
        ]
        self.blank = np.array([blank[i] if i < count else -np.inf for i in kept])
        self.label = np.array([label[i] if i < count else scores[i] for i in kept])
        self.nodes = nodes

    def _child(self, node: int, label: int) -> int:
        child = self.children.setdefault((node, label), len(self.parents))
        if child == len(self.parents):
            self.parents.append(node)
            self.labels.append(label)
        return child

    def spelt(self, place: int, merge_repeated: bool) -> list[int]:
        """The labels of a prefix."""
        node = self.nodes[place]
        found: list[int] = []
        while node:
            if not (merge_repeated and found and found[-1] == self.labels[node]):
                found.append(self.labels[node])
            node = self.parents[node]
        return found[::-1]


def _beam_shapes(
    inputs: Tensor,
    sequence_length: Tensor,
    top_paths: int,
    decoded_types: tuple[DType, ...],
    **_: Any,
) -> list[Shape]:
    if len(decoded_types) != 3 * top_paths:  # What is stored may lie; a list of shapes may not.
        raise InvalidArgumentError(
            f"{counted(len(decoded_types), 'dtype')} cannot fit {top_paths} paths"
        )
    scores = Shape.of((_batch(inputs, sequence_length), top_paths))
    return [shape for shape in _SPARSE_SHAPES for _ in range(top_paths)] + [scores]


def _beam_search(
    xp: Any,
    inputs: Any,
    sequence_length: Any,
    beam_width: int,
    top_paths: int,
    merge_repeated: bool,
) -> Any:
    check_lengths(inputs, sequence_length)
    batch = inputs.shape[1]
    logs = np.asarray(inputs, np.float64)
    logs = logs - np.max(logs, axis=2, keepdims=True)
    logs -= np.log(np.sum(np.exp(logs), axis=2, keepdims=True))
    scores = np.full((batch, top_paths), -np.inf)
    found: list[list[list[int]]] = [[] for _ in range(top_paths)]
    for b, length in enumerate(sequence_length.tolist()):
        beam = _Beam(beam_width)
        for t in range(length):
            beam.step(logs[t, b])
        total = beam.total
        for place in range(top_paths):
            is_there = place < len(beam.nodes)
            found[place].append(beam.spelt(place, merge_repeated) if is_there else [])
            if is_there:
                scores[b, place] = total[place]
    parts = [_as_sparse(rows) for rows in found]
    return *(part[i] for i in range(3) for part in parts), scores.astype(inputs.dtype)


def _as_sparse(rows: list[list[int]]) -> tuple[Any, Any, Any]:
    indices = [(b, place) for b, row in enumerate(rows) for place in range(len(row))]
    return (
        np.array(indices, np.int64).reshape(-1, 2),
        np.array([label for row in rows for label in row], np.int64),
        np.array([len(rows), max(map(len, rows), default=0)], np.int64),
    )


beam_search_op: OpDef[tuple[Tensor, ...]] = OpDef(
    "CTCBeamSearchDecoder",
    "inputs: T, sequence_length: int32 -> decoded: *decoded_types, log_probability: T",
    T=FLOATS,
    attributes={
        "beam_width": 100,
        "top_paths": 1,
        "merge_repeated": True,
        "decoded_types": REQUIRED,
    },
    infer=_beam_shapes,
    kernel=_beam_search,
    kinds=HOST,
    grad=NO_GRADIENT,
    cost=lambda op: 10 * op.attributes["beam_width"] * (op.inputs[0].shape.size or 0),
)


@beam_search_op.front
def ctc_beam_search_decoder(
    inputs: Any,
    sequence_length: Any,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
    name: str | None = None,
) -> tuple[list[SparseTensor], Tensor]:
    """The most probable labels, summed over the paths that spell them.

    It follows the best prefixes of labels only, in plain Python: meant for evaluation.

    Args:
        inputs: [time, batch, classes], logits of a floating-point dtype; the last class is the
            blank.
        sequence_length: int32 [batch], the number of steps of each sequence.
        beam_width: how many prefixes are followed.
        top_paths: how many results are wanted for each sequence, at most `beam_width`.
        merge_repeated: merge equal neighbours in the results, though a path tells them apart.

    Returns:
        `(decoded, log_probability)`: a list of `top_paths` int64 sparse tensors [batch, longest],
        most probable first, and [batch, top_paths], the logarithms of their probabilities. Where
        there are fewer prefixes the rest are empty, with -inf.

    Source: Graves, "Sequence Transduction with Recurrent Neural Networks", 2012; Hannun et al.,
    "First-Pass Large Vocabulary Continuous Speech Recognition", 2014.
    """
    for what, number in (("beam_width", beam_width), ("top_paths", top_paths)):
        if isinstance(number, Arithmetic) or not hasattr(number, "__index__"):
            raise InvalidTypeError(f"{what!r} is an int, not {number!r}")
        if number < 1:
            raise InvalidArgumentError(f"{what!r} is at least 1, not {number}")
    if top_paths > beam_width:
        raise InvalidArgumentError(f"a beam of {beam_width} has no {top_paths} paths")
    *parts, scores = beam_search_op(
        inputs,
        sequence_length,
        beam_width=int(beam_width),
        top_paths=int(top_paths),
        merge_repeated=bool(merge_repeated),
        decoded_types=(int64,) * (3 * int(top_paths)),
        name=name,
    )
    n = int(top_paths)
    decoded = [SparseTensor(parts[i], parts[n + i], parts[2 * n + i]) for i in range(n)]
    return decoded, scores
