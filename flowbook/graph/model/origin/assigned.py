"""The names that a line of Python gives to a value: `loss` in `loss = fb.reduce_mean(errors)`.

A code object tells from where to where in the source the expression stands that an instruction
evaluates; the source, where it can be found, tells whether that is all that an assignment assigns.
Nothing is looked at before somebody asks.
"""

from __future__ import annotations

import ast
import linecache
import warnings
from collections.abc import Iterator
from itertools import islice
from types import CodeType

from flowbook.graph.model.parsing import undisturbed

# Names that one value is given: several where it is taken apart, as in `mean, variance = ...`.
Targets = tuple[str, ...]

# Where an expression begins and ends, as code objects say it: its first and last lines, and the
# bytes in these.
Span = tuple[int | None, int | None, int | None, int | None]

_CELLS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_LOOPS = (
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)

# By file: its lines as they were read, and what is assigned in them.
_files: dict[str, tuple[list[str], dict[Span, Targets]]] = {}


def assigned(code: CodeType, offset: int) -> Targets:
    """The names that get the value of what an instruction evaluates.

    Args:
        code: the code object.
        offset: of the instruction, in bytes.

    Returns:
        Variables such as `loss`, and attributes such as `self.w`; none if the value is no more
        than a part of what is assigned, or none is. None either where the name is given to other
        values later, or in a loop to one after the other.
    """
    span = next(islice(code.co_positions(), offset // 2, None), None)
    return _assignments(code.co_filename).get(span, ()) if span is not None else ()


def _assignments(filename: str) -> dict[Span, Targets]:
    lines = linecache.getlines(filename)
    known = _files.get(filename)
    if known is None or known[0] is not lines:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python has given them when the line ran.
                source = "".join(lines)
                tree = undisturbed(compile, source, filename, "exec", _CELLS, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):  # No source of Python's.
            found = {}
        else:
            found = dict(_found(tree))
        known = _files[filename] = lines, found
    return known[1]


def _found(scope: ast.AST) -> Iterator[tuple[Span, Targets]]:
    """Where values stand that keep the names which they are given, in a scope and in those in it.

    A name that is given again and again stands for the value of the last line that gives it.
    """
    given: list[tuple[Targets, ast.AST]] = []
    repeated: set[str] = set()
    inner: list[ast.AST] = []

    def look(node: ast.AST, is_repeated: bool) -> None:
        for target, value in _pairs(node):
            names = _names(target)
            given.append((names, value))
            if is_repeated or isinstance(node, _LOOPS):
                repeated.update(names)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _SCOPES):
                inner.append(child)
            else:
                look(child, is_repeated or isinstance(child, _LOOPS))

    look(scope, is_repeated=False)
    last = {name: i for i, (names, _) in enumerate(given) for name in names}
    for i, (names, value) in enumerate(given):
        if names and all(last[name] == i and name not in repeated for name in names):
            yield from ((span, names) for span in _spans(value))
    for each in inner:
        yield from _found(each)


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.AST]]:
    """What a statement assigns to, and the value; of `a, b = f(), g()` each by itself."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets), *_], value=ast.Tuple(elts=values)) if len(
            targets
        ) == len(values):
            yield from zip(targets, values, strict=True)
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in reversed(targets))  # The first one counts.
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value
        case ast.NamedExpr(target=target, value=value):
            yield target, value
        case ast.AugAssign(target=target):
            yield target, node  # What it evaluates is the statement.
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            yield target, value
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            yield target, value


def _names(target: ast.expr) -> Targets:
    if isinstance(target, (ast.Tuple, ast.List)):
        names = [_name(each) for each in target.elts]
        return tuple(names) if all(names) else ()
    name = _name(target)
    return (name,) if name else ()


def _name(target: ast.expr) -> str:
    """A variable, or an attribute of one; anything else has no name worth showing."""
    match target:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            outer = _name(value)
            return f"{outer}.{name}" if outer else ""
    return ""


def _spans(value: ast.AST) -> Iterator[Span]:
    """Where Python may say that a value is evaluated."""
    assert isinstance(value, (ast.expr, ast.stmt))
    last, end = value.end_lineno, value.end_col_offset
    yield value.lineno, last, value.col_offset, end
    match value:
        case ast.Call(
            func=ast.Attribute(attr=name, end_lineno=int(line), end_col_offset=int(column))
        ):
            # What is called below the line of its object begins at the name of the method.
            if line != value.lineno:
                yield line, last, column - len(name.encode()), end
