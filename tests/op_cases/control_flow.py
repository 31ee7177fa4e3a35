"""What branches and loops are made of: what a row of values cannot express."""

from __future__ import annotations

from tests.op_cases.case import Scenario

SCENARIOS = [
    Scenario("OwnGradient", "tests/graph/gradients/test_custom.py"),
    *[
        Scenario(type, "tests/graph/control_flow/test_cond.py")
        for type in ("Switch", "Merge", "ControlTrigger")
    ],
    *[
        Scenario(type, "tests/graph/control_flow/test_while_loop.py")
        for type in ("Enter", "Exit", "NextIteration", "LoopCond")
    ],
    *[
        Scenario(type, "tests/graph/gradients/test_loops.py")
        for type in (
            "EmptyStack",
            "StackPush",
            "StackPop",
            "StackPushToHost",
            "StackPopFromHost",
        )
    ],
    *[
        Scenario(f"Held{type}", "tests/tensorflow/test_load.py")
        for type in (
            "Stack",
            "StackPush",
            "StackPop",
            "Array",
            "ArrayGradient",
            "ArrayWrite",
            "ArrayRead",
            "ArrayScatter",
            "ArrayGather",
            "ArraySplit",
            "ArrayConcat",
            "ArraySize",
        )
    ],
    *[
        Scenario(type, "tests/graph/functions/test_calls.py")
        for type in ("Parameter", "Function", "Call", "ActingCall")
    ],
]
