"""Operations with the shapes that they have where the shapes of what is fed are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.building.names import name_from
from flowbook.graph.model.dtypes import resource
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import placeholder
from flowbook.graph.transfer.copying import copy_operations, graph_for_copies


class Shaped(NamedTuple):
    """What is known once shapes are fed.

    Attributes:
        copies: for each operation a copy, with inferred shapes.
        fed: the shapes of what is fed.
    """

    copies: Mapping[Operation, Operation] = {}
    fed: Mapping[Tensor, Shape] = {}

    def of(self, operation: Operation) -> Operation:
        """The copy of an operation; itself if there is none."""
        return self.copies.get(operation, operation)

    def feed(self, tensor: Tensor) -> Shape:
        """The shape that is fed for a tensor."""
        return tensor.shape.merge(self.fed[tensor]) if tensor in self.fed else tensor.shape


def shaped(operations: Sequence[Operation], fed: Mapping[Tensor, Shape]) -> Shaped:
    """Copies of the operations, with shapes inferred from those of the feeds.

    Args:
        operations: all that a run needs, in a topological order.
        fed: the shapes of what is fed, checked; a variable's handle stands for its reads.
    """
    handles = [tensor.op for tensor in fed if tensor.dtype is resource]
    graph = graph_for_copies([*handles, *operations])
    tensors: dict[Tensor, Tensor] = {}
    copies: dict[Operation, Operation] = {}
    with graph.as_default():
        for tensor, shape in fed.items():
            if tensor.dtype is resource:
                copies |= copy_operations([tensor.op], graph, tensors)
                continue
            tensors[tensor] = placeholder(
                tensor.dtype, tensor.shape.merge(shape), name=f"{name_from(tensor.name)}_fed"
            )
        rest = [op for op in operations if op not in copies]
        copies |= copy_operations(rest, graph, tensors)
    return Shaped(copies, {t: shape for t, shape in fed.items() if t.dtype is not resource})


def check_fed(fed: Mapping[Tensor, Shape]) -> None:
    """Check that tensors may be fed with values of some shapes.

    Raises:
        InvalidArgumentError: if a shape does not fit.
    """
    for tensor, shape in fed.items():
        if tensor.dtype is not resource and not tensor.shape.is_compatible_with(shape):
            raise InvalidArgumentError(
                f"{tensor.name} has the shape {tensor.shape}, and would be fed with {shape}"
            )


def shape_of(value: Any, purpose: str) -> Shape:
    """The shape that a feed has: of a value as runs take it, or given as a tuple or `fb.Shape`."""
    if isinstance(value, Shape | tuple):
        return Shape(value)
    shape = getattr(value, "shape", None)
    if shape is None:
        try:
            if value is None or isinstance(value, str):
                raise ValueError
            shape = np.shape(value)
        except ValueError:
            raise InvalidArgumentError(
                f"a feed of {purpose} is a value, or a shape as a tuple, not {value!r:.80}"
            ) from None
    return Shape(shape)
