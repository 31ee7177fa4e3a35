"""Text made of values; printing and asserting are checked by what happens."""

from __future__ import annotations

import numpy as np

from flowbook.graph.ops.outside import printing
from tests.op_cases.case import Case, Scenario, f, i

SCENARIOS = (
    [Scenario(type, "tests/graph/ops/outside/test_printing.py") for type in ("Print", "PrintText")]
    + [
        Scenario(type, "tests/graph/ops/outside/test_saved_tensors.py")
        for type in ("Save", "Restore")
    ]
    + [
        Scenario("Assert", "tests/graph/ops/checks/test_assertions.py"),
        Scenario("AssertShapes", "tests/graph/ops/checks/test_assertions.py"),
    ]
)

CASES = [
    Case(
        "StringFormat",
        lambda x, n: printing.format("x {} of {}.", [x, n]),
        [f(0.5, -1.0, 2.0), i(7)],
        lambda x, n: np.array(b"x [0.5 -1.0 2.0] of 7.", object),
    ),
]
