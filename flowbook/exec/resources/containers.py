"""What named containers hold, which sessions share (white paper, section 4.7, "Containers").

It is the process's, and lives as long as that. A resource says itself on which device it lives.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Protocol

from flowbook.exec.devices.device import Device
from flowbook.exec.resources.gate import Gate
from flowbook.exec.resources.kinds import (
    Announcing,
    Birth,
    Definition,
    Resident,
    Shared,
    maker_of,
)
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.resource_key import ResourceKey

__all__ = ["reset_container"]


class Listener(Protocol):
    """Who is told what becomes of values: each session."""

    @property
    def on_value(self) -> Callable[[ResourceKey, bool], None]:
        """To be told whether what a key names has a value now."""

    def start_over(self, moved: Collection[ResourceKey] = ()) -> None:
        """Be told that values may have been lost, or what lives on other devices now."""


_shared: dict[ResourceKey, Shared] = {}
_gates: dict[str, Gate] = {}
_listeners: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = threading.Lock()
# A resource announces under its own lock, and `_lock` is held where that is taken.
_listeners_lock = threading.Lock()
# Held while values are dropped, until all sessions have been told.
dropping = threading.Lock()


def listen(listener: Listener) -> None:
    """Tell somebody from now on which resources have values, and first of those that have."""
    with _listeners_lock:
        _listeners.add(listener)
    for key, resource in shared():
        if isinstance(resource, Announcing):
            resource.announce_to(partial(listener.on_value, key))


def shared() -> list[tuple[ResourceKey, Shared]]:
    """All that containers hold."""
    if not _shared:
        return []
    with _lock:
        return list(_shared.items())


def find_shared(key: ResourceKey) -> Any:
    """What a container has under a key already, or None."""
    with _lock:  # What is moving right now has moved then.
        return _shared.get(key)


def shared_of(key: ResourceKey, definition: Definition, device: Device) -> Any:
    """What a container has under a key, made on first use.

    Args:
        key: the key.
        definition: what it is made from.
        device: where it is to live, if it has no value yet.

    Raises:
        InvalidArgumentError: if the container has it with another definition.
    """
    with _lock:
        resource = _shared.get(key)
        if resource is None:
            birth = Birth(key, definition.attributes, 0, partial(_announce, key), device)
            resource = _shared[key] = maker_of(key, definition)(birth)
            return resource
        check_same(resource, key, definition)
        if not isinstance(resource, Resident) or resource.is_initialized:
            return resource
        if not device.shares_memory(resource.device):
            _start_over([key])  # Others may have been prepared for where it is.
            resource.move(device)
            _start_over([key])  # Those of them that have begun meanwhile find out at their ends.
        return resource


def check_same(resource: Shared, key: ResourceKey, definition: Definition) -> None:
    """Have a resource be what another operation owns.

    Raises:
        InvalidArgumentError: if it is something else.
    """
    problem = resource.adopt(definition)
    if problem is not None:
        where = f"container {key.container!r}" if key.container else "the session"
        raise InvalidArgumentError(
            f"{where} holds {key.name!r} as {problem}",
            hint="use another name, or fb.reset_container(name)"
            if key.container
            else "use another shared_name, or a new session",
        )


def gate_of(container: str) -> Gate:
    """The gate of a container's variables."""
    return _gates.setdefault(container, Gate())


def _announce(key: ResourceKey, has_value: bool) -> None:
    for listener in _all_listeners():
        listener.on_value(key, has_value)


def _all_listeners() -> list[Listener]:
    with _listeners_lock:
        return list(_listeners)


def reset_container(name: str) -> None:
    """Drop the values of all variables of a named container, for all sessions of this process.

    They are initialised again on their next use.
    """
    # The resources stay: steps under way, and those prepared, go on with them.
    forget([resource for key, resource in shared() if key.container == name])


def forget(resources: Iterable[Shared]) -> None:
    """Drop values, of a container or a session; all sessions find out before their next steps."""
    with dropping:
        try:
            for resource in resources:
                resource.forget()
        finally:
            _start_over()


def _start_over(moved: Collection[ResourceKey] = ()) -> None:
    """Have all sessions look at what their steps use, before their next ones."""
    for listener in _all_listeners():
        listener.start_over(moved)
