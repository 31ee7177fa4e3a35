"""All operation types, by name. Importing `flowbook.graph.ops` fills it; users add their own."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from flowbook.graph.model.errors import AlreadyExistsError, NotFoundError

if TYPE_CHECKING:
    from flowbook.graph.definition.op_def import OpDef

_definitions: dict[str, OpDef] = {}
# By definition, not by name: a type that is defined again may mean something else.
_kernels: WeakKeyDictionary[OpDef, dict[str, Callable[..., Any]]] = WeakKeyDictionary()
# Those that were defined again too, while an operation uses them.
_by_key: WeakValueDictionary[str, OpDef] = WeakValueDictionary()
# The kinds of devices that there are kernels for; each is named by the module of its devices.
_device_kinds: set[str] = set()


def op_named(type_name: str) -> OpDef:
    """The definition of an operation type.

    Raises:
        NotFoundError: if no such type is defined.
    """
    try:
        return _definitions[type_name]
    except KeyError:
        close = difflib.get_close_matches(type_name, _definitions, 3)
        raise NotFoundError(
            f"no operation type {type_name!r} is defined",
            hint=(f"did you mean {' or '.join(close)}? " if close else "")
            + "To load a graph with it, first import the module, or run the cell, that defines it",
        ) from None


def op_keyed(key: str) -> OpDef:
    """The definition of a key, as plans have it, in which a type that was defined again is another.

    Raises:
        NotFoundError: if no such type is defined.
    """
    found = _by_key.get(key)
    return found if found is not None else op_named(key)


def op_definitions() -> dict[str, OpDef]:
    """All definitions, by type name, in the order of their definition."""
    return dict(_definitions)


def define(op_def: OpDef) -> None:
    """Add a definition. A user's own type may be defined again, as by re-running its cell.

    Raises:
        AlreadyExistsError: if one of Flowbook's own types has this name.
    """
    existing = _definitions.get(op_def.type)
    if existing is not None:
        if existing.is_builtin:
            raise AlreadyExistsError(f"operation type {op_def.type!r} is one of Flowbook's own")
        _, _, generation = existing.key.partition("@")
        op_def.key = f"{op_def.type}@{int(generation or 1) + 1}"
    _definitions[op_def.type] = op_def
    _by_key[op_def.key] = op_def


def define_device_kind(kind: str) -> None:
    """Admit kernels for a kind of device."""
    _device_kinds.add(kind)


def register_kernel(
    type_name: str, device_kind: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a faster kernel of an operation type for one kind of device, as a decorator.

    Args:
        type_name: the operation type, such as "MatMul".
        device_kind: the kind of device, such as "cpu".

    Raises:
        NotFoundError: if there is no such type, or no such kind.

    The kernel takes what the type's own kernel takes and means the same. Signatures that a session
    has prepared already keep the kernels that they have. A type that is defined again, as by
    re-running its cell, starts with its own kernel.
    """
    op_def = op_named(type_name)
    if device_kind not in _device_kinds:
        raise NotFoundError(
            f"there are no devices of kind {device_kind!r}",
            hint=f"known kinds are {', '.join(sorted(_device_kinds))}",
        )

    def register(kernel: Callable[..., Any]) -> Callable[..., Any]:
        _kernels.setdefault(op_def, {})[device_kind] = kernel
        return kernel

    return register


def registered_kernel(op_def: OpDef, device_kind: str) -> Callable[..., Any] | None:
    """The kernel registered for this kind of device, if there is one."""
    return _kernels.get(op_def, {}).get(device_kind)


def kernel_for(op_def: OpDef, device_kind: str) -> Callable[..., Any] | None:
    """The kernel for this kind of device: one registered for it, or the definition's own.

    None if there is none for it: the definition's own serves the kinds on which it is right.
    """
    registered = registered_kernel(op_def, device_kind)
    if registered is not None:
        return registered
    is_right = op_def.kinds is None or device_kind in op_def.kinds
    return op_def.kernel if is_right else None


def without_kernel(device_kind: str) -> list[str]:
    """The types that have no kernel for this kind of device."""
    return sorted(d.type for d in _definitions.values() if kernel_for(d, device_kind) is None)


def kinds_with_kernel(op_def: OpDef) -> list[str]:
    """The kinds of devices that there is a kernel of this type for, of those that there are."""
    return sorted(kind for kind in _device_kinds if kernel_for(op_def, kind) is not None)
