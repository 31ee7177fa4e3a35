"""Tensors repeated along their axes: as a whole, or each element so many times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowbook.graph.definition.axes import as_axis, in_range
from flowbook.graph.definition.batching import Batch, Batched, Batching
from flowbook.graph.definition.inference import constant_value, known_elements
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import INDICES, MOVABLE
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.gathering import gather_gradient_op
from flowbook.graph.ops.basis.broadcasting import sum_op
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import range as range_
from flowbook.graph.ops.basis.indexing import strided_slice
from flowbook.graph.ops.basis.joining import stack_op
from flowbook.graph.ops.basis.shaping import (
    check_vector,
    reshape,
    reshape_op,
    shape_argument,
    shape_of,
    shape_op,
)
from flowbook.graph.ops.reduction.reductions import prod_op
from flowbook.graph.ops.reduction.segments import unsorted_segment_sum

__all__ = ["repeat", "tile"]


def _tiled(input: Tensor, multiples: Tensor) -> Shape:
    check_vector("multiples", multiples)
    dims, times, count = input.shape.dims, known_elements(multiples), multiples.shape.size
    if times is not None and any(t is not None and t < 0 for t in times):
        raise InvalidArgumentError(f"a multiple is not negative: {list(times)}")
    if dims is not None and count not in (None, len(dims)):
        raise InvalidArgumentError(
            f"{count} multiples do not fit the {counted(len(dims), 'dimension')} of {input.shape}"
        )
    if dims is None or times is None:
        rank = count if dims is None else len(dims)
        return UNKNOWN if rank is None else Shape.of((None,) * rank)
    return Shape.of(
        tuple(
            0 if t == 0 else None if d is None or t is None else d * t
            for d, t in zip(dims, times, strict=True)
        )
    )


def _tile(xp: Any, input: Any, multiples: Any) -> Any:
    times = tuple(multiples.tolist())
    if len(times) != input.ndim or any(t < 0 for t in times):
        raise InvalidArgumentError(
            f"the multiples {list(times)} do not fit the shape {list(input.shape)}"
        )
    return xp.tile(input, times)


def _tile_gradient(op: Operation, dy: Tensor) -> Any:
    input, multiples = op.inputs
    rank = dy.shape.rank  # Known too where only the multiples tell it.
    if rank is None:
        # Each element goes to the one that it is a copy of.
        shape = shape_op(input)
        count = prod_op(shape, axis=None, keepdims=False)
        places = reshape_op(range_(0, count), shape)
        sources = reshape_op(tile_op(places, multiples), [-1])
        total = unsorted_segment_sum(reshape_op(dy, [-1]), sources, count)
        return reshape_op(total, shape), None
    if rank == 0:
        return dy, None
    pairs = stack_op([multiples, shape_op(input, out_type=multiples.dtype)], axis=1)
    apart = reshape_op(dy, reshape_op(pairs, [-1]))
    return sum_op(apart, axis=tuple(range(0, 2 * rank, 2))), None


def _tiled_for_all(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
    return batch.again(op, [inputs[0].tensor, batch.before(1, inputs[1].tensor)])


tile_op = OpDef(
    "Tile",
    "input: T, multiples: I -> output: T",
    T=MOVABLE,
    I=INDICES,
    infer=_tiled,
    kernel=_tile,
    host_args=("multiples",),
    grad=_tile_gradient,
    batching=Batching(_tiled_for_all),
    only_moves=True,
)


@tile_op.front
def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Repeat a tensor along its axes.

    Args:
        input: of any dtype.
        multiples: for each axis how often, an int vector tensor or a sequence.
    """
    multiples = shape_argument(multiples)
    return tile_op(input, multiples, name=name)


def _repeated_shape(input: Tensor, repeats: Tensor, axis: int) -> Shape:
    if repeats.shape.rank is not None and repeats.shape.rank > 1:
        raise InvalidArgumentError(f"'repeats' is a scalar or vector, not of {repeats.shape}")
    dims = input.shape.dims
    if dims is None:
        return UNKNOWN
    i = in_range(axis, len(dims))
    length = dims[i]
    given = repeats.shape.dims[0] if repeats.shape.dims else None
    if None not in (given, length) and given not in (1, length):
        raise InvalidArgumentError(
            f"{given} repeats do not fit the {length} elements of axis {axis} of {input.shape}"
        )
    known = constant_value(repeats)
    count: int | None = None
    if known is not None:
        _check_repeats(known)
        if known.size != 1:
            count = int(known.sum())
        elif length is not None:
            count = int(known.reshape(())) * length
    return Shape.of((*dims[:i], count, *dims[i + 1 :]))


def _check_repeats(repeats: Any) -> None:
    if repeats.size and repeats.min() < 0:
        raise InvalidArgumentError(f"a number of repeats is not negative: {repeats.min()}")


def _repeat(xp: Any, input: Any, repeats: Any, axis: int) -> Any:
    _check_repeats(repeats)
    i = in_range(axis, input.ndim)
    if repeats.size == 1:
        return xp.repeat(input, int(repeats.reshape(())), axis=i)
    if repeats.shape != (input.shape[i],):
        raise InvalidArgumentError(
            f"repeats of shape {list(repeats.shape)} do not fit the {input.shape[i]} elements of "
            f"axis {axis} of {list(input.shape)}"
        )
    return xp.repeat(input, repeats, axis=i)


def _repeat_gradient(op: Operation, dy: Tensor) -> Any:
    input, repeats = op.inputs
    axis = op.attributes["axis"]
    sources = repeat_op(range_(strided_slice(shape_op(input), axis)), repeats, axis=0)
    return gather_gradient_op(dy, sources, shape_of(input), axis=axis), None


repeat_op: OpDef = OpDef(
    "Repeat",
    "input: T, repeats: I -> output: T",
    T=MOVABLE,
    I=INDICES,
    attributes={"axis": REQUIRED},
    infer=_repeated_shape,
    kernel=_repeat,
    grad=_repeat_gradient,
    only_moves=True,
)


@repeat_op.front
def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each element repeated so many times.

    Args:
        input: of any dtype.
        repeats: how often: an int scalar, or a vector with a number for each element of the axis.
        axis: an int, negative ones counted from the last; None repeats the elements of the whole
            as a vector.

    Raises:
        InvalidArgumentError: if there are not as many numbers as elements, or one is negative.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.repeat([3, 5, 7], [2, 0, 1])))
    [3 3 7]
    """
    if axis is None:
        input, axis = reshape(input, [-1]), 0
    input, axis = convert_to_tensor(input), as_axis(axis)
    return repeat_op(input, repeats, axis=axis, name=name)
