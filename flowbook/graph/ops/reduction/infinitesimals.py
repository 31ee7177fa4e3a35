"""Numbers with infinitesimal parts t1, t2, ... of which no square counts, for derivatives.

Such a number is a list of arrays, its coefficients; the one at a place belongs to the product of
those t whose bits the place has. What a function of `x + t1 d1 + t2 d2 + ...` has last is its
derivative along all directions d1, d2, ...: symmetric in them, and linear in each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowbook.graph.model.tensor import Tensor

Number = list[Any]


def moved(xp: Any, x: Any, directions: Sequence[Any]) -> Number:
    """`x + t1 d1 + t2 d2 + ...`."""
    found = [xp.zeros_like(x)] * 2 ** len(directions)
    for place, row in enumerate((x, *directions)):
        found[1 << place >> 1] = row
    return found


def product(x: Number, y: Number) -> Number:
    """The product of two numbers."""
    return [_together(x, y, place) for place in range(len(x))]


def quotient(x: Number, y: Number) -> Number:
    """The quotient of two numbers, the second of which is not infinitesimal."""
    found: Number = []
    for place in range(len(x)):
        rest = x[place]
        if place:
            rest = rest - _together([*found, 0.0], y, place)
        found.append(rest / y[0])
    return found


def _together(x: Number, y: Number, place: int) -> Any:
    """One coefficient of a product."""
    part, total = place, x[place] * y[0]
    while part:
        part = (part - 1) & place
        total = total + x[part] * y[place ^ part]
    return total


def gradients_along(
    derivative: Callable[[list[Tensor]], Tensor], directions: list[Tensor], dy: Tensor
) -> list[Tensor]:
    """The gradients of a derivative along directions: by where it is taken, and by each of these.

    As derivatives are symmetric, `dy` joins the directions or replaces one of them.

    Args:
        derivative: builds the derivative along some directions.
        directions: those of the operation.
        dy: the gradient of its result.
    """
    replaced = [
        derivative([*directions[:k], dy, *directions[k + 1 :]]) for k in range(len(directions))
    ]
    return [derivative([*directions, dy]), *replaced]
