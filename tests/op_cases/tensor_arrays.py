"""Arrays of tensors: what is read from them; writes and sums are values that no row can hold."""

from __future__ import annotations

import numpy as np

import flowbook as fb
from flowbook.graph.control_flow.array_ops import (
    array_op,
    concat_op,
    scatter_op,
    split_op,
    take_op,
    take_pieces_op,
    take_rows_op,
)
from flowbook.graph.control_flow.stacks import empty_stack
from tests.op_cases.case import SOME, Case, Scenario, f


def _array(x, **options):
    return fb.TensorArray(x.dtype, dynamic_size=True, clear_after_read=False, **options).unstack(x)


def _rows(x, indices):
    """A gradient's array, zero but for some rows."""
    return scatter_op(empty_stack(), indices, x)


COLUMN = f([[1.0, -2.0], [0.5, 3.0], [2.0, 4.0], [-1.0, 0.25]])

CASES = [
    Case("TensorArrayRead", lambda x: _array(x).read(1), [SOME], lambda x: x[1], [0]),
    Case(
        "TensorArrayGather",
        lambda x: _array(x).gather([1, 0, 1]),
        [SOME],
        lambda x: x[[1, 0, 1]],
        [0],
    ),
    Case(
        "TensorArrayGather",
        lambda x: _array(x).stack(),
        [SOME],
        lambda x: x,
        [0],
        note="all",
        by_value=True,
    ),
    Case(
        "TensorArrayConcat",
        lambda x: concat_op(
            split_op(array_op(3, infer_shape=False), x, [1, 0, 3]),
            dtype=x.dtype,
            element_shape=x.shape,
        ),
        [COLUMN],
        lambda x: (x, np.array([1, 0, 3])),
        [0],
        by_value=True,
    ),
    Case("TensorArraySize", lambda x: _array(x).size(), [SOME], lambda x: np.array(len(x))),
    Case(
        "TensorArrayTake",
        lambda x: take_op(_rows(x, [4, 2]), 2, [3], dtype=x.dtype),
        [SOME],
        lambda x: x[1],
        [0],
    ),
    Case(
        "TensorArrayTake",
        lambda x: take_op(_rows(x, [4, 2]), 3, [3], dtype=x.dtype),
        [SOME],
        lambda x: np.zeros(3),
        note="zero",
    ),
    Case(
        "TensorArrayTakeRows",
        lambda x: take_rows_op(_rows(x, [4, 2]), [2, 3, 2], [3, 3], dtype=x.dtype),
        [SOME],
        lambda x: np.stack([x[1], 0 * x[1], x[1]]),
        [0],
    ),
    Case(
        "TensorArrayTakePieces",
        lambda x: take_pieces_op(
            split_op(empty_stack(), x, [1, 3]), [1, 3, 2], [6, 2], dtype=x.dtype
        ),
        [COLUMN],
        lambda x: np.concatenate([x, np.zeros((2, 2))]),
        [0],
    ),
]

SCENARIOS = [
    Scenario(type, "tests/graph/control_flow/test_tensor_array.py")
    for type in (
        "TensorArray",
        "TensorArrayAdd",
        "TensorArrayLeaveOut",
        "TensorArrayReplace",
        "TensorArrayScatter",
        "TensorArraySplit",
        "TensorArrayWrite",
    )
]
