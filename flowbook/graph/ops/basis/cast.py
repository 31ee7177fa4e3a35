"""Conversion between dtypes."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.inference import elementwise, same_as_input
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.dtypes import NUMBERS, SMALL, DType, as_dtype, string, widened
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor

__all__ = ["cast"]


def _cast(xp: Any, x: Any, dtype: DType) -> Any:
    if x.dtype.kind == "c" and not dtype.is_complex and dtype is not bool_:
        x = xp.real(x)
    # Always a copy, which is the caller's own: what changes nothing is left out of the step. Among
    # themselves the small dtypes do not all convert.
    return widened(x).astype(dtype.numpy)


def _cast_gradient(op: Operation, dy: Tensor) -> Tensor | None:
    source = op.inputs[0].dtype
    if not (source.is_floating or source.is_complex):
        return None
    return cast(dy, source)


cast_op = OpDef(
    "Cast",
    "x: T -> y: dtype",
    T=(*NUMBERS, bool_, *SMALL),
    attributes={"dtype": REQUIRED},
    infer=same_as_input,
    kernel=_cast,
    grad=_cast_gradient,
    keeps_zeros=True,
    spreads_nonfinite=("x",),
    is_identity=True,
    computes_shapes=True,
    elements=lambda op, known: known(op.inputs[0]),
    for_strings="fb.strings.to_number(x) reads numbers",
    batching=Batching.ELEMENTWISE,
    cost=elementwise(),
)


@cast_op.front
def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Convert to another dtype, the one way to do so.

    Args:
        x: a number tensor, also one of few bits, or a bool one.
        dtype: the wanted dtype: a number, also one of few bits, or bool.

    Returns:
        The same values as far as `dtype` can hold them: floats lose their fraction on the way to
        integers, larger integers wrap, complex numbers lose their imaginary part, and as bool all
        but zero are True. What NaN and infinities become as integers is not defined. What is
        beyond floats of 8 bits becomes infinite, or NaN where they have no infinity; of 4 bits it
        becomes the smallest or largest. A tensor that has the dtype already is given back, unless
        the operation has a name.

    >>> import flowbook as fb
    >>> fb.cast([1.7, -1.7], fb.int32).dtype
    fb.int32
    """
    wanted = as_dtype(dtype)
    if not (wanted.is_numeric or wanted is bool_ or wanted in SMALL):
        raise InvalidTypeError(
            f"nothing can be cast to {wanted.name}",
            hint="fb.strings.as_string(x) writes numbers" if wanted is string else None,
        )
    if name is None and isinstance(x, Tensor) and x.dtype is wanted:
        return x
    return cast_op(x, dtype=wanted, name=name)
