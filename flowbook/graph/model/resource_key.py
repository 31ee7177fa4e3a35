"""Who a resource is, in plain data: what plans, stores and other processes call it by.

An operation that owns a resource gets its key when it joins the graph, and keeps it when it is
retired. Others reach the resource through a handle, which may pass through operations that hand it
on: `owner_of` finds whose it is, once, before a plan is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flowbook.graph.model.dtypes import resource
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.touch import Order, resource_kind

if TYPE_CHECKING:
    from flowbook.graph.model.operation import Operation
    from flowbook.graph.model.tensor import Tensor


class ResourceKey(NamedTuple):
    """The key of a resource.

    Attributes:
        container: the named container that shares it; empty for the session's own.
        name: that of the operation that owns it.
        generation: which of the definitions of that name in its graph; 0 in a named container,
            where one name is one resource, and of what is shared by a name of its own.
    """

    container: str
    name: str
    generation: int

    @property
    def is_shared(self) -> bool:
        """Whether several operations may own it."""
        return not self.generation


def key_of(operation: Operation, name: str, generation: int) -> ResourceKey:
    """The key of what an operation owns, under a name that it has or had in its graph."""
    owns = operation.op_def.owns
    assert owns is not None
    shared_name = operation.attributes.get("shared_name")
    if shared_name or (operation.container and resource_kind(owns).is_shared):
        return ResourceKey(operation.container, shared_name or name, 0)
    return ResourceKey("", name, generation)


def owner_of(handle: Tensor) -> Operation:
    """The operation that owns the resource of a handle.

    Raises:
        InvalidArgumentError: if only a run could tell.
    """
    origin = _origin(handle)
    operation = origin.op
    if operation.op_def.owns is None:
        raise InvalidArgumentError(
            f"the handle {origin.name} comes from {operation.name!r} ({operation.type}), "
            "which does not say whose it is",
            hint="give the variable itself",
        )
    return operation


def _origin(handle: Tensor) -> Tensor:
    """A handle as what owns the resource gives it, or else what does not say whose it is."""
    while handle.op.op_def.owns is None:
        source = (handle.op.op_def.aliases or {}).get(handle.index)
        if source is None:
            break
        handle = handle.op.inputs[source]
    return handle


def touched_by(operation: Operation) -> Operation | None:
    """The operation that owns what an operation touches.

    None if it touches no resource, or one of several, which the run chooses.
    """
    touch = operation.op_def.touches
    if touch is None:
        return None
    if touch.argument is None:
        return operation if operation.op_def.owns is not None else None
    handle = operation.inputs[touch.argument]
    return None if _is_chosen(handle) else owner_of(handle)


def key_touched(operation: Operation) -> ResourceKey | None:
    """The key of what an operation touches; None where `touched_by` gives None."""
    owner = touched_by(operation)
    return owner.key if owner is not None else None


def _is_chosen(handle: Tensor) -> bool:
    """Whether it is one of several handles, of kinds whose touches have no order anyway."""
    operation = _origin(handle).op
    definition = operation.op_def
    if definition.owns is not None:
        return False
    given = {tensor for tensor in operation.inputs if tensor.dtype is resource}
    # A list may be one of a single handle.
    is_list = any(a.is_list and a.token == resource.name for a in definition.inputs)
    return len(given) >= (1 if is_list else 2) and all(map(_is_free, given))


def _is_free(handle: Tensor) -> bool:
    owns = _origin(handle).op.op_def.owns
    return _is_chosen(handle) if owns is None else resource_kind(owns).order is Order.FREE
