"""Values that are checked on their way."""

from __future__ import annotations

from typing import Any

from flowbook.graph.building.scopes import within
from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.inference import elementwise, nothing, same_as_input
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.dtypes import FLOATS, MOVABLE
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.sums import sum_of_squares

__all__ = ["check_numerics", "ensure_shape"]


def _checked(xp: Any, tensor: Any, message: str) -> Any:
    finite = xp.isfinite(tensor)
    if not finite.all():
        wrong = [
            f"{int(count)} {name}"
            for name, count in (("NaN", xp.isnan(tensor).sum()), ("Inf", xp.isinf(tensor).sum()))
            if count
        ]
        place = [int(p) for p in xp.argwhere(~finite)[0]]
        raise InvalidArgumentError(
            f"{message}: {' and '.join(wrong)} among {tensor.size} elements of shape "
            f"{list(tensor.shape)}, the first at {place}"
        )
    return tensor


check_numerics: OpDef = OpDef(
    "CheckNumerics",
    "tensor: T -> output: T",
    T=FLOATS,
    attributes={"message": REQUIRED},
    infer=same_as_input,
    kernel=_checked,
    grad=lambda op, dy: check_numerics(
        dy, message=f"{op.attributes['message']}: the gradient with respect to it is not finite"
    ),
    aliases={0: 0},
    batching=Batching.ELEMENTWISE,
    cost=elementwise(),
    doc="""The same value, or an error where it holds NaN or infinities.

    Args:
        tensor: of a floating-point dtype. Its gradient is checked likewise.
        message: what the error says first, a str.

    Raises:
        InvalidArgumentError: in the run, if an element is not finite; it counts them and says where
            the first is.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [2])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.check_numerics(x, "activations"), {x: [1.0, 2.0]}))
    [1. 2.]
    """,
)


def _with_shape(xp: Any, x: Any, shape: Shape) -> Any:
    if not shape.is_compatible_with(x.shape):
        raise InvalidArgumentError(f"the shape {list(x.shape)} does not fit {shape}")
    return x


def _known_shape(x: Tensor, shape: Shape) -> Shape:
    if not isinstance(shape, Shape):
        raise InvalidTypeError(f"'shape' is a Shape, not {shape!r}")
    return x.shape.merge(shape)


ensure_shape_op = OpDef(
    "EnsureShape",
    "x: T -> output: T",
    T=MOVABLE,
    attributes={"shape": REQUIRED},
    infer=_known_shape,
    kernel=_with_shape,
    grad=lambda op, dy: dy,
    aliases={0: 0},
    spreads_nonfinite=("x",),
    only_moves=True,
)


@ensure_shape_op.front
def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same value, of which more is known before the run: that it has this shape.

    Args:
        x: of any dtype.
        shape: what its shape agrees with; None for dimensions that vary.

    Raises:
        InvalidArgumentError: if it does not; in the run, where it is known only then.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [None, None])
    >>> fb.ensure_shape(x, [None, 3]).shape
    Shape([None, 3])
    """
    wanted = Shape(shape)
    return ensure_shape_op(x, shape=wanted, name=name)


set_shape_op = OpDef(
    "SetShape",
    "x: T -> output: T",
    T=MOVABLE,
    attributes={"shape": REQUIRED},
    infer=_known_shape,
    kernel=_with_shape,
    grad=lambda op, dy: dy,
    aliases={0: 0},
    spreads_nonfinite=("x",),
    vouches=True,
    only_moves=True,
)


@set_shape_op.front
def _set_shape(x: Tensor, shape: Any) -> None:
    wanted = Shape(shape)
    if x.shape.is_compatible_with(wanted) and x.shape.merge(wanted) == x.shape:
        return
    graph = x.graph
    scope = graph.scope
    flow = scope.flow
    while flow is not None and flow.is_outside(x):
        flow = flow.outer
    # It is beside the tensor, whatever else holds for what is built here.
    beside = scope._replace(
        control_inputs=(), flow=flow, device="", choosers=(), colocation=(), container=""
    )
    with within(graph, lambda _: beside):
        set_shape_op(x, shape=wanted)


_INFINITY = float("inf")


def _check_finite(xp: Any, *values: Any, checked: int) -> tuple[()]:
    """Look at the first `checked` values.

    The product of a value's elements with themselves is finite only if all of them are, and costs
    less than NumPy's `isfinite`, which has the last word.
    """
    for value in values[:checked]:
        if value.dtype.char in "fd":
            if not value.ndim:
                if value - value == 0:
                    continue
            else:
                flags = value.flags
                flat = value.T if flags.f_contiguous and not flags.c_contiguous else value
                flat = flat.reshape(-1)
                # False for NaN too.
                if sum_of_squares(xp, flat) < _INFINITY:
                    continue
        if not xp.isfinite(value).all():
            raise InvalidArgumentError("a value of the step is NaN or infinite")
    return ()


# A guard (`flowbook.exec.instruments.guard`) adds it to plans; it is not built in graphs. Once a
# value is not finite, the checked ones are computed again from the values after them; what bears
# one of the names that are `allowed`, or is in a scope of that name, may be so.
check_finite_op: OpDef[Operation] = OpDef(
    "CheckFinite",
    "values: *values ->",
    attributes={"checked": REQUIRED, "allowed": ()},
    infer=nothing,
    kernel=_check_finite,
    only_moves=True,
)
