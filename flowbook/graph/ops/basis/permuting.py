"""Permutations: dimensions in another order, and what undoes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowbook.graph.definition.axes import axes_or_tensor, in_range
from flowbook.graph.definition.batching import Batch, Batched, Batching
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import INDICES, MOVABLE
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.bounds import check_indices
from flowbook.graph.ops.basis.conjugation import conj_op
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import check_vector, reshape_op, size_op

__all__ = ["invert_permutation", "transpose"]


def _permutation_shape(x: Tensor) -> Shape:
    check_vector("x", x)
    return x.shape.with_rank(1)


def _inverted(xp: Any, x: Any) -> Any:
    if x.ndim != 1:
        raise InvalidArgumentError(f"a permutation is a vector, not of shape {list(x.shape)}")
    check_indices(x, x.size)
    result = xp.full(x.shape, -1, dtype=x.dtype)
    result[x] = xp.arange(x.size, dtype=x.dtype)
    if (result < 0).any():
        missing = int(xp.flatnonzero(result < 0)[0])
        raise InvalidArgumentError(
            f"a permutation of {x.size} elements names each once, but {missing} is missing"
        )
    return result


invert_permutation = OpDef(
    "InvertPermutation",
    "x: I -> y: I",
    I=INDICES,
    infer=_permutation_shape,
    kernel=_inverted,
    only_moves=True,
    doc="""The permutation that undoes another: `y[x[i]] = i`.

    Args:
        x: [n], int32 or int64, which holds each of 0 to n - 1 once.

    Raises:
        InvalidIndexError: in the run, if an element lies outside.
        InvalidArgumentError: in the run, if an element stands twice.
    """,
)


def _transposed(a: Tensor, perm: tuple[int, ...] | None) -> Shape:
    dims = a.shape.dims
    if dims is None:
        return UNKNOWN if perm is None else Shape.of((None,) * len(perm))
    if perm is None:
        return Shape.of(dims[::-1])
    if len(perm) != len(dims):
        raise InvalidArgumentError(
            f"perm {list(perm)} does not order the {counted(len(dims), 'dimension')} of {a.shape}"
        )
    order = [in_range(p, len(dims), "perm's") for p in perm]
    if len(set(order)) != len(dims):
        raise InvalidArgumentError(f"perm {list(perm)} names a dimension twice")
    return Shape.of(tuple(dims[p] for p in order))


def _transpose(xp: Any, a: Any, perm: tuple[int, ...] | None) -> Any:
    try:
        return xp.transpose(a, perm)
    except ValueError:
        assert perm is not None
        raise InvalidArgumentError(
            f"perm {list(perm)} does not order the dimensions of {list(a.shape)}"
        ) from None


def _transpose_gradient(op: Operation, dy: Tensor) -> Tensor:
    perm = op.attributes["perm"]
    if isinstance(perm, Tensor):
        perm = reshape_op(perm, [-1])  # Of a vector it may be a scalar.
        perm = invert_permutation(perm % size_op(perm, out_type=perm.dtype))
    elif perm is not None:
        order = [p % len(perm) for p in perm]
        perm = tuple(order.index(i) for i in range(len(perm)))
    return transpose_op(dy, perm=perm)


def _transposed_for_all(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
    perm = op.attributes["perm"]
    if perm is None:
        perm = range(inputs[0].rank)[::-1]
    others = batch.shifted(perm)
    is_known = not isinstance(others, Tensor)
    perm = (0, *others) if is_known else batch.before(0, reshape_op(others, [-1]))
    return batch.again(op, [inputs[0].tensor], perm=perm)


transpose_op = OpDef(
    "Transpose",
    "a: T -> output: T",
    T=MOVABLE,
    attributes={"perm": None},
    infer=_transposed,
    kernel=_transpose,
    grad=_transpose_gradient,
    aliases={0: 0},
    spreads_nonfinite=("a",),
    axes="perm",
    batching=Batching(_transposed_for_all, takes_tensors=True),
    only_moves=True,
)


@transpose_op.front
def transpose(
    a: Any, perm: Sequence[int] | None = None, conjugate: bool = False, name: str | None = None
) -> Tensor:
    """The dimensions in another order.

    Args:
        a: of any shape and dtype.
        perm: for each dimension of the result, which of `a`'s it is; None reverses them.
        conjugate: whether to take the complex conjugate, too.

    Raises:
        InvalidArgumentError: if `perm` is not an order of all dimensions.

    >>> import flowbook as fb
    >>> fb.transpose(fb.zeros([2, 3, 4]), [0, 2, 1]).shape
    Shape([2, 4, 3])
    """
    order = axes_or_tensor(perm)
    a = convert_to_tensor(a)
    turned = conjugate and a.dtype.is_complex
    result = transpose_op(a, perm=order, name=None if turned else name)
    return conj_op(result, name=name) if turned else result
