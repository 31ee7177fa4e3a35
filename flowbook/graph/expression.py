"""An elementwise operation as an expression, from which all code for it is generated."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flowbook.graph.errors import InvalidArgumentError


class Expression:
    """An elementwise operation as an expression of its inputs and of functions of `xp`.

    >>> softplus = Expression("logaddexp(x, 0)", ["x"])
    >>> softplus.render({"x": "v3", "logaddexp": "xp.logaddexp"})
    'xp.logaddexp(v3, 0)'
    """

    def __init__(self, text: str, parameters: Sequence[str]) -> None:
        self.text = text
        self.parameters = list(parameters)
        try:
            tree = ast.parse(text, mode="eval")
        except SyntaxError as error:
            raise InvalidArgumentError(
                f"the expression {text!r} is not Python's: {error.msg}"
            ) from None
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        self.functions = [
            name for name in dict.fromkeys(n.id for n in names) if name not in parameters
        ]
        for name in self.functions:
            if not hasattr(np, name):
                raise InvalidArgumentError(
                    f"{name!r} in the expression {text!r} is neither one of {', '.join(parameters)}"
                    " nor a function of NumPy",
                    hint="functions stand by their bare names, as in exp(x)",
                )
        for node in names:
            node.id = "{" + node.id + "}"
        self._template = ast.unparse(tree)

    def render(self, names: Mapping[str, str]) -> str:
        """The expression, with parameters and functions renamed."""
        return self._template.format_map(names)

    def kernel(self) -> Callable[..., Any]:
        """The kernel `kernel(xp, *parameters)` that evaluates it."""
        names = {name: name for name in self.parameters}
        body = self.render(names | {name: f"xp.{name}" for name in self.functions})
        source = f"lambda xp, {', '.join(self.parameters)}: {body}"
        made: Callable[..., Any] = eval(compile(source, "<flowbook expression>", "eval"), {})
        return made
