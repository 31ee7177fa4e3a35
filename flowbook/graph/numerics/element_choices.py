"""Kernels that choose between two values for each element, without branches.

NumPy's `where` branches at each element, and takes ten times as long where the outcome is
irregular; its `maximum` has no vectorised loop for a number. Of small arrays both are fast.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowbook.graph.numerics import vectorised

# From so many elements on, a call more is made up for by faster loops.
_LARGE = 8192


def selected(xp: Any, condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition holds and `y` elsewhere, broadcast against each other."""
    if xp is np and not (condition.ndim or x.ndim or y.ndim or x.dtype.hasobject):
        # As in a loop over numbers, where a call of NumPy's takes five times as long.
        return x[()] if condition else y[()]
    if condition.size < _LARGE or xp is not np or x.dtype.hasobject:
        return xp.where(condition, x, y)
    shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
    return vectorised.where(condition, x, y, out=np.empty(shape, x.dtype))


def clipped(xp: Any, x: Any, low: Any, high: Any) -> Any:
    """`minimum(maximum(x, low), high)` for limits that broadcast to `x`."""
    if x.size >= _LARGE and not (xp.ndim(low) or xp.ndim(high)):
        return xp.clip(x, low, high)
    return xp.minimum(xp.maximum(x, low), high)


def rectified(xp: Any, features: Any) -> Any:
    """`maximum(features, 0)`."""
    if features.size >= _LARGE and features.dtype.kind == "f":
        return xp.clip(features, 0, math.inf)
    return xp.maximum(features, 0)


def leaky(xp: Any, features: Any, alpha: float) -> Any:
    """`features` where they are positive, else `alpha * features`."""
    lower = xp.multiply(features, alpha)
    if 0 < alpha <= 1:
        return xp.maximum(features, lower, out=lower if lower.ndim else None)
    return selected(xp, xp.greater(features, 0), features, lower)
