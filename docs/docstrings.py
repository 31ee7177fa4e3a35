"""Reads docstrings as the project writes them.

An operation type is shown as the function that it is: a static reader sees `exp = OpDef(...)`, a
value, so the imported object is asked; and so it is of functions that are made of others, and of
those whose text others complete. Examples, which stand in the text, become code. `Any` says nothing
to a reader: the text says what is taken.
"""

import importlib
import inspect
import re
import sys
from typing import Any

import griffe

from flowbook import OpDef

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Puts operation types and examples right before anything is rendered."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Go through the package once it is read."""
        for module in _modules(pkg):
            for name, found in vars(importlib.import_module(module.path)).items():
                seen = module.members.get(name)
                if _is_made_here(name, found, module):
                    seen = None
                if isinstance(found, OpDef) and seen is not None and not seen.is_alias:
                    text = f"{inspect.cleandoc(found.__doc__ or '')}\n\n{_dtypes(found)}"
                    made = _function(name, found, text, _returned(found), module)
                    module.set_member(name, made)
                elif seen is not None:
                    if _is_described(found) and not seen.is_alias and seen.docstring is not None:
                        seen.docstring.value = inspect.cleandoc(found.__doc__ or "")
                        if inspect.isclass(found):
                            _inherit(seen, found)
                elif not inspect.isfunction(found):
                    continue
                elif found.__module__ != module.path:
                    alias = griffe.Alias(name, f"{found.__module__}.{name}", parent=module)
                    module.set_member(name, alias)
                else:
                    returned = str(inspect.signature(found).return_annotation)
                    text = inspect.cleandoc(found.__doc__ or "")
                    module.set_member(name, _function(name, found, text, returned, module))
        for member in _members(pkg):
            if member.is_function:
                for parameter in member.parameters:
                    parameter.annotation = _told(parameter.annotation)
                member.returns = _told(member.returns)
            if member.docstring is not None:
                member.docstring.value = _EXAMPLE.sub(
                    r"```pycon\n\g<0>\n```", member.docstring.value
                )


def _told(annotation: Any) -> Any:
    return None if str(annotation) == "Any" else annotation


def _is_described(found: Any) -> bool:
    return inspect.isfunction(found) or inspect.isclass(found)


def _inherit(seen: Any, found: type) -> None:
    """Give a class the methods that it has from bases of which nothing is shown."""
    for base in found.__mro__[1:]:
        module = sys.modules[base.__module__]
        is_shown = base.__name__ in getattr(module, "__all__", ())
        if is_shown or not base.__module__.startswith("flowbook."):
            continue
        for name, member in vars(base).items():
            if inspect.isfunction(member) and not name.startswith("_") and name not in vars(found):
                path = f"{base.__module__}.{base.__qualname__}.{name}"
                seen.set_member(name, griffe.Alias(name, path, parent=seen))


def _members(parent: Any) -> list[Any]:
    inner = [m for m in parent.members.values() if not m.is_alias]
    return [parent, *(each for m in inner for each in _members(m))]


def _modules(module: griffe.Module) -> list[griffe.Module]:
    inner = [m for m in module.members.values() if not m.is_alias and m.is_module]
    return [module, *(each for m in inner for each in _modules(m))]


def _function(
    name: str, found: Any, text: str, returned: str, module: griffe.Module
) -> griffe.Function:
    parameters = griffe.Parameters(
        *(
            griffe.Parameter(
                p.name,
                annotation=None if p.annotation is inspect.Parameter.empty else str(p.annotation),
                kind=griffe.ParameterKind(p.kind.description),
                default=None if p.default is inspect.Parameter.empty else repr(p.default),
            )
            for p in inspect.signature(found).parameters.values()
        )
    )
    return griffe.Function(
        name,
        parameters=parameters,
        docstring=griffe.Docstring(text),
        returns=returned,
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


def _is_made_here(name: str, found: Any, module: griffe.Module) -> bool:
    """Whether a static reader sees a value where there is a function: `foldl = _folding(...)`."""
    seen = module.members.get(name)
    is_value = seen is not None and not seen.is_alias and seen.is_attribute
    return is_value and inspect.isfunction(found) and found.__module__ == module.path
