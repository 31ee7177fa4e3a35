"""Where values enter a graph: constants, placeholders; and operations that pass them on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from flowbook.graph.building.graph import get_default_graph
from flowbook.graph.building.scopes import control_dependencies
from flowbook.graph.definition.arguments import constant_operation, value_of
from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import nothing, same_as_input
from flowbook.graph.definition.op_def import NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.definition.packing import packed
from flowbook.graph.model.convert import dtype_of, to_array
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import (
    MOVABLE,
    SMALL,
    ZEROED,
    DType,
    as_dtype,
    resource,
    string,
    variant,
)
from flowbook.graph.model.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    NotFoundError,
    OpError,
    without_internal_frames,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor

__all__ = [
    "constant",
    "convert_to_tensor",
    "group",
    "identity",
    "identity_n",
    "no_op",
    "placeholder",
    "placeholder_with_default",
    "prevent_gradient",
    "stop_gradient",
]


def _constant_shape(value: Any, dtype: DType) -> Shape:
    if not isinstance(value, np.ndarray) or dtype_of(value) is not dtype:
        raise InvalidArgumentError(f"the value is not an array of {dtype.name}: {value!r:.80}")
    return Shape.of(value.shape)


const = OpDef(
    "Const",
    "-> output: dtype",
    attributes={"value": REQUIRED, "dtype": REQUIRED},
    infer=_constant_shape,
    kernel=lambda xp, value: xp.asarray(value),
    aliases=None,
    is_constant=True,
    only_moves=True,
)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor with a fixed value.

    Args:
        value: anything array-like. It is copied.
        dtype: the dtype; by default NumPy arrays keep theirs, Python's floats become float32 and
            its integers int32 (int64 where one needs it).
        shape: the shape; a single value fills it, others are reshaped to it.
        name: the operation's name.

    Raises:
        InvalidTypeError: if the values are not of that dtype's kind.
        InvalidArgumentError: if the values do not fit the shape.

    >>> import flowbook as fb
    >>> fb.constant([1, 2, 3])
    <Tensor 'Const:0' shape=[3] dtype=int32>
    """
    site = sites.capture()
    try:
        array = to_array(value, None if dtype is None else as_dtype(dtype))
        if shape is not None:
            dims = tuple(Shape(shape).as_list())
            if None in dims:
                raise InvalidArgumentError(f"a constant's shape is fully known, not {shape}")
            if array.size == 1:
                array = np.full(dims, array.reshape(()), dtype=array.dtype)
            elif array.size != Shape(shape).size:
                raise InvalidArgumentError(
                    f"{counted(array.size, 'value')} cannot fit shape {Shape(shape)}"
                )
            array = array.reshape(dims)
    except OpError as error:
        raise without_internal_frames(error.at("constant", site)) from None
    graph = get_default_graph()
    operation = constant_operation(graph, array, graph.scope.site or site)
    return graph.add(operation, name).outputs[0]


def told_by_shape(value: Any, dtype: DType, tensor: Tensor, name: str) -> Tensor:
    """A constant that a tensor's known shape determines.

    No feed of the tensor changes it, and once the tensor is redefined it is stale.
    """
    graph = tensor.graph
    array = to_array(value, dtype)
    operation = constant_operation(graph, array, graph.scope.site or sites.capture())
    operation.settled_by = (tensor,)
    return graph.add(operation, name).outputs[0]


placeholder_op = OpDef(
    "Placeholder",
    "-> output: dtype",
    attributes={"dtype": REQUIRED, "shape": UNKNOWN},
    infer=lambda dtype, shape: shape,
    must_be_fed=True,
    only_moves=True,
)


def placeholder(dtype: Any = REQUIRED, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor whose value every run that needs it must feed.

    Args:
        dtype: the dtype of the values.
        shape: what feeds must agree with; None where a dimension, or all, may vary.
        name: the operation's name.

    Raises:
        InvalidTypeError: if `dtype` is missing or not a dtype.

    >>> import flowbook as fb
    >>> fb.placeholder(fb.float32, [None, 784], name="x")
    <Tensor 'x:0' shape=[?, 784] dtype=float32>
    """
    site = sites.capture()
    try:
        if dtype is REQUIRED:
            raise InvalidTypeError(
                "the dtype of what will be fed is missing",
                hint="fb.placeholder(fb.float32, [None, 784], name='x')",
            )
        if isinstance(dtype, list | tuple | Shape | int) and not isinstance(dtype, bool):
            raise InvalidTypeError(
                f"placeholder takes the dtype first, not {dtype!r}",
                hint=f"fb.placeholder(fb.float32, {dtype!r})",
            )
        attributes = {"dtype": as_dtype(dtype), "shape": Shape(shape)}
        if attributes["dtype"] is resource:
            raise InvalidTypeError(
                "a variable's handle cannot be fed",
                hint="a variable itself can be: sess.run(fetches, {variable: value})",
            )
    except OpError as error:
        raise without_internal_frames(error.at("placeholder", site)) from None
    return placeholder_op(**attributes, name=name)


def _default_shape(input: Tensor, shape: Shape) -> Shape:
    if not shape.admits(input.shape):
        raise InvalidArgumentError(
            f"the default of shape {input.shape} is not one of the shape {shape} of what is fed"
        )
    return shape


default_op = OpDef(
    "PlaceholderWithDefault",
    "input: T -> output: T",
    T=MOVABLE,
    attributes={"shape": UNKNOWN},
    infer=_default_shape,
    kernel=lambda xp, input: input,
    grad=lambda op, dy: dy,
    aliases={0: 0},
    only_moves=True,
)


@default_op.front
def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """A tensor that runs may feed, with a value where they do not.

    Args:
        input: the value where nothing is fed, of any dtype.
        shape: what feeds must agree with, and the default does; None where a dimension, or all,
            may vary.

    Raises:
        InvalidArgumentError: if the default is not of this shape.

    >>> import flowbook as fb
    >>> rate = fb.placeholder_with_default(0.5, [])
    >>> with fb.Session() as sess:
    ...     print(sess.run(rate), sess.run(rate, {rate: 2.0}))
    0.5 2.0
    """
    site = sites.capture()
    try:
        wanted = Shape(shape)
    except OpError as error:
        raise without_internal_frames(error.at("PlaceholderWithDefault", site)) from None
    return default_op(input, shape=wanted, name=name)


def numbers(x: Any) -> Tensor:
    """A tensor of a numeric dtype.

    Raises:
        InvalidTypeError: if it is of another one.
    """
    x = convert_to_tensor(x)
    if not x.dtype.is_numeric:
        raise InvalidTypeError(
            f"{x.name} is {x.dtype.name} where numbers are wanted",
            hint="convert it: fb.cast(x, fb.float32)" if x.dtype in SMALL else None,
        )
    return x  # type: ignore[no-any-return]


identity = OpDef(
    "Identity",
    "input: T -> output: T",
    T=(*MOVABLE, variant),
    infer=same_as_input,
    kernel=lambda xp, x: x,
    grad=lambda op, dy: dy,
    aliases={0: 0},
    spreads_nonfinite=("input",),
    is_identity=True,
    computes_shapes=True,
    elements=lambda op, known: known(op.inputs[0]),
    grad_takes_slices=True,
    batching=Batching.ELEMENTWISE,
    only_moves=True,
    doc="""The same value, as an operation of its own.

    It can be named, placed, fed, fetched, and made to wait by control dependencies.
    """,
    keeps_zeros=True,
)


@composed("IdentityN")
def identity_n(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """The same values, as operations of their own: `identity` of each of several tensors.

    Args:
        input: a list of tensors.
    """
    return [identity(tensor) for tensor in input]


stop_gradient = OpDef(
    "StopGradient",
    "input: T -> output: T",
    T=MOVABLE,
    infer=same_as_input,
    kernel=lambda xp, x: x,
    grad=NO_GRADIENT,
    aliases={0: 0},
    spreads_nonfinite=("input",),
    is_identity=True,
    batching=Batching.ELEMENTWISE,
    computes_shapes=True,
    only_moves=True,
    doc="The same value, through which no gradient flows.",
    keeps_zeros=True,
)


def _prevented(op: Any, dy: Tensor) -> NoReturn:
    message = op.attributes["message"] or "a gradient through this operation is not wanted"
    raise NotFoundError(message, op, hint="fb.stop_gradient lets none through without an error")


prevent_gradient = OpDef(
    "PreventGradient",
    "input: T -> output: T",
    T=MOVABLE,
    attributes={"message": ""},
    infer=same_as_input,
    kernel=lambda xp, x: x,
    grad=_prevented,
    aliases={0: 0},
    spreads_nonfinite=("input",),
    is_identity=True,
    batching=Batching.ELEMENTWISE,
    only_moves=True,
    doc="The same value; asking for a gradient through it is a LookupError with `message`.",
)

no_op: OpDef[Operation] = OpDef(
    "NoOp",
    "->",
    infer=nothing,
    kernel=lambda xp: (),
    only_moves=True,
    doc="Does nothing; control dependencies give it a meaning.",
)


def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that is done when all of the given ones are.

    Args:
        inputs: operations, tensors or variables, or lists of them.
        name: the operation's name.
    """
    flat = [i for item in inputs for i in (item if isinstance(item, list | tuple) else [item])]
    graph = next((i.graph for i in flat if hasattr(i, "graph")), get_default_graph())
    with graph.as_default(), control_dependencies(flat):
        return no_op(name=name)


def convert_to_tensor(value: Any, dtype: DType | None = None, name: str | None = None) -> Tensor:
    """A tensor for anything that can be one: itself, a variable's value, or a constant.

    Args:
        value: a tensor, a variable or its handle, anything array-like, or nested lists of all
            these.
        dtype: the dtype that it must have, or None.
        name: the name of the constant, if one is made.

    Raises:
        InvalidTypeError: if it is a tensor of another dtype, or values are of another kind.

    >>> import flowbook as fb
    >>> n = fb.placeholder(fb.int32, [])
    >>> fb.convert_to_tensor([[n, 0], [0, n]]).shape
    Shape([2, 2])
    """
    value = packed(value)
    if isinstance(value, Arithmetic) or hasattr(value, "as_tensor"):
        tensor = value_of(value) if isinstance(value, Tensor) else value.as_tensor(False)
        if dtype is not None and tensor.dtype is not as_dtype(dtype):
            raise InvalidTypeError(
                f"{tensor.name} is {tensor.dtype.name} where {as_dtype(dtype).name} is wanted",
                hint=f"fb.cast(x, fb.{as_dtype(dtype).name})",
            )
        return tensor
    return constant(value, dtype, name=name)


def _zeros_like(xp: Any, input: Any) -> Any:
    if input.dtype.kind == "O":
        return xp.full(input.shape, b"", object)
    return xp.zeros(input.shape, input.dtype)


zeros_like_op = OpDef(
    "ZerosLike",
    "input: T -> output: T",
    T=(*ZEROED, string),
    infer=same_as_input,
    kernel=_zeros_like,
    grad=NO_GRADIENT,
    keeps_finite=True,
    batching=Batching.ELEMENTWISE,
    only_moves=True,
)

ones_like_op = OpDef(
    "OnesLike",
    "input: T -> output: T",
    T=ZEROED,
    infer=same_as_input,
    kernel=lambda xp, input: xp.ones(input.shape, input.dtype),
    grad=NO_GRADIENT,
    keeps_finite=True,
    batching=Batching.ELEMENTWISE,
    only_moves=True,
)
