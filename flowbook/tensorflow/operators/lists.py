"""Lists of tensors, as which later graphs have arrays; what grows at its end alone is a stack.

An array is a value there too: each write gives another list.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.control_flow.array_ops import (
    array_op,
    concat_op,
    gather_op,
    read_op,
    replace_op,
    scatter_op,
    size_op,
    split_op,
)
from flowbook.graph.control_flow.stacks import empty_stack, pop, push
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.model.dtypes import int32, int64
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.filling import range as range_
from flowbook.graph.ops.basis.shaping import shape
from flowbook.tensorflow.node import Node, Rules


def _element_shape(given: Tensor) -> Shape:
    """What is known of elements' shapes: -1 is what is not."""
    known = constant_value(given)
    if known is None or not known.ndim:
        return Shape()
    return Shape([None if size < 0 else int(size) for size in known])


def _typed(n: Node, given: Tensor) -> dict[str, Any]:
    return {"dtype": n.dtype("element_dtype"), "element_shape": _element_shape(given)}


def _made(n: Node, size: Any, element_shape: Shape, name: str | None) -> Tensor:
    return array_op(
        size,
        element_shape=element_shape,
        # Which writes may make a list longer they say themselves.
        dynamic_size=True,
        clear_after_read=False,
        infer_shape=False,
        tensor_array_name=n.name,
        name=name,
    )


def _from_tensor(n: Node, x: Tensor, given: Tensor) -> Any:
    size = shape(x)[0]
    made = _made(n, size, _element_shape(given).merge(x.shape[1:]), None)
    return scatter_op(made, range_(size), x, name=n.scope)


def _stacked(n: Node, list: Tensor, given: Tensor) -> Any:
    return gather_op(list, range_(size_op(list)), **_typed(n, given), name=n.scope)


def _split(n: Node, x: Tensor, given: Tensor, lengths: Tensor) -> Any:
    lengths = cast(lengths, int32)
    made = _made(n, shape(lengths)[0], _element_shape(given), None)
    return split_op(made, x, lengths, name=n.scope)


def _concat(n: Node, list: Tensor, given: Tensor, *leading: Tensor) -> Any:
    value, lengths = concat_op(list, **_typed(n, given), name=n.scope)
    return [value, cast(lengths, int64)]


def _popped(n: Node, list: Tensor, given: Tensor) -> Any:
    typed = _typed(n, given)
    value, rest = pop(list, dtype=typed["dtype"], shape=typed["element_shape"], name=n.scope)
    return [rest, value]


RULES: Rules = {
    "EmptyTensorList": lambda n, given, most: empty_stack(name=n.scope),
    "TensorListConcatV2": _concat,
    "TensorListFromTensor": _from_tensor,
    "TensorListGather": lambda n, list, indices, given: gather_op(
        list, indices, **_typed(n, given), name=n.scope
    ),
    "TensorListGetItem": lambda n, list, index, given: read_op(
        list, index, **_typed(n, given), name=n.scope
    ),
    "TensorListLength": lambda n, list: size_op(list, name=n.scope),
    "TensorListPopBack": _popped,
    "TensorListPushBack": lambda n, list, x: push(list, x, name=n.scope),
    "TensorListReserve": lambda n, given, size: _made(n, size, _element_shape(given), n.scope),
    "TensorListScatterIntoExistingList": lambda n, list, x, indices: scatter_op(
        list, indices, x, name=n.scope
    ),
    "TensorListSetItem": lambda n, list, index, x: replace_op(list, index, x, name=n.scope),
    "TensorListSplit": _split,
    "TensorListStack": _stacked,
}
