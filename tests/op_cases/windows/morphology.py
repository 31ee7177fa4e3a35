"""Greyscale morphology: windows one by one, in plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.ops.basis.joining import stack
from flowbook.graph.ops.windows import morphology
from tests.op_cases.case import Case

RANDOM = np.random.default_rng(5)
# Multiples of 1/8, which all dtypes hold; and filters that make all sums of both different, since a
# numeric gradient sees more than the first of equal maxima.
IMAGES = RANDOM.permutation(2 * 5 * 6 * 2).reshape(2, 5, 6, 2) / 8
COARSE = RANDOM.permutation(3 * 2 * 2).reshape(3, 2, 2) / 8
FILTERS = COARSE + RANDOM.permutation(3 * 2 * 2).reshape(3, 2, 2) / 128


def _places(
    x: np.ndarray, w: np.ndarray, stride: Any, rate: Any, padding: str
) -> list[tuple[Any, list[tuple[Any, Any]]]]:
    """Each window's place among the outputs, and the elements that it covers."""
    sides = []
    for axis in (0, 1):
        length, size = x.shape[1 + axis], (w.shape[axis] - 1) * rate[axis] + 1
        if padding == "SAME":
            count = -(-length // stride[axis])
            start = -(max((count - 1) * stride[axis] + size - length, 0) // 2)
        else:
            count, start = (length - size) // stride[axis] + 1, 0
        sides.append([start + k * stride[axis] for k in range(count)])
    found = []
    for i, top in enumerate(sides[0]):
        for j, left in enumerate(sides[1]):
            covered = [
                ((a, b), (top + a * rate[0], left + b * rate[1]))
                for a in range(w.shape[0])
                for b in range(w.shape[1])
            ]
            inside = [
                (k, (y, z)) for k, (y, z) in covered if 0 <= y < x.shape[1] and 0 <= z < x.shape[2]
            ]
            found.append(((i, j), inside))
    return found


def _dilation(x: np.ndarray, w: np.ndarray, *how: Any) -> np.ndarray:
    places = _places(x, w, *how)
    result = np.zeros((len(x), *(n + 1 for n in places[-1][0]), x.shape[3]))
    for (i, j), inside in places:
        result[:, i, j] = np.max([x[:, y, z] + w[k] for k, (y, z) in inside], axis=0)
    return result


def _chosen(
    x: np.ndarray, w: np.ndarray, of_x: np.ndarray, of_w: np.ndarray, *how: Any
) -> np.ndarray:
    """The sums of what stands in two others where each window's maximum lies."""
    places = _places(x, w, *how)
    result = np.zeros((len(x), *(n + 1 for n in places[-1][0]), x.shape[3]))
    for (i, j), inside in places:
        for b, c in np.ndindex(len(x), x.shape[3]):
            values = [x[b, y, z, c] + w[(*k, c)] for k, (y, z) in inside]
            k, (y, z) = inside[int(np.argmax(values))]
            result[b, i, j, c] = of_x[b, y, z, c] + of_w[(*k, c)]
    return result


def _gradients(x: np.ndarray, w: np.ndarray, dy: np.ndarray, *how: Any) -> Any:
    dx, dw = np.zeros(x.shape), np.zeros(w.shape)
    for (i, j), inside in _places(x, w, *how):
        for b in range(len(x)):
            for c in range(x.shape[3]):
                values = [x[b, y, z, c] + w[(*k, c)] for k, (y, z) in inside]
                k, (y, z) = inside[int(np.argmax(values))]
                dx[b, y, z, c] += dy[b, i, j, c]
                dw[(*k, c)] += dy[b, i, j, c]
    return dx, dw


HOW = {
    "valid": ((1, 1), (1, 1), "VALID"),
    "same": ((1, 1), (1, 1), "SAME"),
    "strides": ((2, 3), (1, 1), "SAME"),
    "dilations": ((1, 2), (2, 3), "SAME"),
    "both": ((2, 1), (1, 4), "VALID"),
}


def _four(pair: tuple[int, int]) -> list[int]:
    return [1, *pair, 1]


CASES = [
    *(
        Case(
            "Dilation2D",
            lambda x, w, how=how: morphology.dilation2d(x, w, *how),
            [IMAGES, FILTERS],
            lambda x, w, how=how: _dilation(x, w, *how),
            [0, 1],
            empty=[IMAGES[:0], FILTERS],
            tensorflow=lambda tf, x, w, how=how: tf.compat.v1.nn.dilation2d(
                tf.constant(x), tf.constant(w), _four(how[0]), _four(how[1]), how[2]
            ),
            note=note,
        )
        for note, how in HOW.items()
    ),
    # Composed: it goes under the type of a last stack.
    *(
        Case(
            "Stack",
            lambda x, w, how=how: stack([morphology.erosion2d(x, w, *how)]),
            [IMAGES, FILTERS],
            lambda x, w, how=how: -_dilation(-x, w[::-1, ::-1], *how)[None],
            [0, 1],
            only=FLOATS,
            tensorflow=lambda tf, x, w, how=how: tf.stack(
                [
                    tf.compat.v1.nn.erosion2d(
                        tf.constant(x), tf.constant(w), _four(how[0]), _four(how[1]), how[2]
                    )
                ]
            ),
            note=f"erosion2d-{note}",
        )
        for note, how in HOW.items()
    ),
    *(
        Case(
            "Dilation2DGrad",
            lambda x, w, dy, how=how: morphology.dilation_gradient_op(
                x, w, dy, strides=how[0], dilations=how[1], padding=how[2]
            ),
            [images, filters, dy],
            lambda x, w, dy, how=how: _gradients(x, w, dy, *how),
            [2],
            tensorflow=lambda tf, x, w, dy, how=how: [
                kind(
                    input=x,
                    filter=w,
                    out_backprop=dy,
                    strides=_four(how[0]),
                    rates=_four(how[1]),
                    padding=how[2],
                )
                for kind in (
                    tf.raw_ops.Dilation2DBackpropInput,
                    tf.raw_ops.Dilation2DBackpropFilter,
                )
            ],
            note=note,
        )
        # The second with as many maxima as there are elements: the first ones count.
        for note, images, filters, how in (
            ("some", IMAGES, COARSE, HOW["strides"]),
            ("equal", np.ones((1, 3, 4, 1)), np.zeros((2, 2, 1)), HOW["same"]),
        )
        for shape in [_dilation(images, filters, *how).shape]
        for dy in [np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)]
    ),
    *(
        Case(
            "Dilation2DGradGrad",
            lambda x, w, of_x, of_w, how=how: morphology.dilation_choice_op(
                x, w, of_x, of_w, strides=how[0], dilations=how[1], padding=how[2]
            ),
            [images, filters, images[::-1] + 1, filters[::-1] + 1],
            lambda x, w, of_x, of_w, how=how: _chosen(x, w, of_x, of_w, *how),
            [2, 3],
            note=note,
        )
        for note, images, filters, how in (
            ("some", IMAGES, FILTERS, HOW["strides"]),
            ("equal", np.arange(12.0).reshape(1, 3, 4, 1) // 4, np.zeros((2, 2, 1)), HOW["same"]),
        )
    ),
]
