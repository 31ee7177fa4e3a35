"""Operations that initialise variables, each after those whose new values its own reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from flowbook.graph.building.graph import get_default_graph
from flowbook.graph.building.names import name_from
from flowbook.graph.building.scopes import control_dependencies, device, name_scope
from flowbook.graph.model.ancestors import ancestors
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import touched_by
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Access
from flowbook.graph.ops.basis.constants import group
from flowbook.graph.ops.state.variables import Variable

__all__ = ["global_variables_initializer", "variables_initializer"]


def variables_initializer(variables: Iterable[Variable], name: str = "init") -> Operation:
    """An operation that (re)initialises the given variables.

    Where the initial value of one reads others of them, it sees their new values.
    """
    assigned: dict[Operation, Operation] = {}
    for variable in sorted(set(variables), key=lambda v: v.op.id):
        with variable.graph.as_default(), control_dependencies(None):
            assigned[variable.op] = _initializer_after(variable, assigned)
    return group(*assigned.values(), name=name)


def _initializer_after(variable: Variable, assigned: Mapping[Operation, Operation]) -> Operation:
    """A variable's initializer; built anew if it reads what others assign, to wait for them."""
    rebuilt: dict[Operation, Operation] = {}
    for op in sorted(ancestors(variable.initializer, by_control=True), key=lambda op: op.id):
        owner = touched_by(op) if op.op_def.access is Access.READ else None
        reads = owner in assigned
        if not reads and rebuilt.keys().isdisjoint(
            (*[t.op for t in op.inputs], *op.control_inputs)
        ):
            continue
        inputs = [rebuilt[t.op].outputs[t.index] if t.op in rebuilt else t for t in op.inputs]
        waits = [rebuilt.get(c, c) for c in op.control_inputs]
        if owner is not None and reads:
            waits.append(assigned[owner])
        with control_dependencies(waits), device(op.device), name_scope(variable.name_prefix):
            built = op.op_def(
                *op.op_def.grouped(inputs, op.attributes),
                **op.attributes,
                name=name_from(op.name.rpartition("/")[2]),
            )
        first = built[0] if isinstance(built, list | tuple) else built
        rebuilt[op] = first.op if isinstance(first, Tensor) else first
    return rebuilt.get(variable.initializer, variable.initializer)


def global_variables_initializer() -> Operation:
    """An operation that (re)initialises all variables that the default graph has now.

    Sessions initialise variables on first use by themselves; this is for starting over, and for
    sessions made with `auto_initialize=False`.
    """
    return variables_initializer(get_default_graph().variables())
