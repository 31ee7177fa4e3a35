"""Broadcasting and sums: each is the reverse of the other, and has its gradient in it.

`sum_to_shape` is the one way back: nothing where static shapes say that nothing was repeated, a
reduction over fixed axes where they say what was, and an operation that looks in the run otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import all_in_range, axes_or_tensor, reduced
from flowbook.graph.definition.batching import Batch, Batched, Batching
from flowbook.graph.definition.inference import shape_from
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import INDICES, MOVABLE, NUMBERS, DType
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.shape import broadcast as broadcast_shapes
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.sums import Axes, sum_over
from flowbook.graph.numerics.views import broadcast_view
from flowbook.graph.ops.basis.shaping import (
    check_vector,
    dims_of,
    expand_dims_op,
    shape_argument,
    shape_of,
)

__all__ = ["broadcast_dynamic_shape", "broadcast_static_shape", "broadcast_to", "reduce_sum"]


def _broadcast_shape(input: Tensor, shape: Tensor) -> Shape:
    check_vector("shape", shape)
    wanted = shape_from(shape)
    given, target = input.shape.dims, wanted.dims
    if given is None or target is None:
        return wanted
    if len(given) > len(target):
        raise InvalidArgumentError(f"the shape {input.shape} does not broadcast to {wanted}")
    for d, t in zip(given[::-1], target[::-1], strict=False):
        if d not in (None, 1) and t is not None and d != t:
            raise InvalidArgumentError(f"the shape {input.shape} does not broadcast to {wanted}")
    # What is not 1 is not repeated.
    repeated = (None,) * (len(target) - len(given)) + given
    return Shape.of(
        tuple(d if t is None and d != 1 else t for d, t in zip(repeated, target, strict=True))
    )


def _broadcast_to(xp: Any, input: Any, shape: Any) -> Any:
    dims = dims_of(shape)
    try:
        return broadcast_view(xp, input, dims)
    except ValueError:
        raise InvalidArgumentError(
            f"the shape {list(input.shape)} does not broadcast to {list(dims)}"
        ) from None


def _broadcast_for_all(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
    tensor = batch.raised(inputs[0], op.outputs[0].shape.rank or 0)
    return batch.again(op, [tensor, batch.shape_for_all(op, inputs[1].tensor)])


broadcast_to_op = OpDef(
    "BroadcastTo",
    "input: T, shape: I -> output: T",
    T=MOVABLE,
    I=INDICES,
    infer=_broadcast_shape,
    kernel=_broadcast_to,
    host_args=("shape",),
    grad=lambda op, dy: (sum_to_shape(dy, op.inputs[0]), None),
    aliases={0: 0},
    spreads_nonfinite=("input",),
    batching=Batching(_broadcast_for_all),
    only_moves=True,
)


@broadcast_to_op.front
def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Repeat a tensor to fill a shape, by NumPy's broadcasting rules.

    Args:
        input: of any dtype, and of a shape that broadcasts to `shape`.
        shape: an int vector tensor, or a sequence of ints and int scalar tensors.

    Raises:
        InvalidArgumentError: if it does not broadcast; in the run, where it is known only then.
    """
    shape = shape_argument(shape)
    return broadcast_to_op(input, shape, name=name)


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> Shape:
    """The shape of what two shapes broadcast to, as far as it is known before the run.

    Args:
        shape_x: a Shape, or a sequence of ints and Nones.
        shape_y: another.

    Raises:
        InvalidArgumentError: if they do not broadcast.

    >>> import flowbook as fb
    >>> fb.broadcast_static_shape([None, 1, 3], [5, 3])
    Shape([None, 5, 3])
    """
    return broadcast_shapes(Shape(shape_x), Shape(shape_y))


def _joint_shape(shape_x: Tensor, shape_y: Tensor) -> Shape:
    check_vector("shape_x", shape_x)
    check_vector("shape_y", shape_y)
    known = broadcast_shapes(shape_from(shape_x), shape_from(shape_y))
    return Shape.of((known.rank,))


def _joint(xp: Any, shape_x: Any, shape_y: Any) -> Any:
    x, y = dims_of(shape_x), dims_of(shape_y)
    joint = broadcast_shapes(Shape(x), Shape(y))
    return xp.array(joint.dims, dtype=shape_x.dtype)


broadcast_shape_op = OpDef(
    "BroadcastArgs",
    "shape_x: I, shape_y: I -> output: I",
    I=INDICES,
    infer=_joint_shape,
    kernel=_joint,
    host_args=("shape_x", "shape_y"),
    computes_shapes=True,
    only_moves=True,
)


@broadcast_shape_op.front
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any, name: str | None = None) -> Tensor:
    """The shape of what two shapes broadcast to, as the run finds it: an int vector.

    Args:
        shape_x: an int vector tensor, or a sequence of ints and int scalar tensors.
        shape_y: another, of the same dtype.

    Raises:
        InvalidArgumentError: if they do not broadcast; in the run, where it is known only then.
    """
    shape_x, shape_y = shape_argument(shape_x), shape_argument(shape_y)
    return broadcast_shape_op(shape_x, shape_y, name=name)


def _summed_shape(input: Tensor, shape: Tensor) -> Shape:
    check_vector("shape", shape)
    wanted = shape_from(shape)
    broadcast_shapes(input.shape, wanted)
    return wanted


def _sum_to_shape(xp: Any, input: Any, shape: Any) -> Any:
    target = dims_of(shape)
    given = input.shape
    if given == target:
        return input
    extra = len(given) - len(target)
    axes = tuple(i for i, d in enumerate(given) if i < extra or (target[i - extra] == 1 and d != 1))
    wide = np.float32 if input.dtype == np.float16 else input.dtype
    summed = xp.sum(input, axis=axes, dtype=wide, keepdims=True).astype(input.dtype, copy=False)
    if extra < 0 or summed.shape[extra:] != target:
        raise InvalidArgumentError(f"the shape {list(given)} is not a broadcast of {list(target)}")
    return xp.reshape(summed, target)


sum_to_shape_op = OpDef(
    "SumToShape",
    "input: T, shape: I -> output: T",
    T=NUMBERS,
    I=INDICES,
    infer=_summed_shape,
    kernel=_sum_to_shape,
    host_args=("shape",),
    grad=lambda op, dy: (broadcast_to_op(dy, shape_of(op.inputs[0])), None),
    aliases={0: 0},
    cost=lambda op: op.inputs[0].shape.size or 0,
)


def sum_to_shape(gradient: Tensor, like: Tensor, *others: Tensor) -> Tensor:
    """The gradient of an operand that was broadcast.

    Args:
        gradient: the gradient of the broadcast whole.
        like: the operand, whose shape the result has.
        others: what it was broadcast together with; they may show that it was not repeated.
    """
    whole, target = gradient.shape.dims, like.shape.dims
    if whole is None or target is None or len(whole) < len(target):
        return _sum_in_run(gradient, like)
    extra = len(whole) - len(target)
    repeated = []
    for i, (d, full) in enumerate(zip(target, whole[extra:], strict=True)):
        if d == 1 and full != 1:
            repeated.append(i + extra)
        elif d is None and full != 1 and _may_stretch(others, i - len(target)):
            return _sum_in_run(gradient, like)
    if repeated:
        gradient = sum_op(gradient, axis=tuple(repeated), keepdims=True)
    if extra:
        gradient = sum_op(gradient, axis=tuple(range(extra)), keepdims=False)
    return gradient


def _sum_in_run(gradient: Tensor, like: Tensor) -> Tensor:
    return sum_to_shape_op(gradient, shape_of(like))


def _may_stretch(others: tuple[Tensor, ...], position: int) -> bool:
    """Whether one of them could be longer than 1 at a position counted from the last."""
    if not others:
        return True
    for other in others:
        dims = other.shape.dims
        if dims is None or (len(dims) >= -position and dims[position] != 1):
            return True
    return False


def gradients_of_two(op: Operation, dx: Tensor | None, dy: Tensor | None) -> Any:
    """The gradients of a broadcasting operation's two inputs, from those of the broadcast whole."""
    x, y = op.inputs[0], op.inputs[1]
    return (
        None if dx is None else sum_to_shape(dx, x, y),
        None if dy is None else sum_to_shape(dy, y, x),
    )


def _reduced_shape(input_tensor: Tensor, axis: Axes, keepdims: bool) -> Shape:
    return reduced(input_tensor.shape, axis, keepdims)


def flops_of_input(op: Operation) -> int:
    """The cost of a reduction that looks at each element of its input once."""
    return op.inputs[0].shape.size or 0


def reduction(
    type: str,
    kernel: Callable[..., Any],
    grad: Callable[..., Any],
    T: tuple[DType, ...],
    *,
    flops: int = 1,
    **facts: Any,
) -> OpDef:
    """An operation type that reduces over axes.

    Per element of the input it takes so many `flops`; the `facts` are further arguments of `OpDef`.
    """

    def checked(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
        try:
            return kernel(xp, x, axis, keepdims)
        except ValueError:
            all_in_range(axis, x.ndim)
            raise

    return OpDef(
        type,
        "input_tensor: T -> output: T",
        T=T,
        attributes={"axis": None, "keepdims": False},
        infer=_reduced_shape,
        kernel=checked,
        grad=grad,
        # Over no axes at all NumPy may give back what it got.
        aliases={0: 0},
        axes="axis",
        batching=Batching.ALONG_AXIS,
        cost=lambda op: flops * flops_of_input(op),
        **facts,
    )


def with_reduced_axes(op: Operation, tensor: Tensor) -> Tensor:
    """A reduction's result, or its gradient, shaped to broadcast against the input."""
    axis = op.attributes["axis"]
    if op.attributes["keepdims"] or axis is None:
        return tensor
    return expand_dims_op(tensor, axis=axis)


def spread(op: Operation, tensor: Tensor) -> Tensor:
    """A reduction's result, or its gradient, repeated over the reduced axes."""
    whole = with_reduced_axes(op, tensor)
    return broadcast_to_op(whole, shape_of(op.inputs[0]))


def _sum(xp: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    return sum_over(xp, x, axis, keepdims).astype(x.dtype, copy=False)


sum_op = reduction(
    "Sum",
    _sum,
    lambda op, dy: spread(op, dy),
    NUMBERS,
    spreads_nonfinite=("input_tensor",),
    computes_shapes=True,
)


@sum_op.front
def reduce_sum(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The sum over axes.

    Args:
        input_tensor: of a numeric dtype and any shape.
        axis: an int or a sequence of ints, negative ones counted from the last; None sums
            everything. Also a tensor of them, which may be one that only the run knows.
        keepdims: keep the axes, with size 1.

    Returns:
        Sums of the input's dtype; integers wrap around.

    Raises:
        InvalidArgumentError: if there is no such axis, or one is named twice.

    >>> import flowbook as fb
    >>> fb.reduce_sum(fb.zeros([2, 3, 4]), [0, -1]).shape
    Shape([3])
    """
    return reduce(sum_op, input_tensor, axis, keepdims, name)


def reduce(op_def: OpDef, x: Any, axis: Any, keepdims: bool, name: str | None) -> Tensor:
    """Build a reduction, from axes as users write them."""
    axes = axes_or_tensor(axis, x)
    return op_def(x, axis=axes, keepdims=bool(keepdims), name=name)
