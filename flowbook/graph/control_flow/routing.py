"""The operations that branches and loops are made of (white paper, section 4.4).

A Switch gives its value to one of two sides, and the other gets none; a Merge gives on whichever of
its inputs there is. Enter, Exit and NextIteration take a value into a loop, out of it, and to its
next iteration. What the executor knows of them is what their definitions say in general terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from flowbook.graph.building.scopes import within
from flowbook.graph.definition.inference import same_as_input
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.context import FRAME_OPTIONS, Branch, Frame, chain, context_of
from flowbook.graph.model.dtypes import ANYTHING
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.retag import DEAD, Retag
from flowbook.graph.model.shape import SCALAR, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.whole_numbers import as_whole
from flowbook.graph.ops.arrays.indexed_slices import (
    Gradient,
    IndexedSlices,
    as_dense,
    no_rows,
    with_equal_indices,
)
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import shape_of
from flowbook.graph.ops.math.comparison import equal

__all__ = [
    "control_trigger",
    "enter",
    "exit",
    "loop_cond",
    "merge",
    "next_iteration",
    "switch",
]


class Sides(NamedTuple):
    """What a Switch gives: the value on the side that the predicate takes, nothing on the other."""

    output_false: Tensor
    output_true: Tensor


class Merged(NamedTuple):
    """What a Merge gives: a value, and the place of the input that it was."""

    output: Tensor
    value_index: Tensor


def _predicate(pred: Tensor) -> None:
    if not pred.shape.is_compatible_with(SCALAR):
        raise InvalidArgumentError(
            f"the predicate {pred.name} is no scalar: its shape is {pred.shape}",
            hint="fb.reduce_all or fb.reduce_any makes one of many; fb.where chooses elementwise",
        )


def _switch_shapes(data: Tensor, pred: Tensor) -> list[Shape]:
    _predicate(pred)
    return [data.shape, data.shape]


def _scalar(xp: Any, pred: Any) -> Any:
    if pred.shape:
        raise InvalidArgumentError(f"the predicate is no scalar: its shape is {list(pred.shape)}")
    return pred


def _switched(xp: Any, data: Any, pred: Any) -> tuple[Any, Any]:
    return (DEAD, data) if _scalar(xp, pred) else (data, DEAD)


def is_held(tensor: Tensor, pred: Tensor) -> bool:
    """Whether a tensor is alive on one side of a predicate only."""
    return any(isinstance(c, Branch) and c.pred is pred for c in chain(context_of(tensor)))


def held(tensor: Tensor, pred: Tensor, side: int) -> Tensor:
    """A tensor that is alive on one side of a predicate only."""
    if is_held(tensor, pred):
        return tensor
    sides: tuple[Tensor, Tensor] = switch_op(tensor, pred)
    return sides[side]


def either(false: Gradient, true: Gradient, pred: Tensor) -> Gradient:
    """The gradient of what a Switch gave to its sides: the one of the side that was taken."""
    if isinstance(false, IndexedSlices) and isinstance(true, IndexedSlices):
        false, true = with_equal_indices([false, true])
        values = either(false.values, true.values, pred)
        return IndexedSlices(values, either(false.indices, true.indices, pred), true.dense_shape)
    sides = [held(as_dense(gradient), pred, side) for side, gradient in enumerate((false, true))]
    return merge_op(sides)[0]


def _switch_gradient(
    op: Operation, dfalse: Gradient, dtrue: Gradient, *, used: Sequence[bool]
) -> tuple[Gradient, None]:
    data, pred = op.inputs
    flow = op.graph.scope.flow
    if flow is not None:
        pred = flow.captured(pred)
    rows = [side for side in (dfalse, dtrue) if isinstance(side, IndexedSlices)]
    if len(rows) == sum(used):  # A side that takes no row of a table costs nothing of its size.
        shape = convert_to_tensor(shape_of(data))
        dfalse, dtrue = [
            IndexedSlices(side.values, side.indices, shape)
            if isinstance(side, IndexedSlices)
            else no_rows(rows[0], shape)
            for side in (dfalse, dtrue)
        ]
    return either(dfalse, dtrue, pred), None


switch_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "Switch",
    "data: T, pred: bool -> output_false: T, output_true: T",
    T=ANYTHING,
    infer=_switch_shapes,
    kernel=_switched,
    grad=_switch_gradient,
    gives_dead=True,
    grad_takes_slices=True,
    host_args=("pred",),
    aliases={0: 0, 1: 0},
    only_moves=True,
)


@switch_op.front
def switch(data: Any, pred: Any, name: str | None = None) -> Sides:
    """Give a value to one of two sides; on the other there is none, and nothing of it runs.

    Args:
        data: the value.
        pred: a bool scalar.

    Returns:
        `(output_false, output_true)`.

    Source: white paper, section 4.4.
    """
    return Sides(*switch_op(data, pred, name=name))


def _merge_shapes(*args: Any) -> list[Shape]:
    (inputs,) = args
    shape = inputs[0].shape
    for tensor in inputs[1:]:
        shape = shape.generalise(tensor.shape)
    return [shape, SCALAR]


def _merged(xp: Any, *inputs: Any) -> tuple[Any, Any]:
    for index, value in enumerate(inputs):
        if value is not DEAD:
            return value, xp.asarray(index, "int32")
    return DEAD, DEAD


def _sides_of(gradient: Gradient, pred: Tensor) -> Sequence[Gradient]:
    """A gradient on each side of a predicate."""
    if not isinstance(gradient, IndexedSlices):
        return switch_op(gradient, pred)
    pairs = zip(switch_op(gradient.values, pred), switch_op(gradient.indices, pred), strict=True)
    return [IndexedSlices(values, indices, gradient.dense_shape) for values, indices in pairs]


def _merge_gradient(op: Operation, doutput: Gradient, dindex: None) -> list[Gradient]:
    if op.closed_by is not None:
        raise InvalidArgumentError(
            "a gradient with respect to what came before a loop is taken outside of it", op
        )
    found = []
    sides: dict[Tensor, Sequence[Gradient]] = {}
    for index, source in enumerate(op.inputs):
        pred, side = _decided_by(op, index, source)
        if pred not in sides:
            sides[pred] = _sides_of(doutput, pred)
        found.append(sides[pred][side])
    return found


def _decided_by(op: Operation, index: int, source: Tensor) -> tuple[Tensor, int]:
    """A predicate, and the side of it on which a Merge gave a certain input on."""
    found: Branch | None = None
    for context in chain(context_of(source)):
        if context == op.context or not isinstance(context, Branch):
            break
        found = context
    if found is not None and len(op.inputs) == 2:
        return found.pred, found.side
    return equal(op.outputs[1], index), 1


merge_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "Merge",
    "inputs: N*T -> output: T, value_index: int32",
    T=ANYTHING,
    infer=_merge_shapes,
    kernel=_merged,
    grad=_merge_gradient,
    fires_on_any=True,
    grad_takes_slices=True,
    aliases=None,
    only_moves=True,
)


@merge_op.front
def merge(inputs: Sequence[Any], name: str | None = None) -> Merged:
    """Give on whichever of several values there is; the first that comes, if there are more.

    Args:
        inputs: tensors of one dtype, of which one is alive. For a loop the value that entered it
            alone: `next_iteration(data, merge)` gives the others.

    Returns:
        `(output, value_index)`: the value, and an int32 scalar: the place of the input that it was.
        Both are dead if all inputs are.

    Source: white paper, section 4.4.
    """
    return Merged(*merge_op(inputs, name=name))


def _entered_shape(
    data: Tensor,
    frame_name: Any,
    is_constant: Any,
    parallel_iterations: Any,
    swap_memory: Any,
    recompute: Any,
    shape: Any,
    variable: Any,
) -> Shape:
    if not isinstance(frame_name, str) or not frame_name:
        raise InvalidArgumentError(f"a loop is named by a string, not {frame_name!r}")
    flags = {"is_constant": is_constant, "swap_memory": swap_memory, "recompute": recompute}
    for what, flag in flags.items():
        if not isinstance(flag, bool):
            raise InvalidTypeError(f"{what} is a bool, not {flag!r}")
    check_parallel(parallel_iterations)
    if shape is None:
        return data.shape
    if not isinstance(shape, Shape) or not shape.admits(data.shape):
        raise InvalidArgumentError(f"the shape {data.shape} is none of {shape}")
    return shape


def check_parallel(parallel_iterations: Any) -> None:
    """Refuse what is no number of iterations.

    Raises:
        InvalidTypeError: if it is no integer.
        InvalidArgumentError: if it is not positive.
    """
    if as_whole(parallel_iterations) is None:
        raise InvalidTypeError(
            f"parallel_iterations is a number of iterations, not {parallel_iterations!r}"
        )
    if parallel_iterations < 1:
        raise InvalidArgumentError(
            f"at least one iteration is under way, not {parallel_iterations} of them"
        )


enter_op = OpDef(
    "Enter",
    "data: T -> output: T",
    T=ANYTHING,
    attributes={
        "frame_name": REQUIRED,
        "is_constant": False,
        "parallel_iterations": 10,
        "swap_memory": False,
        "recompute": False,
        "shape": None,
        "variable": "",  # What a person calls the loop's variable that it begins.
    },
    infer=_entered_shape,
    kernel=lambda xp, data: data,
    grad=lambda op, dy: dy,
    retag=Retag.PUSH,
    aliases={0: 0},
    only_moves=True,
)


def taken_into(
    frame: Frame,
    tensor: Any,
    is_constant: bool = False,
    shape: Shape | None = None,
    variable: str = "",
) -> Tensor:
    """What stands for a tensor in a loop that is being built."""
    options = {option: getattr(frame, option) for option in FRAME_OPTIONS}
    return enter_op(
        tensor,
        frame_name=frame.name,
        is_constant=is_constant,
        shape=shape,
        variable=variable,
        **options,
    )


@enter_op.front
def enter(
    data: Any,
    frame_name: str,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    name: str | None = None,
) -> Tensor:
    """Take a value into a loop.

    Args:
        data: the value.
        frame_name: the loop's name; all that enters by one name, from one place, enters one loop.
        is_constant: whether the value is there in each of the loop's iterations, and not only in
            the first one.
        parallel_iterations: how many iterations may be under way at once.

    Raises:
        InvalidArgumentError: if the name is empty, or the number is not positive.

    Source: white paper, section 4.4.
    """
    return enter_op(
        data,
        frame_name=frame_name,
        is_constant=bool(is_constant),
        parallel_iterations=parallel_iterations,
        name=name,
    )


exit = OpDef(
    "Exit",
    "data: T -> output: T",
    T=ANYTHING,
    infer=same_as_input,
    kernel=lambda xp, data: data,
    retag=Retag.POP,
    aliases={0: 0},
    only_moves=True,
    doc="""Take a value out of a loop: the white paper's Leave.

    It is alive outside once it is alive in one of the loop's iterations, and dead if it is in none.

    Source: white paper, section 4.4.
    """,
)


next_iteration_op = OpDef(
    "NextIteration",
    "data: T -> output: T",
    T=ANYTHING,
    infer=same_as_input,
    kernel=lambda xp, data: data,
    retag=Retag.INCREMENT,
    aliases={0: 0},
    only_moves=True,
)


@next_iteration_op.front
def next_iteration(data: Any, merge: Any, name: str | None = None) -> Tensor:
    """Take a value to a loop's next iteration, where a Merge gives it on.

    Args:
        data: the value.
        merge: what `merge` gave of the value that entered the loop, of the same dtype.

    Raises:
        InvalidArgumentError: if `merge` is none of the same loop.
        InvalidTypeError: if the dtypes differ.

    Source: white paper, section 4.4.
    """
    given = merge[0] if isinstance(merge, tuple) else merge
    operation = given.op if isinstance(given, Tensor) else given
    if not isinstance(operation, Operation) or operation.op_def is not merge_op:
        raise InvalidTypeError(
            f"a loop is closed at what fb.control_flow.merge gave, not {merge!r}"
        )
    dtype = operation.outputs[0].dtype
    if isinstance(data, Tensor) and data.dtype is not dtype:
        raise InvalidTypeError(
            f"{data.name} is {data.dtype.name}, but {operation.name} was given {dtype.name}"
        )
    with within(operation.graph, lambda scope: scope._replace(closes=operation)):
        return next_iteration_op(data, name=name)


def _loop_shape(input: Tensor) -> Shape:
    _predicate(input)
    return SCALAR


loop_cond = OpDef(
    "LoopCond",
    "input: bool -> output: bool",
    infer=_loop_shape,
    kernel=_scalar,
    host_args=("input",),
    aliases={0: 0},
    is_identity=True,
    only_moves=True,
    doc="""Mark a loop's condition: a bool scalar that says whether there is another iteration.

    Source: white paper, section 4.4.
    """,
)


control_trigger: OpDef[Operation] = OpDef(
    "ControlTrigger",
    "->",
    infer=lambda: [],
    kernel=lambda xp: (),
    sees_dead=True,
    only_moves=True,
    doc="""Do nothing, but even where what it waits for is dead.

    What waits for it runs after those operations, whether or not they ran.
    """,
)
