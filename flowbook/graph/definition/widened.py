"""Dtypes of 16 bits are computed in float32 and rounded once, at the end.

bfloat16 is a storage type: so is it with every operation that computes. NumPy computes in float16,
and so do operations of one step; those of several, whose expression would round after each, and
overflow or lose digits in between, do not.

One wrapper around kernels does so. Operations that only move values move them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import DType, bfloat16, float16, float32

_WIDE = float32.numpy


def widened(
    op_def: OpDef[Any],
    taken: Iterable[DType],
    given: Sequence[DType],
    kernel: Callable[..., Any],
) -> Callable[..., Any]:
    """The kernel for dtypes: itself, unless it computes on 16 bits.

    Args:
        op_def: what is computed.
        taken: the dtypes of the inputs.
        given: the dtypes of the outputs.
        kernel: the kernel.
    """
    if op_def.widens:
        for dtype in (*taken, *given):
            if dtype is bfloat16 or (dtype is float16 and _has_steps(op_def)):
                return _widened(given, kernel)
    return kernel


def is_narrow(dtype: DType) -> bool:
    """Whether kernels may have to be `widened` for a dtype."""
    return dtype is bfloat16 or dtype is float16


def _has_steps(op_def: OpDef[Any]) -> bool:
    return op_def.expression is not None and op_def.expression.has_steps


def _widened(given: Sequence[DType], kernel: Callable[..., Any]) -> Callable[..., Any]:
    dtypes = [dtype.numpy if dtype in (bfloat16, float16) else None for dtype in given]

    @wraps(kernel)
    def compute(xp: Any, *inputs: Any, **attributes: Any) -> Any:
        found = kernel(xp, *[_wide(x) for x in inputs], **attributes)
        if not isinstance(found, tuple | list):
            return _rounded(found, dtypes[0])
        return tuple([_rounded(y, dtype) for y, dtype in zip(found, dtypes, strict=True)])

    return compute


def _wide(value: Any) -> Any:
    if isinstance(value, list):
        return [_wide(v) for v in value]
    is_narrow = getattr(value, "dtype", None) in (bfloat16.numpy, float16.numpy)
    return value.astype(_WIDE) if is_narrow else value


def _rounded(value: Any, dtype: Any) -> Any:
    return value if dtype is None else value.astype(dtype, copy=False)
