"""Temporary variables: values that are written and given up within a step."""

from __future__ import annotations

import numpy as np

import flowbook as fb
from flowbook.graph.ops.state.temporary import destroy_temporary_op, write_temporary_op
from tests.op_cases.case import NONE, OTHER, SOME, Case

CASES = [
    Case(
        "TemporaryVariable",
        lambda: fb.temporary_variable([2, 3], fb.float32),
        [],
        lambda: np.zeros((2, 3)),
    ),
    *(
        Case(
            "WriteTemporary",
            lambda ref, value, combine=combine: write_temporary_op(ref, value, combine=combine),
            [SOME, OTHER],
            reference,
            [0, 1] if combine else [1],
            empty=[NONE, NONE],
            only=fb.FLOATS,
            note=combine,
        )
        for combine, reference in (
            ("", lambda ref, value: value),
            ("add", np.add),
            ("subtract", np.subtract),
        )
    ),
    Case(
        "DestroyTemporaryVariable",
        lambda ref: destroy_temporary_op(ref, var_name="x"),
        [SOME],
        lambda ref: ref,
        [0],
        empty=[NONE],
    ),
]
