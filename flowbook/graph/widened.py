"""bfloat16 is a storage type: operations on it compute in float32 and round once, at the end.

One wrapper around kernels does so for every operation that computes; those that only move values
(they admit strings too) move bfloat16 as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from flowbook.graph.dtypes import bfloat16, float32
from flowbook.graph.operation import Operation

_NARROW, _WIDE = bfloat16.numpy, float32.numpy


def widened(operation: Operation, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel for an operation's dtypes: itself, unless the operation computes on bfloat16."""
    if operation.op_def.computes:
        for tensor in (*operation.inputs, *operation.outputs):
            if tensor.dtype is bfloat16:
                return _widened(operation, kernel)
    return kernel


def _widened(operation: Operation, kernel: Callable[..., Any]) -> Callable[..., Any]:
    is_rounded = [t.dtype is bfloat16 for t in operation.outputs]

    @wraps(kernel)
    def compute(xp: Any, *inputs: Any, **attributes: Any) -> Any:
        found = kernel(xp, *[_wide(x) for x in inputs], **attributes)
        if not isinstance(found, tuple | list):
            return _rounded(found) if is_rounded[0] else found
        return tuple(
            [_rounded(y) if to_round else y for y, to_round in zip(found, is_rounded, strict=True)]
        )

    return compute


def _wide(value: Any) -> Any:
    if isinstance(value, list):
        return [_wide(v) for v in value]
    return value.astype(_WIDE) if getattr(value, "dtype", None) == _NARROW else value


def _rounded(value: Any) -> Any:
    return value.astype(_NARROW, copy=False)
