"""Poisson variates, with the values of TensorFlow 1.

Below a mean of 10 uniforms are multiplied (Knuth, "The art of computer programming", volume 2,
3.4.1). From there on it is Hoermann's transformed rejection, "The transformed rejection method for
generating Poisson random variables", 1993.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from ml_dtypes import finfo
from numpy.typing import NDArray

from flowbook.graph.numerics import elementary
from flowbook.graph.numerics.hot_loop import HotLoop
from flowbook.graph.numerics.random import philox, sampling
from flowbook.graph.numerics.random.philox import Counter, Key
from flowbook.graph.numerics.random.philox_blocks import TRIAL, TRIAL_PLACES, block
from flowbook.graph.numerics.random.philox_numbers import uniforms_of

_Doubles = NDArray[np.float64]
_Places = NDArray[np.uint64]
_Scalars: TypeAlias = tuple[int, ...]

# Means from here on are drawn by rejection.
_MANY = 10


def poisson(key: Key, counter: Counter, lam: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Draw Poisson variates of the given means.

    Args:
        key: of the stream.
        counter: where the draw begins.
        lam: not negative, already broadcast to the result's shape.
        dtype: of the result; variates beyond its greatest value become that.
    """
    flat = lam.astype(np.float64).reshape(-1)
    start = philox.scalars(key, counter)

    def first_tries(places: _Places, part: slice) -> tuple[Any, NDArray[np.bool_]]:
        mean = flat[part]
        found, is_done = np.empty_like(mean), np.empty(mean.size, bool)
        for rows, (first_try, _) in _by_method(mean):
            found[rows], is_done[rows] = first_try(start, places[rows], mean[rows])
        return _limited(found, dtype), is_done

    def more_tries(places: _Places, at: NDArray[np.intp]) -> Any:
        mean = flat[at]
        found = np.empty_like(mean)
        for rows, (_, more_tries) in _by_method(mean):
            found[rows] = more_tries(start, places[rows], mean[rows])
        return _limited(found, dtype)

    return sampling.sampled(first_tries, more_tries, lam.shape, dtype)


def _by_method(mean: _Doubles) -> Iterator[tuple[Any, tuple[Callable[..., Any], ...]]]:
    """The rows for each method, of which there may be none."""
    many = mean >= _MANY
    if many.all():
        yield slice(None), (_many_at_first, _many)
    elif not many.any():
        yield slice(None), (_few_at_first, _few)
    else:
        yield np.flatnonzero(many), (_many_at_first, _many)
        yield np.flatnonzero(~many), (_few_at_first, _few)


def _limited(found: _Doubles, dtype: np.dtype[Any]) -> NDArray[Any]:
    greatest = np.iinfo(dtype).max if dtype.kind in "iu" else float(finfo(dtype).max)  # type: ignore[no-untyped-call]
    # As float64 the greatest int64 is one more than itself.
    inside = found < float(greatest)
    limited = np.where(inside, found, 0).astype(dtype)
    limited[~inside] = greatest
    return limited


# ---- small means

_AT_ONCE = 4
"""So many blocks, two uniforms each, a turn multiplies."""


def _multiply(
    index: Any, key0: Any, key1: Any, low: Any, high: Any, place: Any, limit: Any, product: Any
) -> Any:
    """How many of the next uniforms keep the product above its limit, and the product of all."""
    limit, product = limit.view(np.float64), product.view(np.float64)
    found = 0.0
    for ahead in range(_AT_ONCE):
        for uniform in reversed(uniforms_of(*block(place + ahead, key0, key1, low, high))):
            product = product * uniform
            found = (limit < product) + found
    return found, product


_products = HotLoop(
    "Poisson variates of small means",
    _multiply,
    makes=np.float64,
    width=2,
    scalars=4,
    arrays=3,
    trial=(
        *TRIAL,
        TRIAL_PLACES,
        np.linspace(0, 1, 1000).view(np.uint64),
        np.linspace(1, 0, 1000).view(np.uint64),
    ),
)


def _few_at_first(
    start: _Scalars, places: _Places, mean: _Doubles
) -> tuple[_Doubles, NDArray[np.bool_]]:
    limit = np.exp(-mean)
    found, product = _run(_products, start, places, limit, np.ones_like(mean))
    return found, product <= limit


def _few(start: _Scalars, places: _Places, mean: _Doubles) -> _Doubles:
    """How many uniforms can be multiplied until they fall to exp(-mean); so does TensorFlow."""
    limit, found, product = np.exp(-mean), np.zeros_like(mean), np.ones_like(mean)
    rows = np.arange(mean.size)
    while rows.size:
        further, product = _run(_products, start, places, limit, product)
        found[rows] += further
        # Products only fall: one that is below the limit stays there.
        goes_on = np.flatnonzero(product > limit)
        rows, limit, product = rows[goes_on], limit[goes_on], product[goes_on]
        places = places[goes_on] + np.uint64(_AT_ONCE)
    return found


# ---- large means


def _reject(
    index: Any, key0: Any, key1: Any, low: Any, high: Any, place: Any, mean: Any
) -> tuple[Any, Any]:
    """A variate, and by how much it is accepted; it may be any number where that is negative."""
    mean = mean.view(np.float64)
    v, u = uniforms_of(*block(place, key0, key1, low, high))
    b = np.sqrt(mean) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    u = u - 0.5
    rim = 0.5 - np.absolute(u)
    k = np.floor((a * 2.0 / rim + b) * u + mean + 0.43)
    at_sight = np.minimum(rim - 0.07, 0.9277 - 3.6224 / (b - 2.0) - v)
    possible = np.minimum(k, np.maximum(rim - 0.013, rim - v))
    square = rim * rim
    height = v * (1.1328 / (b - 3.4) + 1.1239) * square / (square * b + a)
    exponent, factor = _probability(np.maximum(k, 0.0), mean)
    accepted = exponent - elementary.log(height * factor)
    return k, np.maximum(at_sight, np.minimum(possible, accepted))


_SHIFT = 8


def _probability(k: Any, mean: Any) -> tuple[Any, Any]:
    """The probability of k is exp(the first) / the second, also where k and the mean are huge.

    By Stirling's series for n!, whose relative error is 6e-12 from 8 on; n is k, or if that is less
    than 8, 8 more.
    """
    small = (k < _SHIFT) * 1.0
    n = small * _SHIFT + k
    # n! / k! / mean**(n - k), or else 1.
    least = np.minimum(k, float(_SHIFT))
    ratio = math.prod([(least + step) / mean for step in range(1, 1 + _SHIFT)])
    ratio = small * ratio + (1.0 - small)
    # n - mean - n log(n / mean): as differences of terms of its own size, not of the mean's.
    off = (n - mean) / mean
    distance = mean * ((off + 1.0) * elementary.log1p(off) - off)
    m = 1.0 / n
    square = m * m
    series = m * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680))))
    return -distance - series, np.sqrt(n * (2 * math.pi)) / ratio


_rejections = HotLoop(
    "Poisson variates of large means",
    _reject,
    makes=np.float64,
    width=2,
    scalars=4,
    arrays=2,
    trial=(
        *TRIAL,
        TRIAL_PLACES,
        np.geomspace(_MANY, 1e9, 1000).view(np.uint64),
    ),
)


def _many_at_first(
    start: _Scalars, places: _Places, mean: _Doubles
) -> tuple[_Doubles, NDArray[np.bool_]]:
    k, margin = _run(_rejections, start, places, mean)
    return k, margin >= 0


def _many(start: _Scalars, places: _Places, mean: _Doubles) -> _Doubles:
    """What is drawn after the first try."""
    found = np.empty_like(mean)
    rows = np.arange(mean.size)
    while rows.size:
        places = places + np.uint64(1)
        found[rows], margin = _run(_rejections, start, places, mean)
        again = np.flatnonzero(~(margin >= 0))
        rows, places, mean = rows[again], places[again], mean[again]
    return found


def _run(loop: HotLoop, start: _Scalars, places: _Places, *arrays: _Doubles) -> Any:
    """The two numbers that a loop makes of each element of arrays."""
    made = np.empty((places.size, 2))
    loop(made.reshape(-1), *start, places, *(array.view(np.uint64) for array in arrays))
    return made.T
