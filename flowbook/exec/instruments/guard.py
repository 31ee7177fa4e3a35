"""A guard against NaN and infinities: it names the operation that was the first to produce one.

It checks every floating-point value of a step, but looks at few of them (`guarded_plan.py`). A
check only reports. If something is not finite, the nodes since the last check run again where their
values are, one by one, until one gives what is not finite. So runs are exact, and cost next to
nothing while all is well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from flowbook.exec.instruments.attached import Instruments
from flowbook.exec.instruments.guarded_plan import (
    access,
    guarded,
    is_finite,
    is_routing,
    runs_again,
)
from flowbook.exec.plan.failure import Failure, Summary, summary_of
from flowbook.exec.plan.program import PlanNode, Program
from flowbook.exec.plan.watching import Bound, Instrument
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.touch import Access
from flowbook.graph.ops.checks.checking import check_finite_op

Some = TypeVar("Some", bound=Instrument)


class Guard(Instrument):
    """The instrument behind `Session.guard`; as a context manager it ends with the block.

    The latest of a session is in force. Made for good it replaces one made for good; in a block it
    leaves what was in force to come back after the block. Two that allow the same are equal.

    Args:
        instruments: those of the session.
        allow: names of operations, and of scopes, whose values need not be finite.
    """

    rewrites = True

    def __init__(self, instruments: Instruments, allow: Sequence[str]) -> None:
        self._instruments = instruments
        self._allow = tuple(sorted(set(allow)))
        self._replaced: tuple[Guard, ...] = ()
        self._is_entered = False
        self._has_ended = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guard) and self._allow == other._allow

    def __hash__(self) -> int:
        return hash((Guard, self._allow))

    def rewritten(self, program: Program, has_late_feeds: bool) -> Program:
        """The program with checks in it."""
        return guarded(program, self._is_allowed, has_late_feeds)

    def diagnose(
        self, program: Program, units: Sequence[Bound], failed: int, given: Sequence[Any]
    ) -> Failure | None:
        """Find the first node that gave what is not finite, behind a check that failed."""
        if program.parts[0].nodes[failed].type != check_finite_op.key:
            return None
        return _Search(program, units, failed, self._is_allowed).failure(given)

    def _is_allowed(self, node: PlanNode) -> bool:
        name = node.name.partition("@")[0]
        return op_keyed(node.type).summary is not None or any(
            name == allowed or name.startswith(allowed + "/") for allowed in self._allow
        )

    def remove(self) -> None:
        """Guard no more runs."""
        self._has_ended = True
        self._instruments.remove(self)

    def begin(self, present: tuple[Instrument, ...]) -> tuple[Instrument, ...]:
        """The instruments of the session with this guard, in place of what was made for good."""
        self._replaced = tuple([g for g in present if isinstance(g, Guard) and not g._is_entered])
        return (*_without(present, self._replaced), self)

    def __enter__(self) -> Guard:
        self._is_entered = True
        self._instruments.exchange(self._begin_block)
        return self

    def _begin_block(self, present: tuple[Instrument, ...]) -> tuple[Instrument, ...]:
        again = [g for g in _without(self._replaced, present) if not g._has_ended]
        return (*_without(present, [self]), *again, self)

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
    if not nonfinite:
        for each in [i for i in instruments.all if isinstance(i, Guard)]:
            each.remove()
        return None
    made = Guard(instruments, found)
    instruments.exchange(made.begin)
    return made


def _without(present: Sequence[Some], others: Sequence[Instrument]) -> list[Some]:
    """Those that are none of the others, whatever they are equal to."""
    return [each for each in present if all(each is not other for other in others)]


class _Search:
    """The search for what is behind a check that failed, where the values of the step are.

    Args:
        program: what ran.
        units: its nodes, bound.
        check: the number of the check.
        is_allowed: whether a node's values need not be finite.
    """

    def __init__(
        self,
        program: Program,
        units: Sequence[Bound],
        check: int,
        is_allowed: Callable[[PlanNode], bool],
    ) -> None:
        self._program = program
        self._part = program.parts[0]
        self._nodes = self._part.nodes
        self._units = units
        self._check = check
        self._is_allowed = is_allowed

    def failure(self, given: Sequence[Any]) -> Failure:
        """The failure of the first node that gave what is not finite.

        Args:
            given: what the check was given.
        """
        nodes, check = self._nodes, self._nodes[self._check]
        values = dict(zip(check.inputs, given, strict=True))
        known: dict[int, Any] = {**self._part.constants, **values}
        for index, node in enumerate(nodes):
            if access(node) is Access.WRITE and not self._is_allowed(node):
                for value in node.outputs:
                    if value in values and not self._is_finite(values[value]):
                        return self._failure(index, values[value], {})
        for index in check.attributes["nodes"]:
            node = nodes[index]
            if runs_again(node):
                known.update(zip(node.outputs, self._units[index].run(known), strict=True))
            if self._is_allowed(node):
                continue
            for value in node.outputs:
                if value in known and not self._is_finite(known[value]):
                    return self._failure(index, known[value], known)
        # It was given to the step, or came from a write.
        checked = check.inputs[: check.attributes["checked"]]
        wrong = next(v for v in checked if not self._is_finite(known[v]))
        for index, node in enumerate(nodes):
            if wrong in node.outputs or (wrong in node.inputs and access(node) is Access.WRITE):
                return self._failure(index, known[wrong], known, wrong in node.outputs)
        raise AssertionError(f"value {wrong} has neither a producer nor a write")

    def _shown(self, value: Any) -> Any:
        return self._units[self._check].show(value)

    def _is_finite(self, value: Any) -> bool:
        return is_finite(self._shown(value))

    def _changes(self) -> str:
        """What the step has done to variables when it comes to the check."""
        said = self._own_changes()
        return f"{said}, on this device" if self._program.is_parted else said

    def _own_changes(self) -> str:
        """What this part of the step has done."""
        own = self._check
        if any(map(is_routing, self._nodes)):
            written = {n.key.name: None for n in self._nodes if n.key and access(n) is Access.WRITE}
            changed = f"the step may have changed: {', '.join(written)}"
            return changed if written else "the step changed no variable"
        in_order = not any(unit.waits for unit in self._units)
        before = set(range(own)) if in_order else _ancestors(self._units, own)
        # What uses a value comes after its check, which follows its operation at once.
        later = {own, *self._nodes[own].attributes["nodes"]}
        surely, perhaps = [], []
        for index, node in enumerate(self._nodes):
            if access(node) is Access.WRITE and node.key is not None:
                if index in before:
                    surely.append(node.key.name)
                elif not in_order and later.isdisjoint(_ancestors(self._units, index)):
                    perhaps.append(node.key.name)
        said = [f"the step had changed: {', '.join(surely)}"] if surely else []
        if perhaps:
            said.append(f"the step may have changed: {', '.join(perhaps)}")
        return "; ".join(said) or "the step changed no variable"

    def _failure(
        self, index: int, value: Any, known: Mapping[int, Any], has_run: bool = True
    ) -> Failure:
        """The failure of a node.

        Args:
            index: the node.
            value: what it gave, or was about to write.
            known: the values that it was given, among others; empty if nothing is known of them.
            has_run: whether it has run.
        """
        node = self._nodes[index]
        kind = access(node)
        verb = "gave"
        if kind is Access.READ:
            verb = "found in the variable"
        elif kind is Access.WRITE:
            verb = "wrote" if has_run else "was about to write"
        hint = f"if it may give them, name it: sess.guard(nonfinite=True, allow=[{node.name!r}])"
        fed_so = [
            self._program.feeds[self._part.feeds[v]].name
            for v in node.inputs
            if v in known and v < len(self._part.feeds) and not self._is_finite(known[v])
        ]
        if fed_so:
            hint = f"look at what is fed to {', '.join(fed_so)}; {hint}"
        error = InvalidArgumentError(f"it {verb} {_lost(self._shown(value))}", hint=hint)
        inputs = [_summary(self._shown(known.get(v))) for v in node.inputs]
        return Failure(error, index, tuple(inputs), (self._changes(),))


def _summary(value: Any) -> Summary | None:
    found = summary_of(value)
    is_array = isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fciubV"
    return found._replace(note=_statistics(value)) if found is not None and is_array else found


def _ancestors(units: Sequence[Bound], index: int) -> set[int]:
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
    among = f"{counted(array.size, 'value')} of shape {list(array.shape)}"
    return f"{counts} among {among}, the first at {place}"


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
