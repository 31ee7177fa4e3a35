"""The operations on arrays of tensors, which `TensorArray` writes.

An array is a value like any other: a write gives another array, and leaves the one it was given as
it was. The gradient of an array is an array too, which is zero where nothing was written, and in
which what is written at one index adds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowbook.graph.control_flow.stacks import empty_stack
from flowbook.graph.control_flow.tensor_list import Rules, TensorList
from flowbook.graph.definition.inference import scalar, shape_from, uncounted
from flowbook.graph.definition.op_def import NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import MOVABLE, DType
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import SCALAR, UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.shaping import dims_of, shape_of

_ZERO = Rules("gradient", adds_up=True)
_TYPED = {"dtype": REQUIRED, "element_shape": UNKNOWN}


def _require_rank(name: str, tensor: Tensor, rank: int) -> None:
    if tensor.shape.rank not in (None, rank):
        what = "a scalar" if not rank else "a vector"
        raise InvalidArgumentError(f"{name!r} is {what}, not of shape {tensor.shape}")


def _index(value: Any) -> int:
    if value.ndim:
        raise InvalidArgumentError(f"an index is a scalar, not of shape {list(value.shape)}")
    return int(value)


def _indices(value: Any) -> list[int]:
    if value.ndim != 1:
        raise InvalidArgumentError(f"indices are a vector, not of shape {list(value.shape)}")
    return value.tolist()  # type: ignore[no-any-return]


# Making them


def _made(size: Tensor, **_: Any) -> Shape:
    _require_rank("size", size, 0)
    return SCALAR


def _array(
    xp: Any,
    size: Any,
    element_shape: Shape,
    dynamic_size: bool,
    clear_after_read: bool,
    infer_shape: bool,
    adds_up: bool,
    tensor_array_name: str,
) -> TensorList:
    count = _index(size)
    if count < 0:
        raise InvalidArgumentError(f"the size of an array is not negative: {count}")
    rules = Rules(tensor_array_name, dynamic_size, clear_after_read, infer_shape, adds_up)
    return TensorList(rules, count, element_shape)


array_op = OpDef(
    "TensorArray",
    "size: int32 -> array: variant",
    attributes={
        "element_shape": UNKNOWN,
        "dynamic_size": False,
        "clear_after_read": True,
        "infer_shape": True,
        "adds_up": False,
        "tensor_array_name": "",
    },
    infer=_made,
    kernel=_array,
    host_args=("size",),
    grad=NO_GRADIENT,
    aliases=None,
    only_moves=True,
)


def _list(value: Any) -> TensorList:
    """An array in a run; what is empty is the gradient of one from which nothing was read."""
    return TensorList(_ZERO, 0, UNKNOWN) if isinstance(value, tuple) else value


# Elements one by one


def _element(array: Tensor, index: Tensor, element_shape: Shape, **_: Any) -> Shape:
    _require_rank("index", index, 0)
    return element_shape


def _read(xp: Any, array: TensorList, index: Any, dtype: DType, element_shape: Shape) -> Any:
    found = array.read(_index(index))
    return _zeros(xp, array, element_shape, dtype) if found is None else found


def _zeros(xp: Any, array: TensorList, shape: Shape, dtype: DType) -> Any:
    if not shape.is_fully_defined:
        raise InvalidArgumentError(
            f"the shape of the elements of the TensorArray {array.rules.name!r} is not known: it "
            f"is {shape}",
            hint="say it by element_shape=..., when the array is made",
        )
    return xp.zeros(shape.dims, dtype.numpy)


def _alone(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    """The gradient of what an element was read from: nothing but that element's."""
    return write_op(empty_stack(), op.inputs[1], dy), None


read_op = OpDef(
    "TensorArrayRead",
    "array: variant, index: int32 -> value: dtype",
    attributes=_TYPED,
    infer=_element,
    kernel=_read,
    host_args=("index",),
    grad=_alone,
    aliases=None,
    only_moves=True,
)


def _written_at(array: Tensor, index: Tensor, value: Tensor) -> Shape:
    _require_rank("index", index, 0)
    return SCALAR


write_op = OpDef(
    "TensorArrayWrite",
    "array: variant, index: int32, value: T -> written: variant",
    T=MOVABLE,
    infer=_written_at,
    kernel=lambda xp, array, index, value: _list(array).written({_index(index): value}),
    host_args=("index",),
    grad=lambda op, dy: (dy, None, _taken(op, dy)),
    aliases=None,
    only_moves=True,
)

# What is written in the place of another element takes its gradient too.
replace_op: OpDef = OpDef(
    "TensorArrayReplace",
    "array: variant, index: int32, value: T -> replaced: variant",
    T=MOVABLE,
    infer=_written_at,
    kernel=lambda xp, array, index, value: array.written({_index(index): value}, replaces=True),
    host_args=("index",),
    grad=lambda op, dy: (leave_out_op(dy, op.inputs[1]), None, _taken(op, dy)),
    aliases=None,
    only_moves=True,
)


def _left(array: Tensor, index: Tensor) -> Shape:
    _require_rank("index", index, 0)
    return SCALAR


leave_out_op: OpDef = OpDef(
    "TensorArrayLeaveOut",
    "array: variant, index: int32 -> left: variant",
    infer=_left,
    kernel=lambda xp, array, index: _list(array).without(_index(index)),
    host_args=("index",),
    grad=lambda op, dy: (leave_out_op(dy, op.inputs[1]), None),
    aliases=None,
    only_moves=True,
)


# Several of them


def _rows(array: Tensor, indices: Tensor, element_shape: Shape, **_: Any) -> Shape:
    _require_rank("indices", indices, 1)
    return indices.shape.with_rank(1).concatenate(element_shape)


def _gathered(xp: Any, array: TensorList, indices: Any, dtype: DType, element_shape: Shape) -> Any:
    rows = [array.read(index) for index in _indices(indices)]
    shape = next((Shape.of(r.shape) for r in rows if r is not None), array.element_shape)
    return _stacked(xp, array, rows, shape.merge(element_shape), dtype)


def _stacked(xp: Any, array: TensorList, rows: Sequence[Any], shape: Shape, dtype: DType) -> Any:
    """Elements one upon the other; where there is none, it is zero."""
    if not rows:
        return _zeros(xp, array, Shape.of((0,)).concatenate(shape), dtype)
    try:
        return xp.stack(_all_there(xp, array, rows, shape, dtype))
    except ValueError:
        shapes = ", ".join(str(list(row.shape)) for row in rows)
        raise InvalidArgumentError(
            f"the elements of the TensorArray {array.rules.name!r} have different shapes and "
            f"cannot be stacked: {shapes}"
        ) from None


def _all_there(
    xp: Any, array: TensorList, found: Sequence[Any], shape: Shape, dtype: DType
) -> Sequence[Any]:
    """Elements, with zeros for those that there are not in an array that adds up."""
    if all(element is not None for element in found):
        return found
    zeros = _zeros(xp, array, shape, dtype)
    return [zeros if element is None else element for element in found]


gather_op = OpDef(
    "TensorArrayGather",
    "array: variant, indices: int32 -> value: dtype",
    attributes=_TYPED,
    infer=_rows,
    kernel=_gathered,
    host_args=("indices",),
    grad=lambda op, dy: (scatter_op(empty_stack(), op.inputs[1], dy), None),
    aliases=None,
    only_moves=True,
)


def _scattered(array: Tensor, indices: Tensor, value: Tensor) -> Shape:
    _require_rank("indices", indices, 1)
    if value.shape.rank == 0:
        raise InvalidArgumentError("a scalar has no rows that could be written")
    if not indices.shape.is_compatible_with(value.shape[:1]):
        raise InvalidArgumentError(
            f"the rows of {value.shape} cannot have {counted(indices.shape[0], 'index', 'indices')}"
        )
    return SCALAR


def _scatter(xp: Any, array: Any, indices: Any, value: Any) -> TensorList:
    found, places = _list(array), _indices(indices)
    if value.shape[:1] != (len(places),):
        raise InvalidArgumentError(
            f"the rows of {list(value.shape)} cannot have "
            f"{counted(len(places), 'index', 'indices')}"
        )
    for rows in _rounds(places):
        # The Ellipsis makes each row an array, also where it is a single string.
        found = found.written({places[row]: value[row, ...] for row in rows})
    return found


def _rounds(places: list[int]) -> list[list[int]]:
    """The rows in as few groups as there are rows for one place; in a group all places differ."""
    rounds: list[list[int]] = []
    seen: dict[int, int] = {}
    for row, place in enumerate(places):
        earlier = seen[place] = seen.get(place, -1) + 1
        if earlier == len(rounds):
            rounds.append([])
        rounds[earlier].append(row)
    return rounds


scatter_op: OpDef = OpDef(
    "TensorArrayScatter",
    "array: variant, indices: int32, value: T -> written: variant",
    T=MOVABLE,
    infer=_scattered,
    kernel=_scatter,
    host_args=("indices",),
    grad=lambda op, dy: (dy, None, _taken_rows(op, dy)),
    aliases=None,
    only_moves=True,
)


# Pieces of different lengths


def _joined(array: Tensor, element_shape: Shape, **_: Any) -> list[Shape]:
    dims = element_shape.dims
    return [UNKNOWN if dims is None else Shape.of((None, *dims[1:])), Shape.of((None,))]


def _concatenated(
    xp: Any, array: TensorList, dtype: DType, element_shape: Shape
) -> tuple[Any, Any]:
    shape = array.element_shape.merge(element_shape)
    pieces = [array.read(index) for index in range(array.size)]
    if not pieces:
        empty = _zeros(xp, array, Shape.of((0,)).concatenate(shape[1:]), dtype)
        return empty, xp.zeros((0,), "int32")
    pieces = list(_all_there(xp, array, pieces, shape, dtype))
    if any(piece.ndim == 0 for piece in pieces):
        raise InvalidArgumentError(
            f"the elements of the TensorArray {array.rules.name!r} are scalars, which cannot be "
            "joined",
            hint="stack() joins them",
        )
    try:
        joined = xp.concatenate(pieces)
    except ValueError:
        shapes = ", ".join(str(list(piece.shape)) for piece in pieces)
        raise InvalidArgumentError(
            f"the elements of the TensorArray {array.rules.name!r} differ in more than their first "
            f"dimension, along which they are joined: {shapes}"
        ) from None
    return joined, xp.asarray([len(piece) for piece in pieces], "int32")


concat_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "TensorArrayConcat",
    "array: variant -> value: dtype, lengths: int32",
    attributes=_TYPED,
    infer=_joined,
    kernel=_concatenated,
    grad=lambda op, dy, _: split_op(empty_stack(), dy, op.outputs[1]),
    aliases=None,
    only_moves=True,
)


def _pieces(array: Tensor, value: Tensor, lengths: Tensor) -> Shape:
    _require_rank("lengths", lengths, 1)
    if value.shape.rank == 0:
        raise InvalidArgumentError("a scalar cannot be cut into pieces")
    return SCALAR


def _split(xp: Any, array: Any, value: Any, lengths: Any) -> TensorList:
    found, sizes = _list(array), _indices(lengths)
    rules = found.rules
    if not rules.adds_up and len(sizes) != found.size and not rules.is_dynamic:
        raise InvalidArgumentError(
            f"the TensorArray {rules.name!r} has the size {found.size}, but there are "
            f"{counted(len(sizes), 'piece')}",
            hint="dynamic_size=True lets it grow",
        )
    if not value.ndim or sum(sizes) != len(value) or min(sizes, default=0) < 0:
        raise InvalidArgumentError(
            f"pieces of the lengths {sizes} do not make up a value of shape {list(value.shape)}"
        )
    changes, begin = {}, 0
    for index, length in enumerate(sizes):
        changes[index] = value[begin : begin + length]
        begin += length
    return found.written(changes)


def _split_gradient(op: Operation, dy: Tensor) -> Any:
    _, value, lengths = op.inputs
    return dy, take_pieces_op(dy, lengths, shape_of(value), dtype=value.dtype), None


split_op: OpDef = OpDef(
    "TensorArraySplit",
    "array: variant, value: T, lengths: int32 -> written: variant",
    T=MOVABLE,
    infer=_pieces,
    kernel=_split,
    host_args=("lengths",),
    grad=_split_gradient,
    aliases=None,
    only_moves=True,
)

size_op = OpDef(
    "TensorArraySize",
    "array: variant -> size: int32",
    infer=scalar,
    kernel=lambda xp, array: xp.asarray(array.size, "int32"),
    aliases=None,
    only_moves=True,
)


# What arrays are zero in where nothing was written: gradients of what was


def _taken(op: Operation, dy: Tensor) -> Tensor:
    """The gradient of the value that was written at an index."""
    _, index, value = op.inputs
    return take_op(dy, index, shape_of(value), dtype=value.dtype)


def _taken_rows(op: Operation, dy: Tensor) -> Tensor:
    """The gradient of the value whose rows were written."""
    _, indices, value = op.inputs
    return take_rows_op(dy, indices, shape_of(value), dtype=value.dtype)


def _given_shape(array: Tensor, where: Tensor, shape: Tensor, dtype: DType) -> Shape:
    return shape_from(shape)


def _take(xp: Any, array: Any, index: Any, shape: Any, dtype: DType) -> Any:
    found = _list(array).read(_index(index))
    return xp.zeros(dims_of(shape), dtype.numpy) if found is None else found


def _take_rows(xp: Any, array: Any, indices: Any, shape: Any, dtype: DType) -> Any:
    array = _list(array)
    rows = [array.read(index) for index in _indices(indices)]
    return _stacked(xp, array, rows, Shape.of(dims_of(shape)[1:]), dtype)


def _take_pieces(xp: Any, array: Any, lengths: Any, shape: Any, dtype: DType) -> Any:
    array, dims, pieces = _list(array), dims_of(shape), []
    for index, length in enumerate(_indices(lengths)):
        found = array.read(index)
        pieces.append(xp.zeros((length, *dims[1:]), dtype.numpy) if found is None else found)
    return xp.concatenate(pieces) if pieces else xp.zeros(dims, dtype.numpy)


take_op = OpDef(
    "TensorArrayTake",
    "array: variant, index: int32, shape: int32 -> value: dtype",
    attributes={"dtype": REQUIRED},
    infer=_given_shape,
    kernel=_take,
    host_args=("index", "shape"),
    grad=lambda op, dy: (*_alone(op, dy), None),
    aliases=None,
    only_moves=True,
)

take_rows_op = OpDef(
    "TensorArrayTakeRows",
    "array: variant, indices: int32, shape: int32 -> value: dtype",
    attributes={"dtype": REQUIRED},
    infer=_given_shape,
    kernel=_take_rows,
    host_args=("indices", "shape"),
    grad=lambda op, dy: (scatter_op(empty_stack(), op.inputs[1], dy), None, None),
    aliases=None,
    only_moves=True,
)

take_pieces_op = OpDef(
    "TensorArrayTakePieces",
    "array: variant, lengths: int32, shape: int32 -> value: dtype",
    attributes={"dtype": REQUIRED},
    infer=_given_shape,
    kernel=_take_pieces,
    host_args=("lengths", "shape"),
    grad=lambda op, dy: (split_op(empty_stack(), dy, op.inputs[1]), None, None),
    aliases=None,
    only_moves=True,
)


def _sum(xp: Any, first: Any, *others: Any) -> TensorList:
    total = _list(first)
    for other in others:
        total = total.plus(_list(other))
    return total


add_arrays = OpDef(
    "TensorArrayAdd",
    "arrays: N*variant -> sum: variant",
    infer=scalar,
    kernel=_sum,
    grad=lambda op, dy: [dy] * len(op.inputs),
    aliases=None,
    cost=uncounted,
)
