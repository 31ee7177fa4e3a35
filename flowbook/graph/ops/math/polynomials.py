"""Polynomials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity, zeros_like_op

__all__ = ["polyval"]


@composed
def polyval(coeffs: Sequence[Any], x: Any, name: str | None = None) -> Tensor:
    """The value of a polynomial, elementwise, by Horner's rule.

    Args:
        coeffs: a list of numbers or tensors of `x`'s dtype that broadcast with it, that of the
            highest power first; zeros for an empty one.
        x: of a numeric dtype.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.polyval([2.0, 0.0, 1.0], [0.0, 3.0])))
    [ 1. 19.]
    """
    if not isinstance(coeffs, list | tuple):
        raise InvalidTypeError(f"the coefficients are a list, not {coeffs!r}")
    x = convert_to_tensor(x)
    value = zeros_like_op(x)
    for place, coefficient in enumerate(coeffs):
        value = (value * x if place else value) + coefficient
    return identity(value, name=name)
