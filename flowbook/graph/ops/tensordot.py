"""Sums of products over numbered axes of two tensors."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from flowbook.graph.dtypes import NUMBERS
from flowbook.graph.errors import InvalidArgumentError
from flowbook.graph.op_def import REQUIRED, OpDef
from flowbook.graph.operation import Operation
from flowbook.graph.ops.arithmetic import conjugate
from flowbook.graph.ops.axes import all_in_range, as_axis, settled
from flowbook.graph.ops.einsum import einsum_op
from flowbook.graph.ops.linalg import both
from flowbook.graph.ops.located import located
from flowbook.graph.shape import UNKNOWN, Shape
from flowbook.graph.tensor import Tensor


def _free(rank: int, axes: tuple[int, ...]) -> list[int]:
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
    dtype = a.dtype
    if dtype.char == "e":
        a, b = a.astype(np.float32), b.astype(np.float32)
    return xp.tensordot(a, b, (of_a, of_b)).astype(dtype, copy=False)


def _dot_gradient(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor]:
    a, b = op.inputs
    if a.shape.rank is None or b.shape.rank is None:
        raise InvalidArgumentError("the gradient of tensordot needs inputs of known rank")
    of_a, of_b = _both_axes(op.attributes["axes"], a.shape.rank, b.shape.rank)
    letters = iter(string.ascii_letters)
    names_a = [next(letters) for _ in range(a.shape.rank)]
    names_b = [next(letters) for _ in range(b.shape.rank)]
    for i, j in zip(of_a, of_b, strict=True):
        names_b[j] = names_a[i]
    term_a, term_b = "".join(names_a), "".join(names_b)
    output = "".join(c for c in term_a + term_b if (c in term_a) != (c in term_b))
    return (
        einsum_op([dy, conjugate(b)], equation=f"{output},{term_b}->{term_a}"),
        einsum_op([conjugate(a), dy], equation=f"{term_a},{output}->{term_b}"),
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
    aliases={},
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
        name: the operation's name.

    Returns:
        A tensor whose dimensions are the others of `a` and then those of `b`.

    Raises:
        InvalidArgumentError: if the sizes differ; in the run, where it is known only then.

    >>> import flowbook as fb
    >>> fb.tensordot(fb.zeros([2, 3, 4]), fb.zeros([4, 3, 5]), [[1, 2], [1, 0]]).shape
    Shape([2, 5])
    """
    __tracebackhide__ = True
    with located("TensorDot"):
        a, b = both(a, b)
        chosen = _as_axes(axes)
    result: Tensor = tensordot_op(a, b, axes=chosen, name=name)
    return result


def _as_axes(axes: Any) -> Any:
    axes = settled(axes)
    if isinstance(axes, np.ndarray):
        axes = axes.tolist()
    if not isinstance(axes, list | tuple):
        count = as_axis(axes)
        if count < 0:
            raise InvalidArgumentError(f"{count} axes cannot be summed")
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
