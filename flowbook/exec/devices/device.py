"""What a device is to the executor: a name, a kind, and the array module that its kernels use."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flowbook.graph.model.device_spec import DeviceSpec


class Device:
    """One device of this process.

    Attributes:
        name: in full, such as "/job:localhost/task:0/device:cpu:0".
        spec: the name, taken apart.
        xp: NumPy, or a module like it, whose functions take this device's arrays.
    """

    def __init__(self, name: str, xp: ModuleType | Any) -> None:
        self.spec = DeviceSpec.parse(name)
        self.name = str(self.spec)
        self.xp = xp

    @property
    def kind(self) -> str:
        """Such as "cpu"."""
        return self.spec.kind or ""

    def __repr__(self) -> str:
        return f"<Device {self.name}>"
