"""A part of a graph once more, in a graph of its own, changed on the way.

What tools compute about a model they compute on a copy: the graph that a person builds never grows
from being looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from flowbook.graph.building.graph import Graph
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.ancestors import taken_by
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor

Attributes = Mapping[str, Any]


def graph_for_copies(operations: Iterable[Operation]) -> Graph:
    """An empty graph that keeps the operations' names for their copies.

    What is built in it besides them is named otherwise, whatever it would have been named.
    """
    graph = Graph()
    graph.members.reserve_names(op.name for op in operations if not op.retired)
    return graph


def copy_operations(
    operations: Iterable[Operation],
    graph: Graph,
    tensors: dict[Tensor, Tensor],
    *,
    defined: Callable[[Operation], OpDef[Any]] = lambda op: op.op_def,
    attributes: Callable[[Operation], Attributes] = lambda op: op.attributes,
    given: Callable[[Operation, list[Tensor]], list[Tensor]] = lambda op, inputs: inputs,
    made: Callable[[Tensor, Tensor], Tensor] = lambda original, copy: copy,
) -> dict[Operation, Operation]:
    """Copy operations, under their names, with sites, control inputs and inferred shapes.

    Args:
        operations: in a topological order; what they take is among them or in `tensors`.
        graph: what `graph_for_copies` gave for them.
        tensors: what stands for tensors of the original; all outputs are added to it.
        defined: the type of an operation's copy.
        attributes: the attributes of an operation's copy.
        given: what an operation's copy takes, instead of the copies of its inputs.
        made: what consumers take, instead of an output's copy.

    Returns:
        The copies by their originals. A call of a function has none: what it stands for is copied.

    Raises:
        InvalidArgumentError: if an operation does not fit its changed inputs.
    """
    copies: dict[Operation, Operation] = {}
    for operation in operations:
        if operation.op_def.stands_for is not None:
            results = zip(operation.outputs, taken_by(operation), strict=True)
            tensors.update((call, tensors[t]) for call, t in results if t in tensors)
            continue
        inputs = given(operation, [tensors[t] for t in operation.inputs])
        changed = MappingProxyType(dict(attributes(operation)))
        op_def = defined(operation)
        found = op_def.infer_outputs(graph, inputs, changed)
        copy = Operation(graph, op_def, tuple(inputs), changed, *found, operation.site)
        copy.control_inputs = tuple([copies[c] for c in operation.control_inputs if c in copies])
        if operation.closes is not None:
            copy.closes = copies[operation.closes]
        graph.members.restore(copy, operation.name, operation.retired)
        copies[operation] = copy
        for original, output in zip(operation.outputs, copy.outputs, strict=True):
            if original not in tensors:
                tensors[original] = made(original, output)
    return copies
