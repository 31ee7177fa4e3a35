"""Dtypes of 16 bits are computed in float32 and rounded once, at the end.

bfloat16 is a storage type: so is it with every operation that computes. NumPy computes in float16,
and so do operations of one step; those of several, whose expression would round after each, and
overflow or lose digits in between, do not.

One wrapper around kernels does so. Operations that only move values (they admit strings too) move
them as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import bfloat16, float16, float32
from flowbook.graph.model.operation import Operation

_WIDE = float32.numpy


def widened(operation: Operation, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel for an operation's dtypes: itself, unless the operation computes on 16 bits."""
    op_def = operation.op_def
    if op_def.computes:
        for tensor in (*operation.inputs, *operation.outputs):
            if tensor.dtype is bfloat16 or (tensor.dtype is float16 and _has_steps(op_def)):
                return _widened(operation, kernel)
    return kernel


def _has_steps(op_def: OpDef) -> bool:
    return op_def.expression is not None and op_def.expression.has_steps


def _widened(operation: Operation, kernel: Callable[..., Any]) -> Callable[..., Any]:
    dtypes = [t.dtype.numpy if t.dtype in (bfloat16, float16) else None for t in operation.outputs]

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
