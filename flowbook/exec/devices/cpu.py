"""The CPU: NumPy's arrays in host memory."""

from __future__ import annotations

import numpy as np

from flowbook.exec.devices.device import Device


def cpu(index: int = 0) -> Device:
    """The CPU device of this process."""
    return Device(f"/job:localhost/task:0/device:cpu:{index}", np)


def local_devices() -> list[Device]:
    """The devices of this process."""
    return [cpu()]
