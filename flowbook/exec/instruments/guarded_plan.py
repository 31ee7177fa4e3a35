"""Where a guarded plan checks its values, and which of them it looks at (see `guard.py`).

Most operations pass on what is not finite, whatever else they are given (`PASSES_ON`): where their
outputs are finite, so were their inputs. Some give finite values for finite ones (`KEEPS`). Only
what is left is looked at.

The plan is put in an order in which variables are written as late as they can be, and everything
that was computed is checked before: a step that fails has not changed them. In a step whose writes
depend on other writes, as Adam's do, those come first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flowbook.exec.plan.plan import Plan, PlanNode
from flowbook.graph.definition.op_def import Effects
from flowbook.graph.model.dtypes import DType, float32, float64
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import op_named
from flowbook.graph.model.site import UNKNOWN_SITE
from flowbook.graph.ops.checks.checking import check_finite_op

if TYPE_CHECKING:
    from flowbook.exec.plan.pipeline import Prepared

# The inputs of which a value that is not finite surely makes one in the output; None: all of them.
PASSES_ON: dict[str, tuple[int, ...] | None] = {
    "Abs": None,
    "Add": None,
    "AddN": None,
    "BiasAdd": None,
    "BroadcastTo": (0,),
    "Cast": None,
    "Concat": None,
    "Div": (0,),
    "ExpandDims": (0,),
    "Identity": None,
    "Log": None,
    "MatMul": None,
    "Mean": (0,),
    "Mul": None,
    "Neg": None,
    "ReluGrad": (0,),
    "Reshape": (0,),
    "Sqrt": None,
    "Square": None,
    "Squeeze": (0,),
    "Stack": None,
    "StopGradient": None,
    "Sub": None,
    "Sum": (0,),
    "Transpose": (0,),
}

# Those that give finite values where all of their inputs are finite, and pass nothing on: what is
# known of their inputs is never known by them.
KEEPS = frozenset(
    (
        "Gather",
        "Maximum",
        "Minimum",
        "OnesLike",
        "Relu",
        "Sigmoid",
        "Softmax",
        "StridedSlice",
        "Tanh",
        "ZerosLike",
    )
)

# A finite sum of squares of these bounds what is added so far below the largest number that the sum
# is finite, too.
_WIDE = (float32, float64)


class _Group(NamedTuple):
    """Nodes that one check is about.

    Attributes:
        nodes: what is checked, and may run again, by their places in the plan.
        writes: what runs only after the check.
        returned: values that are checked because the step returns them as they were written.
    """

    nodes: list[int]
    writes: list[int]
    returned: Sequence[int] = ()


def guarded(
    prepared: Prepared, has_late_feeds: bool, is_allowed: Callable[[Operation], bool]
) -> Prepared:
    """A plan with checks before its writes, and at its end."""
    plan, operations = prepared.plan, prepared.operations
    waits = has_late_feeds or any(operation.op_def.is_async for operation in operations)
    groups = _one_by_one(plan) if waits else _phases(plan)
    facts = _Facts(prepared, is_allowed)
    written = [v for v in plan.fetches if v in facts.written and facts.matters(v)]
    groups.append(_Group([], [], written))
    order: list[int] = []
    checks: list[tuple[int, _Group, PlanNode]] = []
    for group in groups:
        check = _check_of(facts, group)
        order += group.nodes
        if check is not None:
            checks.append((len(order) + len(checks), group, check))
        order += group.writes
    places = _places(len(plan.nodes), order, [place for place, _, _ in checks])
    before = {write: place for place, group, _ in checks for write in group.writes}
    nodes: list[PlanNode | None] = [None] * (len(order) + len(checks))
    made: list[Operation | None] = [None] * len(nodes)
    for index in order:
        node = plan.nodes[index]
        after = tuple([places[i] for i in node.after])
        if index in before:
            after += (before[index],)
        nodes[places[index]] = node._replace(after=after)
        made[places[index]] = operations[index]
    for place, _, check in checks:
        again = tuple([places[i] for i in check.attributes["nodes"]])
        attributes = {**check.attributes, "nodes": again}
        nodes[place] = check._replace(attributes=attributes)
        made[place] = _standing_alone(operations[0], attributes)
    return prepared._replace(
        plan=plan._replace(
            nodes=tuple([n for n in nodes if n is not None]),
            targets=(*[places[i] for i in plan.targets], *[place for place, _, _ in checks]),
        ),
        operations=tuple([o for o in made if o is not None]),
    )


def _phases(plan: Plan) -> list[_Group]:
    """Nodes by how many writes one after the other they depend on; of each phase its writes last.

    The last phase has the nodes that depend on no further write, and none to check before.
    """
    producer = {value: i for i, node in enumerate(plan.nodes) for value in node.outputs}
    phase: list[int] = []
    writes = [effects(node) is Effects.WRITES for node in plan.nodes]
    for node in plan.nodes:
        sources = {producer[v] for v in node.inputs if v in producer}.union(node.after)
        phase.append(max([phase[i] + writes[i] for i in sources], default=0))
    groups = [_Group([], []) for _ in range(max(phase, default=0) + 2)]
    for index, number in enumerate(phase):
        (groups[number].writes if writes[index] else groups[number].nodes).append(index)
    return [group for group in groups if group.nodes or group.writes]


def _one_by_one(plan: Plan) -> list[_Group]:
    """Each node for itself: one that waits may wait for another, and a check must not delay it."""
    return [
        _Group([], [i]) if effects(node) is Effects.WRITES else _Group([i], [])
        for i, node in enumerate(plan.nodes)
    ]


def _places(count: int, order: Sequence[int], checks: Sequence[int]) -> list[int]:
    """Where each node comes to stand, between the checks."""
    taken = set(checks)
    free = (place for place in range(count + len(checks)) if place not in taken)
    places = [0] * count
    for index in order:
        places[index] = next(free)
    return places


class _Facts:
    """What the checks of a plan are made from.

    Attributes:
        plan: the plan.
        dtypes: of the values that nodes give and that may be not finite.
        fed: the fed values that may be not finite.
        allowed: the values that may be so without an error.
        unsure: values from outside of the nodes that may be not finite.
        written: what writes give.
        handles: the handles of resources, which are known in every step.
    """

    def __init__(self, prepared: Prepared, is_allowed: Callable[[Operation], bool]) -> None:
        plan = self.plan = prepared.plan
        nodes = list(zip(plan.nodes, prepared.operations, strict=True))
        self.dtypes: dict[int, DType] = {
            value: tensor.dtype
            for node, operation in nodes
            for value, tensor in zip(node.outputs, operation.outputs, strict=False)
            if _can_be_lost(tensor.dtype)
        }
        self.fed = {v for v, tensor in enumerate(prepared.feeds) if _can_be_lost(tensor.dtype)}
        self.allowed = {
            v for node, operation in nodes if is_allowed(operation) for v in node.outputs
        }
        self.unsure = self.fed | {v for v, c in plan.constants.items() if not is_finite(c)}
        self.written = self._outputs(Effects.WRITES)
        self.handles = self._outputs(Effects.HANDLE)

    def _outputs(self, kind: Effects) -> set[int]:
        return {v for node in self.plan.nodes if effects(node) is kind for v in node.outputs}

    def matters(self, value: int) -> bool:
        """Whether a value is an error where it is not finite."""
        return value in self.dtypes and value not in self.allowed


def _check_of(facts: _Facts, group: _Group) -> PlanNode | None:
    """The check of a group; None where there is nothing to check."""
    nodes, dtypes = facts.plan.nodes, facts.dtypes
    seen = _passed_on(facts, group)
    cleared: set[int] = set()
    checked: list[int] = []
    for index in group.nodes:
        node = nodes[index]
        keeps = node.type in KEEPS and all(
            v in cleared if v in dtypes else v not in facts.unsure for v in node.inputs
        )
        for value in node.outputs:
            if facts.matters(value):
                cleared.add(value)
                if value not in seen and not keeps:
                    checked.append(value)
    # What is written without having been computed, and sums that were written unseen.
    checked += group.returned
    checked += [v for i in group.writes for v in nodes[i].inputs if v in facts.fed]
    checked += [
        v
        for i in group.nodes
        for v in nodes[i].inputs
        if v in facts.written and facts.matters(v) and dtypes[v] not in _WIDE
    ]
    checked = list(dict.fromkeys(checked))
    if not checked:
        return None
    inputs = (*checked, *[v for v in _given(facts, group) if v not in checked])
    attributes = {"checked": len(checked), "nodes": tuple(group.nodes)}
    return PlanNode("guard", check_finite_op.type, attributes, inputs, (), ())


def _passed_on(facts: _Facts, group: _Group) -> set[int]:
    """Values that the output of some other node of the group tells of."""
    seen: set[int] = set()
    for index in group.nodes:
        node = facts.plan.nodes[index]
        if node.type in PASSES_ON and facts.matters(node.outputs[0]):
            places = PASSES_ON[node.type]
            seen.update(node.inputs if places is None else [node.inputs[p] for p in places])
    return seen


def _given(facts: _Facts, group: _Group) -> list[int]:
    """What the group's nodes were given, except what those that run again compute anew."""
    nodes = [facts.plan.nodes[i] for i in group.nodes]
    known = {v for node in nodes if runs_again(node) for v in node.outputs} | facts.handles
    needed = dict.fromkeys(v for node in nodes for v in node.inputs)
    return [v for v in needed if v not in known and v not in facts.plan.constants]


def runs_again(node: PlanNode) -> bool:
    """Whether it gives the same for the same: neither draws nor reads, and is Flowbook's own."""
    definition = op_named(node.type)
    return (
        definition.effects is Effects.PURE
        and definition.is_builtin
        and definition.resource is None
        and not definition.is_async
    )


def effects(node: PlanNode) -> Effects:
    """What running a node does besides giving its outputs."""
    return op_named(node.type).effects


def _can_be_lost(dtype: DType) -> bool:
    return bool(dtype.is_floating or dtype.is_complex)


def _standing_alone(other: Operation, attributes: dict[str, Any]) -> Operation:
    """An operation for a check, in no graph's list."""
    made = Operation(
        other.graph, check_finite_op, (), MappingProxyType(attributes), (), (), UNKNOWN_SITE
    )
    made.name = "guard"
    return made


def is_finite(value: Any) -> bool:
    """Whether a value has neither NaN nor infinities; what cannot have them has none."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    # ml_dtypes' floats are of the kind V.
    return kind not in ("f", "c", "V") or bool(np.isfinite(value).all())
