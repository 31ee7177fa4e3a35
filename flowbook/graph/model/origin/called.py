"""What operations and tensors are called where a person reads of them: `loss (Mean)`.

The Python variable comes first, where the line that built an operation gives it to what the
operation computes; the graph's own name stands beside it. Of several operations that one
expression built, as those of a layer, the variable is the last one's, which gives the value; or
that of the one that the last one serves by its name, as `train/training` serves `train`. Where
an expression's last operations update a state, its value is another, and nothing is claimed.

Names are looked up when something is shown: building costs nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from flowbook.graph.model.mark import Mark
from flowbook.graph.model.origin.assigned import Targets
from flowbook.graph.model.origin.site import DerivedSite, Site

if TYPE_CHECKING:
    from flowbook.graph.building.graph import Graph
    from flowbook.graph.model.operation import Operation
    from flowbook.graph.model.tensor import Tensor

# By graph: its version and how much of it was built again when its names were looked up.
_known: weakref.WeakKeyDictionary[Graph, tuple[tuple[int, int], Mapping[int, Targets]]] = (
    weakref.WeakKeyDictionary()
)


def called(operation: Operation) -> str:
    """What an operation is called: `loss (Mean)`, or its name alone where no variable is known."""
    return beside(telling_variable(operation), operation.name)


def described(operation: Operation) -> str:
    """An operation with its type: `loss (Mean 'layer/Mean')`, or `Mean 'layer/Mean'`."""
    return beside(telling_variable(operation), f"{operation.type} {operation.name!r}")


def tensor_called(tensor: Tensor) -> str:
    """What a tensor is called: `loss (Mean:0)`, or its name alone where no variable is known."""
    targets = _targets(tensor.op)
    # One name for several outputs is that of a list of them, or of something else.
    name = targets[tensor.index] if len(targets) == len(tensor.op.outputs) else ""
    return beside(name if _tells(name, tensor.op.name) else "", tensor.name)


def beside(variable: str, name: str) -> str:
    """A variable with a name beside it; the name alone where there is no variable."""
    return f"{variable} ({name})" if variable else name


def variable_name(operation: Operation) -> str:
    """The Python variable that an operation's value was given to, or an empty string.

    An operation of several outputs may have several: `mean, variance`.
    """
    return ", ".join(_targets(operation))


def telling_variable(operation: Operation) -> str:
    """The variable of an operation if it says what its name does not; otherwise empty."""
    variable = variable_name(operation)
    return variable if _tells(variable, operation.name) else ""


def _tells(variable: str, name: str) -> bool:
    """Whether a variable says what a name does not: `W` beside `layer/W` does not."""
    return bool(variable) and variable.rpartition(".")[2] != name.rpartition("/")[2]


def _targets(operation: Operation) -> Targets:
    graph = operation.graph
    with graph.lock:
        state = graph.version, graph.members.keeps
        known = _known.get(graph)
        if known is None or known[0] != state:
            known = _known[graph] = state, _names(graph.members.as_last_built())
    return known[1].get(operation.id, ())


def _names(operations: Iterable[Operation]) -> dict[int, Targets]:
    """The names of values, by the ids of the operations that give them."""
    found: list[tuple[int, Operation, Targets]] = []
    for site, evaluated in _evaluations(operations):
        operation = _value(evaluated)
        is_value = operation.op_def.marks is not Mark.UPDATE
        if is_value and len(site.targets) in (1, len(operation.outputs)):
            found.append((sum(1 for _ in _callers(site)), operation, site.targets))
    # What a call gives has the name that the caller gives it.
    found.sort(key=lambda each: -each[0])
    return {operation.id: targets for _, operation, targets in found}


def _evaluations(operations: Iterable[Operation]) -> Iterator[tuple[Site, list[Operation]]]:
    """Each evaluation of an expression, and the operations that it built.

    It goes on until its code goes on with another expression; what other code builds in between,
    such as a loop's body, is no end of it.
    """
    current: dict[int, tuple[Site, list[Operation]]] = {}
    for operation in operations:
        if isinstance(operation.site, DerivedSite):
            continue  # Its line was evaluated before.
        for site in (operation.site, *_callers(operation.site)):
            before = current.get(id(site.code))
            if before is not None and before[0].is_same_as(site):
                before[1].append(operation)
            else:
                if before is not None:
                    yield before
                current[id(site.code)] = site, [operation]
    yield from current.values()


def _callers(site: Site) -> Iterator[Site]:
    while site.caller is not None:
        site = site.caller
        yield site


def _value(evaluated: Sequence[Operation]) -> Operation:
    """The operation whose value an expression has: the last, or the one that the last serves."""
    found = evaluated[-1]
    for operation in evaluated:
        if found.name.startswith(f"{operation.name}/"):
            found = operation
    return found
