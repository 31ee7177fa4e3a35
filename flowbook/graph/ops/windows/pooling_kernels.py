"""Kernels of pools: they go over the places of the window, not over the windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.ops.windows.convolution_kernels import chunks
from flowbook.graph.ops.windows.windows import AxisWindows, Padding, laid, taps

Ints = tuple[int, ...]


# Where windows lie takes as long to find as a small pool takes to compute.
@lru_cache(maxsize=256)
def placed(
    dims: Ints, ksize: Ints, strides: Ints, padding: Padding, dilations: Ints
) -> tuple[AxisWindows, ...]:
    """The windows along each axis of an array of shape `dims`."""
    if len(dims) != len(ksize):
        raise InvalidArgumentError(
            f"windows {list(ksize)} are for {len(ksize)} dimensions, [batch, ..., channels], "
            f"not for the shape {list(dims)}"
        )
    return laid(dims, ksize, strides, dilations, padding)


def check_pooled(what: str, found: Any, windows: Any) -> None:
    """See that something has the shape of a pool's output."""
    expected = tuple(w.output for w in windows)
    if found.shape != expected:
        raise InvalidArgumentError(
            f"the pool's output has the shape {list(expected)}, but {what} {list(found.shape)}"
        )


class _Step(NamedTuple):
    """One array made of parts of another.

    Attributes:
        dims: the shape of the array.
        firsts: two parts of the source that go to all of it, if there are two.
        others: which part of the array takes which further part of the source.
    """

    dims: Ints
    firsts: Sequence[Any]
    others: Sequence[tuple[Any, Any]]


def _along_each(xp: Any, combine: Any, neutral: Any, input: Any, windows: Any) -> Any:
    """Combine the elements of each window by a ufunc; of none, `neutral` is what that gives."""
    result = input
    for dims, firsts, others in _steps(windows):
        source = result
        if firsts:
            first, second = firsts
            result = combine(source[first], source[second])
        else:
            result = xp.full(dims, neutral, dtype=source.dtype)
        for outputs, sources in others:
            target = result[outputs]
            combine(target, source[sources], out=target)
    return input.copy() if result is input else result


# Places of such windows.
_AT_ONCE = 4


@lru_cache(maxsize=256)
def _steps(windows: tuple[AxisWindows, ...]) -> Sequence[_Step]:
    """Windows are combined along one axis after the other: so many parts as sizes add up to.

    Small ones that do not overlap are combined at once: an array between the axes would save
    nothing then, and costs a tenth.
    """
    outputs = tuple(w.output for w in windows)
    is_small = 1 < prod(w.size for w in windows) <= _AT_ONCE
    if is_small and all(w.size <= w.stride for w in windows):
        return [_step(outputs, [(out, into) for _, out, into in taps(windows)])]
    found = []
    for axis, w in enumerate(windows):
        if not w.is_trivial:
            dims = (*outputs[: axis + 1], *(v.input for v in windows[axis + 1 :]))
            before = (slice(None),) * axis
            along = [w.tap(k) for k in range(w.size)]
            found.append(_step(dims, [((*before, out), (*before, into)) for out, into in along]))
    return found


def _step(dims: Ints, places: Sequence[tuple[Any, Any]]) -> _Step:
    # Two parts that go to all of the result make it; it needs no neutral elements first.
    whole = [p for p in places if all(map(_is_all, p[0], dims))]
    firsts = whole[:2] if len(whole) > 1 else []
    return _Step(dims, [sources for _, sources in firsts], [p for p in places if p not in firsts])


def _is_all(part: slice, length: int) -> bool:
    return part in (slice(None), slice(0, length))


def _lowest(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def max_pool(xp: Any, input: Any, **how: Any) -> Any:
    """The maxima of the windows."""
    windows = placed(input.shape, **how)
    return _along_each(xp, xp.maximum, _lowest(input.dtype), input, windows)


def _first_maxima(xp: Any, input: Any, output: Any, windows: Any) -> Iterator[Any]:
    """For each place of a window where the windows' first maximum lies there.

    Yields, in chunks of the batch, outputs' and inputs' slices, and the truth for those windows.
    """
    # Where the maximum is NaN, the first NaN is it; elsewhere there is none.
    has_nan = output.dtype.kind == "f" and bool(xp.isnan(output).any())
    places = list(taps(windows[1:]))
    for n, images in chunks(len(output), output[:1].nbytes):
        some = slice(n, n + images)
        free = xp.ones(output[some].shape, np.bool_)
        for _, outputs, sources in places:
            values, still = input[(some, *sources)], free[(slice(None), *outputs)]
            is_first = xp.equal(values, output[(some, *outputs)])
            if has_nan:
                is_first |= xp.isnan(values)
            is_first &= still
            still ^= is_first
            yield (some, *outputs), (some, *sources), is_first


def _where(xp: Any, truth: Any, values: Any) -> Any:
    """The bits of the values where that is true, and of zero elsewhere.

    By bits it is several times as fast as by `where`; a product would make NaN of infinity.
    """
    mask = xp.negative(truth.view(np.int8)).astype(f"i{values.dtype.itemsize}")
    return xp.bitwise_and(values.view(mask.dtype), mask, out=mask)


def max_pool_gradient(xp: Any, orig_input: Any, orig_output: Any, grad: Any, **how: Any) -> Any:
    """Each gradient where the first maximum of its window lies."""
    windows = placed(orig_input.shape, **how)
    check_pooled("an argument", orig_output, windows)
    check_pooled("its gradient", grad, windows)
    result = xp.zeros(orig_input.shape, grad.dtype)
    for outputs, sources, is_first in _first_maxima(xp, orig_input, orig_output, windows):
        result[sources] += _where(xp, is_first, grad[outputs]).view(grad.dtype)
    return result


def _chosen(xp: Any, input: Any, output: Any, values: Any, windows: Any) -> Any:
    """The values at the windows' first maxima."""
    result = xp.zeros(output.shape, f"i{values.dtype.itemsize}")
    for outputs, sources, is_first in _first_maxima(xp, input, output, windows):
        result[outputs] |= _where(xp, is_first, values[sources])
    return result.view(values.dtype)


def max_pool_choice(xp: Any, orig_input: Any, orig_output: Any, values: Any, **how: Any) -> Any:
    """The values that lie where the windows' first maxima do."""
    windows = placed(orig_input.shape, **how)
    check_pooled("an argument", orig_output, windows)
    if values.shape != orig_input.shape:
        raise InvalidArgumentError(
            f"values of shape {list(values.shape)} for an input of {list(orig_input.shape)}"
        )
    return _chosen(xp, orig_input, orig_output, values, windows)


def max_pool_with_argmax(xp: Any, input: Any, include_batch_in_index: bool, **how: Any) -> Any:
    """The maxima, and the index of the first of each."""
    windows = placed(input.shape, **how)
    output = max_pool(xp, input, **how)
    index = xp.arange(input.size, dtype=np.int64).reshape(input.shape)
    if not include_batch_in_index:
        index = xp.broadcast_to(index[:1], input.shape)
    return output, _chosen(xp, input, output, index, windows)


@lru_cache(maxsize=256)
def _counts(xp: Any, windows: Any, dtype: Any) -> Any:
    """How many elements that exist each window has, shaped to broadcast."""
    if all(w.tap(k)[0] == slice(0, w.output) for w in windows for k in range(w.size)):
        return dtype.type(prod(w.size for w in windows))
    result = xp.ones((1,) * len(windows), dtype)
    for axis, w in enumerate(windows):
        if w.is_trivial:
            continue
        count = xp.zeros(w.output, dtype)
        for k in range(w.size):
            count[w.tap(k)[0]] += 1
        result = result * count.reshape([-1 if i == axis else 1 for i in range(len(windows))])
    return result


def _wide(dtype: Any) -> Any:
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def avg_pool(xp: Any, input: Any, **how: Any) -> Any:
    """The means of those elements of the windows that exist."""
    windows = placed(input.shape, **how)
    x = input.astype(_wide(input.dtype), copy=False)
    total = _along_each(xp, xp.add, 0, x, windows)
    total *= xp.reciprocal(_counts(xp, windows, x.dtype))
    return total.astype(input.dtype, copy=False)


def avg_pool_gradient(xp: Any, orig_input_shape: Any, grad: Any, **how: Any) -> Any:
    """Each gradient in equal parts on the elements of its window."""
    windows = placed(tuple(orig_input_shape.tolist()), **how)
    check_pooled("its gradient", grad, windows)
    dtype = _wide(grad.dtype)
    result = xp.divide(grad, _counts(xp, windows, dtype), dtype=dtype)
    for axis, w in enumerate(windows):
        if w.is_trivial:
            continue
        source = result
        result = xp.zeros((*source.shape[:axis], w.input, *source.shape[axis + 1 :]), dtype)
        before = (slice(None),) * axis
        for k in range(w.size):
            outputs, sources = w.tap(k)
            result[(*before, sources)] += source[(*before, outputs)]
    return result.astype(grad.dtype, copy=False)
