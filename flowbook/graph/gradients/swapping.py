"""Forward values that wait for their gradients in host memory.

A value is copied there as soon as it is made, so that its device needs it no longer than the last
forward operation that takes it, and it comes back when the first gradient asks for it (white paper,
section 5.2). On a device whose memory is the host's it is only held.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from flowbook.graph.building.graph import Graph
from flowbook.graph.building.scopes import within
from flowbook.graph.control_flow.stacks import empty_stack, pop_from_host, push_to_host
from flowbook.graph.gradients.backward_loops import name_of, on_behalf_of
from flowbook.graph.model.context import Context, context_of, frame_of
from flowbook.graph.model.dtypes import variant
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor


class Swapping:
    """What waits in host memory in one backward pass.

    Args:
        graph: the graph.
        prefix: of the names of what is built.
        swapped: the tensors.
        place: where the gradients are built; None outside of all loops and branches.

    Raises:
        InvalidArgumentError: if one of them is no value, or lies in a loop or branch.
    """

    def __init__(
        self, graph: Graph, prefix: str, swapped: Sequence[Tensor], place: Context | None
    ) -> None:
        for tensor in swapped:
            if tensor.dtype is variant:
                raise InvalidArgumentError(
                    f"swap: {tensor.name} is no value but a stack or an array of a loop", tensor.op
                )
            where = context_of(tensor)
            if where not in (None, place):
                is_in_loop = frame_of(where) is not None
                raise InvalidArgumentError(
                    f"swap: {tensor.name} lies in a {'loop' if is_in_loop else 'branch'}",
                    tensor.op,
                    hint="give the loop swap_memory=True" if is_in_loop else "swap what it gives",
                )
        self._graph = graph
        self._prefix = prefix
        self._swapped = frozenset(swapped)
        self._back: dict[Tensor, Tensor] = {}

    def standing_for(self, op: Operation, arrived: Operation) -> Operation:
        """What an operation's gradient takes in its place.

        Args:
            op: the operation.
            arrived: makes the gradient that has come to it.
        """
        # What a call stands for, and where a router leads, follows from the operation itself.
        is_itself = op.op_def.is_router or op.op_def.stands_for is not None
        if is_itself or self._swapped.isdisjoint((*op.inputs, *op.outputs)):
            return op
        stands = copy.copy(op)
        stands.inputs = tuple([self.value(tensor, arrived) for tensor in op.inputs])
        stands.outputs = tuple([self.value(tensor, arrived) for tensor in op.outputs])
        return stands

    def value(self, tensor: Tensor, arrived: Operation) -> Tensor:
        """A tensor as gradients take it: brought back, if it was swapped."""
        if tensor not in self._swapped:
            return tensor
        found = self._back.get(tensor)
        if found is None:
            graph, name = self._graph, f"{self._prefix}{name_of(tensor)}_swapped/"
            with on_behalf_of(graph, tensor.op, name):
                held = push_to_host(empty_stack(), tensor)
                # Not before it is needed.
                with within(graph, lambda scope: scope._replace(control_inputs=(arrived,))):
                    found, _ = pop_from_host(held, dtype=tensor.dtype, shape=tensor.shape)
            self._back[tensor] = found
        return found
