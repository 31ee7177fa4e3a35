"""What a condition picks: its indices, the elements of another tensor, and masks of lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.axes import as_axis
from flowbook.graph.definition.inference import constant_value, shape_from
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.dtypes import INDICES, MOVABLE, NUMBERS, as_dtype
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import range as range_
from flowbook.graph.ops.basis.shaping import dims_of, expand_dims, shape_of
from flowbook.graph.ops.math.arithmetic import maximum
from flowbook.graph.ops.math.comparison import less
from flowbook.graph.ops.reduction.reductions import reduce_max

__all__ = ["boolean_mask", "sequence_mask"]


def _masked_shape(tensor: Tensor, mask: Tensor, axis: int) -> Shape:
    if mask.shape.rank == 0:
        raise InvalidArgumentError("a mask has at least one dimension")
    dims, chosen = tensor.shape.dims, mask.shape.dims
    if dims is None or chosen is None:
        return UNKNOWN
    end = axis + len(chosen)
    if end > len(dims) or not Shape.of(dims[axis:end]).is_compatible_with(mask.shape):
        raise InvalidArgumentError(
            f"a mask of shape {mask.shape} does not fit the shape {tensor.shape} at axis {axis}"
        )
    known = mask.op.attributes["value"] if mask.op.op_def.is_constant else None
    count = None if known is None else int(np.count_nonzero(known))
    return Shape.of((*dims[:axis], count, *dims[end:]))


def _masked(xp: Any, tensor: Any, mask: Any, axis: int) -> Any:
    _check_mask(tensor.shape, mask, axis)
    return tensor[(slice(None),) * axis + (mask,)]


def _check_mask(dims: tuple[int, ...], mask: Any, axis: int) -> None:
    if not mask.ndim or dims[axis : axis + mask.ndim] != mask.shape:
        raise InvalidArgumentError(
            f"a mask of shape {list(mask.shape)} does not fit the shape {list(dims)} at axis {axis}"
        )


boolean_mask_op = OpDef(
    "BooleanMask",
    "tensor: T, mask: bool -> output: T",
    T=MOVABLE,
    attributes={"axis": 0},
    infer=_masked_shape,
    kernel=_masked,
    grad=lambda op, dy: (
        boolean_mask_gradient_op(
            dy, op.inputs[1], shape_of(op.inputs[0]), axis=op.attributes["axis"]
        ),
        None,
    ),
    only_moves=True,
)


@boolean_mask_op.front
def boolean_mask(tensor: Any, mask: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """The elements, or rows, of a tensor for which a mask holds.

    Args:
        tensor: of any dtype.
        mask: a bool tensor whose shape is that of some of the tensor's axes.
        axis: the first of these axes, which become one.

    Returns:
        A tensor of shape `tensor.shape[:axis] + [number that hold] + tensor.shape[axis +
        mask.rank:]`; how many that is, only the run knows.

    Raises:
        InvalidArgumentError: if the mask's shape does not fit.

    >>> import flowbook as fb
    >>> x = fb.constant([1, 2, 3, 4])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.boolean_mask(x, x > 2)))
    [3 4]
    """
    axis = as_axis(axis)
    tensor = convert_to_tensor(tensor)
    if axis < 0:
        if tensor.shape.rank is None or axis + tensor.shape.rank < 0:
            raise InvalidArgumentError(f"axis {axis} of the shape {tensor.shape} is not known")
        axis += tensor.shape.rank
    return boolean_mask_op(tensor, mask, axis=axis, name=name)


def _unmasked(xp: Any, dy: Any, mask: Any, shape: Any, axis: int) -> Any:
    dims = dims_of(shape)
    _check_mask(dims, mask, axis)
    result = xp.zeros(dims, dtype=dy.dtype)
    result[(slice(None),) * axis + (mask,)] = dy
    return result


boolean_mask_gradient_op: OpDef = OpDef(
    "BooleanMaskGrad",
    "dy: T, mask: bool, shape: I -> output: T",
    T=NUMBERS,
    I=INDICES,
    attributes={"axis": REQUIRED},
    infer=lambda dy, mask, shape, axis: shape_from(shape),
    kernel=_unmasked,
    host_args=("shape",),
    grad=lambda op, dz: (
        boolean_mask_op(dz, op.inputs[1], axis=op.attributes["axis"]),
        None,
        None,
    ),
    only_moves=True,
)


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = bool_, name: str | None = None
) -> Tensor:
    """For each length a row that is true in so many first places.

    Args:
        lengths: int32 or int64 of any shape.
        maxlen: the length of the rows, an int scalar; by default the largest of `lengths`.
        dtype: the dtype of the result; a number dtype gets ones and zeros.
        name: the operation's name.

    Returns:
        A tensor of shape `lengths.shape + [maxlen]`.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.sequence_mask([1, 3], dtype=fb.int32)))
    [[1 0 0]
     [1 1 1]]
    """
    lengths = convert_to_tensor(lengths)
    wanted = as_dtype(dtype)
    if lengths.dtype not in INDICES:
        raise InvalidTypeError(f"lengths are int32 or int64, not {lengths.dtype.name}")
    if isinstance(maxlen, Arithmetic):
        maxlen = cast(convert_to_tensor(maxlen), lengths.dtype)
    if maxlen is None:
        known = constant_value(lengths)
        if known is None:
            # No lengths at all: their maximum is the lowest integer there is.
            maxlen = maximum(reduce_max(lengths), 0)
        else:
            maxlen = int(max(known.max(initial=0), 0))
    places = range_(0, maxlen, dtype=lengths.dtype)
    is_named = wanted is bool_
    mask: Tensor = less(places, expand_dims(lengths, -1), name=name if is_named else None)
    return mask if is_named else cast(mask, wanted, name=name)
