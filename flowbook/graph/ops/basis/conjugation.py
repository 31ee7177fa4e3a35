"""The complex conjugate, which gradients of complex operands are made of."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.inference import elementwise, same_as_input
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import COMPLEX
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import numbers

__all__ = ["conj"]

conj_op: OpDef = OpDef(
    "Conj",
    "x: T -> y: T",
    T=COMPLEX,
    infer=same_as_input,
    expression="conjugate(x)",
    grad=lambda op, dy: conj_op(dy),
    cost=elementwise(),
)


@conj_op.front
def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate, elementwise; real numbers are their own."""
    x = numbers(x)
    return conj_op(x, name=name) if x.dtype.is_complex else x


def conjugate(x: Tensor) -> Tensor:
    """The conjugate of a complex tensor; a real one as it is."""
    return conj_op(x) if x.dtype.is_complex else x
