"""What passes its input on; functions of the user."""

from __future__ import annotations

from flowbook.graph import dtypes
from flowbook.graph.ops import (
    constants,
    functions,
)
from tests.op_cases.case import (
    NONE,
    ODD,
    SOME,
    Case,
    Scenario,
)

CASES = [
    Case("Identity", constants.identity, [SOME], lambda x: x, [0], empty=[NONE], special=[ODD]),
    Case("StopGradient", constants.stop_gradient, [SOME], lambda x: x, empty=[NONE]),
    Case("PreventGradient", constants.prevent_gradient, [SOME], lambda x: x, empty=[NONE]),
    Case(
        "PyFuncStateless",
        lambda x: functions.py_func(lambda a: a * 2, [x], dtypes.float64, stateful=False),
        [SOME],
        lambda x: x * 2,
        only=[dtypes.float64],
    ),
]

SCENARIOS = [
    Scenario("Const", "tests/graph/ops/test_constants.py"),
    Scenario("Placeholder", "tests/graph/ops/test_constants.py"),
    Scenario("NoOp", "tests/graph/ops/test_constants.py"),
    Scenario("MarkUpdate", "tests/graph/test_updates.py"),
    Scenario("PyFunc", "tests/graph/ops/test_functions.py"),
]
