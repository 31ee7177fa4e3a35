"""Do the systems compute the same?  Asked before any time is believed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

# Whose value is the reference, in this order: the plainest implementation first, ours never
# while there is another.
_REFERENCES = ("numpy", "tf1", "torch", "jax", "flowbook")


def disagreements(
    values: Mapping[str, npt.NDArray[Any]], rtol: float, atol: float
) -> dict[str, str]:
    """Say for each label how its value differs from the reference; empty if all agree.

    >>> disagreements({"numpy": np.ones(2), "flowbook": np.ones(2)}, 1e-5, 1e-6)
    {}
    >>> disagreements({"numpy": np.ones(2), "flowbook": np.zeros(2)}, 1e-5, 1e-6)
    {'flowbook': 'differs from numpy by up to 1'}
    """
    if not values:
        return {}
    reference = min(values, key=lambda label: (_REFERENCES.index(label.split()[0]), label))
    expected = values[reference]
    found = {}
    for label, value in values.items():
        if value.shape != expected.shape:
            found[label] = f"has shape {value.shape}, {reference} {expected.shape}"
        elif not np.all(np.isfinite(value)):
            found[label] = "is not finite"
        elif not np.allclose(value, expected, rtol=rtol, atol=atol):
            found[label] = f"differs from {reference} by up to {np.max(np.abs(value - expected)):g}"
    return found
