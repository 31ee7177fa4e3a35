"""Sums of products over numbered axes of two tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import all_in_range, as_axis, settled
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import NUMBERS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics import products
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.linalg.matrix_products import both

__all__ = ["tensordot"]


def _free(rank: int, axes: Sequence[int]) -> list[int]:
    return [i for i in range(rank) if i not in axes]


def _both_axes(axes: Any, rank_a: int, rank_b: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The summed axes of both, counted from the first."""
    if isinstance(axes, int):
        if not 0 <= axes <= min(rank_a, rank_b):
            raise InvalidArgumentError(
                f"{axes} axes cannot be summed of {rank_a} and {rank_b} dimensions"
            )
        return tuple(range(rank_a - axes, rank_a)), tuple(range(axes))
    return all_in_range(axes[0], rank_a), all_in_range(axes[1], rank_b)


def _dot_shape(a: Tensor, b: Tensor, axes: Any) -> Shape:
    if a.shape.dims is None or b.shape.dims is None:
        return UNKNOWN
    p, q = a.shape.dims, b.shape.dims
    of_a, of_b = _both_axes(axes, len(p), len(q))
    for i, j in zip(of_a, of_b, strict=True):
        if None not in (p[i], q[j]) and p[i] != q[j]:
            raise InvalidArgumentError(
                f"axis {i} of {a.shape} and axis {j} of {b.shape} differ in size"
            )
    return Shape.of((*(p[i] for i in _free(len(p), of_a)), *(q[j] for j in _free(len(q), of_b))))


def _dot(xp: Any, a: Any, b: Any, axes: Any) -> Any:
    of_a, of_b = _both_axes(axes, a.ndim, b.ndim)
    if any(a.shape[i] != b.shape[j] for i, j in zip(of_a, of_b, strict=True)):
        raise InvalidArgumentError(
            f"axes {list(of_a)} of {list(a.shape)} and {list(of_b)} of {list(b.shape)} differ "
            "in size"
        )
    return _summed(xp, a, b, of_a, of_b)


def _summed(xp: Any, a: Any, b: Any, of_a: Sequence[int], of_b: Sequence[int]) -> Any:
    dtype = a.dtype
    if dtype.char == "e":
        a, b = a.astype(np.float32), b.astype(np.float32)
    free_a, free_b = _free(a.ndim, of_a), _free(b.ndim, of_b)
    inner = math.prod([a.shape[i] for i in of_a])
    left, right = [a.shape[i] for i in free_a], [b.shape[i] for i in free_b]
    x = xp.reshape(xp.transpose(a, (*free_a, *of_a)), (math.prod(left), inner))
    y = xp.reshape(xp.transpose(b, (*of_b, *free_b)), (inner, math.prod(right)))
    product = products.matmul(xp, x, y)
    return xp.reshape(product, (*left, *right)).astype(dtype, copy=False)


def _dot_gradient(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor]:
    a, b = op.inputs
    axes = op.attributes["axes"]
    return (
        tensordot_gradient_op(dy, conjugate(b), axes=axes, of="a"),
        tensordot_gradient_op(dy, conjugate(a), axes=axes, of="b"),
    )


def _places(
    product: int, other: int, axes: Any, of: str
) -> tuple[list[int], list[int], dict[int, int]]:
    """Of a gradient, by the ranks of what it is made from: its axes that the product has.

    Beside them the product's axes that the other factor has, and of the gradient's summed axes the
    factor's that go with them.
    """
    rank = product - other + 2 * (axes if isinstance(axes, int) else len(axes[0]))
    ranks = (rank, other) if of == "a" else (other, rank)
    of_a, of_b = _both_axes(axes, *ranks)
    front = ranks[0] - len(of_a)
    before, behind = list(range(front)), list(range(front, product))
    if of == "a":
        return before, behind, dict(zip(of_a, of_b, strict=True))
    return behind, before, dict(zip(of_b, of_a, strict=True))


def _gradient_shape(product: Tensor, other: Tensor, axes: Any, of: str) -> Shape:
    p, q = product.shape.dims, other.shape.dims
    if p is None or q is None:
        return UNKNOWN
    kept, _, partners = _places(len(p), len(q), axes, of)
    left = iter(kept)
    return Shape.of(
        tuple(
            q[partners[i]] if i in partners else p[next(left)]
            for i in range(len(kept) + len(partners))
        )
    )


def _gradient(xp: Any, product: Any, other: Any, axes: Any, of: str) -> Any:
    kept, gone, partners = _places(product.ndim, other.ndim, axes, of)
    free = _free(other.ndim, tuple(partners.values()))
    # What the product has, and the other factor's summed axes in their order.
    places = [_free(len(kept) + len(partners), tuple(partners))]
    places.append(sorted(partners, key=partners.__getitem__))
    factors: list[Any] = [(product, gone), (other, free)]
    if of == "b":
        # So that axes seldom have to be moved.
        places.reverse()
        factors.reverse()
    (x, of_x), (y, of_y) = factors
    order = np.argsort([*places[0], *places[1]]).tolist()
    found = _summed(xp, x, y, of_x, of_y)
    return found if order == sorted(order) else xp.transpose(found, order)


def _second_gradient(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor]:
    product, other = op.inputs
    axes, of = op.attributes["axes"], op.attributes["of"]
    factors = (dy, conjugate(other)) if of == "a" else (conjugate(other), dy)
    return (
        tensordot_op(*factors, axes=axes),
        tensordot_gradient_op(conjugate(product), dy, axes=axes, of="b" if of == "a" else "a"),
    )


def _gradient_flops(op: Operation) -> int:
    product, other = op.inputs[0].shape, op.inputs[1].shape
    if product.dims is None or other.dims is None:
        return 0
    _, gone, _ = _places(
        len(product.dims), len(other.dims), op.attributes["axes"], op.attributes["of"]
    )
    return 2 * (op.outputs[0].shape.size or 0) * math.prod(product.dims[i] or 0 for i in gone)


tensordot_gradient_op = OpDef(
    "TensorDotGradient",
    "product: T, other: T -> gradient: T",
    T=NUMBERS,
    attributes={"axes": REQUIRED, "of": REQUIRED},
    choices={"of": ("a", "b")},
    infer=_gradient_shape,
    kernel=_gradient,
    grad=_second_gradient,
    cost=_gradient_flops,
    doc="""The gradient of `tensordot` to a factor, `of` "a" or "b", from the other one.""",
)


def _dot_flops(op: Operation) -> int:
    a, b = op.inputs[0].shape, op.inputs[1].shape
    if a.dims is None or b.dims is None:
        return 0
    of_a, _ = _both_axes(op.attributes["axes"], len(a.dims), len(b.dims))
    total = 2 * (op.outputs[0].shape.size or 0)
    for i in of_a:
        total *= a.dims[i] or 0
    return total


tensordot_op = OpDef(
    "TensorDot",
    "a: T, b: T -> product: T",
    T=NUMBERS,
    attributes={"axes": REQUIRED},
    infer=_dot_shape,
    kernel=_dot,
    grad=_dot_gradient,
    cost=_dot_flops,
)


@tensordot_op.front
def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sum of products over axes of two tensors.

    Args:
        a: of a number dtype.
        b: of the same dtype.
        axes: how many, an int: the last ones of `a` with the first ones of `b`; or a pair of ints
            or of sequences of them, the axes of `a` and those of `b`. It may be a constant tensor.

    Returns:
        A tensor whose dimensions are the others of `a` and then those of `b`.

    Raises:
        InvalidArgumentError: if the sizes differ; in the run, where it is known only then.

    >>> import flowbook as fb
    >>> fb.tensordot(fb.zeros([2, 3, 4]), fb.zeros([4, 3, 5]), [[1, 2], [1, 0]]).shape
    Shape([2, 5])
    """
    a, b = both(a, b)
    chosen = _as_axes(axes)
    return tensordot_op(a, b, axes=chosen, name=name)


def _as_axes(axes: Any) -> Any:
    axes = settled(axes)
    if isinstance(axes, np.ndarray):
        axes = axes.tolist()
    if not isinstance(axes, list | tuple):
        count = as_axis(axes)
        if count < 0:
            raise InvalidArgumentError(f"{counted(count, 'axis', 'axes')} cannot be summed")
        return count
    if len(axes) != 2:
        raise InvalidArgumentError(f"axes are an int or a pair, not {axes!r}")
    pair = tuple(
        tuple(as_axis(i) for i in side)
        if isinstance(side, list | tuple | np.ndarray)
        else (as_axis(side),)
        for side in axes
    )
    if len(pair[0]) != len(pair[1]):
        raise InvalidArgumentError(f"axes name {len(pair[0])} of a but {len(pair[1])} of b")
    return pair
