"""Makes public what flowbook and its namespaces name: see `flowbook/graph/definition/public.py`."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

from flowbook._renamed import NAMESPACES, OF_RNN_CELL, no_such_cell, no_such_name_in
from flowbook.exec.devices.device import Device
from flowbook.exec.session.session import Session
from flowbook.graph.building.graph import Graph
from flowbook.graph.definition.async_context import AsyncContext
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.definition.public import as_method_of, public
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import op_definitions
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Touch

# Modules for users that list themselves what they hold. Others are the layers behind flowbook.
_OTHERS = ("errors", "onnx", "tensorflow")

# They are made by calls of operation types, of which a wrapper would take a fifth of the time.
_MADE_AS_THEY_ARE = (Operation, Tensor)

# What steps call, and the building of each operation, of which a wrapper would take its share. The
# first of a session's runs says of its own what it does not take.
_CALLED_OFTEN = (AsyncContext, Device, OpDef, Operation, Shape, Tensor, Touch)
_CALLED_OFTEN_OF = (Graph.add, Session.run)


def make_public() -> None:
    """Have flowbook and its namespaces list what is for users, each function as users call it."""
    flowbook = sys.modules["flowbook"]
    namespaces = {"": flowbook} | {n: getattr(flowbook, n) for n in NAMESPACES}
    definitions = {op_def.public: op_def for op_def in op_definitions().values()}
    made: dict[Callable[..., Any], Callable[..., Any]] = {}
    classes: set[type] = set()
    for namespace, module in namespaces.items():
        names = _names(module)
        # `from flowbook import *` takes no cell's `print` and `range` away.
        module.__all__ = [name for name in names if not hasattr(builtins, name)]
        module.__dir__ = partial(list, names)
        module.__getattr__ = no_such_name_in(namespace)
        for name in names:
            member = getattr(module, name)
            if isinstance(member, FunctionType):
                if member not in made:
                    op_def = definitions.get(member)
                    spelt = f"{namespace}.{name}" if namespace else name
                    made[member] = public(member, spelt if op_def is None else op_def.type)
                    # The module that defines it is where pickle looks for it.
                    setattr(sys.modules[member.__module__], member.__name__, made[member])
                setattr(module, name, made[member])
            elif isinstance(member, type):
                classes.update(each for each in member.__mro__ if _is_ours(each))
                if "__init__" in vars(member) and member not in _MADE_AS_THEY_ARE:
                    member.__init__ = public(member.__init__)  # type: ignore[misc]
    for each in classes.difference(_CALLED_OFTEN):
        _make_methods_public(each)
    for function, op_def in definitions.items():
        if isinstance(function, FunctionType):  # What Python's operators call.
            op_def.public = made.get(function) or public(function, op_def.type)
    for name in OF_RNN_CELL:
        setattr(flowbook.nn.rnn_cell, name, no_such_cell(name))
    for module in (getattr(flowbook, n) for n in _OTHERS):
        module.__dir__ = partial(list, module.__all__)


def _is_ours(member: type) -> bool:
    return member.__module__.partition(".")[0] == "flowbook"


def _make_methods_public(member: type) -> None:
    for name, method in list(vars(member).items()):
        if name.startswith("_") or method in _CALLED_OFTEN_OF:
            continue
        if isinstance(method, FunctionType):
            setattr(member, name, as_method_of(member, method))
        elif isinstance(method, classmethod | staticmethod):
            setattr(member, name, type(method)(as_method_of(member, method.__func__)))


def _names(module: ModuleType) -> list[str]:
    """What a module of public names has for users, in sorted order."""
    public_modules = (*NAMESPACES, *_OTHERS) if module.__name__ == "flowbook" else ()
    return sorted(
        name
        for name, member in vars(module).items()
        if not name.startswith("_")
        and (name in public_modules or not isinstance(member, ModuleType))
    )
