"""The spine of a model: what lies between what it is given or learns, and its loss.

It is what a picture of the graph is looked at for, so it stays whole, whatever is set aside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowbook.graph.model.operation import Operation
from flowbook.graph.model.touch import VARIABLE

# Gradients of an operation are built in a scope that has its name and this.
_GRADIENT = "_grad/"


def spine(operations: Sequence[Operation]) -> set[Operation]:
    """The operations between placeholders or variables and losses, and all placeholders.

    A loss is what gradients were taken of; where none were, any floating-point number.

    Args:
        operations: all of a graph, in the order of their construction.
    """
    losses = _differentiated(operations) or {op for op in operations if _is_number(op)}
    leading = set(losses)
    for op in reversed(operations):
        if op in leading:
            leading.update(tensor.op for tensor in op.inputs)
    found: set[Operation] = set()
    for op in operations:
        leads = op in leading
        begins = op.op_def.must_be_fed or (leads and op.op_def.owns == VARIABLE.name)
        if begins or (leads and any(tensor.op in found for tensor in op.inputs)):
            found.add(op)
    return found


def _differentiated(operations: Iterable[Operation]) -> set[Operation]:
    """Those that gradients have passed through."""
    named = {op.name: op for op in operations}
    scopes = {op.name.rpartition(_GRADIENT)[0] for op in operations if _GRADIENT in op.name}
    found = set()
    for scope in scopes:
        # In front of the operation's name stands the scope of the gradients.
        name = scope.partition("/")[2]
        while name and name not in named:
            name = name.partition("/")[2]
        if name:
            found.add(named[name])
    return found


def _is_number(op: Operation) -> bool:
    return any(tensor.dtype.is_floating and tensor.shape.dims == () for tensor in op.outputs)
