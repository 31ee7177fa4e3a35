"""Where in the control flow a graph's operations are, and what nothing may join any more.

An operation is in the loop or branch of what it takes. A loop, a function's body and the branches
of a predicate are complete once their building has ended, and what is inside of them cannot be used
outside.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING

from flowbook.graph.model.context import (
    FRAME_OPTIONS,
    Branch,
    Context,
    Frame,
    chain,
    context_of,
    frame_of,
    is_within,
    joined,
    runs_in,
)
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.retag import Retag

if TYPE_CHECKING:
    from flowbook.graph.building.flow import Flow
    from flowbook.graph.model.tensor import Tensor


class Places:
    """The loops and branches of a graph.

    Args:
        lock: what every change of the graph holds.

    Attributes:
        is_routed: whether an operation has joined that decides where values go.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self.is_routed = False
        self._lock = lock
        self._frames: weakref.WeakValueDictionary[tuple[str, Frame | None], Frame] = (
            weakref.WeakValueDictionary()
        )
        self._complete: weakref.WeakSet[Frame | Operation] = weakref.WeakSet()

    def open(self, frame: Frame) -> None:
        """Have what enters a frame by its name enter this one."""
        self._frames[frame.name, frame_of(frame.outer)] = frame

    def close(self, frame: Frame) -> None:
        """Note that nothing else may join a frame."""
        self._complete.add(frame)

    def forget(self, name: str) -> None:
        """Have what enters a frame of this name, from outside of all, enter a new one."""
        self._frames.pop((name, None), None)

    def put(self, operation: Operation) -> None:
        """Find where an operation is that is about to join.

        Raises:
            InvalidArgumentError: if what it takes is in different frames, or in opposite branches,
                or in a frame to which nothing can be added, or it leaves a frame that it is not in.
        """
        self.is_routed |= operation.op_def.is_router
        context, retag = joined(operation), operation.op_def.retag
        frame = frame_of(context)
        if retag is Retag.PUSH:
            name = operation.attributes["frame_name"]
            entered = self._frames.get((name, frame))
            if entered is None:
                said = operation.attributes
                options = {option: said[option] for option in FRAME_OPTIONS if option in said}
                entered = Frame(name, context, **options, is_function=not operation.inputs)
                self._frames[name, frame] = entered
            elif is_within(context, entered.outer):
                entered.outer = context
            operation.context = entered
            return
        if retag is not Retag.NONE and frame is None:
            raise InvalidArgumentError(
                "its input is in no loop",
                hint="fb.control_flow.enter takes a value into one",
            )
        if retag is Retag.POP:
            assert frame is not None
            operation.context = frame.outer
        elif retag is Retag.INCREMENT:
            _check_closes(operation, frame)
            operation.context = frame
        else:
            operation.context = context

    def note_complete(self, operations: Iterable[Operation]) -> None:
        """Note that nothing else may join what operations leave or merge, loops and branches."""
        for operation in operations:
            if operation.op_def.retag is Retag.POP:
                frame = frame_of(runs_in(operation))
                assert frame is not None
                self._complete.add(frame)
            elif operation.op_def.fires_on_any and len(operation.inputs) > 1:
                inside = [context for t in operation.inputs for context in chain(context_of(t))]
                around = list(chain(operation.context))
                merged = [c for c in inside if isinstance(c, Branch) and c not in around]
                self._complete.update(branch.pred.op for branch in merged)

    def open_branches(self, pred: Tensor) -> None:
        """Note that the branches of a predicate are being built."""
        with self._lock:
            self._complete.discard(pred.op)

    def close_branches(self, pred: Tensor) -> None:
        """Note that nothing else may join the branches of a predicate."""
        with self._lock:
            self._complete.add(pred.op)

    def refuse_complete(self, operation: Operation, flow: Flow | None) -> None:
        """Refuse an operation that would join a loop or a branch which is complete.

        Raises:
            InvalidArgumentError: naming what it takes from there.
        """
        for context in chain(runs_in(operation)):
            if self._is_closed(context, flow):
                source = next(
                    (t for t in operation.inputs if is_within(context_of(t), context)),
                    operation.control_inputs[-1] if operation.control_inputs else operation,
                )
                raise _inside(source, context)

    def refuse_inside(self, tensor: Tensor, flow: Flow | None) -> None:
        """Refuse a tensor of a loop or a branch which is complete.

        Args:
            tensor: the tensor.
            flow: what is being built, which may be in there.

        Raises:
            InvalidArgumentError: saying where it is.
        """
        for context in chain(context_of(tensor)):
            if self._is_closed(context, flow):
                raise _inside(tensor, context)

    def _is_closed(self, context: Context, flow: Flow | None) -> bool:
        """Whether nothing that is built now may join a loop or a branch."""
        key = context if isinstance(context, Frame) else context.pred.op
        return key in self._complete and (flow is None or not is_within(flow.place, context))


def _check_closes(operation: Operation, frame: Frame | None) -> None:
    """Refuse what takes a value to the next iteration, but to no Merge that could give it on.

    Raises:
        InvalidArgumentError: if it closes none of its loop, or one that is closed already.
        InvalidTypeError: if the dtypes differ.
    """
    merge = operation.closes
    if merge is None or not merge.op_def.fires_on_any or merge.context is not frame:
        raise InvalidArgumentError(
            "it closes no Merge of its loop",
            hint="fb.control_flow.next_iteration(data, merge)",
        )
    given, taken = operation.outputs[0], merge.outputs[0]
    if given.dtype is not taken.dtype:
        raise InvalidTypeError(
            f"it gives {given.dtype.name}, but {merge.name!r}, which it closes, {taken.dtype.name}"
        )
    if not given.shape.is_compatible_with(taken.shape):
        raise InvalidArgumentError(
            f"it gives the shape {given.shape}, but {merge.name!r}, which it closes, {taken.shape}"
        )
    other, author = merge.closed_by, operation.site.author
    if other is None or other.retired or operation.retired:
        return
    if author is None or not author.may_take(other.site.author):
        raise InvalidArgumentError(f"{merge.name!r} is closed by {other.name!r} already")


def _inside(source: Tensor | Operation, context: Context) -> InvalidArgumentError:
    """That something inside of a loop or a branch is used from outside."""
    if isinstance(context, Frame):
        where = f"inside of {context.described}, where it has a value for each {context.repeats}"
        instead = "one of the loop's variables: use what the loop returns"
        if context.is_function:
            instead = "one of the function's results: use what its calls give"
    else:
        where = f"inside of a branch of {context.pred.name!r}, which may not be taken"
        instead = "what the branch's function gives: use what cond returns"
    return InvalidArgumentError(
        f"{source.name!r} is {where}, and cannot be used outside of it",
        hint=f"make it {instead}",
    )
