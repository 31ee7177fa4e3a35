"""A sum of products of matrices as one product, of the factors one below the other.

Gradients of a matrix that is used step after step are such sums; a rewriting makes one operation of
them (`graph/rewrite/join_products.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import NUMBERS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics import products
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.linalg.matrix_products import matmul_op


def is_larger_than_factors(operation: Operation) -> bool:
    """Whether it is a product `transpose(a) b` of matrices, each of them smaller than it."""
    if operation.op_def is not matmul_op:
        return False
    if not operation.attributes["transpose_a"] or operation.attributes["transpose_b"]:
        return False
    shapes = [tensor.shape for tensor in operation.inputs]
    product = operation.outputs[0].shape
    if any(s.rank != 2 or s.size is None for s in shapes) or product.size is None:
        return False
    return sum(s.size or 0 for s in shapes) < product.size


def _summed_shape(factors: list[Tensor]) -> Shape:
    if len(factors) % 2:
        raise InvalidArgumentError(f"factors come in pairs, not {len(factors)} of them")
    half = len(factors) // 2
    columns: list[Shape] = []
    for side in (factors[:half], factors[half:]):
        known = UNKNOWN
        for factor in side:
            if factor.shape.dims is not None:
                known = known.merge(Shape.of((None, *factor.shape.with_rank(2).dims[1:])))  # type: ignore[index]
        columns.append(known)
    for first, second in zip(factors[:half], factors[half:], strict=True):
        if first.shape.dims is not None and second.shape.dims is not None:
            Shape.of(first.shape.dims[:1]).merge(Shape.of(second.shape.dims[:1]))
    rows, others = (None if c.dims is None else c.dims[1] for c in columns)
    return Shape.of((rows, others))


def _sum_of_products(xp: Any, *factors: Any) -> Any:
    half = len(factors) // 2
    first, second = (xp.concatenate(side, axis=0) for side in (factors[:half], factors[half:]))
    if first.dtype.char == "e":
        # As a product of half precision is computed.
        wide = products.matmul(xp, first.T.astype(np.float32), second.astype(np.float32))
        return wide.astype(first.dtype)
    return products.matmul(xp, first.T, second)


def _gradient(op: Operation, dy: Tensor) -> list[Tensor]:
    half = len(op.inputs) // 2
    first, second = op.inputs[:half], op.inputs[half:]
    return [
        *(matmul_op(conjugate(b), dy, False, True) for b in second),
        *(matmul_op(conjugate(a), dy, False, False) for a in first),
    ]


def _flops(op: Operation) -> int:
    half = len(op.inputs) // 2
    inner = sum((t.shape.dims[0] or 0) if t.shape.dims else 0 for t in op.inputs[:half])
    return 2 * inner * (op.outputs[0].shape.size or 0)


sum_of_products_op = OpDef(
    "SumOfProducts",
    "factors: N*T -> sum: T",
    T=NUMBERS,
    infer=_summed_shape,
    kernel=_sum_of_products,
    grad=_gradient,
    cost=_flops,
)
