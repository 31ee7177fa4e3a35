"""What branches and loops look like in a graph: whose they are, what decides, what goes round."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

from flowbook.graph.model.ancestors import taken_by
from flowbook.graph.model.context import (
    Branch,
    Context,
    Frame,
    context_of,
    frame_of,
    is_within,
)
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor


def irregular(op: Operation) -> UnimplementedError:
    """The error for what routes values in another way."""
    return UnimplementedError(
        f"{op.type} {op.name!r} is part of no branch or loop "
        "such as fb.cond and fb.while_loop build"
    )


def predicate_of(merge: Operation) -> Tensor:
    """What decides which input a Merge gives on."""
    if merge.closed_by is None and len(merge.inputs) == 2:
        sides = {_side(context_of(t), merge.context) for t in merge.inputs}
        preds = {side.pred for side in sides if side is not None}
        if None not in sides and len(sides) == 2 and len(preds) == 1:
            return preds.pop()
    raise irregular(merge)


def _side(context: Context | None, outer: Context | None) -> Branch | None:
    """The branch right within a context that another one is; it may be entered more than once."""
    sides = []
    while isinstance(context, Branch) and context != outer:
        sides.append(context)
        context = context.outer
    is_one = context == outer and len({(side.pred, side.side) for side in sides}) == 1
    return sides[-1] if is_one else None


def once(context: Context | None) -> Context | None:
    """The same place in the control flow, where each side of a branch is entered once."""
    if not isinstance(context, Branch):
        return context
    outer = once(context.outer)
    if isinstance(outer, Branch) and (outer.pred, outer.side) == (context.pred, context.side):
        return outer
    return Branch(context.pred, context.side, outer)


def port(merge: Operation, side: int) -> int:
    """Which input of a Merge comes from a side of its branch."""
    [port] = [i for i, t in enumerate(merge.inputs) if context_of(t).side == side]  # type: ignore[union-attr]
    return port


def loop_of(exit: Operation) -> Frame:
    """The loop that an Exit leaves."""
    frame = frame_of(context_of(exit.inputs[0]))
    assert frame is not None
    return frame


def outcome_of(exit: Operation) -> Tensor:
    """What says whether there is another iteration."""
    switch = exit.inputs[0].op
    if switch.type != "Switch" or switch.inputs[1].op.type != "LoopCond":
        raise irregular(exit)
    return switch.inputs[1]


def next_value(merge: Operation) -> Tensor:
    """What a loop's variable is in the next iteration."""
    if merge.closed_by is None:
        raise irregular(merge)
    return merge.closed_by.inputs[0]


def first_value(merge: Operation) -> Tensor:
    """What a loop's variable is at first, outside of the loop."""
    return merge.inputs[0].op.inputs[0]


class Reached(NamedTuple):
    """What tensors of a loop depend on.

    Attributes:
        operations: those in the loop.
        variables: its Merges among them, in the order of their making.
        around: what is taken from outside.
    """

    operations: set[Operation]
    variables: list[Operation]
    around: list[Tensor]


def reached(frame: Frame, tensors: Iterable[Tensor], cut: Container[Tensor] = ()) -> Reached:
    """What tensors depend on in a loop, in this and in earlier iterations.

    Args:
        frame: the loop.
        tensors: the tensors.
        cut: what is given otherwise.
    """
    seen: set[Operation] = set()
    variables: list[Operation] = []
    around: list[Tensor] = []
    stack = list(tensors)
    while stack:
        tensor = stack.pop()
        op = tensor.op
        if op in seen or tensor in cut:
            continue
        if not is_within(op.context, frame):
            around.append(tensor)
            continue
        seen.add(op)
        stack += taken_by(op)
        if op.closed_by is not None:
            stack += op.closed_by.inputs
            if op.context is frame:
                variables.append(op)
    return Reached(seen, sorted(variables, key=lambda op: op.id), around)
