"""Where resources live, by their keys (white paper, section 4.7, "Containers").

A store belongs to one session. Each resource lives on a device, its home, from when something that
touches it was first placed. What named containers share is the process's; all stores reach it, and
it lives as long as the process.

Nothing here knows operations. Whoever has the graph says when a key is used no longer (`release`);
that may happen at any moment, in a garbage collection too, so it is only noted where the store is
busy.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from flowbook.exec.devices.cpu import Cpu
from flowbook.exec.devices.device import Device
from flowbook.exec.resources.gate import Gate
from flowbook.exec.resources.kinds import (
    Announcing,
    Birth,
    Closable,
    Definition,
    Lasting,
    Resident,
    Shared,
    maker_of,
)
from flowbook.graph.definition.op_def import HOST
from flowbook.graph.model.errors import CancelledError, InvalidArgumentError
from flowbook.graph.model.resource_key import ResourceKey

__all__ = ["reset_container"]

_HOST = Cpu()

_shared: dict[ResourceKey, Shared] = {}
_shared_gates: dict[str, Gate] = {}
_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_lock = threading.Lock()
# A resource announces under its own lock, and `_lock` is held where that is taken.
_stores_lock = threading.Lock()
# Held while values are dropped, until all stores have begun another epoch.
_dropping = threading.Lock()


class Store:
    """The resources that one session reaches.

    Args:
        entropy: for random states without seeds.
        on_value: called with a key and whether it has a value now, whenever that changes.
        host: the device of the session where what was not placed lives.

    Attributes:
        epoch: grows when values may have been lost, here or in a named container: whoever found
            everything initialised asks again.
    """

    def __init__(
        self,
        entropy: int,
        on_value: Callable[[ResourceKey, bool], None] = lambda key, has: None,
        host: Device = _HOST,
    ) -> None:
        self.entropy = entropy
        self.epoch = 0
        self.on_value = on_value
        self._host = host
        self._homes: dict[ResourceKey, Device] = {}
        self._own: dict[ResourceKey, Any] = {}
        self._gate = Gate()
        self._released: deque[ResourceKey] = deque()
        self._lock = threading.Lock()
        self._is_closed = False
        with _stores_lock:
            _stores.add(self)
        with _lock:
            shared = list(_shared.items())
        for key, resource in shared:
            if isinstance(resource, Announcing):
                resource.announce_to(partial(on_value, key))

    @property
    def homes(self) -> Mapping[ResourceKey, Device]:
        """Where resources live that were placed, and those of named containers that are there."""
        if not _shared:
            return self._homes
        found = self._homes.copy()
        for key, resource in list(_shared.items()):
            # Each step that is prepared asks: a protocol would take twenty times as long.
            there = getattr(resource, "device", None)
            if there is not None:
                found[key] = found.get(key, self._host) if _is_host(there) else there
        return found

    def is_elsewhere(self, key: ResourceKey, device: Device) -> bool:
        """Whether a resource of the session's own lives in other memory than that of a device."""
        home = self._homes.get(key)
        return home is not None and not key.container and not _share_memory(home, device)

    def settle(self, key: ResourceKey, device: Device) -> None:
        """Have a resource live where what touches it was placed; its value moves there."""
        if self._homes.get(key) is device:
            return
        resource = self.find(key)
        if not key.container:
            if isinstance(resource, Resident):
                resource.move(device)
        elif resource is not None and resource.is_initialized and not usable_on(resource, device):
            return  # It stays where other sessions use it.
        self._homes[key] = device

    def of(self, key: ResourceKey, definition: Definition) -> Any:
        """The resource of a key, made on first use.

        Raises:
            InvalidArgumentError: if a named container has it with another definition.
            CancelledError: if the session was closed.
        """
        if key.container:
            return _in_container(key, definition, self._homes.get(key, self._host))
        with self._lock:
            if self._is_closed:
                raise CancelledError("the session was closed")
            self._drop_released()
            resource = self._own.get(key)
            if resource is None:
                announce = partial(self.on_value, key)
                resource = self._own[key] = self._made(key, definition, announce)
            elif key.is_shared:
                _adopted(resource, key, definition)
            return resource

    def find(self, key: ResourceKey) -> Any:
        """The resource of a key if it exists already, or None."""
        if key.container:
            return _shared.get(key)
        with self._lock:
            return self._own.get(key)

    def unused(self, key: ResourceKey, definition: Definition) -> Any:
        """A resource like the one of a key that nothing has used, and nothing will find."""
        return self._made(key, definition, lambda has_value: None)

    def _made(
        self, key: ResourceKey, definition: Definition, announce: Callable[[bool], None]
    ) -> Any:
        device = self._homes.get(key, self._host)
        birth = Birth(key, definition.attributes, self.entropy, announce, device)
        return maker_of(key, definition)(birth)

    def sizes_on(self, device: str) -> dict[ResourceKey, int]:
        """How many bytes resources hold on a device, by its name: the session's and containers'."""
        with self._lock:
            there = [*self._own.items(), *_shared.items()]
        return {
            key: resource.bytes
            for key, resource in there
            if isinstance(resource, Resident) and resource.device.name == device
        }

    def gates(self, containers: Iterable[str]) -> list[Gate]:
        """The gates of containers, in the order in which they are passed and closed."""
        return [
            _shared_gates.setdefault(name, Gate()) if name else self._gate
            for name in sorted(set(containers))
        ]

    def forget(self, key: ResourceKey) -> None:
        """Drop a value: it is initialised again on its next use."""
        resource = self.find(key)
        if resource is not None:
            _forget([resource])

    def reset(self) -> None:
        """Drop all values of the session's own, and have what counts begin afresh."""
        with self._lock:
            own = list(self._own.values())
        for resource in own:
            if isinstance(resource, Closable):
                resource.start_over()
        _forget(own)

    def release(self, key: ResourceKey) -> None:
        """Drop a resource of the session's own whose key nothing uses any more."""
        self._released.append(key)
        # A garbage collection may come while this very thread holds the lock.
        if self._lock.acquire(blocking=False):
            try:
                self._drop_released()
            finally:
                self._lock.release()

    def _drop_released(self) -> None:
        while self._released:
            key = self._released.popleft()
            resource = self._own.pop(key, None)
            self._homes.pop(key, None)
            if isinstance(resource, Lasting):
                resource.let_go()
            self.on_value(key, False)

    def start_over(self) -> None:
        """Have everyone ask again what has to be initialised."""
        self.epoch += 1

    def may_have_lost_since(self, epoch: int) -> bool:
        """Whether another epoch has begun; what is being dropped right now has one begin."""
        with _dropping:
            return self.epoch != epoch

    def close(self) -> None:
        """Drop the session's own resources and their memory; there will be no more."""
        with self._lock:
            self._is_closed = True
            resources = list(self._own.values())
            self._own.clear()
        for resource in resources:
            if isinstance(resource, Lasting):
                resource.let_go()


def usable_on(resource: Any, device: Device) -> bool:
    """Whether kernels of a device can use a resource: all CPUs share the memory of the host."""
    # Each node that owns a resource is bound by it: to ask a protocol takes twenty times as long.
    return _share_memory(getattr(resource, "device", device), device)


def _share_memory(one: Device, other: Device) -> bool:
    return one is other or (_is_host(one) and _is_host(other))


def _is_host(device: Device) -> bool:
    return device.kind in HOST


def _in_container(key: ResourceKey, definition: Definition, device: Device) -> Any:
    """What a named container has under a key, made on first use."""
    with _lock:
        resource = _shared.get(key)
        if resource is None:
            birth = Birth(key, definition.attributes, 0, partial(_announce, key), device)
            resource = _shared[key] = maker_of(key, definition)(birth)
            return resource
        _adopted(resource, key, definition)
        if isinstance(resource, Resident) and not resource.is_initialized:
            resource.move(device)
        return resource


def _adopted(resource: Shared, key: ResourceKey, definition: Definition) -> None:
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


def _announce(key: ResourceKey, has_value: bool) -> None:
    for store in _all_stores():
        store.on_value(key, has_value)


def _all_stores() -> list[Store]:
    with _stores_lock:
        return list(_stores)


def reset_container(name: str) -> None:
    """Drop the values of all variables of a named container, for all sessions of this process.

    They are initialised again on their next use.
    """
    with _lock:
        resources = [resource for key, resource in _shared.items() if key.container == name]
    # The resources stay: steps under way, and those prepared, go on with them.
    _forget(resources)


def _forget(resources: Iterable[Shared]) -> None:
    """Drop values; all sessions find out before their next steps."""
    with _dropping:
        try:
            for resource in resources:
                resource.forget()
        finally:
            for store in _all_stores():
                store.start_over()
