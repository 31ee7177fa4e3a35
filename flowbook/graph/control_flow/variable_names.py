"""What a person calls a loop's variables: as the functions do that are called with them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from flowbook.graph.control_flow.structure import parts_of, paths
from flowbook.graph.control_flow.tensor_array import TensorArray

_KEY = re.compile(r"\['([^']+)'\]")


def variable_names(structure: Any, functions: Sequence[Callable[..., Any]]) -> list[str]:
    """A name for each leaf of what a loop carries, such as "i" or "state.h".

    Args:
        structure: what it carries.
        functions: what is called with it; the first that has a name for a part says it.
    """
    is_plain = isinstance(structure, list | tuple) and not hasattr(structure, "_fields")
    if not is_plain:
        return [_joined("", where) for where in _places(structure)]
    found = []
    for index, part in enumerate(structure):
        called = next(filter(None, [_parameter(f, index) for f in functions]), f"[{index}]")
        found += [_joined(called, where) for where in _places(part)]
    return found


def _places(part: Any) -> list[str]:
    """Where each leaf stands; an array of tensors counts as one."""
    if isinstance(part, TensorArray):
        return [""]
    parts = parts_of(part)
    if parts is None:
        return [where for where, _ in paths(part)]
    return [name + where for name, inner in parts.items() for where in _places(inner)]


def _joined(called: str, where: str) -> str:
    named = called + _KEY.sub(r".\1", where)
    return named.removeprefix(".") or "variable"


def _parameter(function: Callable[..., Any], index: int) -> str:
    """What a function calls its argument of that place; empty if nothing that says something."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ""
    last = parameters[min(index, len(parameters) - 1)] if parameters else None
    if last is None:
        return ""
    if last.kind is last.VAR_POSITIONAL:
        return f"{last.name}[{index - len(parameters) + 1}]"
    return last.name if last.name.strip("_") and index < len(parameters) else ""
