"""Division of whole numbers that rounds towards zero, as C divides them."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.inference import broadcast_inputs, elementwise
from flowbook.graph.definition.op_def import NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import REALS
from flowbook.graph.ops.basis.broadcasting import gradients_of_two
from flowbook.graph.ops.math.arithmetic import refuse_zero
from flowbook.graph.ops.math.no_nan import multiply_no_nan

__all__ = ["truncatediv", "truncatemod"]


def _truncatediv(xp: Any, x: Any, y: Any) -> Any:
    refuse_zero(xp, x, y)
    if x.dtype.kind == "f":
        return xp.trunc(xp.divide(x, y))
    quotient = xp.floor_divide(x, y)
    if x.dtype.kind == "u":
        return quotient
    # Rounded down, it is one too low where the signs differ and something remains.
    remains = xp.not_equal(xp.multiply(quotient, y), x)
    return xp.add(quotient, remains & ((x < 0) != (y < 0)), dtype=x.dtype)


truncatediv = OpDef(
    "TruncateDiv",
    "x: T, y: T -> z: T",
    T=REALS,
    infer=broadcast_inputs,
    batching=Batching.ELEMENTWISE,
    kernel=_truncatediv,
    grad=NO_GRADIENT,
    cost=elementwise(flops=2),
    doc="""The quotient `x / y` rounded towards zero, elementwise with broadcasting.

    Dividing an integer by zero is an InvalidArgumentError in the run.
    """,
    function="truncatediv",
)


def _truncatemod(xp: Any, x: Any, y: Any) -> Any:
    refuse_zero(xp, x, y)
    return xp.fmod(x, y)


truncatemod = OpDef(
    "TruncateMod",
    "x: T, y: T -> z: T",
    T=REALS,
    infer=broadcast_inputs,
    batching=Batching.ELEMENTWISE,
    kernel=_truncatemod,
    grad=lambda op, dz: gradients_of_two(op, dz, multiply_no_nan(truncatediv(*op.inputs), -dz)),
    cost=elementwise(flops=2),
    doc="""The remainder `x - truncatediv(x, y) * y`, elementwise with broadcasting.

    It has the sign of `x`; `mod` has that of `y`. Dividing an integer by zero is an
    InvalidArgumentError in the run.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(*sess.run([fb.truncatemod(-7, 3), fb.mod(-7, 3)]))
    -1 2
    """,
    function="truncatemod",
)
