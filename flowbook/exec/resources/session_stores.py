"""What one session's resources are found by: a store for each device, and which of them has what.

Each resource lives on a device, its home, from when something that touches it was first placed.
What named containers hold is the process's (`containers.py`); all sessions reach it.

Nothing here knows operations. Whoever has the graph says when a key is used no longer (`release`);
that may happen at any moment, in a garbage collection too, so it is only noted where the session's
lock is taken.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from flowbook.exec.devices.cpu import Cpu
from flowbook.exec.devices.device import Device
from flowbook.exec.resources.containers import (
    dropping,
    find_shared,
    forget,
    gate_of,
    listen,
    shared,
)
from flowbook.exec.resources.gate import Gate
from flowbook.exec.resources.kinds import (
    Birth,
    Closable,
    Definition,
    Resident,
    maker_of,
)
from flowbook.exec.resources.store import Store, usable_on
from flowbook.graph.model.errors import CancelledError
from flowbook.graph.model.resource_key import ResourceKey

_HOST = Cpu()


class SessionStores:
    """The resources that one session reaches.

    Args:
        entropy: for random states without seeds.
        on_value: called with a key and whether it has a value now, whenever that changes.
        host: the device of the session where what was not placed lives.

    Attributes:
        lock: held while a resource is made, or moves to another store.
        epoch: grows when values may have been lost, here or in a named container, or lie on other
            devices: whoever found everything initialised asks again.
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
        self.lock = threading.Lock()
        self._host = host
        self._homes: dict[ResourceKey, Device] = {}
        self._stores = {host: Store(host, self)}
        self._moved: dict[ResourceKey, int] = {}
        self._epoch_lock = threading.Lock()
        self._gate = Gate()
        self._released: deque[ResourceKey] = deque()
        self._is_closed = False
        listen(self)

    def on(self, device: Device) -> Store:
        """The store of a device."""
        store = self._stores.get(device)
        return store or self._stores.setdefault(device, Store(device, self))

    def _at_home(self, key: ResourceKey) -> Store:
        return self.home_of(key) or self.on(self._host)

    # Homes

    def home_of(self, key: ResourceKey) -> Store | None:
        """The store that has a resource or will have it, or None if that is not decided."""
        home = self._homes.get(key)
        if home is not None:
            return self.on(home)
        # What was made on the host before it was placed may still go anywhere.
        host = self.on(self._host)
        return host if host.find(key) is not None else None

    def note(self, key: ResourceKey, home: Store) -> None:
        """Take note of where a resource was made; on the host it may still go anywhere."""
        if home.device is not self._host:
            self._homes[key] = home.device

    @property
    def homes(self) -> Mapping[ResourceKey, Device]:
        """Where resources live that were placed, and those of named containers that are there."""
        there = shared()
        if not there:
            return self._homes
        found = self._homes.copy()
        for key, resource in there:
            # Each step that is prepared asks: a protocol would take twenty times as long.
            device = getattr(resource, "device", None)
            if device is not None:
                found[key] = found.get(key, self._host) if device.is_host else device
        return found

    def is_elsewhere(self, key: ResourceKey, device: Device) -> bool:
        """Whether a resource of the session's own lives in other memory than that of a device."""
        home = self._homes.get(key)
        return home is not None and not key.container and not device.shares_memory(home)

    def settle(self, key: ResourceKey, device: Device) -> None:
        """Have a resource live where what touches it was placed; its value moves there."""
        with self.lock:
            if self._homes.get(key) is device:
                return
            if key.container:
                found = find_shared(key)
                if found is not None and found.is_initialized and not usable_on(found, device):
                    return  # It stays where other sessions use it.
            else:
                self._at_home(key).hand_over(key, self.on(device))
            self._homes[key] = device

    # Resources

    def find(self, key: ResourceKey) -> Any:
        """The resource of a key if it exists already, or None."""
        if key.container:
            return find_shared(key)
        with self.lock:
            return self._at_home(key).find(key)

    def of(self, key: ResourceKey, definition: Definition) -> Any:
        """The resource of a key, wherever it lives; made on first use.

        Raises:
            InvalidArgumentError: if it is there with another definition.
            CancelledError: if the session was closed.
        """
        return self._at_home(key).found_or_made(key, definition)

    def unused(self, key: ResourceKey, definition: Definition) -> Any:
        """A resource like the one of a key that nothing has used, and nothing will find."""
        birth = self.birth_of(key, definition, self._at_home(key).device)
        return maker_of(key, definition)(birth._replace(announce=lambda has_value: None))

    def open(self) -> None:
        """Drop what was released, before something is looked for; called with the lock.

        Raises:
            CancelledError: if the session was closed.
        """
        if self._is_closed:
            raise CancelledError("the session was closed")
        self._drop_released()

    def birth_of(self, key: ResourceKey, definition: Definition, device: Device) -> Birth:
        """What a resource learns that is made on a device."""
        announce = partial(self.on_value, key)
        return Birth(key, definition.attributes, self.entropy, announce, device)

    def _own(self) -> list[tuple[ResourceKey, Any]]:
        """All resources of the session's own."""
        with self.lock:
            # A list: others may ask for the store of one more device meanwhile.
            return [each for store in list(self._stores.values()) for each in store.held()]

    def sizes_on(self, device: str) -> dict[ResourceKey, int]:
        """How many bytes resources hold on a device, by its name: the session's and containers'."""
        return {
            key: resource.bytes
            for key, resource in (*self._own(), *shared())
            if isinstance(resource, Resident) and resource.device.name == device
        }

    def gates(self, containers: Iterable[str]) -> list[Gate]:
        """The gates of containers, in the order in which they are passed and closed."""
        return [gate_of(name) if name else self._gate for name in sorted(set(containers))]

    # The end of values and of resources

    def forget(self, key: ResourceKey) -> None:
        """Drop a value: it is initialised again on its next use."""
        resource = self.find(key)
        if resource is not None:
            forget([resource])

    def reset(self) -> None:
        """Drop all values of the session's own, and have what counts begin afresh."""
        own = [resource for _, resource in self._own()]
        for resource in own:
            if isinstance(resource, Closable):
                resource.start_over()
        forget(own)

    def start_over(self, moved: Collection[ResourceKey] = ()) -> None:
        """Have everyone ask again what has to be initialised, and where what has moved lives."""
        with self._epoch_lock:
            for key in moved:  # First: whoever sees the epoch finds them.
                self._moved[key] = self.epoch + 1
            self.epoch += 1

    def moved_since(
        self, epoch: int, keys: Iterable[ResourceKey | None]
    ) -> Collection[ResourceKey]:
        """Those of these that were put on other devices in later epochs."""
        moved = self._moved
        return [key for key in keys if key and moved.get(key, -1) > epoch] if moved else ()

    def may_have_lost_since(self, epoch: int) -> bool:
        """Whether another epoch has begun; what is being dropped right now has one begin."""
        with dropping:
            return self.epoch != epoch

    def release(self, key: ResourceKey) -> None:
        """Drop a resource of the session's own whose key nothing uses any more."""
        self._released.append(key)
        # A garbage collection may come while this very thread holds the lock.
        if self.lock.acquire(blocking=False):
            try:
                self._drop_released()
            finally:
                self.lock.release()

    def _drop_released(self) -> None:
        while self._released:
            key = self._released.popleft()
            self._at_home(key).drop(key)
            self._homes.pop(key, None)
            self._moved.pop(key, None)
            self.on_value(key, False)

    def close(self) -> None:
        """Drop the session's own resources and their memory; there will be no more."""
        with self.lock:
            self._is_closed = True
            stores, self._stores = self._stores, {}
        for store in stores.values():
            store.clear()
