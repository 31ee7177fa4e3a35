"""Random operations: what they draw is held against the distribution, not against values."""

from __future__ import annotations

from tests.op_cases.case import Scenario

SCENARIOS = [
    Scenario(type, "tests/graph/ops/test_random.py")
    for type in ("RandomUniform", "RandomNormal", "RandomUniformInt")
]
