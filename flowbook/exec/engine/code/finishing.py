"""How fetched values become the caller's own, by the names that generated code has for it."""

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


def finishers(device: Device) -> dict[str, Callable[[Any], Any]]:
    """What makes fetched values of a device the caller's own, by those names.

    Where they are fetched together, they stay where they are until then.
    """
    if device.fetches_together:
        return dict.fromkeys(FINISHER_OF.values(), _as_it_is)
    return {"scalar": device.fetch_own, "owned": device.fetch_view, "copied": device.fetch}


def _as_it_is(value: Any) -> Any:
    return value
