"""Hand-generated Python: the function that generated code is measured against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def straight_line(line: str, count: int, names: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A function of `x` that consists of `count` times `line` and returns `x`.

    `names` are defaults of its parameters, so that the lines see locals, the cheapest names that
    Python has.

    >>> straight_line("x = add(x, 1)", 3, {"add": lambda a, b: a + b})(10)
    13
    """
    parameters = ", ".join(["x", *(f"{name}={name}" for name in names)])
    source = "\n".join([f"def run({parameters}):", *[f"    {line}"] * count, "    return x"])
    namespace = dict(names)
    exec(source, namespace)
    function: Callable[[Any], Any] = namespace["run"]
    return function
