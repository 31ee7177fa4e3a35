"""What IPython shows of flowbook's names while a person writes: completions, and signatures.

Left to itself it completes what the modules import, knows of most names no kind, as finding out
takes it too long, and shows annotations as the quoted text that they are.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, TypeGuard

_ATTRIBUTE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.(\w*)\Z")


_IDENTIFIER = "flowbook.names"


def install(shell: Any) -> None:
    """Have an IPython shell complete and explain what flowbook names.

    Args:
        shell: the `InteractiveShell`. Installing twice changes nothing.
    """
    from IPython.core import completer

    # IPython sends no more completions than that. JupyterLab, once it has asked behind `fb.`, looks
    # among them for what is typed next, and would never find the names that were left out.
    completer.MATCHES_LIMIT = max(completer.MATCHES_LIMIT, len(dir(sys.modules["flowbook"])))
    matchers = shell.Completer.custom_matchers
    if any(getattr(each, "matcher_identifier", "") == _IDENTIFIER for each in matchers):
        return

    def names(context: Any) -> Any:
        return _completed(context.text_until_cursor, shell.user_ns)

    matchers.append(completer.context_matcher(identifier=_IDENTIFIER)(names))
    for function in _functions(sys.modules["flowbook"]):
        function.__signature__ = _readable(inspect.signature(function))  # type: ignore[attr-defined]


def _completed(written: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """What may follow a module of flowbook and a dot: the names that it lists, and no others."""
    from IPython.core.completer import SimpleCompletion

    found = _ATTRIBUTE.search(written)
    module = _module(found[1], variables) if found else None
    if found is None or module is None:
        return {"completions": []}
    names = [name for name in dir(module) if name.startswith(found[2])]
    return {
        "completions": [SimpleCompletion(name, type=_kind(module, name)) for name in names],
        "matched_fragment": found[2],
        "ordered": True,
        "suppress": bool(names),
    }


def _module(path: str, variables: Mapping[str, Any]) -> ModuleType | None:
    """The module of flowbook that a dotted name stands for, if it does."""
    first, *rest = path.split(".")
    found = variables.get(first)
    for name in rest:
        if not _is_ours(found) or name not in dir(found):
            return None
        found = getattr(found, name)
    return found if _is_ours(found) else None


def _is_ours(module: Any) -> TypeGuard[ModuleType]:
    return (
        isinstance(module, ModuleType)
        and module.__name__.partition(".")[0] == "flowbook"
        and hasattr(module, "__all__")
    )


def _kind(module: ModuleType, name: str) -> str:
    """What a front end calls the kind of a member."""
    member = getattr(module, name)
    if isinstance(member, ModuleType):
        return "module"
    if isinstance(member, type):
        return "class"
    return "function" if callable(member) else "instance"


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """The functions that a module and those in it name, with the methods of classes."""
    for name in dir(module):
        member = getattr(module, name)
        if _is_ours(member):
            yield from _functions(member)
        elif isinstance(member, FunctionType):
            yield member
        elif isinstance(member, type):
            for key, method in vars(member).items():
                if isinstance(method, FunctionType) and (key == "__init__" or key[0] != "_"):
                    yield method


class _Text(str):
    """An annotation, which is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _readable(signature: inspect.Signature) -> inspect.Signature:
    """A signature with annotations as they were written, but those that say nothing."""
    parameters = [
        parameter.replace(annotation=_shown(parameter.annotation))
        for parameter in signature.parameters.values()
    ]
    return inspect.Signature(parameters, return_annotation=_shown(signature.return_annotation))


def _shown(annotation: Any) -> Any:
    if annotation == "Any":
        return inspect.Parameter.empty
    return _Text(annotation) if isinstance(annotation, str) else annotation
