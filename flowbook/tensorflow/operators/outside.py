"""What is seen or stopped: printing, checks, files."""

from __future__ import annotations

from typing import Any

from flowbook.graph.ops.checks.assertions import Assert
from flowbook.graph.ops.checks.checking import check_numerics
from flowbook.graph.ops.outside.printing import Print
from flowbook.tensorflow.node import Node, Rules, named


def _print(n: Node, x: Any, *data: Any) -> Any:
    return Print(
        x,
        list(data),
        message=n.text("message"),
        first_n=n.whole("first_n", -1),
        summarize=n.whole("summarize", 3),
        name=n.scope,
    )


def _assert(n: Node, condition: Any, *data: Any) -> Any:
    return Assert(condition, list(data), summarize=n.whole("summarize", 3), name=n.scope)


RULES: Rules = {
    "Assert": _assert,
    **dict.fromkeys(
        ("CheckNumerics", "CheckNumericsV2"),
        named(check_numerics, message=lambda n: n.text("message")),
    ),
    "Print": _print,
}
