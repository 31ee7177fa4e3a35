"""A guard against NaN and infinities: it names the operation that was the first to produce one.

It checks every floating-point value of a step, but looks at few of them. Most operations pass on
what is not finite, whatever else they are given (`PASSES_ON`): where their outputs are finite, so
were their inputs. Some give finite values for finite ones (`KEEPS`). What is left is looked at by
one product of its elements with themselves, which is finite only if all of them are, and costs a
third of NumPy's `isfinite`. If it is not, the nodes since the last check run again, one by one, on
the values that they had, until one gives what is not finite.

The plan is put in an order in which variables are written as late as they can be, and everything
that was computed is checked before: a step that fails has not changed them. In a step whose writes
depend on other writes, as Adam's do, those come first; the error says what they changed.

A finite product also bounds what is added to a float32 or float64 variable so far below the
largest number that the sum is finite; the sums of narrower dtypes are checked after the write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flowbook.exec.compile.plan import Plan, PlanNode
from flowbook.exec.instrument import Instrument, Instruments
from flowbook.exec.units import Kernel
from flowbook.graph.dtypes import DType, float32, float64
from flowbook.graph.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.op_def import Effects
from flowbook.graph.operation import Operation
from flowbook.graph.ops.checking import check_finite_op
from flowbook.graph.registry import op_named
from flowbook.graph.site import UNKNOWN_SITE
from flowbook.graph.summaries import SUMMARIES

if TYPE_CHECKING:
    from flowbook.exec.compile.pipeline import Prepared
    from flowbook.exec.units import Unit

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

_WIDE = (float32, float64)


class Guard(Instrument):
    """The instrument behind `Session.guard`; as a context manager it ends with the block.

    Args:
        instruments: those of the session.
        allow: names of operations, and of scopes, whose values need not be finite.
    """

    rewrites = True

    def __init__(self, instruments: Instruments, allow: Sequence[str]) -> None:
        self._instruments = instruments
        self._allow = tuple(allow)

    def rewritten(self, prepared: Prepared) -> Prepared:
        """The plan with checks in it."""
        return guarded(prepared, self._is_allowed)

    def bound(self, prepared: Prepared, units: Sequence[Unit]) -> None:
        """Let each check know what it runs again to find the first."""
        for unit in units:
            if isinstance(unit, Kernel) and unit.operation.op_def is check_finite_op:
                unit.function = _Check(unit, prepared, units, self._is_allowed)
                unit.attributes = {}

    def _is_allowed(self, operation: Operation) -> bool:
        name = operation.name.partition("@")[0]
        return operation.op_def.type in SUMMARIES or any(
            name == allowed or name.startswith(allowed + "/") for allowed in self._allow
        )

    def remove(self) -> None:
        """Guard no more runs."""
        self._instruments.remove(self)

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<Guard against NaN and Inf{f', allowing {self._allow}' if self._allow else ''}>"


def guard(instruments: Instruments, nonfinite: bool, allow: Any) -> Guard | None:
    """Guard a session, or stop; see `Session.guard`."""
    names = list(allow) if isinstance(allow, list | tuple | set | frozenset) else [allow]
    found = []
    for item in names:
        name = item if isinstance(item, str) else getattr(getattr(item, "op", item), "name", None)
        if not isinstance(name, str) or not name:
            raise InvalidTypeError(f"operations are allowed by name, not {item!r:.80}")
        found.append(name.partition(":")[0].rstrip("/"))
    for instrument in instruments.all:
        if isinstance(instrument, Guard):
            instruments.remove(instrument)
    if not nonfinite:
        return None
    made = Guard(instruments, found)
    instruments.add(made)
    return made


# The plan


class _Group(NamedTuple):
    """Nodes that one check is about.

    Attributes:
        nodes: what is checked, and may run again, by their places in the plan.
        writes: what runs only after the check.
    """

    nodes: list[int]
    writes: list[int]


def guarded(prepared: Prepared, is_allowed: Callable[[Operation], bool]) -> Prepared:
    """A plan with checks before its writes, and at its end."""
    plan, operations = prepared.plan, prepared.operations
    waits = any(operation.op_def.is_async for operation in operations)
    groups = _one_by_one(plan) if waits else _phases(plan)
    order: list[int] = []
    checks: list[tuple[int, _Group, PlanNode]] = []
    for group in groups:
        check = _check_of(prepared, group, is_allowed)
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
    writes = [_effects(node) is Effects.WRITES for node in plan.nodes]
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
        _Group([], [i]) if _effects(node) is Effects.WRITES else _Group([i], [])
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


def _check_of(
    prepared: Prepared, group: _Group, is_allowed: Callable[[Operation], bool]
) -> PlanNode | None:
    """The check of a group; None where there is nothing to check."""
    plan, operations = prepared.plan, prepared.operations
    dtypes = {
        value: tensor.dtype
        for node, operation in zip(plan.nodes, operations, strict=True)
        for value, tensor in zip(node.outputs, operation.outputs, strict=False)
        if _can_be_lost(tensor.dtype)
    }
    fed = {v for v, tensor in enumerate(prepared.feeds) if _can_be_lost(tensor.dtype)}
    allowed = {
        v for i, node in enumerate(plan.nodes) if is_allowed(operations[i]) for v in node.outputs
    }
    seen = _passed_on(plan, group, dtypes, allowed)
    unsure = fed | {v for v, constant in plan.constants.items() if not _is_finite(constant)}
    cleared: set[int] = set()
    checked: list[int] = []
    for index in group.nodes:
        node = plan.nodes[index]
        keeps = node.type in KEEPS and all(
            v in cleared if v in dtypes else v not in unsure for v in node.inputs
        )
        for value in node.outputs:
            if value in dtypes and value not in allowed:
                cleared.add(value)
                if value not in seen and not keeps:
                    checked.append(value)
    # What is written without having been computed, and sums that were written unseen.
    checked += [v for i in group.writes for v in plan.nodes[i].inputs if v in fed]
    checked += [
        v
        for i in group.nodes
        for v in plan.nodes[i].inputs
        if v in dtypes and dtypes[v] not in _WIDE and v not in allowed and _is_written(plan, v)
    ]
    checked = list(dict.fromkeys(checked))
    if not checked:
        return None
    inputs = (*checked, *[v for v in _given(plan, group) if v not in checked])
    attributes = {"checked": len(checked), "nodes": tuple(group.nodes)}
    return PlanNode("guard", check_finite_op.type, attributes, inputs, (), ())


def _is_written(plan: Plan, value: int) -> bool:
    """Whether it is what a write gives."""
    return any(value in n.outputs for n in plan.nodes if _effects(n) is Effects.WRITES)


def _passed_on(plan: Plan, group: _Group, dtypes: dict[int, DType], allowed: set[int]) -> set[int]:
    """Values that the output of some other node of the group tells of."""
    seen: set[int] = set()
    for index in group.nodes:
        node = plan.nodes[index]
        if node.type in PASSES_ON and node.outputs[0] in dtypes and node.outputs[0] not in allowed:
            places = PASSES_ON[node.type]
            seen.update(node.inputs if places is None else [node.inputs[p] for p in places])
    return seen


def _given(plan: Plan, group: _Group) -> list[int]:
    """The values that the group's nodes need to run again, which they do not compute."""
    computed = {v for i in group.nodes if _runs_again(plan.nodes[i]) for v in plan.nodes[i].outputs}
    needed = [
        v
        for i in group.nodes
        if _runs_again(plan.nodes[i])
        for v in plan.nodes[i].inputs
        if v not in computed and v not in plan.constants
    ]
    handles = {v for node in plan.nodes if _effects(node) is Effects.HANDLE for v in node.outputs}
    return [v for v in dict.fromkeys(needed) if v not in handles]


def _runs_again(node: PlanNode) -> bool:
    """Whether it gives the same for the same: neither draws nor reads, and is Flowbook's own."""
    definition = op_named(node.type)
    return (
        definition.effects is Effects.PURE
        and definition.is_builtin
        and definition.resource is None
        and not definition.is_async
    )


def _effects(node: PlanNode) -> Effects:
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


# The run


class _Check:
    """The kernel of one check in this process."""

    def __init__(
        self,
        unit: Kernel,
        prepared: Prepared,
        units: Sequence[Unit],
        is_allowed: Callable[[Operation], bool],
    ) -> None:
        self._inputs = unit.inputs
        self._nodes: tuple[int, ...] = unit.attributes["nodes"]
        self._count: int = unit.attributes["checked"]
        self._prepared = prepared
        self._units = units
        self._is_allowed = is_allowed
        own = next(i for i, other in enumerate(units) if other is unit)
        self._written = [
            operation.inputs[0].op.name
            for operation in prepared.operations[:own]
            if operation.op_def.effects is Effects.WRITES
        ]

    def __call__(self, xp: Any, *values: Any) -> tuple[()]:
        dot = xp.dot
        for value in values[: self._count]:
            if value.dtype.char in "fd":
                if not value.ndim:
                    if value - value == 0:
                        continue
                else:
                    flags = value.flags
                    flat = value.T if flags.f_contiguous and not flags.c_contiguous else value
                    flat = flat.reshape(-1)
                    # False for NaN too.
                    if dot(flat, flat) < _INFINITY:
                        continue
            if not xp.isfinite(value).all():
                raise self._explained(dict(zip(self._inputs, values, strict=True)))
        return ()

    def _explained(self, values: dict[int, Any]) -> InvalidArgumentError:
        """The error about the first operation that gave what is not finite."""
        plan = self._prepared.plan
        known: dict[int, Any] = {**plan.constants, **values}
        for node, operation in zip(plan.nodes, self._prepared.operations, strict=True):
            if _effects(node) is Effects.WRITES and not self._is_allowed(operation):
                for value in node.outputs:
                    if value in values and not _is_finite(values[value]):
                        return self._error(operation, values[value], ())
        for index in self._nodes:
            node, unit = plan.nodes[index], self._units[index]
            if _runs_again(node) and isinstance(unit, Kernel):
                given = [known[v] for v in node.inputs]
                found = unit.function(unit.xp, *unit.leading, *given, **unit.attributes)
                known.update(zip(node.outputs, [found] if unit.is_single else found, strict=True))
            operation = self._prepared.operations[index]
            if self._is_allowed(operation):
                continue
            for value in node.outputs:
                if value in known and not _is_finite(known[value]):
                    return self._error(operation, known[value], [known.get(v) for v in node.inputs])
        # It was given to the step, or came from a write.
        wrong = next(v for v in self._inputs[: self._count] if not _is_finite(known[v]))
        for node, operation in zip(plan.nodes, self._prepared.operations, strict=True):
            if wrong in node.outputs or (wrong in node.inputs and _effects(node) is Effects.WRITES):
                return self._error(operation, known[wrong], [known.get(v) for v in node.inputs])
        raise AssertionError(f"value {wrong} has neither a producer nor a write")

    def _error(
        self, operation: Operation, value: Any, inputs: Sequence[Any]
    ) -> InvalidArgumentError:
        effects = operation.op_def.effects
        verb = "gave"
        if effects is Effects.READS:
            verb = "found in the variable"
        elif effects is Effects.WRITES:
            verb = "wrote" if operation.inputs[0].op.name in self._written else "was about to write"
        error = InvalidArgumentError(f"it {verb} {_lost(value)}")
        error.about(operation, inputs)
        for tensor, given in zip(operation.inputs, inputs, strict=False):
            if isinstance(given, np.ndarray | np.generic) and given.dtype.kind in "fciubV":
                error.details.append(f"{tensor.name}: {_statistics(given)}")
        if self._written:
            error.details.append(f"the step had changed: {', '.join(self._written)}")
        else:
            error.details.append("the step changed no variable")
        error.hint = (
            f"if it may give them, name it: sess.guard(nonfinite=True, allow=[{operation.name!r}])"
        )
        return error


_INFINITY = float("inf")


def _is_finite(value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    # ml_dtypes' floats are of the kind V.
    return kind not in ("f", "c", "V") or bool(np.isfinite(value).all())


def _lost(value: Any) -> str:
    """What of a value is not finite."""
    array = np.asarray(value)
    nan, inf = int(np.isnan(array).sum()), int(np.isinf(array).sum())
    counts = " and ".join(f"{n} {what}" for n, what in ((nan, "NaN"), (inf, "Inf")) if n)
    if not array.ndim:
        return counts
    place = [int(p) for p in np.argwhere(~np.isfinite(array))[0]]
    return f"{counts} among {array.size} values of shape {list(array.shape)}, the first at {place}"


def _statistics(value: Any) -> str:
    """An array in one line."""
    array = np.asarray(value)
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    if not array.size:
        return "no values"
    finite = array[np.isfinite(array)]
    parts = []
    if finite.size and array.dtype.kind == "c":
        parts.append(f"magnitude {np.abs(finite).min():.6g} to {np.abs(finite).max():.6g}")
    elif finite.size:
        mean = np.mean(finite, dtype=np.float64)
        parts.append(f"{finite.min():.6g} to {finite.max():.6g}, mean {mean:.6g}")
        if not finite.all():
            parts.append(f"{int((finite == 0).sum())} zeros")
    if finite.size < array.size:
        parts.append(_lost(array))
    return ", ".join(parts)
