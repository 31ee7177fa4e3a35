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
# An H200 in single precision with CuPy 14, as measured. What is fed, and what is fetched, lies in
# memory that goes through pinned blocks: between those alone it is 5.5e10 bytes in a second.
GPU = Figures(5e13, 1.7e12, 1.5e-5)
OVER_FAST_BUS = Link(2.5e-5, 8e9)
