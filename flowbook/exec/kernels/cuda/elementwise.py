"""Elementwise functions that CuPy computes otherwise than NumPy where numbers are not finite.

Its remainder is made of the quotient, so that nothing is left of a division by infinity, and of a
large quotient only what rounding left. Its sinc takes NaN for a number near 0.
"""

from __future__ import annotations

from typing import Any

from flowbook.exec.devices import gpu as _gpu  # noqa: F401  # Admits kernels for its kind.
from flowbook.graph.model.registry import special_kernel
from flowbook.graph.ops.math.arithmetic import mod, refuse_zero
from flowbook.graph.ops.math.numeric import sinc


@special_kernel(mod.type, "gpu", None)
def _mod(xp: Any, x: Any, y: Any) -> Any:
    refuse_zero(xp, x, y)
    if x.dtype.kind != "f":
        return xp.remainder(x, y)
    rest = xp.fmod(x, y)  # Exact, with the sign of x.
    moved = xp.where((rest < 0) != (y < 0), rest + y, rest)
    return xp.where(rest == 0, xp.copysign(rest, y), moved)


@special_kernel(sinc.type, "gpu", None)
def _sinc(xp: Any, x: Any) -> Any:
    return xp.where(xp.isnan(x), x, xp.sinc(x))
