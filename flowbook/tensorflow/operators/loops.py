"""Arrays of tensors: TensorFlow's have a handle and a flow; here the flow is the array itself."""

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
from flowbook.graph.model.dtypes import DType, int32, int64
from flowbook.graph.model.shape import Shape
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import no_op
from flowbook.tensorflow.node import Node, Rule, Rules, value_of


@dataclass(frozen=True)
class Array:
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


def _values(rule: Rule) -> Rule:
    """A rule that gets the values of references."""
    return lambda n, *inputs: rule(n, *map(value_of, inputs))


def _made(n: Node, size: Any) -> Any:
    element_shape = n.shape("element_shape")
    made = array_op(
        size,
        element_shape=element_shape,
        dynamic_size=n.flag("dynamic_size"),
        clear_after_read=n.flag("clear_after_read", True),
        infer_shape=n.flag("identical_element_shapes"),
        tensor_array_name=n.text("tensor_array_name") or n.name,
        name=n.scope,
    )
    return [Array(n.dtype("dtype"), element_shape), made]


def _read(n: Node, array: Array, index: Any, flow: Any) -> Any:
    return read_op(flow, index, **array.typed, name=n.scope)


def _gather(n: Node, array: Array, indices: Any, flow: Any) -> Any:
    # What is gathered may be known better than what is written.
    known = n.shape("element_shape").merge(array.element_shape)
    return gather_op(flow, indices, dtype=array.dtype, element_shape=known, name=n.scope)


def _concat(n: Node, array: Array, flow: Any) -> Any:
    value, lengths = concat_op(flow, **array.typed, name=n.scope)
    return [value, cast(lengths, int64)]


RULES: Rules = {
    "TensorArrayV3": _values(_made),
    "TensorArrayCloseV3": lambda n, array: no_op(name=n.scope),
    "TensorArrayConcatV3": _values(_concat),
    "TensorArrayGatherV3": _values(_gather),
    "TensorArrayReadV3": _values(_read),
    "TensorArrayScatterV3": _values(
        lambda n, array, indices, value, flow: scatter_op(flow, indices, value, name=n.scope)
    ),
    "TensorArraySizeV3": _values(lambda n, array, flow: size_op(flow, name=n.scope)),
    "TensorArraySplitV3": _values(
        lambda n, array, value, lengths, flow: split_op(
            flow, value, cast(lengths, int32), name=n.scope
        )
    ),
    "TensorArrayWriteV3": _values(
        lambda n, array, index, value, flow: write_op(flow, index, value, name=n.scope)
    ),
}
