"""Sets: what stands along the last dimension of a tensor, dense or sparse, each element once.

What has none of the elements of a set, as rows of a sparse tensor may, is the empty set. The
elements of results are in ascending order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.op_def import HOST, REQUIRED, OpDef
from flowbook.graph.model.dtypes import INTS, DType, int64, string
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import ones_like
from flowbook.graph.ops.basis.shaping import reshape
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor, SparseTensorValue
from flowbook.graph.ops.math.comparison import where
from flowbook.graph.ops.sparse.indices import (
    check_shapes,
    check_sparse,
    checked_dims,
    keys,
    positions,
)

__all__ = ["difference", "intersection", "size", "union"]

_SETTABLE = (*INTS, string)

_COMBINED: dict[str, Any] = {
    "difference": np.setdiff1d,
    "intersection": np.intersect1d,
    "union": lambda a, b, assume_unique: np.union1d(a, b),
}


def _check_outer(a: Shape, b: Shape) -> None:
    for shape in (a, b):
        if shape.rank == 0:
            raise InvalidArgumentError("sets are along a last dimension, which a scalar has not")
    if a.dims is not None and b.dims is not None:
        outer = Shape.of(a.dims[:-1]), Shape.of(b.dims[:-1])
        if not outer[0].is_compatible_with(outer[1]):
            raise InvalidArgumentError(
                f"there are not as many sets: the shapes are {a} and {b}, which differ before the "
                f"last dimension"
            )


def _combined_shapes(
    a_indices: Tensor,
    a_values: Tensor,
    a_shape: Tensor,
    b_indices: Tensor,
    b_values: Tensor,
    b_shape: Tensor,
    operation: str,
) -> list[Shape]:
    a = check_shapes(a_indices, a_shape, a_values)
    b = check_shapes(b_indices, b_shape, b_values)
    _check_outer(a, b)
    rank = a.rank if a.rank is not None else b.rank
    return [Shape.of((None, rank)), Shape.of((None,)), Shape.of((rank,))]


def _combined(
    xp: Any,
    a_indices: Any,
    a_values: Any,
    a_shape: Any,
    b_indices: Any,
    b_values: Any,
    b_shape: Any,
    operation: str,
) -> tuple[Any, Any, Any]:
    dims = checked_dims(a_shape), checked_dims(b_shape)
    check_sparse(a_indices, dims[0], len(a_values))
    check_sparse(b_indices, dims[1], len(b_values))
    _check_outer(Shape.of(dims[0]), Shape.of(dims[1]))
    outer = xp.concatenate([a_indices, b_indices])[:, :-1]
    elements, codes = np.unique(xp.concatenate([a_values, b_values]), return_inverse=True)
    _, first, owner = np.unique(
        keys(xp, outer, dims[0][:-1]), return_index=True, return_inverse=True
    )
    # One number for each element of each set.
    members = owner * max(len(elements), 1) + codes
    both = np.unique(members[: len(a_values)]), np.unique(members[len(a_values) :])
    found = _COMBINED[operation](*both, assume_unique=True)
    owner, codes = np.divmod(found, max(len(elements), 1))
    place = xp.arange(len(found)) - xp.searchsorted(owner, owner)
    indices = xp.concatenate([outer[first[owner]], place[:, None]], 1)
    longest = int(place.max()) + 1 if len(place) else 0
    return indices, elements[codes], xp.array((*dims[0][:-1], longest), np.int64)


set_operation_op: OpDef[tuple[Tensor, Tensor, Tensor]] = OpDef(
    "SetOperation",
    "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64"
    " -> indices: int64, values: T, dense_shape: int64",
    T=_SETTABLE,
    attributes={"operation": REQUIRED},
    choices={"operation": tuple(_COMBINED)},
    infer=_combined_shapes,
    kernel=_combined,
    kinds=HOST,
    host_args=("a_shape", "b_shape"),
    cost=lambda op: 20 * sum(op.inputs[k].shape.size or 0 for k in (1, 4)),
)


def _size_shape(indices: Tensor, values: Tensor, dense_shape: Tensor) -> Shape:
    known = check_shapes(indices, dense_shape, values)
    _check_outer(known, known)
    return Shape(None) if known.dims is None else Shape.of(known.dims[:-1])


def _sizes(xp: Any, indices: Any, values: Any, dense_shape: Any) -> Any:
    dims = checked_dims(dense_shape)
    check_sparse(indices, dims, len(values))
    _check_outer(Shape.of(dims), Shape.of(dims))
    _, codes = np.unique(values, return_inverse=True)
    members = np.unique(np.column_stack([indices[:, :-1], codes]), axis=0)
    found = np.bincount(positions(xp, members[:, :-1], dims[:-1]), minlength=math.prod(dims[:-1]))
    return found.reshape(dims[:-1]).astype(np.int32)


set_size_op = OpDef(
    "SetSize",
    "indices: int64, values: T, dense_shape: int64 -> size: int32",
    T=_SETTABLE,
    infer=_size_shape,
    kernel=_sizes,
    kinds=HOST,
    host_args=("dense_shape",),
    cost=lambda op: 10 * (op.inputs[1].shape.size or 0),
)


def _parts(value: Any, dtype: DType | None) -> tuple[Tensor, Tensor, Tensor]:
    """Indices, values and shape: of a dense tensor those of all elements, zeros too.

    Args:
        value: a tensor, a sparse tensor, or what one is made of.
        dtype: what a list of numbers is to be.
    """
    if isinstance(value, SparseTensor | SparseTensorValue):
        x = SparseTensor.from_value(value)
        return x.indices, x.values, x.dense_shape
    dense = convert_to_tensor(value, None if hasattr(value, "dtype") else dtype)
    return where(ones_like(dense, "bool")), reshape(dense, [-1]), shape_of(dense, int64)


def _operation(operation: str, a: Any, b: Any) -> SparseTensor:
    known: Any = next((x for x in (a, b) if isinstance(x, Arithmetic | SparseTensor)), None)
    dtype = None if known is None else known.dtype
    parts = *_parts(a, dtype), *_parts(b, dtype)
    return SparseTensor(*set_operation_op(*parts, operation=operation))


def size(a: Any, name: str | None = None) -> Tensor:
    """How many elements sets have, each counted once.

    Args:
        a: a SparseTensor [..., n] of an integer dtype or strings.
        name: the operation's name.

    Returns:
        int32 [...].

    >>> import flowbook as fb
    >>> sets = fb.SparseTensor([[0, 0], [0, 1], [0, 2], [2, 0]], [3, 5, 3, 1], [3, 3])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.sets.size(sets)))
    [2 0 1]
    """
    x = SparseTensor.from_value(a)
    return set_size_op(x.indices, x.values, x.dense_shape, name=name)


@composed("set_intersection")
def intersection(a: Any, b: Any, name: str | None = None) -> SparseTensor:
    """What is in both of two sets, for each pair of sets.

    Args:
        a: [..., n], a tensor or a SparseTensor of an integer dtype or strings.
        b: [..., m] of the same dtype, with as many sets.

    Returns:
        A SparseTensor [..., elements of the largest set].

    Raises:
        InvalidArgumentError: if there are not as many sets; in the run, where it is known only
            then.

    >>> import flowbook as fb
    >>> common = fb.sets.intersection([[1, 2, 2], [3, 4, 5]], [[2, 9], [5, 4]])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.sparse.to_dense(common)).tolist())
    [[2, 0], [4, 5]]
    """
    return _operation("intersection", a, b)


@composed("set_difference")
def difference(a: Any, b: Any, aminusb: bool = True, name: str | None = None) -> SparseTensor:
    """What is in the first of two sets and not in the second, for each pair of sets.

    Args:
        a: as for `intersection`, and so is b.
        b: the other sets.
        aminusb: False for what is in the second and not in the first.

    Returns:
        A SparseTensor, as of `intersection`.
    """
    return _operation("difference", *((a, b) if aminusb else (b, a)))


@composed("set_union")
def union(a: Any, b: Any, name: str | None = None) -> SparseTensor:
    """What is in either of two sets, for each pair of sets. As `intersection`."""
    return _operation("union", a, b)
