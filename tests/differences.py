"""Gradients by differences: what registered ones are held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from flowbook.graph.model.tensor import Tensor
from tests.interpreter import function_of


def numeric_gradient(
    loss: Tensor,
    at: Tensor,
    feeds: Mapping[Tensor, np.ndarray],
    step: float,
    directions: Sequence[complex] = (1,),
) -> np.ndarray:
    """A real number's derivative by each element of what a tensor is fed with.

    Args:
        directions: the axes of the numbers' plane along which each element is moved: of complex
            ones 1 and 1j, whose derivatives are the gradient's real and imaginary part.
    """
    losses, start = function_of(at, loss, feeds), feeds[at]
    found = np.zeros(start.shape, np.result_type(*directions, float))
    for place in np.ndindex(start.shape):
        for direction in directions:
            ends = []
            for sign in (1, -1):
                moved = start.copy()
                moved[place] += sign * direction * step
                ends.append(float(losses(moved)))
            found[place] += direction * (ends[0] - ends[1]) / (2 * step)
    return found
