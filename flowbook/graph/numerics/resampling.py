"""Images resampled to another size: which pixels a new one is made of, and with what weights.

Height and width are treated one after the other. Along each, a new pixel is a weighted sum of a few
old ones, its taps; so resizing is linear, and its adjoint, which the gradient needs, has the same
taps. Where pixels lie and what they weigh is TensorFlow 1's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Taps = tuple[NDArray[np.intp], NDArray[np.float64]]
"""Indices of old pixels and their weights, both [taps, new size], indices rising in each row."""

METHODS = ("bilinear", "nearest", "bicubic", "area")


def resample(
    xp: Any, images: Any, size: tuple[int, int], method: str, align: bool, half: bool
) -> Any:
    """Resize images.

    Args:
        xp: NumPy or a module like it.
        images: [batch, height, width, channels].
        size: the new height and width.
        method: one of `METHODS`; all but "nearest" want floating-point images.
        align: whether the centres of corner pixels stay where they are.
        half: whether pixels are squares around their centres, not the points of a grid.
    """
    result = images
    for axis, new in zip((1, 2), size, strict=True):
        old = result.shape[axis]
        # Where the sizes agree, all methods leave every pixel what it is.
        if old != new:
            result = _along(xp, result, axis, taps(method, old, new, align, half))
    return result.copy() if result is images else result


def resample_adjoint(
    xp: Any, dy: Any, size: tuple[int, int], method: str, align: bool, half: bool
) -> Any:
    """The adjoint of `resample` for images of the given height and width."""
    result = dy
    for axis, old in zip((1, 2), size, strict=True):
        new = result.shape[axis]
        if old != new:
            found = taps(method, old, new, align, half)
            result = _along_adjoint(xp, result, axis, old, found)
    return result.copy() if result is dy else result


def _along(xp: Any, images: Any, axis: int, found: Taps) -> Any:
    indices, weights = found
    if len(indices) == 1 and (weights == 1).all():
        return xp.take(images, xp.asarray(indices[0]), axis=axis)
    working = _working(images)
    total = None
    for index, weight in zip(xp.asarray(indices), xp.asarray(weights), strict=True):
        part = xp.take(working, index, axis=axis)
        part *= _shaped(weight, axis, working)
        total = part if total is None else xp.add(total, part, out=total)
    return total.astype(images.dtype, copy=False)  # type: ignore[union-attr]


def _along_adjoint(xp: Any, dy: Any, axis: int, old: int, found: Taps) -> Any:
    working = _working(dy)
    dims = list(dy.shape)
    dims[axis] = old
    total = xp.zeros(dims, working.dtype)
    place: list[Any] = [slice(None)] * dy.ndim
    indices, weights = found
    for index, weight in zip(indices, xp.asarray(weights), strict=True):
        # Indices rise, so that new pixels of one old pixel lie together.
        of, first = (xp.asarray(found) for found in np.unique(index, return_index=True))
        place[axis] = of
        total[tuple(place)] += xp.add.reduceat(
            working * _shaped(weight, axis, working), first, axis=axis
        )
    return total.astype(dy.dtype, copy=False)


def _working(images: Any) -> Any:
    return images.astype(np.float32) if images.dtype == np.float16 else images


def _shaped(weight: Any, axis: int, like: Any) -> Any:
    return weight.astype(like.dtype).reshape((-1,) + (1,) * (like.ndim - axis - 1))


@lru_cache(maxsize=64)
def taps(method: str, old: int, new: int, align: bool, half: bool) -> Taps:
    """What new pixels along one axis are made of."""
    last = old - 1
    if method == "nearest":
        return _nearest(old, new, align, half)
    scale = last / (new - 1) if align and new > 1 else old / new
    if method == "area":
        return _area(old, new, scale)
    at = np.arange(new, dtype=np.float64)
    at = (at + 0.5) * scale - 0.5 if half else at * scale
    first = np.floor(at)
    if method == "bilinear":
        beyond = at - first
        places = np.stack([first, np.ceil(at)])
        return _bounded(places, last), np.stack([1 - beyond, beyond])
    return _bicubic(first, at - first, last, half)


def _bounded(places: Any, last: int) -> NDArray[np.intp]:
    found: NDArray[np.intp] = np.clip(places, 0, last).astype(np.intp)
    return found


def _nearest(old: int, new: int, align: bool, half: bool) -> Taps:
    # In float32, as TensorFlow has it: which side of a border it falls to depends on that.
    at = np.arange(new, dtype=np.float32)
    if align and new > 1:
        at = at * (np.float32(old - 1) / np.float32(new - 1))
        # Halves are rounded away from zero.
        place = np.floor(at + np.float32(0.5))
    else:
        scale = np.float32(old) / np.float32(new)
        place = np.floor((at + np.float32(0.5)) * scale if half else at * scale)
    return _bounded(place[None], old - 1), np.ones((1, new))


# TensorFlow reads cubic weights from a table of so many steps from one pixel to the next.
_STEPS = 1024


def _bicubic(first: Any, beyond: Any, last: int, half: bool) -> Taps:
    beyond = np.rint(beyond * _STEPS) / _STEPS
    # Keys' kernel where pixels are squares; the older, steeper one otherwise.
    a = -0.5 if half else -0.75
    weights = np.stack(
        [_outer(1 + beyond, a), _inner(beyond, a), _inner(1 - beyond, a), _outer(2 - beyond, a)]
    )
    places = first + np.arange(-1, 3)[:, None]
    if half:
        # What lies outside counts for nothing, and the others for so much more.
        weights = np.where((places >= 0) & (places <= last), weights, 0)
        weights = weights / weights.sum(axis=0)
    return _bounded(places, last), weights


def _inner(x: Any, a: float) -> Any:
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _outer(x: Any, a: float) -> Any:
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def _area(old: int, new: int, scale: float) -> Taps:
    if scale == 0:
        # The corners of a single pixel, aligned: every new one is that pixel.
        return np.zeros((1, new), np.intp), np.ones((1, new))
    low = np.arange(new) * scale
    high = low + scale
    most = int(np.max(np.ceil(high) - np.floor(low), initial=1))
    places = np.floor(low) + np.arange(most)[:, None]
    shares = np.minimum(places + 1, high) - np.maximum(places, low)
    return _bounded(places, old - 1), np.maximum(shares, 0) / scale
