"""Examples: what a row of values cannot express."""

from __future__ import annotations

from tests.op_cases.case import Scenario

SCENARIOS = [
    Scenario("ParseExample", "tests/graph/ops/text/test_examples.py"),
    Scenario("ParseFeatureSteps", "tests/graph/ops/text/test_sequence_examples.py"),
]
