"""Flags of TensorFlow 1's made arguments of Python's argparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst
import libcst.matchers as m

_LIST = "lambda text: text.split(',')"
_TYPES = {
    "DEFINE_bool": "lambda text: text.lower() in ('1', 'true')",
    "DEFINE_boolean": "lambda text: text.lower() in ('1', 'true')",
    "DEFINE_enum": "str",
    "DEFINE_float": "float",
    "DEFINE_integer": "int",
    "DEFINE_list": _LIST,
    "DEFINE_string": "str",
}
# What their arguments are called, by what they are to argparse.
_ORDER = ("name", "default", "help")
_NAMES = {
    "flag_name": "name",
    "default_value": "default",
    "docstring": "help",
    "enum_values": "choices",
} | {name: name for name in (*_ORDER, "choices")}
_DEFINES = m.SimpleStatementLine(
    body=[m.Expr(m.Call(m.Attribute(attr=m.OneOf(*[m.Name(n) for n in _TYPES]))))]
)


def is_flag(path: str) -> bool:
    """Whether a name of TensorFlow's is one of those that `with_argparse` is sure of."""
    name = path.removeprefix("app.").partition("flags.")[2].partition(".")[0]
    return path.removeprefix("app.") == "flags" or name in (*_TYPES, "FLAGS")


def with_argparse(module: cst.Module, here: str) -> cst.Module:
    """A module whose flags, if it has some, are arguments that argparse reads.

    Args:
        module: the module, ported otherwise.
        here: what it calls Flowbook.
    """
    places = [
        i
        for i, statement in enumerate(module.body)
        if m.matches(statement, _DEFINES) and _given(statement) is not None
    ]
    if not places:
        return module
    parser = "flag_parser"
    body: list[Any] = []
    name = "FLAGS"
    modules = {f"{here}.app.flags", f"{here}.flags"}
    for i, statement in enumerate(module.body):
        called, value = _assigned(statement)
        if value in modules:
            modules.add(called)
            body.append(_in_place_of(statement, "pass"))
        elif value.removesuffix(".FLAGS") in modules:
            name = called
            body.append(_in_place_of(statement, "pass"))
        elif i in places:
            body.append(_in_place_of(statement, _argument(statement, parser)))
        else:
            body.append(statement)
        if i == places[-1]:
            body.append(cst.parse_statement(f"{name} = {parser}.parse_known_args()[0]"))
    first = places[0]
    made = cst.parse_statement(f"{parser} = argparse.ArgumentParser()")
    body[first:first] = [made]
    module = module.with_changes(body=_without_passes(body))
    read = m.Attribute(attr=m.Name("FLAGS"), value=m.MatchIfTrue(lambda n: _code(n) in modules))
    return with_import(m.replace(module, read, cst.Name(name)), "argparse")  # type: ignore[arg-type]


def with_import(module: cst.Module, name: str) -> cst.Module:
    """A module that imports one of Python's, before Flowbook."""
    already = m.SimpleStatementLine(body=[m.Import([m.ImportAlias(name=m.Name(name))])])
    if any(m.matches(statement, already) for statement in module.body):
        return module
    body: list[Any] = list(module.body)
    start = next(i for i, s in enumerate(body) if m.matches(s, _IMPORT))
    made: Any = cst.parse_statement(f"import {name}")
    body.insert(start, made.with_changes(leading_lines=body[start].leading_lines))
    body[start + 1] = body[start + 1].with_changes(leading_lines=[])
    return module.with_changes(body=body)


_IMPORT = m.SimpleStatementLine(
    body=[m.Import([m.ZeroOrMore(), m.ImportAlias(name=m.Name("flowbook")), m.ZeroOrMore()])]
)


def _assigned(statement: cst.CSTNode) -> tuple[str, str]:
    """The name that a statement gives a value, and the code of that; empty if it does no such."""
    name, value = m.SaveMatchedNode(m.Name(), "name"), m.SaveMatchedNode(m.DoNotCare(), "value")
    assign = m.Assign([m.AssignTarget(name)], value)
    matched: Any = m.extract(statement, m.SimpleStatementLine(body=[assign]))
    return (matched["name"].value, _code(matched["value"])) if matched else ("", "")


def _code(node: Any) -> str:
    return cst.Module([]).code_for_node(node)


def _given(statement: Any) -> dict[str, Any] | None:
    """The arguments of a flag by what they are to argparse; None if there are others."""
    call = statement.body[0].value
    order = (*_ORDER[:2], "choices", _ORDER[2]) if _kind(call) == "DEFINE_enum" else _ORDER
    found = {}
    for position, arg in enumerate(call.args):
        known = arg.keyword is not None or position < len(order)
        name = _NAMES.get(arg.keyword.value) if arg.keyword else order[position] if known else None
        if name is None or arg.star:
            return None
        found[name] = arg.value
    is_named = isinstance(found.get("name"), cst.SimpleString)
    return found if is_named and "default" in found else None


def _kind(call: cst.Call) -> str:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else ""


def _argument(statement: Any, parser: str) -> str:
    given: Any = _given(statement)
    name, kind = given["name"].evaluated_value, _TYPES[_kind(statement.body[0].value)]
    told = [f"{key}={_code(given[key])}" for key in ("default", "choices", "help") if key in given]
    return f'{parser}.add_argument("--{name}", type={kind}, {", ".join(told)})'


def _in_place_of(statement: Any, code: str) -> Any:
    made = cst.parse_statement(code)
    return made.with_changes(
        leading_lines=statement.leading_lines,
        trailing_whitespace=statement.trailing_whitespace,
    )


def _without_passes(body: Sequence[Any]) -> list[Any]:
    """The statements without those that were taken out, whose comments go to the next."""
    found: list[Any] = []
    above: list[Any] = []
    for statement in body:
        if m.matches(statement, m.SimpleStatementLine(body=[m.Pass()])):
            above += statement.leading_lines
        else:
            found.append(statement.with_changes(leading_lines=[*above, *statement.leading_lines]))
            above = []
    return found
