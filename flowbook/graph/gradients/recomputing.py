"""Forward operations once more, for their gradients: what is not kept need not lie in memory.

Between tensors that are kept, what an operation's gradient takes is computed a second time, from
these, when its gradient has come that far (Chen, Xu, Zhang, Guestrin: "Training Deep Nets with
Sublinear Memory Cost", 2016). What touches something, as drawing random numbers does, is never done
twice: what it gave is kept. So is what lies in loops and branches.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from flowbook.graph.building.graph import Graph
from flowbook.graph.building.scopes import within
from flowbook.graph.gradients.backward_loops import on_behalf_of
from flowbook.graph.gradients.swapping import Swapping
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor


class Recomputing:
    """What is computed once more in one backward pass.

    Args:
        graph: the graph.
        prefix: of the names of what is built.
        kept: the tensors from which the rest is computed.
        path: the operations whose gradients are taken.
        swapping: which of what is kept waits in host memory.
    """

    def __init__(
        self,
        graph: Graph,
        prefix: str,
        kept: Sequence[Tensor],
        path: Collection[Operation],
        swapping: Swapping,
    ) -> None:
        self._swapping = swapping
        self._graph = graph
        self._prefix = prefix
        self._kept = set(kept)
        self._again: dict[Operation, Operation] = {}
        # What comes after all that is kept has just been computed when its gradient is taken.
        self._before: set[Operation] = set()
        stack = [tensor.op for tensor in kept]
        while stack:
            op = stack.pop()
            if op in path and op not in self._before:
                self._before.add(op)
                stack += [tensor.op for tensor in op.inputs]

    def standing_for(self, op: Operation, arrived: Operation) -> Operation:
        """What an operation's gradient takes in its place.

        Args:
            op: the operation.
            arrived: makes the gradient that has come to it.
        """
        if not self._is_computed(op):
            return op
        wanted: set[Operation] = set()
        stack = [op]
        while stack:
            each = stack.pop()
            if each not in wanted and each not in self._again and self._is_computed(each):
                wanted.add(each)
                stack += [tensor.op for tensor in each.inputs if tensor not in self._kept]
        for each in sorted(wanted, key=lambda op: op.id):
            self._again[each] = self._computed(each, arrived)
        return self._again[op]

    def _is_computed(self, op: Operation) -> bool:
        op_def = op.op_def
        return (
            op in self._before
            and op.context is None
            and op_def.is_pure
            and not (op_def.is_async or op_def.is_router or op_def.runs_users_code)
            and op_def.stands_for is None
        )

    def _computed(self, op: Operation, arrived: Operation) -> Operation:
        graph = self._graph
        inputs = [self._value(tensor, arrived) for tensor in op.inputs]
        found = op.op_def.infer_outputs(graph, inputs, op.attributes)
        name = f"{self._prefix}{op.name.replace('@', '_')}_again/"
        # Not before it is needed; so it is not taken for the first one either.
        after = (arrived,)
        with (
            on_behalf_of(graph, op, name),
            within(graph, lambda scope: scope._replace(control_inputs=after)),
        ):
            assert graph.scope.site is not None
            made = Operation(
                graph, op.op_def, tuple(inputs), op.attributes, *found, graph.scope.site
            )
            return graph.add(made, None)

    def _value(self, tensor: Tensor, arrived: Operation) -> Tensor:
        again = None if tensor in self._kept else self._again.get(tensor.op)
        if again is None:
            return self._swapping.value(tensor, arrived)
        return again.outputs[tensor.index]
