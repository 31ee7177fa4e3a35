"""Stacks and arrays that change in place: what TensorFlow 1 built for the gradients of its loops.

A holder is made anew whenever the operation that makes it runs, and lives within the step. What
changes one and what reads it go in the order that values, flows and control dependencies say, as
there: TensorFlow's graphs say enough. Nobody builds these but who reads such graphs: the gradients
that are built here take stacks and arrays that are values (`stacks.py`, `array_ops.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from flowbook.graph.control_flow.array_ops import (
    array_op,
    concat_op,
    gather_op,
    read_op,
    scatter_op,
    size_op,
    split_op,
    write_op,
)
from flowbook.graph.control_flow.tensor_list import Rules, TensorList
from flowbook.graph.definition.inference import scalar
from flowbook.graph.definition.op_def import HOST, REQUIRED, OpDef
from flowbook.graph.model.dtypes import ANYTHING, DType
from flowbook.graph.model.errors import FailedPreconditionError, UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import SCALAR, UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import WITHIN_STEP


@dataclass
class HeldArray:
    """An array that changes in place.

    Attributes:
        list: what it is now.
        of: the array that it is a gradient of; None if it is none.
        gradients: its own, by what they are called for.
    """

    list: TensorList
    of: HeldArray | None = None
    gradients: dict[str, HeldArray] = field(default_factory=dict)

    def filled(self, xp: Any, indices: Iterable[int]) -> TensorList:
        """The list; a gradient is zero where nothing was written, and has the element's shape."""
        if self.of is not None:
            there = self.of.list
            missing = [i for i in indices if 0 <= i < there.size and self.list.read(i) is None]
            zeros = {i: xp.zeros_like(there.read(i)) for i in missing if there.has(i)}
            self.list = self.list.written(zeros)
        return self.list


def _no_gradient(op: Operation, *_: Tensor) -> Any:
    raise UnimplementedError(
        "what TensorFlow built for the gradients of its loops is not differentiated again",
        op,
        hint="read the loss alone: fb.tensorflow.load(model, outputs=[loss]); the gradients of its "
        "loops are then those that fb.gradients builds",
    )


# Stacks


def _pushed(xp: Any, stack: list[Any], value: Any) -> Any:
    stack.append(value)
    return value


def _popped(xp: Any, stack: list[Any]) -> Any:
    if not stack:
        raise FailedPreconditionError("the stack is empty")
    return stack.pop()


held_stack_op = OpDef(
    "HeldStack",
    "most: int32 -> stack: variant",
    infer=scalar,
    kernel=lambda xp, most: [],
    kinds=HOST,
    touches=WITHIN_STEP,
    only_moves=True,
)

held_push_op = OpDef(
    "HeldStackPush",
    "stack: variant, value: T -> pushed: T",
    T=ANYTHING,
    infer=lambda stack, value: value.shape,
    kernel=_pushed,
    kinds=HOST,
    touches=WITHIN_STEP,
    only_moves=True,
)

held_pop_op = OpDef(
    "HeldStackPop",
    "stack: variant -> value: dtype",
    attributes={"dtype": REQUIRED},
    infer=lambda stack, dtype: UNKNOWN,
    kernel=_popped,
    kinds=HOST,
    touches=WITHIN_STEP,
    only_moves=True,
)


# Arrays. Each operation takes a number, the flow, from those that come before it.

_ATTRIBUTES = {name: array_op.attributes[name] for name in ("element_shape", "dynamic_size")}


def _array(
    xp: Any, size: Any, element_shape: Shape, dynamic_size: bool, tensor_array_name: str
) -> tuple[HeldArray, Any]:
    rules = Rules(tensor_array_name, dynamic_size)
    return HeldArray(TensorList(rules, int(size), element_shape)), xp.zeros((), "float32")


held_array_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "HeldArray",
    "size: int32 -> array: variant, flow: float32",
    attributes={**_ATTRIBUTES, "tensor_array_name": ""},
    infer=lambda size, **_: [SCALAR, SCALAR],
    kernel=_array,
    host_args=("size",),
    kinds=HOST,
    touches=WITHIN_STEP,
    grad=_no_gradient,
    only_moves=True,
)


def _gradient(xp: Any, array: HeldArray, flow: Any, source: str) -> tuple[HeldArray, Any]:
    """The gradient of an array that goes by a name: the same one, whoever asks for it."""
    if source not in array.gradients:
        rules = Rules(f"gradient of {array.list.rules.name}", adds_up=True)
        zero = TensorList(rules, array.list.size, array.list.element_shape)
        array.gradients[source] = HeldArray(zero, of=array)
    return array.gradients[source], flow


held_gradient_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "HeldArrayGradient",
    "array: variant, flow: float32 -> gradient: variant, flow_out: float32",
    attributes={"source": REQUIRED},
    infer=lambda array, flow, source: [SCALAR, SCALAR],
    kernel=_gradient,
    kinds=HOST,
    touches=WITHIN_STEP,
    grad=_no_gradient,
    only_moves=True,
)


def _changing(op_def: OpDef[Any], inputs: str) -> OpDef[Any]:
    """The operation that changes an array in place as one on values gives another array."""
    change: Any = op_def.kernel

    def changed(xp: Any, array: HeldArray, *given: Any) -> Any:
        *inputs, flow = given
        array.list = change(xp, array.list, *inputs)
        return flow

    return OpDef(
        f"Held{op_def.type.removeprefix('Tensor')}",
        f"array: variant, {inputs}, flow: float32 -> flow_out: float32",
        T=op_def.type_variables["T"],
        infer=scalar,
        kernel=changed,
        host_args=op_def.host_args,
        kinds=HOST,
        touches=WITHIN_STEP,
        grad=_no_gradient,
        only_moves=True,
    )


held_write_op = _changing(write_op, "index: int32, value: T")
held_scatter_op = _changing(scatter_op, "indices: int32, value: T")
held_split_op = _changing(split_op, "value: T, lengths: int32")


def _read(
    xp: Any, array: HeldArray, index: Any, flow: Any, dtype: DType, element_shape: Shape
) -> Any:
    found: Any = read_op.kernel
    return found(xp, array.filled(xp, [int(index)]), index, dtype, element_shape)


def _gathered(
    xp: Any, array: HeldArray, indices: Any, flow: Any, dtype: DType, element_shape: Shape
) -> Any:
    found: Any = gather_op.kernel
    return found(xp, array.filled(xp, indices.tolist()), indices, dtype, element_shape)


def _joined(
    xp: Any, array: HeldArray, flow: Any, dtype: DType, element_shape: Shape
) -> tuple[Any, Any]:
    found: Any = concat_op.kernel
    joined: tuple[Any, Any] = found(
        xp, array.filled(xp, range(array.list.size)), dtype, element_shape
    )
    return joined


def _reading(op_def: OpDef[Any], inputs: str, outputs: str, kernel: Any) -> OpDef[Any]:
    infer: Any = op_def.infer
    return OpDef(
        f"Held{op_def.type.removeprefix('Tensor')}",
        f"array: variant{inputs}, flow: float32 -> {outputs}",
        attributes=op_def.attributes,
        infer=lambda *given, **attributes: infer(*given[:-1], **attributes),
        kernel=kernel,
        host_args=op_def.host_args,
        kinds=HOST,
        touches=WITHIN_STEP,
        grad=_no_gradient,
        only_moves=True,
    )


held_read_op = _reading(read_op, ", index: int32", "value: dtype", _read)
held_gather_op = _reading(gather_op, ", indices: int32", "value: dtype", _gathered)
held_concat_op: OpDef[tuple[Tensor, Tensor]] = _reading(
    concat_op, "", "value: dtype, lengths: int32", _joined
)
held_size_op = _reading(
    size_op, "", "size: int32", lambda xp, array, flow: xp.asarray(array.list.size, "int32")
)
