"""Files: what a row of values cannot express."""

from __future__ import annotations

from tests.op_cases.case import Scenario

SCENARIOS = [
    Scenario(type, "tests/graph/ops/outside/test_files.py")
    for type in ("MatchingFiles", "ReadFile", "WriteFile")
]
