"""Views of arrays that NumPy makes in C, where its own functions go through Python for longer."""

from __future__ import annotations

from typing import Any

import numpy as np

_FLAGS: Any = ("multi_index", "refs_ok", "zerosize_ok")
_READING: Any = ("readonly",)


def broadcast_view(xp: Any, x: Any, dims: tuple[int, ...]) -> Any:
    """A read-only view of an array, repeated to fill a shape; as `numpy.broadcast_to`.

    Args:
        xp: NumPy or a module like it.
        x: an array.
        dims: the shape.

    Raises:
        ValueError: if it does not broadcast.
    """
    if xp is not np:
        return xp.broadcast_to(x, dims)
    if (x.shape and not dims) or min(dims, default=0) < 0:
        raise ValueError(f"{x.shape} does not broadcast to {dims}")  # An iterator takes them.
    with np.nditer(x, _FLAGS, _READING, itershape=dims, order="C") as views:
        return views.itviews[0]
