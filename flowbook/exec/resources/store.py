"""The resources of one session that live on one device, by their keys."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Any, Protocol

from flowbook.exec.devices.device import Device
from flowbook.exec.resources.containers import check_same, shared_of
from flowbook.exec.resources.kinds import Birth, Definition, Lasting, Resident, maker_of
from flowbook.graph.model.errors import FailedPreconditionError
from flowbook.graph.model.resource_key import ResourceKey


class Directory(Protocol):
    """What a store asks of its session, which has several.

    Attributes:
        lock: held while a resource is made, taken or put, in any of them.
    """

    lock: Lock

    def open(self) -> None:
        """Begin to look for a resource; called with the lock.

        Raises:
            CancelledError: if the session was closed.
        """

    def home_of(self, key: ResourceKey) -> Store | None:
        """The store that has a resource or will have it, or None if that is not decided."""

    def note(self, key: ResourceKey, home: Store) -> None:
        """Take note of where a resource was made; called with the lock."""

    def birth_of(self, key: ResourceKey, definition: Definition, device: Device) -> Birth:
        """What a resource learns that is made on a device."""


class Store:
    """What kernels of one device find by keys, in one session.

    It holds what is the session's own and lives here. What named containers hold it reaches, and
    what lives on other devices whose memory is the same.

    Args:
        device: the device.
        directory: knows the session's other stores.

    Attributes:
        device: see above.
    """

    def __init__(self, device: Device, directory: Directory) -> None:
        self.device = device
        self._directory = directory
        self._held: dict[ResourceKey, Any] = {}

    def of(self, key: ResourceKey, definition: Definition) -> Any:
        """The resource of a key, made on first use.

        Raises:
            InvalidArgumentError: if it is there with another definition.
            FailedPreconditionError: if it lives in the memory of another device.
            CancelledError: if the session was closed.
        """
        found = self.found_or_made(key, definition)
        if not usable_on(found, self.device):
            raise _elsewhere(key, found.device, self.device)
        return found

    def found_or_made(self, key: ResourceKey, definition: Definition) -> Any:
        """The resource of a key, wherever it lives; made at home, or here if it has none.

        Raises:
            InvalidArgumentError: if it is there with another definition.
            CancelledError: if the session was closed.
        """
        directory = self._directory
        if key.container:
            home = directory.home_of(key) or self
            return shared_of(key, definition, home.device)
        with directory.lock:
            directory.open()
            home = directory.home_of(key) or self
            resource = home._held.get(key)
            if resource is None:
                birth = directory.birth_of(key, definition, home.device)
                resource = home._held[key] = maker_of(key, definition)(birth)
                directory.note(key, home)
            elif key.is_shared:
                check_same(resource, key, definition)
            return resource

    # What is called with the lock of the directory

    def find(self, key: ResourceKey) -> Any:
        """What it holds under a key, or None."""
        return self._held.get(key)

    def held(self) -> Iterable[tuple[ResourceKey, Any]]:
        """All that it holds."""
        return self._held.items()

    def hand_over(self, key: ResourceKey, other: Store) -> None:
        """Have another store hold what this one holds under a key, with its value, if it has one.

        Raises:
            ResourceExhaustedError: if it does not fit there; it stays here then.
        """
        resource = self._held.get(key)
        if resource is not None:
            if isinstance(resource, Resident):
                resource.move(other.device)
            other._held[key] = resource
            if other is not self:
                del self._held[key]

    def drop(self, key: ResourceKey) -> None:
        """Hold what is under a key no longer."""
        resource = self._held.pop(key, None)
        if isinstance(resource, Lasting):
            resource.let_go()

    def clear(self) -> None:
        """Hold nothing any more."""
        for key in list(self._held):
            self.drop(key)


def usable_on(resource: Any, device: Device) -> bool:
    """Whether kernels of a device can use a resource."""
    # Each node that owns a resource is bound by it: to ask a protocol takes twenty times as long.
    return device.shares_memory(getattr(resource, "device", device))


def _elsewhere(key: ResourceKey, home: Device, device: Device) -> FailedPreconditionError:
    held = f"container {key.container!r} holds {key.name!r} on"
    if home.name == device.name:  # Another device: its kind was registered again.
        return FailedPreconditionError(
            f"{held} an earlier {home.name}, and here it is wanted on the one of that name now",
            hint=f"fb.reset_container({key.container!r}) has it begin anew",
        )
    return FailedPreconditionError(
        f"{held} {home.name}, and here it is wanted on {device.name}",
        hint="give the session that device, as in fb.Session(devices=...), and ask for no other",
    )
