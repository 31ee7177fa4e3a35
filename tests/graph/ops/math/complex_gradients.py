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
        loss = _loss(found if isinstance(found, list) else [found], feeds, seed=1)
        first = fb.gradients(loss, xs)
        _compare(loss, first, feeds, 1e-6)
        if twice:
            second = _loss(first, feeds, seed=2)
            _compare(second, fb.gradients(second, xs), feeds, 1e-4)


def _loss(outputs: Sequence[Any], feeds: dict[Any, Any], seed: int) -> Any:
    """A real number that looks at every part of each output differently."""
    random = np.random.default_rng(seed)
    total = fb.constant(0.0, fb.float64)
    for output, value in zip(outputs, evaluate(list(outputs), feeds), strict=True):
        weights = random.uniform(0.5, 1.5, value.shape) + 1j * random.uniform(-1, 1, value.shape)
        squares = output * fb.conj(output) if seed == 1 else output
        total += fb.reduce_sum(fb.cast(output * weights + squares * 0.25, fb.float64))
    return total


def _compare(loss: Any, gradients: Sequence[Any], feeds: dict[Any, Any], rtol: float) -> None:
    for x, gradient in zip(feeds, gradients, strict=True):
        wanted = numeric_gradient(loss, x, feeds, STEP, (1, 1j))
        scale = max(np.abs(wanted).max(), 1.0)
        np.testing.assert_allclose(evaluate(gradient, feeds), wanted, rtol=0, atol=rtol * scale)
