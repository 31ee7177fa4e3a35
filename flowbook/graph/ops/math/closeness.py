"""Whether numbers are about equal, elementwise, with NumPy's broadcasting."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity
from flowbook.graph.ops.math.arithmetic import subtract
from flowbook.graph.ops.math.comparison import equal, less, less_equal, not_equal
from flowbook.graph.ops.math.complex import abs as abs_of

__all__ = ["approximate_equal", "isclose"]


@composed
def approximate_equal(x: Any, y: Any, tolerance: float = 1e-5, name: str | None = None) -> Tensor:
    """Whether `x` and `y` differ by less than a tolerance, elementwise with broadcasting.

    Args:
        x: of a numeric dtype.
        y: of the same dtype.
        tolerance: a positive number; see `isclose` for one that is relative to the values.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.approximate_equal([1.0, 2.0], [1.000001, 2.1])))
    [ True False]
    """
    distance = abs_of(subtract(x, y))
    return less(distance, float(tolerance), name=name)


@composed
def isclose(
    a: Any,
    b: Any,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
    name: str | None = None,
) -> Tensor:
    """Whether `abs(a - b) <= atol + rtol * abs(b)`, elementwise with broadcasting.

    Args:
        a: of a floating-point or complex dtype.
        b: of the same dtype.
        rtol: the tolerance relative to `b`.
        atol: the absolute tolerance.
        equal_nan: whether NaN is about NaN.

    Returns:
        A bool tensor. Infinities are close to their equals only.
    """
    given = next((v.dtype for v in (a, b) if isinstance(v, Arithmetic)), None)  # type: ignore[attr-defined]
    a, b = convert_to_tensor(a, given), convert_to_tensor(b, given)
    limit = abs_of(b) * float(rtol) + float(atol)
    # The difference of equal infinities is NaN, and an infinite limit would let all pass.
    near = less_equal(abs_of(a - b), limit) & less(limit, float("inf"))
    close = near | equal(a, b)
    if equal_nan:
        close = close | (not_equal(a, a) & not_equal(b, b))
    return identity(close, name=name)
