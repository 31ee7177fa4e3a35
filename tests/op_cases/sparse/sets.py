"""Sets, against Python's."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.ops.sparse import sets
from tests.op_cases.case import Array, Case

A = (np.array([[0, 0], [0, 1], [0, 2], [2, 0], [2, 3]]), np.array([3, 1, 3, 7, 5]), [3, 4])
B = (np.array([[0, 0], [1, 0], [2, 0], [2, 1], [2, 2]]), np.array([1, 4, 5, 5, 2]), [3, 3])
NONE = (np.zeros((0, 2), np.int64), np.zeros(0, np.int64), np.array([3, 4]))
NAMES = {"difference": "a-b", "intersection": "intersection", "union": "union"}


def _rows(indices: Array, values: Array, dims: Any) -> list[set[Any]]:
    found: list[set[Any]] = [set() for _ in range(dims[0])]
    for (row, _), value in zip(indices, values.tolist(), strict=True):
        found[row].add(value)
    return found


def _reference(operation: str) -> Any:
    def reference(*parts: Array) -> tuple[Array, Array, Array]:
        a, b = _rows(*parts[:3]), _rows(*parts[3:])
        combined = [sorted(getattr(x, operation)(y)) for x, y in zip(a, b, strict=True)]
        indices = [(i, j) for i, row in enumerate(combined) for j in range(len(row))]
        values = [value for row in combined for value in row]
        return (
            np.array(indices, np.int64).reshape(-1, 2),
            np.array(values, parts[1].dtype),
            np.array([len(combined), max(map(len, combined))], np.int64),
        )

    return reference


CASES = [
    *(
        Case(
            "SetOperation",
            lambda *parts, operation=operation: sets.set_operation_op(*parts, operation=operation),
            [*A[:2], np.array(A[2]), *B[:2], np.array(B[2])],
            _reference(operation),
            by_value=True,
            empty=[*NONE, *NONE],
            tensorflow=lambda tf, *parts, operation=operation: list(
                tf.raw_ops.SparseToSparseSetOperation(
                    set1_indices=parts[0],
                    set1_values=parts[1],
                    set1_shape=parts[2],
                    set2_indices=parts[3],
                    set2_values=parts[4],
                    set2_shape=parts[5],
                    set_operation=NAMES[operation],
                )
            ),
            note=operation,
        )
        for operation in NAMES
    ),
    Case(
        "SetSize",
        sets.set_size_op,
        [*A[:2], np.array(A[2])],
        lambda *parts: np.array([len(row) for row in _rows(*parts)], np.int32),
        by_value=True,
        empty=NONE,
        tensorflow=lambda tf, indices, values, shape: tf.raw_ops.SetSize(
            set_indices=indices, set_values=values, set_shape=shape
        ),
    ),
]
