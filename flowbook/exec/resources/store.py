"""The resources of one session that live on one device, by their keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.exec.devices.device import Device
from flowbook.exec.resources.kinds import Definition
from flowbook.graph.definition.op_def import HOST
from flowbook.graph.model.errors import FailedPreconditionError
from flowbook.graph.model.resource_key import ResourceKey

# From a key, what its resource is made from, and where if that is not decided yet.
Find = Callable[[ResourceKey, Definition, "Store"], Any]


class Store:
    """What kernels of one device find by keys, in one session.

    It holds what is the session's own and lives here. What named containers hold it reaches, and
    what lives on other devices whose memory is the same.

    Args:
        device: the device.
        find: gives the session's resource of a key.

    Attributes:
        device: see above.
        own: what it holds; `SessionStores` fills it under its lock.
    """

    def __init__(self, device: Device, find: Find) -> None:
        self.device = device
        self.own: dict[ResourceKey, Any] = {}
        self._find = find

    def of(self, key: ResourceKey, definition: Definition) -> Any:
        """The resource of a key, made on first use.

        Raises:
            InvalidArgumentError: if it is there with another definition.
            FailedPreconditionError: if it lives in the memory of another device.
            CancelledError: if the session was closed.
        """
        found = self._find(key, definition, self)
        if not usable_on(found, self.device):
            raise _elsewhere(key, found.device, self.device)
        return found


def usable_on(resource: Any, device: Device) -> bool:
    """Whether kernels of a device can use a resource: all CPUs share the memory of the host."""
    # Each node that owns a resource is bound by it: to ask a protocol takes twenty times as long.
    return share_memory(getattr(resource, "device", device), device)


def share_memory(one: Device, other: Device) -> bool:
    """Whether what lies on one device is at hand for another."""
    return one is other or (is_host(one) and is_host(other))


def is_host(device: Device) -> bool:
    """Whether a device's memory is the host's."""
    return device.kind in HOST


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
