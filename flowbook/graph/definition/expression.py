"""An elementwise operation as an expression, from which all code for it is generated."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import CodeType
from typing import Any

import numpy as np

from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.parsing import undisturbed
from flowbook.graph.numerics.blocks import Blocks, Step, least_size

# The functions that operators stand for. Not `**`: of arrays it is several functions.
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "left_shift",
    ast.RShift: "right_shift",
    ast.USub: "negative",
    ast.UAdd: "positive",
    ast.Invert: "invert",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
}
_OPERATOR_OF = {function: operator for operator, function in _OPERATORS.items()}


class Expression:
    """An elementwise operation as an expression of its inputs and of functions of `xp`.

    If it takes several steps, each by a universal function, an operator or `where`, large inputs
    are taken block by block.

    Args:
        text: the expression; an operation with several outputs has as many, separated by commas.
        inputs: the names of the operation's inputs.
        attributes: the names of its attributes.

    Attributes:
        parameters: the names of inputs and attributes.
        functions: the names of the functions in it.
        has_steps: whether it takes several steps, large inputs block by block.
        is_single: whether it is one expression.
        is_call: whether it is a universal function of parameters and numbers, and nothing else.

    >>> softplus = Expression("logaddexp(x, 0)", ["x"])
    >>> softplus.render({"x": "v3", "logaddexp": "xp.logaddexp"})
    'xp.logaddexp(v3, 0)'
    """

    def __init__(self, text: str, inputs: Sequence[str], attributes: Sequence[str] = ()) -> None:
        self.text = text
        self.parameters = [*inputs, *attributes]
        try:
            tree = undisturbed(ast.parse, text, mode="eval").body
        except SyntaxError as error:
            raise InvalidArgumentError(
                f"the expression {text!r} is not Python's: {error.msg}"
            ) from None
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        names = list(dict.fromkeys(node.id for node in nodes))
        self.functions = [name for name in names if name not in self.parameters]
        for name in self.functions:
            if not hasattr(np, name):
                raise InvalidArgumentError(
                    f"{name!r} in the expression {text!r} is neither one of "
                    f"{', '.join(self.parameters)} nor a function of NumPy",
                    hint="functions stand by their bare names, as in exp(x)",
                )
        self.is_single = not isinstance(tree, ast.Tuple)
        self._inputs = [name for name in inputs if name in names]
        self._steps: dict[str, Step] = {}
        outputs = tree.elts if isinstance(tree, ast.Tuple) else [tree]
        try:
            self._outputs = [self._add_steps(node) for node in outputs]
            if not self.is_single and len({*self._outputs} & {*self._steps}) < len(outputs):
                raise _NotElementwise(text)
        except _NotElementwise as error:
            if not self.is_single:
                raise InvalidArgumentError(
                    f"the expression {text!r} has several outputs, and {str(error)!r} in it is not "
                    "known to be elementwise",
                    hint="write a kernel",
                ) from None
            self._outputs, self._steps = [text], {}
        self.is_call = self._is_call(tree)
        self._template = _template(tree)
        self.has_steps = len(self._steps) > 1
        self._least = least_size(self._steps.values())
        self._kernels: dict[tuple[int, ...], Callable[..., Any]] = {}

    def _add_steps(self, node: ast.expr) -> str:
        """Add the steps to what a node stands for, and give the name that it has in later ones."""
        if isinstance(node, ast.Name):
            return node.id
        if not any(isinstance(inner, ast.Name) for inner in ast.walk(node)):
            return _number(node)
        text = ast.unparse(node)
        if text not in self._steps:
            function, arguments = _called(node)
            names = tuple([self._add_steps(argument) for argument in arguments])
            if not any(name in self._inputs or name in self._steps for name in names):
                # What NumPy makes of numbers and attributes alone decides about dtypes.
                raise _NotElementwise(text)
            self._steps[text] = Step(text, function, names)
        return text

    def _is_call(self, tree: ast.expr) -> bool:
        (first, *others) = self._steps.values() or [None]
        is_ufunc = first is not None and isinstance(getattr(np, first.function), np.ufunc)
        return is_ufunc and not others and isinstance(tree, ast.Call)

    def render(self, names: Mapping[str, str], kernel: str | None = None) -> str:
        """The expression as code.

        Args:
            names: what parameters and functions are called there.
            kernel: what the kernel is called, if large inputs are to be left to it.
        """
        text = self._template.format_map(names)
        return text if kernel is None else self._unless_large(text, names, kernel)

    def render_into(self, names: Mapping[str, str], out: str) -> str:
        """The expression as code that puts the result into an array; it has no steps.

        Args:
            names: what parameters and functions are called there.
            out: what the array is called; it may be one that is read.
        """
        return self._template_into.format_map({**names, "out": out})

    def render_for_scalars(self, names: Mapping[str, str]) -> str:
        """The expression as code for NumPy's scalars, of which operators are faster by far.

        >>> apart = Expression("square(subtract(x, y))", ["x", "y"])
        >>> apart.render_for_scalars({"x": "v3", "y": "v4", "square": "xp.square"})
        'xp.square(v3 - v4)'
        """
        return self._template_for_scalars.format_map(names)

    @cached_property
    def _template_into(self) -> str:
        call = undisturbed(ast.parse, self.text, mode="eval").body
        assert isinstance(call, ast.Call)
        call.keywords.append(ast.keyword("out", ast.Name("out")))
        return _template(call)

    @cached_property
    def _template_for_scalars(self) -> str:
        tree = undisturbed(ast.parse, self.text, mode="eval")
        return _template(_Operators().visit(tree.body))

    def kernel(self, wanted: Sequence[int] = ()) -> Callable[..., Any]:
        """The kernel `kernel(xp, *parameters)` that evaluates it.

        Args:
            wanted: those of several outputs that it gives, with None for the others; by default
                all of them.
        """
        key = tuple(wanted) or tuple(range(len(self._outputs)))
        if key not in self._kernels:
            self._kernels[key] = self._kernel(key)
        return self._kernels[key]

    def _kernel(self, wanted: Sequence[int]) -> Callable[..., Any]:
        names = {name: name for name in self.parameters}
        names |= {name: f"xp.{name}" for name in self.functions}
        outputs = [text if i in wanted else None for i, text in enumerate(self._outputs)]
        text = self.render(names) if self.is_single else _nested(self._steps, outputs)
        head = f"lambda xp, {', '.join(self.parameters)}:"
        whole: Callable[..., Any] = eval(_compiled(f"{head} {text}"))
        if not self.has_steps:
            return whole
        blocks = Blocks(self.parameters, list(self._steps.values()), [t for t in outputs if t])

        def large(xp: Any, *given: Any) -> Any:
            found = blocks.evaluate(given) if xp is np else None
            if found is None:
                return whole(xp, *given)
            if self.is_single:
                return found[0]
            results = iter(found)
            return tuple([next(results) if text else None for text in outputs])

        unless_large = self._unless_large(text, names, "large")
        kernel: Callable[..., Any] = eval(_compiled(f"{head} {unless_large}"), {"large": large})
        return kernel

    def _unless_large(self, text: str, names: Mapping[str, str], kernel: str) -> str:
        are_small = " and ".join([f"{names[name]}.size < {self._least}" for name in self._inputs])
        given = ", ".join(names[name] for name in self.parameters)
        return f"({text}) if {are_small} else {kernel}(xp, {given})"


def _compiled(text: str) -> CodeType:
    """Code whose frames are Flowbook's own, as errors tell them."""
    return compile(text, "<flowbook expression>", "eval")


class _NotElementwise(Exception):
    """A part of an expression is not known to be elementwise."""


def _template(tree: ast.expr) -> str:
    """An expression's text with its names in braces."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = "{" + node.id + "}"
    return ast.unparse(tree)


class _Operators(ast.NodeTransformer):
    """Writes operators for the functions that they stand for."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A call, or what means the same."""
        self.generic_visit(node)
        operator = _OPERATOR_OF.get(node.func.id) if isinstance(node.func, ast.Name) else None
        sign = operator() if operator is not None else None
        if isinstance(sign, ast.unaryop):
            return ast.UnaryOp(sign, node.args[0])
        if isinstance(sign, ast.operator):
            return ast.BinOp(node.args[0], sign, node.args[1])
        if isinstance(sign, ast.cmpop):
            return ast.Compare(node.args[0], [sign], [node.args[1]])
        return node


def _called(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """The elementwise function that a node calls, and on what."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)], [node.left, node.right]
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)], [node.operand]
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
        return _OPERATORS[type(node.ops[0])], [node.left, *node.comparators]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function = getattr(np, node.func.id, None)
        count = 3 if function is np.where else getattr(function, "nin", None)
        is_plain = getattr(function, "signature", None) is None
        if count == len(node.args) and is_plain and getattr(function, "nout", 1) == 1:
            return node.func.id, node.args
    raise _NotElementwise(ast.unparse(node))


def _number(node: ast.expr) -> str:
    """A number as Python writes it."""
    try:
        value = node.value if isinstance(node, ast.Constant) else eval(ast.unparse(node), {})
    except Exception:
        value = None
    if (
        not isinstance(value, int | float | complex) or value - value != 0
    ):  # Infinities have no text.
        raise _NotElementwise(ast.unparse(node))
    return repr(value)


def _nested(steps: Mapping[str, Step], outputs: Sequence[str | None]) -> str:
    """The outputs as one expression, in which what is needed again has a name."""
    uses = Counter(text for step in steps.values() for text in step.arguments) + Counter(outputs)
    named: dict[str, str] = {}

    def written(text: str) -> str:
        step = steps.get(text)
        if step is None or text in named:
            return named.get(text, text)
        call = f"xp.{step.function}({', '.join([written(a) for a in step.arguments])})"
        if uses[text] == 1:
            return call
        named[text] = f"v{len(named)}"
        return f"({named[text]} := {call})"

    return f"({', '.join(['None' if text is None else written(text) for text in outputs])},)"
