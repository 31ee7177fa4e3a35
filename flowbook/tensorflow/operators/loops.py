"""Arrays of tensors and stacks.

TensorFlow's arrays have a handle and a flow; here the flow is the array itself. Where TensorFlow
has built gradients of arrays, which change in place, they do so here too: the handle is a tensor.
Stacks are there for such gradients alone.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from flowbook.graph.control_flow.held import (
    held_array_op,
    held_concat_op,
    held_gather_op,
    held_gradient_op,
    held_pop_op,
    held_push_op,
    held_read_op,
    held_scatter_op,
    held_size_op,
    held_split_op,
    held_stack_op,
    held_write_op,
)
from flowbook.graph.model.dtypes import DType, int32, int64, variant
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import no_op
from flowbook.tensorflow.node import Everywhere, Node, Rule, Rules, named, value_of


@dataclass(frozen=True)
class Array(Everywhere):
    """What stands for the handle of an array of tensors.

    Attributes:
        dtype: that of its elements.
        element_shape: what is known of each one's shape.
    """

    dtype: DType
    element_shape: Shape

    @property
    def typed(self) -> dict[str, Any]:
        """The attributes of operations on the array."""
        return {"dtype": self.dtype, "element_shape": self.element_shape}


def _values(rule: Rule, held: Rule) -> Rule:
    """A rule that gets the values of references.

    Args:
        rule: for arrays that are values.
        held: for those that change in place.
    """

    def chosen(n: Node, array: Array | Tensor, *inputs: Any) -> Any:
        return (rule if isinstance(array, Array) else held)(n, array, *map(value_of, inputs))

    return chosen


def _made(n: Node, size: Any) -> Any:
    size = value_of(size)
    options: dict[str, Any] = {
        "element_shape": n.shape("element_shape"),
        "dynamic_size": n.flag("dynamic_size"),
        "tensor_array_name": n.text("tensor_array_name") or n.name,
        "name": n.scope,
    }
    if n.shares_arrays:
        return list(held_array_op(size, **options))
    made = array_op(
        size,
        clear_after_read=n.flag("clear_after_read", True),
        infer_shape=n.flag("identical_element_shapes"),
        **options,
    )
    return [Array(n.dtype("dtype"), options["element_shape"]), made]


def _read(n: Node, array: Array, index: Any, flow: Any) -> Any:
    return read_op(flow, index, **array.typed, name=n.scope)


def _gather(n: Node, array: Array, indices: Any, flow: Any) -> Any:
    # What is gathered may be known better than what is written.
    known = n.shape("element_shape").merge(array.element_shape)
    return gather_op(flow, indices, dtype=array.dtype, element_shape=known, name=n.scope)


def _concat(n: Node, array: Array, flow: Any) -> Any:
    value, lengths = concat_op(flow, **array.typed, name=n.scope)
    return [value, cast(lengths, int64)]


def _held_concat(n: Node, array: Tensor, flow: Any) -> Any:
    value, lengths = held_concat_op(array, flow, dtype=n.dtype("dtype"), name=n.scope)
    return [value, cast(lengths, int64)]


def _held_gather(n: Node, array: Tensor, indices: Any, flow: Any) -> Any:
    typed = {"dtype": n.dtype("dtype"), "element_shape": n.shape("element_shape")}
    return held_gather_op(array, indices, flow, **typed, name=n.scope)


def _popped(n: Node, stack: Any) -> Any:
    dtype = variant if n.holds_handles("elem_type") else n.dtype("elem_type")
    return held_pop_op(stack, dtype=dtype, name=n.scope)


RULES: Rules = {
    "StackCloseV2": lambda n, stack: no_op(name=n.scope),
    "StackPopV2": _popped,
    "StackPushV2": lambda n, stack, value: held_push_op(stack, value_of(value), name=n.scope),
    "StackV2": named(held_stack_op),
    "TensorArrayV3": _made,
    "TensorArrayCloseV3": lambda n, array: no_op(name=n.scope),
    "TensorArrayConcatV3": _values(_concat, _held_concat),
    "TensorArrayGatherV3": _values(_gather, _held_gather),
    "TensorArrayGradV3": named(held_gradient_op, source=lambda n: n.text("source")),
    "TensorArrayReadV3": _values(_read, named(held_read_op, dtype=lambda n: n.dtype("dtype"))),
    "TensorArrayScatterV3": _values(
        lambda n, array, indices, value, flow: scatter_op(flow, indices, value, name=n.scope),
        named(held_scatter_op),
    ),
    "TensorArraySizeV3": _values(
        lambda n, array, flow: size_op(flow, name=n.scope), named(held_size_op)
    ),
    "TensorArraySplitV3": _values(
        lambda n, array, value, lengths, flow: split_op(
            flow, value, cast(lengths, int32), name=n.scope
        ),
        lambda n, array, value, lengths, flow: held_split_op(
            array, value, cast(lengths, int32), flow, name=n.scope
        ),
    ),
    "TensorArrayWriteV3": _values(
        lambda n, array, index, value, flow: write_op(flow, index, value, name=n.scope),
        named(held_write_op),
    ),
}
