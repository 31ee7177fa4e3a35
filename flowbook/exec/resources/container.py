"""Containers: where resources live (white paper, section 4.7).

The session's own container knows a resource by its operation and lives as long as the session. A
named one knows it by name, lives as long as the process, and is shared by name across sessions
and graphs.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from flowbook.exec.resources.counter import Counter
from flowbook.exec.resources.random_state import RandomState
from flowbook.exec.resources.variable import VariableResource
from flowbook.graph.model.errors import CancelledError, InvalidArgumentError
from flowbook.graph.model.operation import Operation

_named: dict[str, dict[str, VariableResource]] = {}
_all: weakref.WeakSet[Resources] = weakref.WeakSet()
_named_lock = threading.Lock()


class Resources:
    """The resources that one session reaches: its own, and the variables of named containers.

    Args:
        entropy: for random operations without seeds.
    """

    def __init__(self, entropy: int) -> None:
        self.entropy = entropy
        self._own: weakref.WeakKeyDictionary[Operation, Any] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()
        self._is_closed = False
        self._lost_values: Callable[[], None] | None = None
        with _named_lock:
            _all.add(self)

    def of(self, operation: Operation) -> Any:
        """The resource that an operation owns, made on first use.

        Raises:
            InvalidArgumentError: if a named container has it with another dtype or shape.
            CancelledError: if the session was closed.
        """
        # Random states are never shared: the counter belongs to the operation.
        if operation.container and operation.op_def.resource == "variable":
            return _shared(operation, operation.container)
        with self._lock:
            if self._is_closed:
                raise CancelledError("the session was closed")
            resource = self._own.get(operation)
            if resource is None:
                resource = self._own[operation] = self._make(operation)
            return resource

    def find(self, operation: Operation) -> Any:
        """The resource of an operation if it exists already, or None."""
        if operation.container:
            return _named.get(operation.container, {}).get(operation.name)
        with self._lock:
            return self._own.get(operation)

    def on_lost_values(self, callback: Callable[[], None]) -> None:
        """Have `callback` called when variables have lost their values, here or elsewhere."""
        self._lost_values = callback

    def close(self) -> None:
        """Drop the session's own resources and their memory; there will be no more."""
        with self._lock:
            self._is_closed = True
            self._own.clear()

    def _make(self, operation: Operation) -> Any:
        attributes = operation.attributes
        if operation.op_def.resource == "variable":
            return VariableResource(operation.name, attributes["dtype"], attributes["shape"])
        if operation.op_def.resource == "random_state":
            return RandomState(
                operation.name, attributes["graph_seed"], attributes["seed"], self.entropy
            )
        if operation.op_def.resource == "counter":
            return Counter()
        raise InvalidArgumentError(
            f"{operation.op_def.resource!r} is not a kind of resource", operation
        )


def _shared(operation: Operation, container: str) -> VariableResource:
    """The variable that a named container has under the operation's name."""
    dtype, shape = operation.attributes["dtype"], operation.attributes["shape"]
    with _named_lock:
        resources = _named.setdefault(container, {})
        resource = resources.get(operation.name)
        if resource is None:
            resource = resources[operation.name] = VariableResource(operation.name, dtype, shape)
        fits = resource.dtype is dtype and resource.shape.is_compatible_with(shape)
        if not fits and not resource.is_initialized:
            resource.dtype, resource.shape = dtype, shape
            fits = True
    if not fits:
        raise InvalidArgumentError(
            f"container {container!r} holds {operation.name!r} as "
            f"{resource.dtype.name} {resource.shape}, not {dtype.name} {shape}",
            operation,
            hint="use another name, or fb.reset_container(name)",
        )
    return resource


def reset_container(name: str) -> None:
    """Drop the values of all variables of a named container, for all sessions of this process.

    They are initialised again on their next use.
    """
    with _named_lock:
        resources = list(_named.get(name, {}).values())
    # The resources stay: steps under way, and those prepared, go on with them.
    forget(*resources)


def forget(*resources: VariableResource) -> None:
    """Drop values of variables; all sessions find out before their next steps."""
    for resource in resources:
        resource.forget()
    with _named_lock:
        sessions = list(_all)
    for session in sessions:
        if session._lost_values is not None:
            session._lost_values()
