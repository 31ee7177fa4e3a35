"""Growing a tensor along its axes: by repeating it, or by a border."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.inference import constant_value, known_elements, no_flops
from flowbook.graph.definition.located import located
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.dtypes import INDICES, MOVABLE, NUMBERS, DType, string
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import op_named
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.constants import convert_to_tensor
from flowbook.graph.ops.arrays.joining import stack_op
from flowbook.graph.ops.arrays.shaping import check_vector, reshape_op, shape_argument, shape_op
from flowbook.graph.ops.reduction.reductions import prod_op, sum_op


def _tiled(input: Tensor, multiples: Tensor) -> Shape:
    check_vector("multiples", multiples)
    dims, times, count = input.shape.dims, known_elements(multiples), multiples.shape.size
    if times is not None and any(t is not None and t < 0 for t in times):
        raise InvalidArgumentError(f"a multiple is not negative: {list(times)}")
    if dims is not None and count not in (None, len(dims)):
        raise InvalidArgumentError(
            f"{count} multiples do not fit the {len(dims)} dimensions of {input.shape}"
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
        places = reshape_op(op_named("Range")(0, count, 1), shape)
        sources = reshape_op(tile_op(places, multiples), [-1])
        total = op_named("UnsortedSegmentSum")(reshape_op(dy, [-1]), sources, count)
        return reshape_op(total, shape), None
    if rank == 0:
        return dy, None
    pairs = stack_op([multiples, shape_op(input, out_type=multiples.dtype)], axis=1)
    apart = reshape_op(dy, reshape_op(pairs, [-1]))
    return sum_op(apart, axis=tuple(range(0, 2 * rank, 2))), None


tile_op = OpDef(
    "Tile",
    "input: T, multiples: I -> output: T",
    T=MOVABLE,
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


def _bordered(tensor: Tensor, paddings: Tensor) -> Shape:
    if not paddings.shape.is_compatible_with((tensor.shape.rank, 2)):
        raise InvalidArgumentError(
            f"paddings of shape {paddings.shape} do not fit a tensor of shape {tensor.shape}: "
            "two numbers for each dimension"
        )
    dims, widths = tensor.shape.dims, known_elements(paddings)
    if widths is not None and any(w is not None and w < 0 for w in widths):
        raise InvalidArgumentError(f"a padding is not negative: {list(widths)}")
    if dims is None:
        rank = paddings.shape.dims[0] if paddings.shape.dims is not None else None
        return UNKNOWN if rank is None else Shape.of((None,) * rank)
    if widths is None:
        return Shape.of((None,) * len(dims))
    return Shape.of(
        tuple(
            None if d is None or before is None or after is None else d + before + after
            for d, before, after in zip(dims, widths[::2], widths[1::2], strict=True)
        )
    )


def _checked_widths(tensor: Any, paddings: Any) -> list[list[int]]:
    """How many elements in a run stand before and after, for each axis."""
    widths: list[list[int]] = paddings.tolist()
    if paddings.shape != (tensor.ndim, 2) or any(w < 0 for pair in widths for w in pair):
        raise InvalidArgumentError(f"paddings {widths} do not fit the shape {list(tensor.shape)}")
    return widths


def _padded(tensor: Tensor, paddings: Tensor, constant_values: Tensor) -> Shape:
    if constant_values.shape.rank not in (None, 0):
        raise InvalidArgumentError(
            f"'constant_values' is a scalar, not of shape {constant_values.shape}"
        )
    return _bordered(tensor, paddings)


def _pad(xp: Any, tensor: Any, paddings: Any, constant_values: Any) -> Any:
    widths = _checked_widths(tensor, paddings)
    dims = tuple(d + w[0] + w[1] for d, w in zip(tensor.shape, widths, strict=True))
    result = xp.empty(dims, dtype=tensor.dtype)
    for axis, (before, after) in enumerate(widths):
        whole = (slice(None),) * axis
        result[(*whole, slice(before))] = constant_values
        result[(*whole, slice(dims[axis] - after, None))] = constant_values
    inner = tuple(slice(w[0], w[0] + d) for d, w in zip(tensor.shape, widths, strict=True))
    result[inner] = tensor
    return result


def _pad_gradient(op: Operation, dy: Tensor) -> Any:
    tensor, paddings, _ = op.inputs
    first = paddings[:, 0]
    inner = op_named("Slice")(dy, first, shape_op(tensor, out_type=paddings.dtype))
    return inner, None, sum_op(dy) - sum_op(inner)


pad_op = OpDef(
    "Pad",
    "tensor: T, paddings: I, constant_values: T -> output: T",
    T=MOVABLE,
    I=INDICES,
    infer=_padded,
    kernel=_pad,
    grad=_pad_gradient,
    aliases={},
    cost=no_flops,
)


_MODES = ("CONSTANT", "REFLECT", "SYMMETRIC")
_BLANKS: dict[DType, Any] = {bool_: False, string: b""}


def _skipped(mode: str) -> int:
    """How many elements at an edge are not mirrored: it stands once in REFLECT."""
    return 1 if mode == "REFLECT" else 0


def _mirrored(tensor: Tensor, paddings: Tensor, mode: str) -> Shape:
    shape = _bordered(tensor, paddings)
    widths = constant_value(paddings)
    if widths is not None and tensor.shape.dims is not None:
        _check_mirror(tensor.shape.dims, widths.tolist(), mode)
    return shape


def _check_mirror(dims: Any, widths: list[list[int]], mode: str) -> None:
    for axis, (d, pair) in enumerate(zip(dims, widths, strict=True)):
        if d is not None and max(pair) > max(d - _skipped(mode), 0):
            raise InvalidArgumentError(
                f"a border of {max(pair)} is more than axis {axis} of {d} elements has to mirror"
            )


def _mirror(xp: Any, tensor: Any, paddings: Any, mode: str) -> Any:
    widths = _checked_widths(tensor, paddings)
    _check_mirror(tensor.shape, widths, mode)
    skip = _skipped(mode)
    result = tensor
    for axis, (before, after) in enumerate(widths):
        if before or after:
            d = tensor.shape[axis]
            left = xp.flip(_along(result, axis, skip, skip + before), axis)
            right = xp.flip(_along(result, axis, d - skip - after, d - skip), axis)
            result = xp.concatenate([left, result, right], axis=axis)
    return result


def _along(value: Any, axis: int, start: int, stop: int) -> Any:
    return value[(slice(None),) * axis + (slice(start, stop),)]


mirror_pad_op: OpDef = OpDef(
    "MirrorPad",
    "tensor: T, paddings: I -> output: T",
    T=MOVABLE,
    I=INDICES,
    attributes={"mode": REQUIRED},
    infer=_mirrored,
    kernel=_mirror,
    grad=lambda op, dy: (
        mirror_pad_gradient_op(dy, op.inputs[1], mode=op.attributes["mode"]),
        None,
    ),
    aliases={0: 0},
    cost=no_flops,
)


def _unmirrored_shape(dy: Tensor, paddings: Tensor, mode: str) -> Shape:
    dims, widths = dy.shape.dims, constant_value(paddings)
    if dims is None or widths is None:
        return UNKNOWN if dims is None else Shape.of((None,) * len(dims))
    return Shape.of(
        tuple(None if d is None else d - int(w.sum()) for d, w in zip(dims, widths, strict=True))
    )


def _unmirror(xp: Any, dy: Any, paddings: Any, mode: str) -> Any:
    skip = _skipped(mode)
    result = xp.array(dy)
    for axis, (before, after) in enumerate(paddings.tolist()):
        if before or after:
            d = result.shape[axis] - before - after
            inner = _along(result, axis, before, before + d).copy()
            left = _along(inner, axis, skip, skip + before)
            left += xp.flip(_along(result, axis, 0, before), axis)
            right = _along(inner, axis, d - skip - after, d - skip)
            right += xp.flip(_along(result, axis, before + d, before + d + after), axis)
            result = inner
    return result


mirror_pad_gradient_op: OpDef = OpDef(
    "MirrorPadGrad",
    "dy: T, paddings: I -> output: T",
    T=NUMBERS,
    I=INDICES,
    attributes={"mode": REQUIRED},
    infer=_unmirrored_shape,
    kernel=_unmirror,
    grad=lambda op, dz: (mirror_pad_op(dz, op.inputs[1], mode=op.attributes["mode"]), None),
    aliases={},
    cost=lambda op: op.inputs[0].shape.size or 0,
)


@pad_op.front
def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    constant_values: Any = 0,
    name: str | None = None,
) -> Tensor:
    """Add a border: of one value, or of what lies inside, mirrored.

    Args:
        tensor: of any dtype.
        paddings: int [rank, 2]: for each axis how many elements before and after.
        mode: "CONSTANT" for a border of one value; "REFLECT" mirrors at the first and last
            element, "SYMMETRIC" before and behind them, so that these stand twice. Small letters
            do as well.
        constant_values: the value of a constant border, a scalar of the tensor's dtype; 0 also
            stands for False and for the empty string.
        name: the operation's name.

    Raises:
        InvalidArgumentError: if the paddings do not fit, or are more than there is to mirror.

    >>> import flowbook as fb
    >>> fb.pad(fb.zeros([2, 3]), [[1, 1], [0, 2]]).shape
    Shape([4, 5])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.pad([1, 2, 3], [[2, 1]], "REFLECT")))
    [3 2 1 2 3 2]
    """
    __tracebackhide__ = True
    with located("Pad"):
        mode = str(mode).upper()
        if mode not in _MODES:
            raise InvalidArgumentError(
                f"a mode is one of {', '.join(map(repr, _MODES))}, not {mode!r}"
            )
        tensor = convert_to_tensor(tensor)
        if type(constant_values) is int and constant_values == 0:
            constant_values = _BLANKS.get(tensor.dtype, constant_values)
    result: Tensor
    if mode == "CONSTANT":
        result = pad_op(tensor, paddings, constant_values, name=name)
    else:
        result = mirror_pad_op(tensor, paddings, mode=mode, name=name)
    return result
