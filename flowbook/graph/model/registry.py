"""All operation types, by name. Importing `flowbook.graph.ops` fills it; users add their own."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

from flowbook.graph.model.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    NotFoundError,
)
from flowbook.graph.model.touch import resource_kind

if TYPE_CHECKING:
    from flowbook.graph.definition.op_def import OpDef
    from flowbook.graph.model.dtypes import DType
    from flowbook.graph.model.operation import Operation
    from flowbook.graph.model.shape import Shape

__all__ = ["register_kernel"]

# By the dtypes and shapes of an operation's inputs, and its attributes.
Suits = Callable[[Sequence["DType"], Sequence["Shape"], Mapping[str, Any]], bool]


class Asked(NamedTuple):
    """What is asked of a kernel, as far as it is known before a run.

    Attributes:
        dtypes: of the inputs.
        shapes: what is known of their shapes.
        attributes: the operation's.
    """

    dtypes: Sequence[DType]
    shapes: Sequence[Shape]
    attributes: Mapping[str, Any]


def asked_of(operation: Operation) -> Asked:
    """What is asked of the kernel of an operation, as it was built."""
    inputs = operation.inputs
    return Asked([t.dtype for t in inputs], [t.shape for t in inputs], operation.attributes)


class Registered(NamedTuple):
    """A kernel of an operation type for one kind of device, beside the definition's own.

    Attributes:
        function: the kernel.
        is_users: whether a user registered it. What it is given and gives is watched; Flowbook's
            own kernels are trusted.
        suits: which operations of the type it is for; None for all.
    """

    function: Callable[..., Any]
    is_users: bool
    suits: Suits | None = None

    def is_for(self, asked: Asked | None) -> bool:
        """Whether it is for what is asked of an operation; None is anything."""
        if self.suits is None or asked is None:
            return self.suits is None
        return self.suits(*asked)


_definitions: dict[str, OpDef[Any]] = {}
# Those that were defined again too, while an operation uses them.
_by_key: WeakValueDictionary[str, OpDef[Any]] = WeakValueDictionary()
# The kinds of devices that there are kernels for, and whether they hold a dtype.
_device_kinds: dict[str, Callable[[DType], bool] | None] = {}
# Whether what is defined now is Flowbook's own.
_defines_own = False


def op_named(type_name: str) -> OpDef[Any]:
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


def op_keyed(key: str) -> OpDef[Any]:
    """The definition of a key, as plans have it, in which a type that was defined again is another.

    Raises:
        NotFoundError: if no such type is defined.
    """
    found = _by_key.get(key)
    return found if found is not None else op_named(key)


def shared_name(key: str) -> str:
    """The name by which other processes find the definition of a key.

    How often they defined the type is nothing that this one knows: they have their latest.

    Raises:
        FailedPreconditionError: if here it has been defined again since.
    """
    name, _, _ = key.partition("@")
    latest = _definitions.get(name)
    if latest is not None and latest.key != key:
        raise FailedPreconditionError(
            f"the operation type {name!r} has been defined again since: other processes know it as "
            "it is now",
            hint="run the cells again that built with the old one",
        )
    return name


def key_here(name: str) -> str:
    """The key of the definition that another process calls by a name; see `shared_name`."""
    found = _definitions.get(name)
    return name if found is None else found.key


def op_definitions() -> dict[str, OpDef[Any]]:
    """All definitions, by type name, in the order of their definition."""
    return dict(_definitions)


@contextmanager
def own_definitions() -> Iterator[None]:
    """A block that defines Flowbook's own types: the import of what lies in `flowbook.graph`.

    Nobody can define a type of his own meanwhile: to import Flowbook is to wait for that import.
    """
    global _defines_own
    before, _defines_own = _defines_own, True
    try:
        yield
    finally:
        _defines_own = before


def defines_own() -> bool:
    """Whether what is defined now is one of Flowbook's own types."""
    return _defines_own


def define(op_def: OpDef[Any]) -> None:
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


def define_device_kind(kind: str, holds: Callable[[DType], bool] | None = None) -> None:
    """Admit kernels for a kind of device.

    Args:
        kind: such as "cpu".
        holds: whether its arrays can be of a dtype; None if they can be of any.
    """
    _device_kinds[kind] = holds


def dtype_not_held(operation: Operation, kind: str) -> DType | None:
    """The first dtype that a kind of device does not hold, of what an operation takes and gives.

    What lies in the resource that it owns counts too: that lives where the operation is placed.
    """
    holds = _device_kinds.get(kind)
    if holds is None:
        return None
    found = [*[tensor.dtype for tensor in operation.inputs], *operation.dtypes]
    owns = operation.op_def.owns
    if owns is not None and (held := resource_kind(owns).held):
        found.append(operation.attributes[held])
    return next((dtype for dtype in found if not holds(dtype)), None)


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
    re-running its cell, starts with its own kernel. Where a tensor is the axis of a type that takes
    one, its kernel is told the axis all the same.
    """
    op_def = _known(type_name, device_kind)

    def register(kernel: Callable[..., Any]) -> Callable[..., Any]:
        _set_users(op_def, device_kind, kernel)
        if op_def.axis_input is not None and op_def.with_axis_input is not None:
            along = op_def.axis_input.along(kernel)
            _set_users(op_def.with_axis_input, device_kind, along)
        return kernel

    return register


def _set_users(op_def: OpDef[Any], device_kind: str, kernel: Callable[..., Any]) -> None:
    """Have a user's kernel stand before Flowbook's own."""
    own = [r for r in registered_kernels(op_def, device_kind) if not r.is_users]
    op_def.registered[device_kind] = (Registered(kernel, is_users=True), *own)


def special_kernel(
    type_name: str, device_kind: str, suits: Suits | None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a kernel of Flowbook's own for some operations of a type, as a decorator.

    Args:
        type_name: the operation type.
        device_kind: the kind of device.
        suits: which operations it is for, by what is known before the run; None for all. What only
            the run knows is the kernel's own concern: where it cannot, it calls the definition's.

    The kernel has the parameters of the definition's own and means the same. A kernel that a user
    registers goes before it.
    """
    op_def = _known(type_name, device_kind)

    def register(kernel: Callable[..., Any]) -> Callable[..., Any]:
        special = Registered(kernel, is_users=False, suits=suits)
        op_def.registered[device_kind] = (*registered_kernels(op_def, device_kind), special)
        return kernel

    return register


def _known(type_name: str, device_kind: str) -> OpDef[Any]:
    op_def = op_named(type_name)
    if device_kind not in _device_kinds:
        raise NotFoundError(
            f"there are no devices of kind {device_kind!r}", hint=known_kinds(device_kind)
        )
    return op_def


def known_kinds(kind: str | None) -> str:
    """Which kinds of devices there are, as a hint for who asks for another."""
    close = difflib.get_close_matches(kind or "", _device_kinds, 3)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    return f"{meant}known kinds are {', '.join(sorted(_device_kinds))}"


def registered_kernels(op_def: OpDef[Any], device_kind: str) -> Sequence[Registered]:
    """The kernels registered for this kind of device; the first that suits an operation runs it."""
    return op_def.registered.get(device_kind, ())


def kernel_for(
    op_def: OpDef[Any], device_kind: str, asked: Asked | None = None
) -> Callable[..., Any] | None:
    """The kernel for this kind of device: one registered for it, or the definition's own.

    None if there is none for it: the definition's own serves the kinds on which it is right.

    Args:
        op_def: the operation's type.
        device_kind: the kind of device.
        asked: what is asked of it, which kernels may be registered for; None for a kernel that is
            for all operations of this type.
    """
    for registered in registered_kernels(op_def, device_kind):
        if registered.is_for(asked):
            return registered.function
    is_right = op_def.kinds is None or device_kind in op_def.kinds
    return op_def.kernel if is_right else None


def without_kernel(device_kind: str) -> list[str]:
    """The types that have no kernel for this kind of device."""
    return sorted(d.type for d in _definitions.values() if kernel_for(d, device_kind) is None)


def kinds_with_kernel(op_def: OpDef[Any]) -> list[str]:
    """The kinds of devices that there is a kernel of this type for, of those that there are."""
    return sorted(kind for kind in _device_kinds if kernel_for(op_def, kind) is not None)
