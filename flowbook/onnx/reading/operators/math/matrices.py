"""Products of matrices and tensors, determinants."""

from __future__ import annotations

from typing import Any

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.math.arithmetic import like
from flowbook.onnx.reading.operators.types import Table


def _gemm(node: Node, a: Any, b: Any, c: Any = None) -> Any:
    found = fb.matmul(a, b, bool(node.get("transA", 0)), bool(node.get("transB", 0)))
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    if alpha != 1.0:
        found = found * like(found, alpha)
    if c is None:
        return found
    return found + (c if beta == 1.0 else c * like(c, beta))


def _multiplied_integers(node: Node, a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    a, b = fb.cast(a, fb.int32), fb.cast(b, fb.int32)
    if a_zero is not None:
        zero = fb.cast(a_zero, fb.int32)
        # One zero for each row of the first factor.
        a = a - (fb.expand_dims(zero, -1) if zero.shape.rank == 1 and zero.shape != [1] else zero)
    if b_zero is not None:
        b = b - fb.cast(b_zero, fb.int32)
    return fb.matmul(a, b)


TABLE: Table = {
    "Einsum": lambda node, *inputs: fb.einsum(node.need("equation"), *inputs),
    "Gemm": _gemm,
    "MatMul": lambda node, a, b: fb.matmul(a, b),
    "MatMulInteger": _multiplied_integers,
}
