"""Marks on penalties."""

from __future__ import annotations

from flowbook.graph.ops.nn import penalties
from tests.op_cases.case import NONE, ODD, SOME, Case

CASES = [
    Case("Penalty", penalties.penalty_op, [SOME], lambda x: x, [0], empty=[NONE], special=[ODD]),
]
