"""Growing a tensor along its axes: by repeating it, or by a border of one value."""

from __future__ import annotations

from typing import Any

from flowbook.graph.dtypes import INDICES, VALUES
from flowbook.graph.errors import InvalidArgumentError
from flowbook.graph.op_def import OpDef
from flowbook.graph.operation import Operation
from flowbook.graph.ops.inference import constant_value, no_flops
from flowbook.graph.ops.joining import stack_op
from flowbook.graph.ops.located import located
from flowbook.graph.ops.reductions import sum_op
from flowbook.graph.ops.shaping import (
    check_vector,
    reshape_op,
    shape_argument,
    shape_op,
)
from flowbook.graph.registry import op_named
from flowbook.graph.shape import UNKNOWN, Shape
from flowbook.graph.tensor import Tensor


def _tiled(input: Tensor, multiples: Tensor) -> Shape:
    check_vector("multiples", multiples)
    dims, times = input.shape.dims, constant_value(multiples)
    if times is None:
        return UNKNOWN if dims is None else Shape.of((None,) * len(dims))
    if (times < 0).any():
        raise InvalidArgumentError(f"a multiple is not negative: {times.tolist()}")
    if dims is None:
        return Shape.of((None,) * times.size)
    if times.size != len(dims):
        raise InvalidArgumentError(
            f"{times.size} multiples do not fit the {len(dims)} dimensions of {input.shape}"
        )
    return Shape.of(
        tuple(
            0 if t == 0 else None if d is None else d * t
            for d, t in zip(dims, times.tolist(), strict=True)
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
    rank = input.shape.rank
    if rank is None:
        raise InvalidArgumentError("the gradient of tile needs an input of known rank")
    if rank == 0:
        return dy, None
    pairs = stack_op([multiples, shape_op(input, out_type=multiples.dtype)], axis=1)
    apart = reshape_op(dy, reshape_op(pairs, [-1]))
    return sum_op(apart, axis=tuple(range(0, 2 * rank, 2))), None


tile_op = OpDef(
    "Tile",
    "input: T, multiples: I -> output: T",
    T=VALUES,
    I=INDICES,
    infer=_tiled,
    kernel=_tile,
    grad=_tile_gradient,
    aliases={},
    cost=no_flops,
)


@tile_op.front
def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Repeat a tensor along its axes.

    Args:
        input: of any dtype.
        multiples: for each axis how often, an int vector tensor or a sequence.
        name: the operation's name.
    """
    __tracebackhide__ = True
    with located("Tile"):
        multiples = shape_argument(multiples)
    result: Tensor = tile_op(input, multiples, name=name)
    return result


def _padded(tensor: Tensor, paddings: Tensor, constant_values: Tensor) -> Shape:
    if not paddings.shape.is_compatible_with((tensor.shape.rank, 2)):
        raise InvalidArgumentError(
            f"paddings of shape {paddings.shape} do not fit a tensor of shape {tensor.shape}: "
            "two numbers for each dimension"
        )
    if constant_values.shape.rank not in (None, 0):
        raise InvalidArgumentError(
            f"'constant_values' is a scalar, not of shape {constant_values.shape}"
        )
    dims, widths = tensor.shape.dims, constant_value(paddings)
    if widths is None:
        return UNKNOWN if dims is None else Shape.of((None,) * len(dims))
    if (widths < 0).any():
        raise InvalidArgumentError(f"a padding is not negative: {widths.tolist()}")
    if dims is None:
        return Shape.of((None,) * len(widths))
    return Shape.of(
        tuple(None if d is None else d + int(w.sum()) for d, w in zip(dims, widths, strict=True))
    )


def _pad(xp: Any, tensor: Any, paddings: Any, constant_values: Any) -> Any:
    widths = paddings.tolist()
    if paddings.shape != (tensor.ndim, 2) or any(w < 0 for pair in widths for w in pair):
        raise InvalidArgumentError(f"paddings {widths} do not fit the shape {list(tensor.shape)}")
    dims = tuple(d + w[0] + w[1] for d, w in zip(tensor.shape, widths, strict=True))
    result = xp.full(dims, constant_values, dtype=tensor.dtype)
    inner = tuple(slice(w[0], w[0] + d) for d, w in zip(tensor.shape, widths, strict=True))
    result[inner] = tensor
    return result


def _pad_gradient(op: Operation, dy: Tensor) -> Any:
    tensor, paddings, _ = op.inputs
    first = op_named("StridedSlice").public(paddings, (slice(None), 0))
    inner = op_named("Slice")(dy, first, shape_op(tensor, out_type=paddings.dtype))
    return inner, None, sum_op(dy) - sum_op(inner)


pad_op = OpDef(
    "Pad",
    "tensor: T, paddings: I, constant_values: T -> output: T",
    T=VALUES,
    I=INDICES,
    infer=_padded,
    kernel=_pad,
    grad=_pad_gradient,
    aliases={},
    cost=no_flops,
)


@pad_op.front
def pad(tensor: Any, paddings: Any, constant_values: Any = 0, name: str | None = None) -> Tensor:
    """Add a border of one value.

    Args:
        tensor: of any number dtype.
        paddings: int [rank, 2]: for each axis how many elements before and after.
        constant_values: the border's value, a scalar of the tensor's dtype.
        name: the operation's name.

    >>> import flowbook as fb
    >>> fb.pad(fb.zeros([2, 3]), [[1, 1], [0, 2]]).shape
    Shape([4, 5])
    """
    __tracebackhide__ = True
    result: Tensor = pad_op(tensor, paddings, constant_values, name=name)
    return result
