"""Marks: on what runs whenever a loss is trained (`Graph.updates`), and on training steps."""

from __future__ import annotations

from typing import TypeVar

from flowbook.graph.building.scopes import control_dependencies
from flowbook.graph.definition.inference import nothing
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.mark import Mark
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.tensor import Tensor

__all__ = ["mark_as_update"]

Marked = TypeVar("Marked", Operation, Tensor)

# An operation does not change: the mark is one of its own, which waits for what it marks.
mark_update_op: OpDef[Operation] = OpDef(
    "MarkUpdate",
    "->",
    infer=nothing,
    kernel=lambda xp: (),
    only_moves=True,
    marks=Mark.UPDATE,
)


@mark_update_op.front
def mark_as_update(operation: Marked) -> Marked:
    """Have an operation run whenever a loss that belongs to it is minimised.

    It is one that changes state from the data that a loss is computed from, such as the moving
    averages of a batch normalisation. `minimize(loss)` runs the marked operations with an input
    that depends on an ancestor of the loss other than a read of a variable or a constant.

    Args:
        operation: an operation, or one of its outputs.

    Returns:
        What was given.

    Raises:
        InvalidTypeError: if it is neither.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [None])
    >>> W, mean = fb.Variable(1.0), fb.Variable(0.0, trainable=False)
    >>> moved = fb.mark_as_update(fb.assign(mean, fb.reduce_mean(x)))
    >>> train = fb.train.GradientDescentOptimizer(0.1).minimize(fb.reduce_sum(W * x))
    >>> with fb.Session() as sess:
    ...     sess.run(train, {x: [1.0, 3.0]})
    ...     print(sess.run(mean))
    2.0
    """
    if not isinstance(operation, Operation | Tensor):
        raise InvalidTypeError(f"what is marked is an operation, not {operation!r}").at(
            mark_update_op.type, sites.capture()
        )
    graph = operation.graph
    marked = graph.as_operation(operation)
    with graph.as_default(), control_dependencies(None), control_dependencies([marked]):
        mark_update_op(name=f"{marked.name.replace('@', '_')}/mark")
    return operation


mark_training_op: OpDef[Operation] = OpDef(
    "MarkTraining",
    "->",
    infer=nothing,
    kernel=lambda xp: (),
    only_moves=True,
    marks=Mark.TRAINING,
)


@mark_training_op.front
def mark_as_training(operation: Operation, counter: Operation | None = None) -> Operation:
    """Have the runs that include an operation count as steps of a training.

    Args:
        operation: what makes a step.
        counter: the handle of the variable that counts them, if there is one.

    Returns:
        The operation.
    """
    before = [] if counter is None else [counter]
    with (
        operation.graph.as_default(),
        control_dependencies(None),
        control_dependencies(before),
        control_dependencies([operation]),
    ):
        mark_training_op(name=f"{operation.name.replace('@', '_')}/training/")
    return operation
