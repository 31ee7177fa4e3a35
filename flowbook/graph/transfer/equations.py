"""Products of arrays as the equations that other systems take."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any


def tensordot_equation(ranks: Sequence[int], axes: Any) -> str:
    """What an einsum takes that is a product of two arrays over some of their axes.

    Args:
        ranks: of the two.
        axes: how many of the last axes of the first one and of the first ones of the second are
            summed over, or which of each.
    """
    if isinstance(axes, int):
        first, second = range(ranks[0] - axes, ranks[0]), range(axes)
    else:
        first, second = axes
    left, right = list(ascii_lowercase[: ranks[0]]), list(ascii_lowercase[ranks[0] : sum(ranks)])
    for i, j in zip(first, second, strict=True):
        right[j % ranks[1]] = left[i % ranks[0]]
    both = {left[i % ranks[0]] for i in first}
    kept = [c for c in (*left, *right) if c not in both]
    return f"{''.join(left)},{''.join(right)}->{''.join(kept)}"
