"""Calls of functions: copied into the graph, or kept as one operation; and gradients of those."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowbook.graph.building.graph import Graph
from flowbook.graph.building.scopes import name_scope
from flowbook.graph.control_flow.flows import ACTING
from flowbook.graph.control_flow.structure import leaves, packed_like
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.functions.bodies import Argument, add_told, built
from flowbook.graph.functions.definition import Definition, definition_of, is_current
from flowbook.graph.functions.instances import INSTANCES, inlined, wanted
from flowbook.graph.gradients.backward import gradients
from flowbook.graph.gradients.loop_dependence import is_differentiable
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import own_definitions
from flowbook.graph.model.resource_key import key_touched
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import OUTSIDE, Access


def _shapes(values: Any, variables: Any, *, shapes: tuple[Shape, ...], **_: Any) -> list[Shape]:
    return list(shapes)


def _gradient(op: Operation, *dys: Tensor | None, used: list[bool]) -> list[Any]:
    definition = definition_of(op)
    parameters, count = definition.parameters, len(definition.results)
    active = tuple(
        [i for i, y in enumerate(definition.results) if used[i] and is_differentiable(y)]
    )
    given = [*op.inputs[: len(parameters)], *op.outputs[count:]]
    starting = [dy for i, dy in enumerate(dys) if i in active and dy is not None]
    derived, pack = _derived(definition, active)
    return pack(kept(derived, [*given, *starting], "gradient"))


with own_definitions():
    CALLS = {
        acts: OpDef[list[Tensor]](
            "ActingCall" if acts else "Call",
            "values: *Tin, variables: N*resource -> results: *Tout",
            attributes={"Tin": REQUIRED, "Tout": REQUIRED, "shapes": REQUIRED},
            infer=_shapes,
            stands_for=INSTANCES,
            grad=_gradient,
            touches=OUTSIDE if acts else None,
            only_moves=True,
        )
        for acts in (False, True)
    }


def kept(definition: Definition, values: Sequence[Tensor], name: str) -> list[Tensor]:
    """Call a function by one operation; give what its Function takes."""
    graph: Graph = definition.function.graph
    flow = graph.scope.flow
    inputs = [*arguments_of(definition, values), *definition.variables]
    taken = definition.function.inputs
    attributes = {
        "Tin": tuple([t.dtype for t in definition.parameters]),
        "Tout": tuple([t.dtype for t in taken]),
        "shapes": tuple([t.shape for t in taken]),
    }
    op_def = CALLS[definition.acts]
    call = add_told(graph, op_def, inputs, attributes, definition.function.outputs[0], name)
    if flow is not None and definition.is_stateful and not definition.acts:
        flow.note(call, is_acting=False)
    return list(call.outputs)


def copied(definition: Definition, values: Sequence[Tensor], name: str) -> list[Tensor]:
    """Call a function by a copy of its body; give what its Function takes."""
    given = dict(zip(definition.parameters, arguments_of(definition, values), strict=True))
    with name_scope(name) as prefix:
        return inlined(definition, given, prefix)


def arguments_of(definition: Definition, values: Sequence[Tensor]) -> list[Tensor]:
    """What stands for the parameters of a body: what is given, and what it takes from outside."""
    flow = definition.function.graph.scope.flow
    arguments = [*values, *definition.captured]
    return arguments if flow is None else [flow.captured(tensor) for tensor in arguments]


# Gradients of kept calls

Pack = Callable[[Sequence[Tensor]], list[Any]]


def _derived(definition: Definition, active: tuple[int, ...]) -> tuple[Definition, Pack]:
    """The function that gives the gradients of some results, and how to put together what it gives.

    It computes anew what it needs of the body, from the same arguments. In a run what is computed
    equally is computed once; in a loop it saves the memory for what each iteration has computed.
    What acts is not done again: its results are further arguments.
    """
    known: tuple[Definition, Pack] | None = definition.derived.get(active)
    if known is not None and is_current(known[0].function):
        return known
    graph: Graph = definition.function.graph
    own = [*definition.parameters, *definition.happened]
    dys = [definition.results[i] for i in active]
    structures: list[Any] = []

    def body(values: list[Tensor]) -> list[Tensor]:
        given = dict(zip(own, values, strict=False))
        needed = [definition.results[i] for i in active]
        _refuse_repeated(definition, given, needed)
        results = inlined(definition, given, f"{graph.scope.prefix}", needed)
        xs = [*values[: len(definition.parameters)], *definition.variables]
        found = gradients([results[i] for i in active], xs, values[len(own) :])
        structures.extend(found)
        return [leaf for leaf in leaves(found) if leaf is not None]

    arguments = [Argument(f"value_{i}", t.dtype, t.shape) for i, t in enumerate([*own, *dys])]
    name = definition.name.rpartition("functions/")[2]
    derived = built(graph, f"{name}_grad", arguments, body)

    def pack(results: Sequence[Tensor]) -> list[Any]:
        rest = iter(results)
        filled = [None if leaf is None else next(rest) for leaf in leaves(structures)]
        packed: list[Any] = packed_like(structures, filled)
        return packed

    definition.derived[active] = derived, pack
    return derived, pack


def _refuse_repeated(
    definition: Definition, given: Mapping[Tensor, Tensor], needed: Sequence[Tensor]
) -> None:
    """Refuse what a gradient would have to do once more, and could not do alike."""
    written = {key_touched(op) for op in definition.operations if op.op_def.access is Access.WRITE}
    for op in wanted(definition, given, needed):
        access = op.op_def.access
        if access in ACTING or (access is Access.READ and key_touched(op) in written):
            raise UnimplementedError(
                f"the gradient of a kept call of {definition.name!r} would need the value that "
                f"{op.name!r} had in the call",
                op,
                hint="call it with inline=True",
            )
