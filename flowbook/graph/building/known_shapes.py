"""What is known of tensors' shapes beyond what inference finds: what `tensor.set_shape` said.

An operation does not change, and nobody's word is taken for the shape of what it gives. Saying it
builds an operation that checks it (`OpDef.vouches`); whatever is built later takes the output of
that one in the place of the tensor. So the order of building is all there is to remember: a stored
graph tells as much, and a cell that runs again takes back what it said.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flowbook.graph.model.operation import Operation
    from flowbook.graph.model.shape import Shape
    from flowbook.graph.model.tensor import Tensor


class KnownShapes:
    """Which outputs of checks stand for tensors."""

    def __init__(self) -> None:
        self._checked: dict[Tensor, Tensor] = {}

    def __bool__(self) -> bool:
        return bool(self._checked)

    def checked(self, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
        """What operations built now take in the place of tensors."""
        return tuple([self._last(tensor) for tensor in tensors])

    def shape_of(self, tensor: Tensor) -> Shape:
        """What is known of a tensor's shape now."""
        last = self._last(tensor)
        return last.op.shapes[last.index]

    def note(self, operation: Operation) -> None:
        """Have what an operation checked stand for its input from now on."""
        self._checked[operation.inputs[0]] = operation.outputs[0]
        self._tell(operation.inputs[0])

    def take_back(self, operation: Operation) -> None:
        """Have nothing that an operation checked stand for its input any more."""
        tensor = operation.inputs[0]
        if self._checked.get(tensor) is operation.outputs[0]:
            del self._checked[tensor]
            self._tell(tensor)

    def _last(self, tensor: Tensor) -> Tensor:
        while tensor in self._checked:
            tensor = self._checked[tensor]
        return tensor

    def _tell(self, tensor: Tensor) -> None:
        """Have a tensor, and those that it stands for, tell the shape that is known now."""
        known = self.shape_of(tensor)
        while True:
            tensor.shape = known
            before = tensor.op.inputs[0] if tensor.op.op_def.vouches else None
            if before is None or self._checked.get(before) is not tensor:
                return
            tensor = before
