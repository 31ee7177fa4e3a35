"""Functions that build several operations, under a scope that bears their name."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, overload

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.definition.descriptions import with_name
from flowbook.graph.model.convert import DEEPEST
from flowbook.graph.model.tensor import Arithmetic

_PLAIN = frozenset({bool, float, int, str})

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def composed(function: Function, /) -> Function: ...
@overload
def composed(scope: str, /) -> Callable[[Function], Function]: ...


def composed(given: Any, /) -> Any:
    """Have a function build under a name scope of its own, as a decorator.

    Everything that it builds lies in the scope, and in the graph of the tensors among its
    arguments, which need not be the default one. What it is given as `name`, if it has such a
    parameter, it takes as the scope's name, and in its body `name` is the scope: the operation
    built with `name=name` bears it. Its docstring need not say so.

    Args:
        given: the function; or what its scope is called by default, if not as the function is.
    """
    if isinstance(given, str):
        return functools.partial(_composed, scope=given)
    return _composed(given, given.__name__)


def _composed(function: Any, scope: str) -> Any:
    parameters = inspect.signature(function).parameters
    takes_name = "name" in parameters
    by_keyword = not takes_name or parameters["name"].kind is inspect.Parameter.KEYWORD_ONLY
    # How many arguments stand before it.
    place = sys.maxsize if by_keyword else list(parameters).index("name")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        is_placed = len(args) > place
        name = args[place] if is_placed else kwargs.get("name")
        with name_scope(name or scope, values=_owned((*args, *kwargs.values()))) as entered:
            if is_placed:
                args = (*args[:place], entered, *args[place + 1 :])
            elif takes_name:
                kwargs["name"] = entered
            return function(*args, **kwargs)

    if takes_name:
        call.__doc__ = with_name(function.__doc__, f'the name scope; by default "{scope}".')
    return call


def _owned(values: Iterable[Any], depth: int = DEEPEST) -> Iterator[Any]:
    """What may belong to a graph, as tensors do, among values and in structures of them."""
    for value in values:
        if isinstance(value, Arithmetic):
            yield value
            continue
        # Long lists hold numbers: what they cost decides.
        if value is None or type(value) in _PLAIN:
            continue
        inner = _parts(value)
        if inner is None:
            yield value
        elif depth:  # A list may hold itself.
            yield from _owned(inner, depth - 1)


def _parts(value: Any) -> Iterable[Any] | None:
    """What a structure holds; None of what is none, or belongs to a graph itself."""
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, Mapping):
        return (*value.keys(), *value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return None if hasattr(value, "graph") else [getattr(value, f.name) for f in fields]
    return None
