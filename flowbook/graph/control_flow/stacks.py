"""Stacks: what a loop's iterations leave for the loop that takes their gradients.

A stack is a value like any other: pushing gives another one, which shares the rest. So nothing has
to be put in order, iterations may overlap, and what nobody needs any more is let go. Pushing and
popping are each other's gradients.

What is pushed to the host is held in host memory, and comes back to the device that pops it. On a
CPU, whose memory that is, it is only held.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.inference import scalar
from flowbook.graph.definition.op_def import NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.dtypes import ANYTHING
from flowbook.graph.model.errors import FailedPreconditionError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import SCALAR, UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor

empty_stack = OpDef(
    "EmptyStack",
    "-> stack: variant",
    infer=scalar,
    kernel=lambda xp: (),
    grad=NO_GRADIENT,
    only_moves=True,
    doc="A stack with nothing on it.",
)


def _push_gradient(op: Operation, dstack: Tensor) -> tuple[Tensor, Tensor]:
    value = op.inputs[1]
    dvalue, rest = pop(dstack, dtype=value.dtype, shape=value.shape)
    return rest, dvalue


push = OpDef(
    "StackPush",
    "stack: variant, value: T -> pushed: variant",
    T=ANYTHING,
    infer=scalar,
    kernel=lambda xp, stack, value: (value, stack),
    grad=_push_gradient,
    aliases=None,
    pushes={0: 1},
    only_moves=True,
    doc="A stack with one more value on it.",
)


def _popped(xp: Any, stack: Any) -> Any:
    if not stack:
        raise FailedPreconditionError("the stack is empty")
    return stack


def _popped_shapes(stack: Tensor, shape: Shape, **_: Any) -> list[Shape]:
    return [shape, SCALAR]


pop: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "StackPop",
    "stack: variant -> value: dtype, rest: variant",
    attributes={"dtype": REQUIRED, "shape": UNKNOWN},
    infer=_popped_shapes,
    kernel=_popped,
    grad=lambda op, dvalue, drest: push(drest, dvalue),
    aliases=None,
    pops={0: 0},
    only_moves=True,
    doc="The value on top of a stack, and the stack without it.",
)


def _push_to_host_gradient(op: Operation, dstack: Tensor) -> tuple[Tensor, Tensor]:
    value = op.inputs[1]
    dvalue, rest = pop_from_host(dstack, dtype=value.dtype, shape=value.shape)
    return rest, dvalue


push_to_host = OpDef(
    "StackPushToHost",
    "stack: variant, value: T -> pushed: variant",
    T=ANYTHING,
    infer=scalar,
    kernel=lambda xp, stack, value: (value, stack),
    grad=_push_to_host_gradient,
    host_args=("value",),
    runs_early=True,
    aliases=None,
    pushes={0: 1},
    swaps=True,
    only_moves=True,
    doc="A stack with one more value on it, which it holds in host memory.",
)


def _popped_from_host(xp: Any, stack: Any) -> Any:
    value, rest = _popped(xp, stack)
    return xp.asarray(value), rest


pop_from_host: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "StackPopFromHost",
    "stack: variant -> value: dtype, rest: variant",
    attributes={"dtype": REQUIRED, "shape": UNKNOWN},
    infer=_popped_shapes,
    kernel=_popped_from_host,
    grad=lambda op, dvalue, drest: push_to_host(drest, dvalue),
    aliases=None,
    pops={0: 0},
    swaps=True,
    only_moves=True,
    doc="The value on top of a stack that holds it in host memory, and the stack without it.",
)
