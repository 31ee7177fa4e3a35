"""A guard against NaN and infinities: it names the operation that was the first to produce one.

It checks every floating-point value of a step, but looks at few of them (`guarded_plan.py`), by one
product of a value's elements with themselves, which is finite only if all of them are, and costs
less than NumPy's `isfinite`. If something is not finite, the nodes since the last check run again,
one by one, on the values that they had, until one gives what is not finite. So runs are exact, and
cost next to nothing while all is well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from flowbook.exec.engine.instrument import Instrument
from flowbook.exec.engine.units import Kernel
from flowbook.exec.instruments.attached import Instruments
from flowbook.exec.instruments.guarded_plan import effects, guarded, is_finite, runs_again
from flowbook.graph.definition.op_def import Effects
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.summaries import SUMMARIES
from flowbook.graph.ops.checks.checking import check_finite_op

if TYPE_CHECKING:
    from collections.abc import Callable

    from flowbook.exec.engine.units import Unit
    from flowbook.exec.plan.pipeline import Prepared

_INFINITY = float("inf")


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

    def rewritten(self, prepared: Prepared, has_late_feeds: bool) -> Prepared:
        """The plan with checks in it."""
        return guarded(prepared, has_late_feeds, self._is_allowed)

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
    instruments.remove(instruments.find(Guard))
    if not nonfinite:
        return None
    made = Guard(instruments, found)
    instruments.add(made)
    return made


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
        self._unit = unit

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
            if effects(node) is Effects.WRITES and not self._is_allowed(operation):
                for value in node.outputs:
                    if value in values and not is_finite(values[value]):
                        return self._error(operation, values[value], ())
        for index in self._nodes:
            node, unit = plan.nodes[index], self._units[index]
            if runs_again(node) and isinstance(unit, Kernel):
                given = [known[v] for v in node.inputs]
                found = unit.function(unit.xp, *unit.leading, *given, **unit.attributes)
                known.update(zip(node.outputs, [found] if unit.is_single else found, strict=True))
            operation = self._prepared.operations[index]
            if self._is_allowed(operation):
                continue
            for value in node.outputs:
                if value in known and not is_finite(known[value]):
                    return self._error(operation, known[value], [known.get(v) for v in node.inputs])
        # It was given to the step, or came from a write.
        wrong = next(v for v in self._inputs[: self._count] if not is_finite(known[v]))
        for node, operation in zip(plan.nodes, self._prepared.operations, strict=True):
            if wrong in node.outputs or (wrong in node.inputs and effects(node) is Effects.WRITES):
                given = [known.get(v) for v in node.inputs]
                return self._error(operation, known[wrong], given, wrong in node.outputs)
        raise AssertionError(f"value {wrong} has neither a producer nor a write")

    @cached_property
    def _changes(self) -> str:
        """What the step has done to variables when it comes here."""
        own = next(i for i, other in enumerate(self._units) if other is self._unit)
        in_order = not any(unit.waits for unit in self._units)
        before = set(range(own)) if in_order else _ancestors(self._units, own)
        # What uses a value comes after its check, which follows its operation at once.
        later = {own, *self._nodes}
        surely, perhaps = [], []
        for index, operation in enumerate(self._prepared.operations):
            if operation.op_def.effects is Effects.WRITES:
                name = operation.inputs[0].op.name
                if index in before:
                    surely.append(name)
                elif not in_order and later.isdisjoint(_ancestors(self._units, index)):
                    perhaps.append(name)
        said = [f"the step had changed: {', '.join(surely)}"] if surely else []
        if perhaps:
            said.append(f"the step may have changed: {', '.join(perhaps)}")
        return "; ".join(said) or "the step changed no variable"

    def _error(
        self, operation: Operation, value: Any, inputs: Sequence[Any], has_run: bool = True
    ) -> InvalidArgumentError:
        kind = operation.op_def.effects
        verb = "gave"
        if kind is Effects.READS:
            verb = "found in the variable"
        elif kind is Effects.WRITES:
            verb = "wrote" if has_run else "was about to write"
        error = InvalidArgumentError(f"it {verb} {_lost(value)}")
        error.about(operation, inputs)
        fed_so = []
        for tensor, given in zip(operation.inputs, inputs, strict=False):
            if isinstance(given, np.ndarray | np.generic) and given.dtype.kind in "fciubV":
                is_fed = tensor in self._prepared.feeds
                name = f"{tensor.name}, as it was fed" if is_fed else tensor.name
                error.details.append(f"{name}: {_statistics(given)}")
                if is_fed and not is_finite(given):
                    fed_so.append(tensor.name)
        error.details.append(self._changes)
        error.hint = (
            f"if it may give them, name it: sess.guard(nonfinite=True, allow=[{operation.name!r}])"
        )
        if fed_so:
            error.hint = f"look at what is fed to {', '.join(fed_so)}; {error.hint}"
        return error


def _ancestors(units: Sequence[Unit], index: int) -> set[int]:
    """The units that surely end before one begins."""
    producer = {value: i for i, unit in enumerate(units) for value in unit.outputs}
    found: set[int] = set()
    stack = [index]
    while stack:
        unit = units[stack.pop()]
        sources = {producer[v] for v in unit.inputs if v in producer}.union(unit.after) - found
        found |= sources
        stack += sources
    return found


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
