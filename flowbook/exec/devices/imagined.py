"""A device that need not be there: plans are made for it, and nothing runs on it."""

from __future__ import annotations

from typing import Any, NoReturn

from flowbook.exec.devices.device import Device
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.errors import InternalError


class Imagined(Device):
    """A device of which only the name counts.

    Args:
        spec: its name in full, taken apart.
    """

    def __init__(self, spec: DeviceSpec) -> None:
        super().__init__(str(spec), None)

    def own(self, array: Any) -> NoReturn:
        """Nothing can be there."""
        raise InternalError(f"{self.name} is only imagined")

    def fetch(self, array: Any) -> NoReturn:
        """Nothing is there."""
        raise InternalError(f"{self.name} is only imagined")

    def check(self, value: Any) -> bool:
        """No value is an array of it."""
        return False
