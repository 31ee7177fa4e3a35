"""Functions whose variables are shared by `variable_scope(..., reuse=...)`: templates.

Sure is a function of a module all of whose body is one such scope: what it is called with for
`reuse` decides about nothing else, and goes.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m


@dataclass
class Shared:
    """A function whose calls share variables.

    Attributes:
        function: its definition.
        scope: the statement that is its body.
        name: the scope's name, as a Python literal.
        parameter: the name of the argument that decides about sharing; empty if there is none.
        place: its place among the arguments.
    """

    function: cst.FunctionDef
    scope: cst.With
    name: str
    parameter: str
    place: int

    def called(self, call: cst.Call) -> cst.Call:
        """A call without the argument that decided."""
        kept = [
            arg
            for position, arg in enumerate(call.args)
            if not self.parameter
            or (arg.keyword is None and position != self.place)
            or (arg.keyword is not None and arg.keyword.value != self.parameter)
        ]
        if kept and len(kept) < len(call.args):
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return call.with_changes(args=kept)

    def defined(self, function: cst.FunctionDef, here: str) -> cst.FunctionDef:
        """The definition of the template, from one whose inside has been ported."""
        *before, scope = function.body.body
        assert isinstance(scope, cst.With)
        body = scope.body.body
        if isinstance(body[0], cst.SimpleStatementLine):
            first = body[0].with_changes(
                leading_lines=[*scope.leading_lines, *body[0].leading_lines]
            )
            body = [first, *body[1:]]
        params = [p for p in function.params.params if p.name.value != self.parameter]
        if params and len(params) < len(function.params.params):
            params[-1] = params[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        own = function.name.value
        template = f"{here}.template"
        if self.name.strip("'\"") != own:
            template = f"lambda function: {here}.template(function, {self.name})"
        return function.with_changes(
            body=function.body.with_changes(body=[*before, *body]),
            params=function.params.with_changes(params=params),
            decorators=[cst.Decorator(cst.parse_expression(template)), *function.decorators],
        )


def shared_functions(module: cst.Module, aliases: set[str]) -> dict[str, Shared]:
    """The functions of a module that are surely templates, by their names."""
    found: dict[str, Shared] = {}
    counts: dict[str, int] = {}
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef):
            name = statement.name.value
            counts[name] = counts.get(name, 0) + 1
            shared = _shared(statement, aliases)
            if shared is not None:
                found[name] = shared
    return {name: shared for name, shared in found.items() if counts[name] == 1}


def _shared(function: cst.FunctionDef, aliases: set[str]) -> Shared | None:
    statements = list(function.body.body)
    if len(statements) == 2 and m.matches(
        statements[0], m.SimpleStatementLine(body=[m.Expr(value=m.SimpleString())])
    ):
        statements = statements[1:]
    if len(statements) != 1 or not isinstance(statements[0], cst.With):
        return None
    scope = statements[0]
    call = scope.items[0].item
    is_scope = any(
        m.matches(call, m.Call(func=m.Attribute(m.Name(alias), m.Name("variable_scope"))))
        for alias in aliases
    )
    if len(scope.items) != 1 or scope.items[0].asname or not is_scope:
        return None
    assert isinstance(call, cst.Call)
    if len(call.args) != 2 or not isinstance(call.args[0].value, cst.SimpleString):
        return None
    reuse = call.args[1]
    if reuse.keyword is None or reuse.keyword.value != "reuse":
        return None
    name = call.args[0].value.value
    if m.matches(reuse.value, m.Attribute(attr=m.Name("AUTO_REUSE"))):
        return Shared(function, scope, name, "", -1)
    if not isinstance(reuse.value, cst.Name):
        return None
    parameters = [p.name.value for p in function.params.params]
    parameter = reuse.value.value
    uses = m.findall(function.body, m.Name(parameter))
    # Once as the value, once as the keyword of the same name.
    others = [use for use in uses if use is not reuse.value and use is not reuse.keyword]
    if parameter not in parameters or others:
        return None
    return Shared(function, scope, name, parameter, parameters.index(parameter))
