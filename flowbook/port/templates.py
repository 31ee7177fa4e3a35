"""Functions whose variables are shared by `variable_scope(..., reuse=...)`: templates.

Sure is a function of a module, or a method, all of whose body is one such scope: what it is called
with for `reuse` decides about nothing else, and goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
        place: its place among the arguments that a call gives.
        begin: the first statement in the scope, where that is what begins to share.
    """

    function: cst.FunctionDef
    scope: cst.With
    name: str
    parameter: str
    place: int
    begin: cst.If | None = None

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
        count = self.begin is not None
        begin, body = scope.body.body[:count], scope.body.body[count:]
        if isinstance(body[0], cst.SimpleStatementLine):
            above = [line for each in (scope, *begin) for line in each.leading_lines]
            first = body[0].with_changes(leading_lines=[*above, *body[0].leading_lines])
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


def shared_functions(module: cst.Module, aliases: Iterable[str]) -> dict[str, Shared]:
    """What is surely a template, by what calls it: functions of a module, and methods.

    A method is called by `self` alone; were it called by another name, its class would be unknown.
    """
    found: dict[str, Shared] = {}
    counts: Counter[str] = Counter()
    for name, function in _functions(module):
        counts[name] += 1
        shared = _shared(function, aliases)
        if shared is not None:
            found[name] = shared
    sure = {name: shared for name, shared in found.items() if counts[name] == 1}
    return {name: shared for name, shared in sure.items() if not _is_called_otherwise(module, name)}


def _functions(module: cst.Module) -> Iterator[tuple[str, cst.FunctionDef]]:
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef):
            yield statement.name.value, statement
        if isinstance(statement, cst.ClassDef):
            for method in statement.body.body:
                if isinstance(method, cst.FunctionDef):
                    yield f"self.{method.name.value}", method


def _is_called_otherwise(module: cst.Module, name: str) -> bool:
    if not name.startswith("self."):
        return False
    uses = m.findall(module, m.Attribute(attr=m.Name(name.removeprefix("self."))))
    return not all(m.matches(use, m.Attribute(value=m.Name("self"))) for use in uses)


def _shared(function: cst.FunctionDef, aliases: Iterable[str]) -> Shared | None:
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
    if len(scope.items) != 1 or not is_scope:
        return None
    assert isinstance(call, cst.Call)
    if not call.args or not isinstance(call.args[0].value, cst.SimpleString):
        return None
    name = call.args[0].value.value
    if len(call.args) == 1 and scope.items[0].asname is not None:
        return _reusing(function, scope, name, aliases)
    if len(call.args) != 2 or scope.items[0].asname:
        return None
    reuse = call.args[1]
    if reuse.keyword is None or reuse.keyword.value != "reuse":
        return None
    if m.matches(reuse.value, m.Attribute(attr=m.Name("AUTO_REUSE"))):
        return Shared(function, scope, name, "", -1)
    # Once as the value, once as the keyword of the same name.
    return _decided(function, scope, name, reuse.value, [reuse.value, reuse.keyword])


def _reusing(
    function: cst.FunctionDef, scope: cst.With, name: str, aliases: Iterable[str]
) -> Shared | None:
    """One that begins with `if reuse: scope.reuse_variables()`."""
    begin, asname = scope.body.body[0], scope.items[0].asname
    assert asname is not None
    if not isinstance(begin, cst.If) or begin.orelse or not isinstance(asname.name, cst.Name):
        return None
    whose = m.OneOf(
        m.Name(asname.name.value),
        *[
            m.Call(func=m.Attribute(m.Name(alias), m.Name("get_variable_scope")), args=[])
            for alias in aliases
        ],
    )
    told = m.Call(func=m.Attribute(whose, m.Name("reuse_variables")), args=[])
    block = m.IndentedBlock([m.SimpleStatementLine([m.Expr(told)])])
    uses = m.findall(scope.body, m.Name(asname.name.value))
    if not m.matches(begin.body, block) or len(uses) > len(
        m.findall(begin, m.Name(asname.name.value))
    ):
        return None
    return _decided(function, scope, name, begin.test, [begin.test], begin)


def _decided(
    function: cst.FunctionDef,
    scope: cst.With,
    name: str,
    value: cst.BaseExpression,
    own: Sequence[cst.CSTNode],
    begin: cst.If | None = None,
) -> Shared | None:
    """One whose argument decides about sharing, and about nothing else."""
    if not isinstance(value, cst.Name):
        return None
    parameters = [p.name.value for p in function.params.params]
    uses = m.findall(function.body, m.Name(value.value))
    if value.value not in parameters or any(all(use is not o for o in own) for use in uses):
        return None
    place = parameters.index(value.value)
    is_method = parameters[0] == "self"
    return Shared(function, scope, name, value.value, place - is_method, begin)
