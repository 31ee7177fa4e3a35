"""Reads docstrings as the project writes them.

An operation type is shown as the function that it is: a static reader sees `exp = OpDef(...)`, a
value, so the imported object is asked. And examples, which stand in the text, become code.
"""

import importlib
import inspect
import re
from typing import Any

import griffe

from flowbook import OpDef

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Puts operation types and examples right before anything is rendered."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Go through the package once it is read."""
        for module in _modules(pkg):
            loaded = vars(importlib.import_module(module.path))
            for name, member in list(module.members.items()):
                if not member.is_alias and isinstance(loaded.get(name), OpDef):
                    module.set_member(name, _function(name, loaded[name], module))
        for member in _members(pkg):
            if member.docstring is not None:
                member.docstring.value = _EXAMPLE.sub(
                    r"```pycon\n\g<0>\n```", member.docstring.value
                )


def _members(parent: Any) -> list[Any]:
    inner = [m for m in parent.members.values() if not m.is_alias]
    return [parent, *(each for m in inner for each in _members(m))]


def _modules(module: griffe.Module) -> list[griffe.Module]:
    inner = [m for m in module.members.values() if not m.is_alias and m.is_module]
    return [module, *(each for m in inner for each in _modules(m))]


def _function(name: str, op_def: OpDef, module: griffe.Module) -> griffe.Function:
    parameters = griffe.Parameters(
        *(
            griffe.Parameter(
                p.name,
                kind=griffe.ParameterKind(p.kind.description),
                default=None if p.default is inspect.Parameter.empty else repr(p.default),
            )
            for p in inspect.signature(op_def).parameters.values()
        )
    )
    return griffe.Function(
        name,
        parameters=parameters,
        docstring=griffe.Docstring(
            f"{inspect.cleandoc(op_def.__doc__ or '')}\n\n{_dtypes(op_def)}"
        ),
        returns=_returned(op_def),
        parent=module,
        runtime=True,
    )


def _returned(op_def: OpDef) -> str:
    """What the function returns, as an annotation."""
    types = ["list[Tensor]" if output.is_list else "Tensor" for output in op_def.outputs]
    if len(types) == 1:
        return types[0]
    return f"tuple[{', '.join(types)}]" if types else "Operation"


def _dtypes(op_def: OpDef) -> str:
    """The signature, and what its type variables stand for."""
    where = "; ".join(
        f"`{variable}` is one of {', '.join(t.name for t in admitted)}"
        for variable, admitted in op_def.type_variables.items()
    )
    return f"Type `{op_def.type}`: `{op_def.signature}`" + (f", where {where}." if where else ".")
