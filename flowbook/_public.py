"""Makes public what flowbook and its namespaces name: see `flowbook/graph/definition/public.py`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.definition.public import public
from flowbook.graph.model.registry import op_definitions


def make_public(namespaces: Iterable[str]) -> None:
    """Put in the place of each function that flowbook names the one that users call.

    Args:
        namespaces: the names of the modules in flowbook that name functions too.
    """
    definitions = {op_def.public: op_def for op_def in op_definitions().values()}
    made: dict[Callable[..., Any], Callable[..., Any]] = {}
    for namespace in ("", *namespaces):
        module = sys.modules[f"flowbook.{namespace}" if namespace else "flowbook"]
        for name in module.__all__:
            member = getattr(module, name)
            if isinstance(member, FunctionType):
                if member not in made:
                    op_def = definitions.get(member)
                    spelt = f"{namespace}.{name}" if namespace else name
                    made[member] = public(member, spelt if op_def is None else op_def.type)
                    # The module that defines it is where pickle looks for it.
                    setattr(sys.modules[member.__module__], member.__name__, made[member])
                setattr(module, name, made[member])
            elif member is OpDef:
                pass  # It asks which module calls it.
            elif isinstance(member, type) and "__init__" in vars(member):
                member.__init__ = public(member.__init__)  # type: ignore[misc]
    for function, op_def in definitions.items():
        if isinstance(function, FunctionType):  # What Python's operators call.
            op_def.public = made.get(function) or public(function, op_def.type)
