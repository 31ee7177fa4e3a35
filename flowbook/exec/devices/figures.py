"""What placement predicts with: what a device does in a second, and what lies between two."""

from __future__ import annotations

from typing import NamedTuple


class Figures(NamedTuple):
    """What a device does.

    Attributes:
        flops: floating-point operations in a second.
        bytes: how many bytes of its memory it reads or writes in a second.
        overhead: seconds to call a kernel.
    """

    flops: float
    bytes: float
    overhead: float


class Link(NamedTuple):
    """What lies between two devices.

    Attributes:
        latency: seconds for the smallest transfer: the other device's thread has to wake up.
        bytes: how many bytes go over in a second.
    """

    latency: float
    bytes: float


# An accelerator of some years ago, and what lies between it and the host.
ACCELERATOR = Figures(1e13, 5e11, 5e-6)
OVER_BUS = Link(6e-5, 1e10)
# An H100 in single precision, as its data sheet and CuPy's users tell: nothing was measured here.
GPU = Figures(5e13, 2.5e12, 1e-5)
OVER_FAST_BUS = Link(3e-5, 4e10)
