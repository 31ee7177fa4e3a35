"""Arrays of files: what a row of values cannot express."""

from __future__ import annotations

from tests.op_cases.case import Scenario

SCENARIOS = [
    Scenario(type, "tests/graph/ops/text/test_array_files.py")
    for type in ("DecodeNpy", "DecodeNpz", "DecodeParquet")
]
