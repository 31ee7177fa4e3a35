"""Borders of tensors: cut off by `slice`, and put around by `pad`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.batching import Batch, Batched, Batching
from flowbook.graph.definition.inference import constant_value, known_elements
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.attributes import check_choice
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import INDICES, MOVABLE, NUMBERS, DType, string
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.errors import InvalidArgumentError, InvalidIndexError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.broadcasting import sum_op
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.joining import stack_op
from flowbook.graph.ops.basis.shaping import check_vector, shape_argument, shape_op

__all__ = ["pad", "slice"]


def _slice_shape(input_: Tensor, begin: Tensor, size: Tensor) -> Shape:
    check_vector("begin", begin)
    check_vector("size", size)
    dims = input_.shape.dims
    starts, sizes = constant_value(begin), known_elements(size)
    rank = input_.shape.rank
    for name, vector in (("begin", begin), ("size", size)):
        count = vector.shape.size
        if count is not None and rank is not None and count != rank:
            raise InvalidArgumentError(
                f"{name!r} has {counted(count, 'element')} for the "
                f"{counted(rank, 'dimension')} of {input_.shape}"
            )
        rank = count if rank is None else rank
    if starts is not None and sizes is not None and dims is not None and None not in sizes:
        _, counts = _extent(dims, starts.tolist(), sizes)
        return Shape.of(counts)
    if sizes is not None:
        return Shape.of(tuple(None if s is None or s < 0 else s for s in sizes))
    return UNKNOWN if rank is None else Shape.of((None,) * rank)


def _extent(dims: Any, starts: Sequence[int], sizes: Sequence[Any]) -> tuple[Any, Any]:
    """Where a slice lies and how large it is, for shapes known or not."""
    if not len(dims) == len(starts) == len(sizes):
        raise InvalidArgumentError(
            f"begin {list(starts)} and size {list(sizes)} do not fit the shape {list(dims)}"
        )
    counts: list[int | None] = []
    for axis, (dim, start, size) in enumerate(zip(dims, starts, sizes, strict=True)):
        count = size if size != -1 else None if dim is None else dim - start
        if (
            start < 0
            or size < -1
            or (dim is not None and (count is None or count < 0 or start + count > dim))
        ):
            raise InvalidIndexError(
                f"begin {start} and size {size} leave axis {axis} of the shape {list(dims)}"
            )
        counts.append(count)
    return tuple(starts), tuple(counts)


def _slice(xp: Any, input_: Any, begin: Any, size: Any) -> Any:
    starts, counts = _extent(input_.shape, begin.tolist(), size.tolist())
    return input_[tuple(builtins.slice(s, s + c) for s, c in zip(starts, counts, strict=True))]


def _slice_gradient(op: Operation, dy: Tensor) -> Any:
    input_, begin, _ = op.inputs
    index = begin.dtype
    after = shape_op(input_, out_type=index) - begin - shape_op(dy, out_type=index)
    zero = np.zeros((), dy.dtype.numpy)
    return pad_op(dy, stack_op([begin, after], axis=1), zero), None, None


slice_op = OpDef(
    "Slice",
    "input_: T, begin: I, size: I -> output: T",
    T=MOVABLE,
    I=INDICES,
    infer=_slice_shape,
    kernel=_slice,
    host_args=("begin", "size"),
    grad=_slice_gradient,
    aliases={0: 0},
    computes_shapes=True,
    only_moves=True,
)


@slice_op.front
def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """A block of a tensor. For constant bounds `x[a:b]` reads better.

    Args:
        input_: of any dtype.
        begin: for each axis where the block begins: an int vector tensor or a sequence.
        size: for each axis how long it is; -1 is all that remains.

    Raises:
        InvalidIndexError: if the block leaves the tensor; in the run, where it is known only then.
    """
    begin, size = shape_argument(begin), shape_argument(size)
    return slice_op(input_, begin, size, name=name)


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
        whole = (builtins.slice(None),) * axis
        result[(*whole, builtins.slice(before))] = constant_values
        result[(*whole, builtins.slice(dims[axis] - after, None))] = constant_values
    inner = tuple(builtins.slice(w[0], w[0] + d) for d, w in zip(tensor.shape, widths, strict=True))
    result[inner] = tensor
    return result


def _pad_gradient(op: Operation, dy: Tensor) -> Any:
    tensor, paddings, _ = op.inputs
    first = paddings[:, 0]
    inner = slice_op(dy, first, shape_op(tensor, out_type=paddings.dtype))
    return inner, None, sum_op(dy) - sum_op(inner)


def _padded_for_all(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
    tensor, paddings, *constants = [value.tensor for value in inputs]
    return batch.again(op, [tensor, batch.before([0, 0], paddings), *constants])


pad_op = OpDef(
    "Pad",
    "tensor: T, paddings: I, constant_values: T -> output: T",
    T=MOVABLE,
    I=INDICES,
    infer=_padded,
    kernel=_pad,
    host_args=("paddings",),
    grad=_pad_gradient,
    batching=Batching(_padded_for_all),
    only_moves=True,
)


_MIRRORS = ("REFLECT", "SYMMETRIC")
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
    return value[(builtins.slice(None),) * axis + (builtins.slice(start, stop),)]


mirror_pad_op: OpDef = OpDef(
    "MirrorPad",
    "tensor: T, paddings: I -> output: T",
    T=MOVABLE,
    I=INDICES,
    attributes={"mode": REQUIRED},
    choices={"mode": _MIRRORS},
    infer=_mirrored,
    kernel=_mirror,
    host_args=("paddings",),
    grad=lambda op, dy: (
        mirror_pad_gradient_op(dy, op.inputs[1], mode=op.attributes["mode"]),
        None,
    ),
    aliases={0: 0},
    only_moves=True,
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
    choices={"mode": _MIRRORS},
    infer=_unmirrored_shape,
    kernel=_unmirror,
    host_args=("paddings",),
    grad=lambda op, dz: (mirror_pad_op(dz, op.inputs[1], mode=op.attributes["mode"]), None),
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

    Raises:
        InvalidArgumentError: if the paddings do not fit, or are more than there is to mirror.

    >>> import flowbook as fb
    >>> fb.pad(fb.zeros([2, 3]), [[1, 1], [0, 2]]).shape
    Shape([4, 5])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.pad([1, 2, 3], [[2, 1]], "REFLECT")))
    [3 2 1 2 3 2]
    """
    mode = str(mode).upper()
    check_choice("mode", mode, ("CONSTANT", *_MIRRORS))
    tensor = convert_to_tensor(tensor)
    if type(constant_values) is int and constant_values == 0:
        constant_values = _BLANKS.get(tensor.dtype, constant_values)
    result: Tensor
    if mode == "CONSTANT":
        result = pad_op(tensor, paddings, constant_values, name=name)
    else:
        result = mirror_pad_op(tensor, paddings, mode=mode, name=name)
    return result
