"""How many edits turn one sequence into another, for many at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import VALUES
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.bounds import check_vectors

__all__ = ["edit_distance"]

Array = np.ndarray[Any, Any]


def _distances_shape(
    hypothesis_indices: Tensor,
    hypothesis_values: Tensor,
    hypothesis_shape: Tensor,
    truth_indices: Tensor,
    truth_values: Tensor,
    truth_shape: Tensor,
    normalize: bool,
) -> Shape:
    shapes = (hypothesis_shape, truth_shape)
    rank = shapes[0].shape.merge(shapes[1].shape).with_rank(1).as_list()[0]
    for tensor, wanted in (
        (hypothesis_indices, (None, rank)),
        (truth_indices, (None, rank)),
        (hypothesis_values, (None,)),
        (truth_values, (None,)),
    ):
        if not tensor.shape.is_compatible_with(wanted):
            raise InvalidArgumentError(
                f"{tensor.name} of shape {tensor.shape} is no part of a sparse tensor of rank "
                f"{'?' if rank is None else rank}"
            )
    known = [constant_value(shape) for shape in shapes]
    if known[0] is not None and known[1] is not None:
        return Shape.of(_groups(known[0], known[1]))
    return UNKNOWN if rank is None else Shape.of((None,) * (rank - 1))


def _groups(first: Any, second: Any) -> tuple[int, ...]:
    """The shape of what has a distance for each pair of sequences."""
    if first.shape != second.shape or not first.size:
        raise InvalidArgumentError(
            f"the shapes {first.tolist()} and {second.tolist()} are not those of sequences to "
            "compare"
        )
    return tuple(np.maximum(first, second)[:-1].tolist())


def _sequences(indices: Any, values: Any, shape: Any, groups: tuple[int, ...]) -> dict[int, Array]:
    """The sequences that have elements, by the place of their group."""
    check_vectors(indices, tuple(shape.tolist()))
    flat = np.zeros(len(indices), np.int64)
    for axis, d in enumerate(groups):
        flat = flat * d + indices[:, axis]
    order = np.argsort(flat, kind="stable")
    flat, values = flat[order], values[order]
    ends = [*(np.flatnonzero(flat[1:] != flat[:-1]) + 1).tolist(), len(flat)]
    found = {}
    start = 0
    for end in ends if len(flat) else []:
        found[int(flat[start])] = values[start:end]
        start = end
    return found


def _distance(hypothesis: Array, truth: Array) -> int:
    places = np.arange(len(truth) + 1)
    row = places
    for item in hypothesis:
        changed = row + 1
        changed[1:] = np.minimum(changed[1:], row[:-1] + (truth != item))
        # Insertions go from left to right: what each place costs beyond the way to it is the least
        # of all before it.
        row = np.minimum.accumulate(changed - places) + places
    return int(row[-1])


def _distances(
    xp: Any,
    hypothesis_indices: Any,
    hypothesis_values: Any,
    hypothesis_shape: Any,
    truth_indices: Any,
    truth_values: Any,
    truth_shape: Any,
    normalize: bool,
) -> Any:
    groups = _groups(hypothesis_shape, truth_shape)
    first = _sequences(hypothesis_indices, hypothesis_values, hypothesis_shape, groups)
    second = _sequences(truth_indices, truth_values, truth_shape, groups)
    nothing = truth_values[:0]
    result = np.zeros(int(np.prod(groups, dtype=np.int64)), np.float32)
    for place in first.keys() | second.keys():
        truth = second.get(place, nothing)
        distance = _distance(first.get(place, nothing), truth)
        # An empty truth is infinitely far from everything but itself.
        result[place] = (distance / len(truth) if len(truth) else np.inf) if normalize else distance
    return result.reshape(groups)


def _steps(op: Operation) -> int:
    return (op.inputs[1].shape.size or 0) * (op.inputs[4].shape.size or 0)


edit_distance_op = OpDef(
    "EditDistance",
    "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, "
    "truth_indices: int64, truth_values: T, truth_shape: int64 -> output: float32",
    T=VALUES,
    attributes={"normalize": True},
    infer=_distances_shape,
    kernel=_distances,
    kinds=HOST,
    host_args=("hypothesis_shape", "truth_shape"),
    grad=NO_GRADIENT,
    computes=False,
    cost=_steps,
)


@edit_distance_op.front
def edit_distance(
    hypothesis: Any, truth: Any, normalize: bool = True, name: str | None = None
) -> Tensor:
    """How many insertions, deletions and substitutions turn each sequence into another.

    Args:
        hypothesis: a sparse tensor of rank n, or anything with `.indices`, `.values` and
            `.dense_shape`: the sequences lie along the last axis.
        truth: another, of the same dtype and rank.
        normalize: divide each distance by the length of the truth; where that is empty and the
            hypothesis is not, it is infinite.

    Returns:
        float32 of rank n - 1, a distance for each sequence.

    Raises:
        InvalidTypeError: if one is no sparse tensor.
        InvalidArgumentError: if their ranks differ.

    Source: V. Levenshtein, "Binary codes capable of correcting deletions, insertions, and
    reversals", 1966.
    """
    parts = []
    for given in (hypothesis, truth):
        try:
            parts += [given.indices, given.values, given.dense_shape]
        except AttributeError:
            raise InvalidTypeError(
                f"edit_distance compares sparse tensors, with .indices, .values and "
                f".dense_shape, not {given!r}"
            ) from None
    return edit_distance_op(*parts, normalize=bool(normalize), name=name)
