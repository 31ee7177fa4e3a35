"""How fetched values become the caller's own, and the names that generated code has for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.exec.devices.device import Device
from flowbook.exec.plan.memory import Ownership

FINISHER_OF = {
    Ownership.FRESH: "scalar",
    Ownership.VIEW: "owned",
    Ownership.FOREIGN: "copied",
}


def finisher(device: Device, ownership: Ownership) -> Callable[[Any], Any]:
    """What makes fetched values of a device the caller's own.

    Where they are fetched together, they stay where they are until then.
    """
    if device.fetches_together:
        return _as_it_is
    if ownership is Ownership.FRESH:
        return device.fetch_own
    return device.fetch_view if ownership is Ownership.VIEW else device.fetch


def finishers(device: Device) -> dict[str, Callable[[Any], Any]]:
    """All of these, by the names that generated code has for them."""
    return {name: finisher(device, ownership) for ownership, name in FINISHER_OF.items()}


def _as_it_is(value: Any) -> Any:
    return value
