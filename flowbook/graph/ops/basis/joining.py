"""Several tensors into one and one into several: concat and split, stack and unstack."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import as_axis, axis_or_tensor, in_range
from flowbook.graph.definition.batching import JOINED, Batching
from flowbook.graph.definition.inference import (
    Elements,
    Known,
    constant_value,
    shape_from,
)
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.definition.packing import packed
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import INDICES, MOVABLE, DType
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import integers, shape_op

__all__ = ["concat", "split", "stack", "unstack"]


def _concatenated(values: list[Tensor], axis: int) -> Shape:
    whole = UNKNOWN
    length: int | None = 0
    for tensor in values:
        if tensor.shape.dims is None:
            length = None
            continue
        rank = len(tensor.shape.dims)
        if not rank:
            raise InvalidArgumentError("scalars cannot be concatenated", hint="fb.stack joins them")
        i = in_range(axis, rank)
        along = tensor.shape.dims[i]
        length = None if length is None or along is None else length + along
        rest = Shape.of((*tensor.shape.dims[:i], None, *tensor.shape.dims[i + 1 :]))
        if not whole.is_compatible_with(rest):
            shapes = ", ".join(str(t.shape) for t in values)
            raise InvalidArgumentError(
                f"the shapes {shapes} differ in more than axis {axis}, along which they are joined"
            )
        whole = whole.merge(rest)
    if whole.dims is None:
        return UNKNOWN
    i = in_range(axis, len(whole.dims))
    return Shape.of((*whole.dims[:i], length, *whole.dims[i + 1 :]))


def _concat(xp: Any, *values: Any, axis: int) -> Any:
    try:
        return xp.concatenate(values, axis=axis)
    except ValueError:
        shapes = ", ".join(str(list(v.shape)) for v in values)
        raise InvalidArgumentError(
            f"the shapes {shapes} cannot be joined along axis {axis}"
        ) from None


def _concat_gradient(op: Operation, dy: Tensor) -> list[Tensor]:
    axis = op.attributes["axis"]
    is_known = not isinstance(axis, Tensor)
    sizes = [t.shape.dims[axis] if is_known and t.shape.dims else None for t in op.inputs]
    pieces: list[Tensor]
    if None not in sizes:
        pieces = split_op(dy, axis=axis, sizes=tuple(sizes), Tout=(dy.dtype,) * len(sizes))
    else:
        shapes = [shape_op(t) for t in op.inputs]
        pieces = concat_gradient_op(dy, shapes, axis=axis, Tout=(dy.dtype,) * len(sizes))
    return pieces


def _concatenated_elements(op: Operation, known: Known) -> Elements | None:
    if op.attributes["axis"] != 0 and op.outputs[0].shape.rank != 1:
        return None
    parts = [known(tensor) for tensor in op.inputs]
    return None if None in parts else tuple(chain.from_iterable(parts))  # type: ignore[arg-type]


concat_op = OpDef(
    "Concat",
    "values: N*T -> output: T",
    T=MOVABLE,
    attributes={"axis": REQUIRED},
    infer=_concatenated,
    kernel=_concat,
    grad=_concat_gradient,
    spreads_nonfinite=("values",),
    computes_shapes=True,
    elements=_concatenated_elements,
    axis="axis",
    batching=JOINED,
    only_moves=True,
)


@concat_op.front
def concat(values: Sequence[Any], axis: Any, name: str | None = None) -> Tensor:
    """Join tensors along an axis that they have.

    Args:
        values: tensors of one dtype whose shapes differ in this axis at most.
        axis: an int, negative ones counted from the last, or a tensor of one.

    Raises:
        InvalidArgumentError: if the shapes do not fit; in the run, where it is known only then.

    >>> import flowbook as fb
    >>> fb.concat([fb.zeros([2, 3]), fb.zeros([4, 3])], 0).shape
    Shape([6, 3])
    """
    axis = axis_or_tensor(axis)
    return concat_op(values, axis=axis, name=name)


def _concat_gradient_shapes(
    dy: Tensor, shapes: list[Tensor], axis: int, Tout: tuple[DType, ...]
) -> list[Shape]:
    return [shape_from(shape) for shape in shapes]


def _split_by_shapes(xp: Any, dy: Any, *shapes: Any, axis: int) -> Any:
    return _cut(xp, dy, [int(s[axis]) for s in shapes], axis)


def _cut(xp: Any, value: Any, sizes: Sequence[int], axis: int) -> tuple[Any, ...]:
    pieces = []
    start = 0
    before = (slice(None),) * in_range(axis, value.ndim)
    for size in sizes:
        pieces.append(value[(*before, slice(start, start + size))])
        start += size
    return tuple(pieces)


concat_gradient_op: OpDef[list[Tensor]] = OpDef(
    "ConcatGrad",
    "dy: T, shapes: N*I -> dvalues: *Tout",
    T=MOVABLE,
    I=INDICES,
    attributes={"axis": REQUIRED, "Tout": REQUIRED},
    infer=_concat_gradient_shapes,
    kernel=_split_by_shapes,
    host_args=("shapes",),
    grad=lambda op, *dzs: (
        concat_op(list(dzs), axis=op.attributes["axis"]),
        *(None,) * (len(op.inputs) - 1),
    ),
    axis="axis",
    aliases=None,
    only_moves=True,
)


def _split_shapes(
    value: Tensor, axis: int, sizes: tuple[int, ...] | None, Tout: tuple[DType, ...]
) -> list[Shape]:
    dims = value.shape.dims
    if dims is None:
        return [UNKNOWN] * len(Tout)
    i = in_range(axis, len(dims))
    counts: Sequence[int | None] = (None,) * len(Tout)
    if sizes is not None or dims[i] is not None:
        counts = _fitting(sizes, len(Tout), dims[i], axis, value.shape)
    return [Shape.of((*dims[:i], size, *dims[i + 1 :])) for size in counts]


def _fitting(
    sizes: Sequence[int] | None, count: int, length: int | None, axis: int, shape: Any
) -> Sequence[int | None]:
    """The sizes of pieces of an axis: equal ones for None, and -1 is what the others leave.

    Raises:
        InvalidArgumentError: if they do not fit.
    """
    if sizes is None:
        assert length is not None
        if length % count:
            raise InvalidArgumentError(
                f"axis {axis} of {shape} cannot be split into {count} equal pieces"
            )
        return (length // count,) * count
    if min(sizes, default=0) < -1 or list(sizes).count(-1) > 1:
        raise InvalidArgumentError(
            f"a size is not negative, but for one that may be -1: {list(sizes)}"
        )
    given = sum(size for size in sizes if size != -1)
    if -1 in sizes and (length is None or given <= length):
        rest = None if length is None else length - given
        return tuple(rest if size == -1 else size for size in sizes)
    if length is not None and length != given:
        raise InvalidArgumentError(
            f"sizes {list(sizes)} are {given} together, but axis {axis} of {shape} has {length}"
        )
    return sizes


def _split(
    xp: Any, value: Any, axis: int, sizes: tuple[int, ...] | None, Tout: tuple[DType, ...]
) -> tuple[Any, ...]:
    length = value.shape[in_range(axis, value.ndim)]
    counts = _fitting(sizes, len(Tout), length, axis, list(value.shape))
    return _cut(xp, value, counts, axis)  # type: ignore[arg-type]


split_op: OpDef[list[Tensor]] = OpDef(
    "Split",
    "value: T -> outputs: *Tout",
    T=MOVABLE,
    attributes={"axis": REQUIRED, "sizes": None, "Tout": REQUIRED},
    infer=_split_shapes,
    kernel=_split,
    grad=lambda op, *dys: concat_op(list(dys), axis=op.attributes["axis"]),
    axis="axis",
    aliases=None,
    batching=Batching.ALONG_AXIS,
    only_moves=True,
)


def _split_by_shape(
    value: Tensor, size_splits: Tensor, axis: int, Tout: tuple[DType, ...]
) -> list[Shape]:
    if not size_splits.shape.is_compatible_with((len(Tout),)):
        raise InvalidArgumentError(
            f"sizes of shape {size_splits.shape} are not those of {counted(len(Tout), 'piece')}"
        )
    known = constant_value(size_splits)
    if known is not None:
        return _split_shapes(value, axis, tuple(known.tolist()), Tout)
    dims = value.shape.dims
    if dims is None:
        return [UNKNOWN] * len(Tout)
    i = in_range(axis, len(dims))
    return [Shape.of((*dims[:i], None, *dims[i + 1 :]))] * len(Tout)


def _split_by(
    xp: Any, value: Any, size_splits: Any, axis: int, Tout: tuple[DType, ...]
) -> tuple[Any, ...]:
    if size_splits.shape != (len(Tout),):
        raise InvalidArgumentError(
            f"sizes of shape {list(size_splits.shape)} are not those of "
            f"{counted(len(Tout), 'piece')}"
        )
    return _split(xp, value, axis, tuple(size_splits.tolist()), Tout)


split_by_op: OpDef[list[Tensor]] = OpDef(
    "SplitV",
    "value: T, size_splits: I -> outputs: *Tout",
    T=MOVABLE,
    I=INDICES,
    attributes={"axis": REQUIRED, "Tout": REQUIRED},
    infer=_split_by_shape,
    kernel=_split_by,
    host_args=("size_splits",),
    grad=lambda op, *dys: (concat_op(list(dys), axis=op.attributes["axis"]), None),
    axis="axis",
    aliases=None,
    only_moves=True,
)


@split_op.front
def split(
    value: Any,
    num_or_size_splits: Any,
    axis: Any = 0,
    num: int | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Cut a tensor into pieces along an axis: the reverse of `concat`.

    Args:
        value: of any dtype.
        num_or_size_splits: an int, for so many equal pieces; or the size of each: a sequence of
            ints or an int vector tensor, of which one may be -1, and is what the others leave.
        axis: an int, negative ones counted from the last, or a tensor of one.
        num: how many pieces there are; needed where the shape of a tensor of sizes is not known.

    Raises:
        InvalidArgumentError: if the pieces do not add up to the axis; in the run, where it is known
            only then.

    >>> import flowbook as fb
    >>> [piece.shape for piece in fb.split(fb.zeros([5, 6]), [1, -1], axis=1)]
    [Shape([5, 1]), Shape([5, 5])]
    """
    value, axis = convert_to_tensor(value), axis_or_tensor(axis)
    sizes, count = _pieces(num_or_size_splits, num)
    typed: dict[str, Any] = {"axis": axis, "Tout": (value.dtype,) * count, "name": name}
    result: list[Tensor]
    if isinstance(sizes, Tensor):
        result = split_by_op(value, sizes, **typed)
    else:
        result = split_op(value, sizes=sizes, **typed)
    return result


def _pieces(given: Any, num: int | None) -> tuple[Any, int]:
    """The sizes of pieces (None: equal ones) and their number."""
    given = packed(given)
    if isinstance(given, Arithmetic):
        tensor = convert_to_tensor(given)
        if tensor.shape.rank == 0:
            known = constant_value(tensor)
            if known is None:
                raise InvalidArgumentError("how many pieces there are is known before the run")
            return None, int(known)
        known_count = tensor.shape.dims[0] if tensor.shape.dims is not None else None
        count = known_count if num is None else num
        if count is None:
            raise InvalidArgumentError(
                "how many sizes there are is not known before the run",
                hint="say how many pieces there are: num=...",
            )
        return tensor, count
    if isinstance(given, list | tuple | np.ndarray) and np.ndim(given):
        sizes = tuple(integers(list(given)).tolist())
        if not sizes:
            raise InvalidArgumentError("there is at least one piece")
        return sizes, len(sizes)
    count = as_axis(given)
    if count < 1:
        raise InvalidArgumentError(f"there is at least one piece, not {count}")
    return None, count


def _stacked(values: list[Tensor], axis: int) -> Shape:
    one = values[0].shape
    for tensor in values[1:]:
        one = one.merge(tensor.shape)
    if one.dims is None:
        return UNKNOWN
    i = in_range(axis, len(one.dims) + 1)
    return Shape.of((*one.dims[:i], len(values), *one.dims[i:]))


def _stack(xp: Any, *values: Any, axis: int) -> Any:
    try:
        return xp.stack(values, axis=axis)
    except ValueError:
        shapes = ", ".join(str(list(v.shape)) for v in values)
        raise InvalidArgumentError(
            f"the shapes {shapes} cannot be stacked along axis {axis}"
        ) from None


def _stacked_elements(op: Operation, known: Known) -> Elements | None:
    if op.outputs[0].shape.rank != 1:
        return _concatenated_elements(op, known)
    # Of a tensor beside scalars it is known that it is one, whatever its shape says.
    return tuple(chain.from_iterable(known(tensor) or (None,) for tensor in op.inputs))


stack_op = OpDef(
    "Stack",
    "values: N*T -> output: T",
    T=MOVABLE,
    attributes={"axis": 0},
    infer=_stacked,
    kernel=_stack,
    grad=lambda op, dy: unstack_op(
        dy, axis=op.attributes["axis"], Tout=(dy.dtype,) * len(op.inputs)
    ),
    spreads_nonfinite=("values",),
    computes_shapes=True,
    elements=_stacked_elements,
    batching=JOINED,
    only_moves=True,
)


@stack_op.front
def stack(values: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """Join tensors along a new axis.

    Args:
        values: tensors of one dtype and shape: a sequence of them, or an array of their values.
        axis: where the new axis stands in the result; negative counts from the result's end.

    Raises:
        InvalidArgumentError: if the shapes differ; in the run, where it is known only then.
    """
    axis = as_axis(axis)
    if isinstance(values, np.ndarray) and values.ndim:
        values = list(values)
    return stack_op(values, axis=axis, name=name)


def _unstacked(value: Tensor, axis: int, Tout: tuple[DType, ...]) -> list[Shape]:
    dims = value.shape.dims
    if dims is None:
        return [UNKNOWN] * len(Tout)
    i = in_range(axis, len(dims))
    if dims[i] not in (None, len(Tout)):
        raise InvalidArgumentError(
            f"axis {axis} of {value.shape} has {dims[i]} elements, not {len(Tout)}"
        )
    return [Shape.of((*dims[:i], *dims[i + 1 :]))] * len(Tout)


def _unstack(xp: Any, value: Any, axis: int, Tout: tuple[DType, ...]) -> tuple[Any, ...]:
    i = in_range(axis, value.ndim)
    if value.shape[i] != len(Tout):
        raise InvalidArgumentError(
            f"axis {axis} of {list(value.shape)} has {value.shape[i]} elements, not {len(Tout)}"
        )
    before = (slice(None),) * i
    # The Ellipsis makes each part an array, also where it is a single string.
    return tuple(value[(*before, k, ...)] for k in range(len(Tout)))


unstack_op: OpDef[list[Tensor]] = OpDef(
    "Unstack",
    "value: T -> outputs: *Tout",
    T=MOVABLE,
    attributes={"axis": 0, "Tout": REQUIRED},
    infer=_unstacked,
    kernel=_unstack,
    grad=lambda op, *dys: stack_op(list(dys), axis=op.attributes["axis"]),
    aliases=None,
    batching=Batching.ALONG_AXIS,
    only_moves=True,
)


@unstack_op.front
def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str | None = None
) -> list[Tensor]:
    """The parts of a tensor along an axis, without it: the reverse of `stack`.

    Args:
        value: of any dtype and at least one dimension.
        num: how many there are; needed where the shape does not say it.
        axis: an int, negative ones counted from the last.

    Raises:
        InvalidArgumentError: if the axis has not `num` elements.
    """
    value, axis = convert_to_tensor(value), as_axis(axis)
    dims = value.shape.dims
    if num is None:
        num = None if dims is None else dims[in_range(axis, len(dims))]
    if num is None:
        raise InvalidArgumentError(
            f"the size of axis {axis} of {value.shape} is not known before the run",
            hint="say how many parts there are: num=...",
        )
    if not num:
        return []
    return unstack_op(value, axis=axis, Tout=(value.dtype,) * as_axis(num), name=name)
