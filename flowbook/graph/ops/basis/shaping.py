"""Shapes of tensors, and operations that arrange the same elements anew.

What only arranges gives views where it can: the memory may be its input's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.definition.axes import all_in_range, axes_or_tensor
from flowbook.graph.definition.batching import Batch, Batched, Batching
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value, scalar, shape_from
from flowbook.graph.definition.op_def import NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.definition.packing import packed, tensors_in
from flowbook.graph.model.dtypes import INDICES, MOVABLE, as_dtype, int32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import op_named
from flowbook.graph.model.shape import UNKNOWN, Dims, Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, told_by_shape
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor, SparseTensorValue

__all__ = ["expand_dims", "rank", "reshape", "shape", "shape_n", "size", "squeeze"]

Array = np.ndarray[Any, Any]


def shape_argument(shape: Any) -> Any:
    """A shape given to a public function, as what an int vector input takes.

    Args:
        shape: an int tensor; or a Shape, an int, or a sequence of ints and scalar int tensors.
    """
    if isinstance(shape, Arithmetic | np.ndarray):
        return shape
    if isinstance(shape, Shape):
        if not shape.is_fully_defined:
            raise InvalidArgumentError(
                f"the shape {shape} is not fully known before the run",
                hint="fb.shape(x) is the shape of x as a tensor",
            )
        shape = shape.dims
    items = list(shape) if isinstance(shape, Sequence) else [shape]
    return packed(items) if tensors_in(items) else integers(items)


def integers(values: Sequence[Any]) -> Array:
    """Python's ints as an int32 array, or int64 where one needs it.

    Raises:
        InvalidTypeError: if one is not an integer.
    """
    try:
        exact = np.array([v.__index__() for v in values], dtype=np.int64)
    except AttributeError:
        raise InvalidTypeError(
            f"{list(values)!r} are not all integers",
            hint="a shape is a sequence of ints and of int scalar tensors",
        ) from None
    except OverflowError:
        raise InvalidArgumentError(f"{list(values)!r} are not all within int64") from None
    narrow = exact.astype(np.int32)
    return narrow if np.array_equal(narrow, exact) else exact


def dims_of(shape: Any) -> tuple[int, ...]:
    """The dimensions that a shape holds in a run."""
    if shape.ndim != 1:
        raise InvalidArgumentError(f"a shape is a vector of ints, not of shape {list(shape.shape)}")
    return tuple(shape.tolist())


def check_vector(name: str, tensor: Tensor) -> None:
    """See at construction that an input is a vector."""
    if tensor.shape.rank not in (None, 1):
        raise InvalidArgumentError(f"{name!r} is a vector of ints, not of shape {tensor.shape}")


def check_scalar_values(**values: Any) -> None:
    """See in a run that inputs are scalars."""
    for name, value in values.items():
        if value.ndim:
            raise InvalidArgumentError(f"{name!r} is a scalar, not of shape {list(value.shape)}")


def _cast_shape(xp: Any, input: Any, out_type: Any) -> Any:
    return xp.array(input.shape, dtype=out_type.numpy)


def _shape_of_each(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
    return [batch.again(op, [inputs[0].tensor])[0][1:]]


shape_op = OpDef(
    "Shape",
    "input: T -> output: out_type",
    T=MOVABLE,
    attributes={"out_type": int32},
    infer=lambda input, out_type: Shape.of((input.shape.rank,)),
    kernel=_cast_shape,
    grad=NO_GRADIENT,
    elements=lambda op, known: op.inputs[0].shape.dims,
    batching=Batching(_shape_of_each, is_alike=True),
    only_moves=True,
)


@shape_op.front
def shape(input: Any, out_type: Any = int32, name: str | None = None) -> Tensor:
    """The shape of a tensor, as the run finds it; a constant, where it is known before.

    Args:
        input: a tensor of any shape and dtype, or a sparse tensor.
        out_type: int32 or int64.

    Returns:
        A vector of `out_type` with one element per dimension. What is known before the run is
        `tensor.shape`.

    >>> import flowbook as fb
    >>> fb.shape(fb.placeholder(fb.float32, [None, 3])).shape
    Shape([2])
    """
    wanted = _index_dtype(out_type)
    whole = _dense_shape(input)
    if whole is not None:
        return cast(whole, wanted, name=name)
    input = convert_to_tensor(input)
    if input.shape.is_fully_defined:
        return told_by_shape(input.shape.as_list(), wanted, input, name or shape_op.type)
    return shape_op(input, out_type=wanted, name=name)


def _dense_shape(input: Any) -> Tensor | None:
    """The shape of the whole of which a sparse tensor holds the elements; None for others."""
    if isinstance(input, SparseTensor | SparseTensorValue):
        return SparseTensor.from_value(input).dense_shape
    return None


size_op = OpDef(
    "Size",
    "input: T -> output: out_type",
    T=MOVABLE,
    attributes={"out_type": int32},
    infer=scalar,
    kernel=lambda xp, input, out_type: xp.asarray(input.size, out_type.numpy),
    grad=NO_GRADIENT,
    elements=lambda op, known: (op.inputs[0].shape.size,),
    only_moves=True,
)


@size_op.front
def size(input: Any, out_type: Any = int32, name: str | None = None) -> Tensor:
    """The number of elements of a tensor, a scalar; of a sparse one those left out count too.

    Arguments as for `shape`.
    """
    wanted = _index_dtype(out_type)
    whole = _dense_shape(input)
    if whole is not None:
        with name_scope(name or "Size") as scope:
            dims = cast(whole, wanted)
            return op_named("Prod").public(dims, name=scope)  # type: ignore[no-any-return]
    input = convert_to_tensor(input)
    if input.shape.size is not None:
        return told_by_shape(input.shape.size, wanted, input, name or size_op.type)
    return size_op(input, out_type=wanted, name=name)


@composed("ShapeN")
def shape_n(input: Sequence[Any], out_type: Any = int32, name: str | None = None) -> list[Tensor]:
    """The shapes of several tensors, as the run finds them: a list of vectors as of `shape`."""
    wanted = _index_dtype(out_type)
    return [shape(tensor, wanted) for tensor in input]


def _index_dtype(dtype: Any) -> Any:
    found = as_dtype(dtype)
    if found not in INDICES:
        raise InvalidTypeError(f"out_type is int32 or int64, not {found.name}")
    return found


def _rank_of_each(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
    return [convert_to_tensor(inputs[0].rank)]


rank_op = OpDef(
    "Rank",
    "input: T -> output: int32",
    T=MOVABLE,
    infer=scalar,
    kernel=lambda xp, input: xp.asarray(input.ndim, np.int32),
    elements=lambda op, known: (op.inputs[0].shape.rank,),
    batching=Batching(_rank_of_each, is_alike=True),
    only_moves=True,
)


@rank_op.front
def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions of a tensor, an int32 scalar; a constant, where it is known.

    Args:
        input: a tensor of any shape and dtype, or a sparse tensor.
        name: the operation's name. What is known before the run is `tensor.shape.rank`.
    """
    whole = _dense_shape(input)
    if whole is not None:
        return size(whole, name=name)
    input = convert_to_tensor(input)
    if input.shape.rank is not None:
        return told_by_shape(input.shape.rank, int32, input, name or rank_op.type)
    return rank_op(input, name=name)


def shape_of(tensor: Tensor) -> Any:
    """A tensor's shape as an int vector: values where they are known, `shape(tensor)` otherwise.

    Gradients use it, so that a value is not kept in memory only to ask for its shape.
    """
    known = tensor.shape
    return integers(known.as_list()) if known.is_fully_defined else shape_op(tensor)


def _reshaped(tensor: Tensor, shape: Tensor) -> Shape:
    check_vector("shape", shape)
    given = constant_value(shape)
    if given is not None and ((given == -1).sum() > 1 or (given < -1).any()):
        raise InvalidArgumentError(
            f"a shape has no negative dimension and at most one -1, not {given.tolist()}"
        )
    wanted = shape_from(shape)
    size = tensor.shape.size
    if wanted.dims is None or tensor.shape.dims is None:
        return wanted
    if size is None:
        _check_divisible(tensor.shape.dims, wanted)
        return wanted
    if wanted.is_fully_defined and wanted.size != size:
        raise InvalidArgumentError(
            f"{size} elements of shape {tensor.shape} do not fit the shape {wanted}"
        )
    if wanted.dims.count(None) == 1 and (given is not None or 0 not in wanted.dims):
        left = _left_over(tensor.shape.dims, [-1 if d is None else d for d in wanted.dims])
        if left is None:
            shown = wanted if given is None else given.tolist()
            known = math.prod(d for d in wanted.dims if d is not None)
            raise InvalidArgumentError(
                f"{size} elements of shape {tensor.shape} do not fit the shape {shown}: "
                f"{size} is not a multiple of {known}"
            )
        wanted = Shape.of(tuple(left if d is None else d for d in wanted.dims))
    return wanted


def _check_divisible(dims: Dims, wanted: Shape) -> None:
    """See that so many elements can be of a shape that is known in part."""
    known = math.prod(d for d in dims if d is not None)
    if wanted.size is not None and (wanted.size % known if known else wanted.size):
        raise InvalidArgumentError(
            f"the elements of shape {Shape.of(dims)} do not fit the shape {wanted}: "
            f"{wanted.size} is not a multiple of {known}"
        )


def _left_over(dims: Sequence[Any], wanted: Sequence[int]) -> int | None:
    """The dimension that the one -1 in a wanted shape stands for; None where there is none.

    Where both shapes have a 0 it is what the other dimensions leave, so that a batch without
    examples is flattened to the width that it would have with some.
    """
    rest = math.prod(d for d in wanted if d > 0)
    if 0 in wanted:
        return math.prod(d for d in dims if d) // rest if 0 in dims else None
    size = math.prod(dims)
    return None if size % rest else size // rest


def _reshape(xp: Any, tensor: Any, shape: Any) -> Any:
    dims = dims_of(shape)
    if not tensor.size and 0 in dims and dims.count(-1) == 1:
        left = _left_over(tensor.shape, dims)
        dims = tuple(left if d == -1 and left is not None else d for d in dims)
    try:
        if min(dims, default=0) < -1:
            raise ValueError  # NumPy takes any negative number for -1.
        return tensor.reshape(dims)
    except ValueError:
        raise InvalidArgumentError(
            f"{tensor.size} elements of shape {list(tensor.shape)} do not fit the shape "
            f"{list(dims)}"
        ) from None


def _reshaped_for_all(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
    return batch.again(op, [inputs[0].tensor, batch.shape_for_all(op, inputs[1].tensor)])


reshape_op: OpDef = OpDef(
    "Reshape",
    "tensor: T, shape: I -> output: T",
    T=MOVABLE,
    I=INDICES,
    infer=_reshaped,
    kernel=_reshape,
    host_args=("shape",),
    grad=lambda op, dy: (reshape_op(dy, shape_of(op.inputs[0])), None),
    aliases={0: 0},
    spreads_nonfinite=("tensor",),
    computes_shapes=True,
    batching=Batching(_reshaped_for_all),
    only_moves=True,
)


@reshape_op.front
def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same elements, in row-major order, in another shape.

    Args:
        tensor: of any shape and dtype.
        shape: an int vector tensor, or a sequence of ints and int scalar tensors; one may be -1
            and is what is left for it: of no elements, what the dimensions other than 0 leave.

    Raises:
        InvalidArgumentError: if the number of elements differs; in the run, where it is known only
            then.

    >>> import flowbook as fb
    >>> fb.reshape(fb.zeros([6, 4]), [3, -1]).shape
    Shape([3, 8])
    """
    shape = shape_argument(shape)
    return reshape_op(tensor, shape, name=name)


def _expanded(input: Tensor, axis: tuple[int, ...]) -> Shape:
    if input.shape.dims is None:
        return UNKNOWN
    return Shape.of(_with_ones(input.shape.dims, axis))


def _with_ones(dims: Dims, axis: tuple[int, ...]) -> Dims:
    """Dimensions with those of size 1 that stand at axes of the result."""
    total = len(dims) + len(axis)
    new, old = all_in_range(axis, total), iter(dims)
    return tuple([1 if i in new else next(old) for i in range(total)])


def _expand(xp: Any, input: Any, axis: tuple[int, ...]) -> Any:
    return input.reshape(_with_ones(input.shape, axis))


expand_dims_op = OpDef(
    "ExpandDims",
    "input: T -> output: T",
    T=MOVABLE,
    attributes={"axis": REQUIRED},
    infer=_expanded,
    kernel=_expand,
    grad=lambda op, dy: reshape_op(dy, shape_of(op.inputs[0])),
    aliases={0: 0},
    spreads_nonfinite=("input",),
    computes_shapes=True,
    axes="axis",
    batching=Batching.ALONG_AXIS,
    only_moves=True,
)


@expand_dims_op.front
def expand_dims(input: Any, axis: int, name: str | None = None) -> Tensor:
    """Insert a dimension of size 1.

    Args:
        input: of any shape and dtype.
        axis: where it stands in the result; negative counts from the result's end. A sequence of
            ints inserts several.

    Raises:
        InvalidArgumentError: if the axis is out of range.
    """
    axes = axes_or_tensor(axis)
    if axes is None:
        raise InvalidTypeError("an axis is an int, not None")
    return expand_dims_op(input, axis=axes, name=name)


def _squeezed(input: Tensor, axis: tuple[int, ...] | None) -> Shape:
    dims = input.shape.dims
    if dims is None:
        return UNKNOWN
    if axis is None:
        if None in dims:
            return UNKNOWN
        return Shape.of(tuple(d for d in dims if d != 1))
    gone = all_in_range(axis, len(dims))
    for i in gone:
        if dims[i] not in (None, 1):
            raise InvalidArgumentError(
                f"dimension {i} of the shape {input.shape} is {dims[i]}: only 1 can be squeezed"
            )
    return Shape.of(tuple(d for i, d in enumerate(dims) if i not in gone))


def _squeeze(xp: Any, input: Any, axis: tuple[int, ...] | None) -> Any:
    if axis is not None:
        for i in all_in_range(axis, input.ndim):
            if input.shape[i] != 1:
                raise InvalidArgumentError(
                    f"dimension {i} of the shape {list(input.shape)} is {input.shape[i]}: "
                    "only 1 can be squeezed"
                )
    return xp.squeeze(input, axis)


def _squeezed_for_all(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
    axis = op.attributes["axis"]
    if axis is None:
        axis = tuple([i for i, dim in enumerate(op.inputs[0].shape) if dim == 1])
    return batch.again(op, [inputs[0].tensor], axis=batch.shifted(axis))


squeeze_op = OpDef(
    "Squeeze",
    "input: T -> output: T",
    T=MOVABLE,
    attributes={"axis": None},
    infer=_squeezed,
    kernel=_squeeze,
    grad=lambda op, dy: reshape_op(dy, shape_of(op.inputs[0])),
    aliases={0: 0},
    spreads_nonfinite=("input",),
    computes_shapes=True,
    axes="axis",
    batching=Batching(_squeezed_for_all, takes_tensors=True),
    only_moves=True,
)


@squeeze_op.front
def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Remove dimensions of size 1.

    Args:
        input: of any shape and dtype.
        axis: which, an int or a sequence of ints; None, or none of them, removes all that are 1.

    Raises:
        InvalidArgumentError: if one of them is not 1; in the run, where it is known only then.
    """
    axes = axes_or_tensor(axis, input)
    axes = None if axes == () else axes
    return squeeze_op(input, axis=axes, name=name)
