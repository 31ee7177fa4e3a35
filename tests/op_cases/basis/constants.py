"""What passes its input on; functions of the user."""

from __future__ import annotations

from flowbook.graph.model import dtypes
from flowbook.graph.model.shape import Shape
from flowbook.graph.ops.basis import constants
from flowbook.graph.ops.checks import checking
from flowbook.graph.ops.outside import python_functions
from tests.op_cases.case import (
    NONE,
    ODD,
    SOME,
    Case,
    Scenario,
)

CASES = [
    Case(
        "Identity",
        constants.identity,
        [SOME],
        lambda x: x,
        [0],
        empty=[NONE],
        special=[ODD],
        tensorflow=lambda tf, x: tf.identity(x),
    ),
    Case(
        "PlaceholderWithDefault",
        lambda x: constants.placeholder_with_default(x, [None, None] if x.shape.rank else None),
        [SOME],
        lambda x: x,
        [0],
        empty=[NONE],
        by_value=True,
    ),
    Case(
        "CheckNumerics",
        lambda x: checking.check_numerics(x, "x"),
        [SOME],
        lambda x: x,
        [0],
        empty=[NONE],
        tensorflow=lambda tf, x: tf.debugging.check_numerics(x, "x"),
    ),
    Case(
        "EnsureShape",
        lambda x: checking.ensure_shape(x, [None, 3]),
        [SOME],
        lambda x: x,
        [0],
        empty=[NONE],
        tensorflow=lambda tf, x: tf.ensure_shape(x, [None, 3]),
    ),
    Case(
        "SetShape",
        lambda x: checking.set_shape_op(x, shape=Shape([None, 3])),
        [SOME],
        lambda x: x,
        [0],
        empty=[NONE],
    ),
    Case(
        "StopGradient",
        constants.stop_gradient,
        [SOME],
        lambda x: x,
        empty=[NONE],
        tensorflow=lambda tf, x: tf.stop_gradient(x),
    ),
    Case("PreventGradient", constants.prevent_gradient, [SOME], lambda x: x, empty=[NONE]),
    Case(
        "PyFuncStateless",
        lambda x: python_functions.py_func(lambda a: a * 2, [x], dtypes.float64, stateful=False),
        [SOME],
        lambda x: x * 2,
        only=[dtypes.float64],
    ),
]

SCENARIOS = [
    Scenario("Const", "tests/graph/ops/basis/test_constants.py"),
    Scenario("Placeholder", "tests/graph/ops/basis/test_constants.py"),
    Scenario("NoOp", "tests/graph/ops/basis/test_constants.py"),
    Scenario("MarkUpdate", "tests/graph/model/test_updates.py"),
    Scenario("CheckFinite", "tests/exec/instruments/test_guard.py"),
    Scenario("Send", "tests/exec/engine/test_joint.py"),
    Scenario("Recv", "tests/exec/engine/test_joint.py"),
    Scenario("Fetch", "tests/exec/engine/test_joint.py"),
    Scenario("TruncateTo16Bits", "tests/exec/engine/test_lossy.py"),
    Scenario("FillTo32Bits", "tests/exec/engine/test_lossy.py"),
    Scenario("MarkTraining", "tests/exec/instruments/summaries/test_summarize.py"),
    Scenario("PyFunc", "tests/graph/ops/outside/test_python_functions.py"),
]
