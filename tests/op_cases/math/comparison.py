"""Comparison, logic, bits and choice."""

from __future__ import annotations

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.ops.math import comparison
from tests.op_cases.case import (
    NONE,
    ODD,
    OTHER,
    ROW,
    SOME,
    TRUTH,
    Case,
    binary,
    f,
)

CASES = [
    *(
        binary(
            op,
            ufunc,
            np.round(SOME),
            np.round(OTHER[:1]),
            smooth=False,
            tensorflow=lambda tf, x, y, name=op.__name__: getattr(tf.math, name)(x, y),
        )
        for op, ufunc in (
            (comparison.equal, np.equal),
            (comparison.not_equal, np.not_equal),
            (comparison.less, np.less),
            (comparison.less_equal, np.less_equal),
            (comparison.greater, np.greater),
            (comparison.greater_equal, np.greater_equal),
        )
    ),
    *(
        binary(
            op,
            lambda x, y, ufunc=ufunc: ufunc(np.int64(x), np.int64(y)),
            f([[0.0, 1.0, 6.0], [5.0, 3.0, 1.0]]),
            f([1.0, 0.0, 5.0]),
            smooth=False,
            special=None,
            tensorflow=lambda tf, x, y, name=name: getattr(tf.bitwise, name)(x, y),
        )
        for op, ufunc, name in (
            (comparison.and_op, np.bitwise_and, "bitwise_and"),
            (comparison.or_op, np.bitwise_or, "bitwise_or"),
            (comparison.xor_op, np.bitwise_xor, "bitwise_xor"),
        )
    ),
    Case(
        "Not",
        comparison.not_op,
        [f([[0.0, 1.0, 6.0]])],
        lambda x: np.invert(np.int64(x)),
        empty=[NONE],
        tensorflow=lambda tf, x: tf.bitwise.invert(x),
        only=(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    ),
    Case(
        "Not",
        comparison.logical_not,
        [TRUTH],
        np.logical_not,
        empty=[TRUTH[:0]],
        note="bool",
        tensorflow=lambda tf, x: tf.logical_not(x),
        only=[dtypes.bool],
    ),
    Case(
        "Where",
        comparison.where,
        [TRUTH, SOME, ROW],
        np.where,
        [1, 2],
        empty=[TRUTH[:0], NONE, ROW],
        special=[np.arange(7) % 2 == 0, ODD, -ODD],
        tensorflow=lambda tf, c, x, y: tf.where(c, x, y),
    ),
    Case(
        "RowCondition",
        comparison.row_condition_op,
        [TRUTH[:, 0], SOME, OTHER],
        lambda c, x, y: c[:, None],
        empty=[TRUTH[:0, 0], NONE, NONE],
        note="rows",
    ),
    Case(
        "RowCondition",
        comparison.row_condition_op,
        [TRUTH, SOME, OTHER],
        lambda c, x, y: c,
        note="elements",
    ),
]
