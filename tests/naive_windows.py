"""Convolutions and pools by their definitions: one window, one element of it at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def output_and_before(n: int, k: int, stride: int, gap: int, padding: Any) -> tuple[int, int]:
    """How many windows there are along an axis, and the padding before it."""
    span = gap * (k - 1) + 1
    if padding == "VALID":
        padding = (0, 0)
    if padding == "SAME":
        count = int(np.ceil(n / stride))
        return count, max(0, stride * (count - 1) + span - n) // 2
    starts = range(-padding[0], n + padding[1] - span + 1, stride)
    return len(starts), padding[0]


def layout(
    dims: Any, ksize: Any, strides: Any, padding: Any, dilations: Any
) -> tuple[tuple[int, ...], Iterator[tuple[Any, Any, Any]]]:
    """The output's dimensions, and (window, place in it, element) for all that is no padding."""
    pads = padding if not isinstance(padding, str) else [padding] * len(dims)
    found = [output_and_before(*a) for a in zip(dims, ksize, strides, dilations, pads, strict=True)]
    outputs = tuple(count for count, _ in found)

    def visit() -> Iterator[tuple[Any, Any, Any]]:
        for window in itertools.product(*map(range, outputs)):
            for place in itertools.product(*map(range, ksize)):
                element = tuple(
                    w * s + p * d - before
                    for w, s, p, d, (_, before) in zip(
                        window, strides, place, dilations, found, strict=True
                    )
                )
                if all(0 <= e < n for e, n in zip(element, dims, strict=True)):
                    yield window, place, element

    return outputs, visit()


def at(index: Any) -> Any:
    """An index of all examples and all channels."""
    return (slice(None), *index)


def convolution(x: Array, w: Array, strides: Any, padding: Any, dilations: Any) -> Array:
    outputs, visit = layout(x.shape[1:-1], w.shape[:-2], strides, padding, dilations)
    result = np.zeros((len(x), *outputs, w.shape[-1]))
    for window, place, element in visit:
        result[at(window)] += x[at(element)] @ w[place]
    return result


def input_gradient(dims: Any, w: Array, dy: Array, strides: Any, padding: Any, gaps: Any) -> Array:
    _, visit = layout(dims[1:-1], w.shape[:-2], strides, padding, gaps)
    result = np.zeros(dims)
    for window, place, element in visit:
        result[at(element)] += dy[at(window)] @ w[place].T
    return result


def filter_gradient(x: Array, dims: Any, dy: Array, strides: Any, padding: Any, gaps: Any) -> Array:
    _, visit = layout(x.shape[1:-1], dims[:-2], strides, padding, gaps)
    result = np.zeros(dims)
    for window, place, element in visit:
        result[place] += x[at(element)].T @ dy[at(window)]
    return result


def depthwise(x: Array, w: Array, strides: Any, padding: Any, dilations: Any) -> Array:
    outputs, visit = layout(x.shape[1:-1], w.shape[:-2], strides, padding, dilations)
    result = np.zeros((len(x), *outputs, *w.shape[-2:]))
    for window, place, element in visit:
        result[at(window)] += x[at(element)][..., None] * w[place]
    return result.reshape(*result.shape[:-2], -1)


def depthwise_input_gradient(
    dims: Any, w: Array, dy: Array, strides: Any, padding: Any, gaps: Any
) -> Array:
    _, visit = layout(dims[1:-1], w.shape[:-2], strides, padding, gaps)
    result = np.zeros(dims)
    dy = dy.reshape(*dy.shape[:-1], *w.shape[-2:])
    for window, place, element in visit:
        result[at(element)] += (dy[at(window)] * w[place]).sum(-1)
    return result


def depthwise_filter_gradient(
    x: Array, dims: Any, dy: Array, strides: Any, padding: Any, gaps: Any
) -> Array:
    _, visit = layout(x.shape[1:-1], dims[:-2], strides, padding, gaps)
    result = np.zeros(dims)
    dy = dy.reshape(*dy.shape[:-1], *dims[-2:])
    for window, place, element in visit:
        result[place] += (x[at(element)][..., None] * dy[at(window)]).sum(0)
    return result


def gathered(
    x: Array, ksize: Any, strides: Any, padding: Any, gaps: Any
) -> tuple[tuple[int, ...], dict[Any, list[Any]]]:
    """For each window of a pool the elements that it holds, in order."""
    outputs, visit = layout(x.shape, ksize, strides, padding, gaps)
    found: dict[Any, list[Any]] = {w: [] for w in itertools.product(*map(range, outputs))}
    for window, _, element in visit:
        found[window].append(element)
    return outputs, found


def max_pool(x: Array, *how: Any) -> tuple[Array, Array]:
    """The maxima, and the flat index of the first of each."""
    outputs, windows = gathered(x, *how)
    result, index = np.zeros(outputs), np.zeros(outputs, np.int64)
    for window, elements in windows.items():
        values = [x[e] for e in elements]
        best = int(np.argmax(values))
        result[window] = values[best]
        index[window] = np.ravel_multi_index(elements[best], x.shape)
    return result, index


def max_pool_gradient(x: Array, dy: Array, *how: Any) -> Array:
    result = np.zeros(x.size)
    np.add.at(result, max_pool(x, *how)[1].ravel(), dy.ravel())
    return result.reshape(x.shape)


def avg_pool(x: Array, *how: Any) -> Array:
    outputs, windows = gathered(x, *how)
    result = np.zeros(outputs)
    for window, elements in windows.items():
        result[window] = np.mean([x[e] for e in elements])
    return result


def avg_pool_gradient(dims: Any, dy: Array, *how: Any) -> Array:
    result = np.zeros(dims)
    for window, elements in gathered(result, *how)[1].items():
        for e in elements:
            result[e] += dy[window] / len(elements)
    return result
