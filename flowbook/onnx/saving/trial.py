"""The shapes of a model's tensors in a trial: all sizes that its inputs leave open are the same.

Two tensors that are of one shape then are so whatever the sizes are, but where a size of one is
broadcast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowbook.graph.model.errors import OpError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.rewrite.prune import prune
from flowbook.graph.transfer.shaping import shaped

# No model has it as a size of its own.
_SIZE = 1009


class Trial:
    """The shapes, inferred when the first is asked for.

    Args:
        outputs: what the model computes.
        inputs: what it takes.
    """

    def __init__(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        self._outputs, self._inputs = outputs, inputs
        self._copies: Mapping[Operation, Operation] | None = None

    def of(self, tensor: Tensor) -> Shape:
        """The shape that a tensor has."""
        if self._copies is None:
            self._copies = self._inferred()
        copy = self._copies.get(tensor.op)
        return UNKNOWN if copy is None else copy.outputs[tensor.index].shape

    def _inferred(self) -> Mapping[Operation, Operation]:
        fed = {t: _filled(t.shape) for t in self._inputs}
        try:
            operations = prune(self._outputs, [], self._inputs).operations
            return shaped(operations, fed).copies
        except OpError:
            return {}  # The sizes cannot be one.


def _filled(shape: Shape) -> Shape:
    if shape.dims is None:
        return shape
    return Shape.of(tuple(_SIZE if dim is None else dim for dim in shape.dims))
