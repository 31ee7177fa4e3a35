"""Gradients by complex inputs, held against differences along both axes of the plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import flowbook as fb
from tests.differences import numeric_gradient
from tests.interpreter import evaluate

STEP = 1e-6


def check_complex_gradient(
    function: Callable[..., Any], inputs: Sequence[np.ndarray], twice: bool = True
) -> None:
    """Check the first gradients of a function of complex tensors, and the second ones.

    The gradient of a real loss is its derivative by the real part, plus i times that by the
    imaginary part.
    """
    with fb.Graph().as_default():
        xs = [fb.placeholder(fb.complex128, np.shape(x)) for x in inputs]
        feeds = dict(zip(xs, inputs, strict=True))
        found = function(*xs)
        outputs = found if isinstance(found, list) else [found]
        loss = _sum(outputs, _weights(outputs, feeds, seed=1))
        loss += _sum(outputs, [0.25 * fb.conj(output) for output in outputs])
        first = fb.gradients(loss, xs)
        for x, slope in zip(xs, evaluate(first, feeds), strict=True):
            _compare(slope, numeric_gradient(loss, x, feeds, STEP, (1, 1j)), 1e-6)
        if twice:
            weights = _weights(first, feeds, seed=2)
            second = fb.gradients(_sum(first, weights), xs)
            # As in `test_second_gradient` of `test_op_cases.py`: of a product it is the real part
            # that counts, and so the weights' conjugates along which the gradient changes.
            along = list(zip(xs, map(np.conj, weights), strict=True))
            behind, ahead = (
                evaluate(first, {x: feeds[x] + sign * STEP * w for x, w in along})
                for sign in (-1, 1)
            )
            for curvature, a, b in zip(evaluate(second, feeds), behind, ahead, strict=True):
                _compare(curvature, (b - a) / (2 * STEP), 1e-4)


def _weights(outputs: Sequence[Any], feeds: dict[Any, Any], seed: int) -> list[np.ndarray]:
    """For each output, complex numbers of its shape, of which no two are alike."""
    random = np.random.default_rng(seed)
    return [
        random.uniform(0.5, 1.5, value.shape) + 1j * random.uniform(-1, 1, value.shape)
        for value in evaluate(list(outputs), feeds)
    ]


def _sum(outputs: Sequence[Any], weights: Sequence[Any]) -> Any:
    """A real number that looks at every part of each output differently."""
    products = [output * weight for output, weight in zip(outputs, weights, strict=True)]
    return fb.add_n([fb.reduce_sum(fb.cast(product, fb.float64)) for product in products])


def _compare(found: np.ndarray, wanted: np.ndarray, rtol: float) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=rtol * max(np.abs(wanted).max(), 1.0))
