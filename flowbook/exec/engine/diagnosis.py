"""What is behind a check that failed: the node that was the first to give NaN or an infinity.

A check only reports that a value is not finite (see `instruments/guard.py`). What it looked at is
computed again from what it was given, where the values of the step are, until a node gives what is
not finite. The program alone says how: so the answer is the same in every process that runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flowbook.exec.engine.units import Unit
from flowbook.exec.plan.failure import Failure, Summary, summary_of
from flowbook.exec.plan.program import PlanNode, Program
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.touch import Access
from flowbook.graph.ops.checks.checking import check_finite_op


def diagnosed(
    program: Program, units: Sequence[Unit], failed: int, given: Sequence[Any]
) -> Failure | None:
    """The failure behind that of a check; None if what failed is none.

    Args:
        program: what ran; its one part, or one of them.
        units: its nodes, bound.
        failed: the number of the node.
        given: what that was given.
    """
    if program.parts[0].nodes[failed].type != check_finite_op.key:
        return None
    return _Search(program, units, failed).failure(given)


def is_allowed(node: PlanNode, names: Sequence[str]) -> bool:
    """Whether a node's values need not be finite.

    Args:
        node: the node.
        names: those of operations, and of scopes, of which that holds.
    """
    name = node.name.partition("@")[0]
    return op_keyed(node.type).summary is not None or any(
        name == allowed or name.startswith(allowed + "/") for allowed in names
    )


def runs_again(node: PlanNode) -> bool:
    """Whether it gives the same for the same, and nobody can tell that it ran once more."""
    return op_keyed(node.type).is_repeatable


def is_routing(node: PlanNode) -> bool:
    """Whether it gives on a value that was checked where it was made, to another place."""
    return op_keyed(node.type).is_router


def access(node: PlanNode) -> Access | None:
    """What running a node does to what it touches."""
    return op_keyed(node.type).access


def is_finite(value: Any) -> bool:
    """Whether a value has neither NaN nor infinities; what cannot have them has none."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    # ml_dtypes' floats are of the kind V.
    return kind not in ("f", "c", "V") or bool(np.isfinite(value).all())


class _Search:
    """The search for what is behind a check that failed, where the values of the step are.

    Args:
        program: what ran.
        units: its nodes, bound.
        check: the number of the check.
    """

    def __init__(self, program: Program, units: Sequence[Unit], check: int) -> None:
        self._program = program
        self._part = program.parts[0]
        self._nodes = self._part.nodes
        self._units = units
        self._check = check
        self._allowed: tuple[str, ...] = self._nodes[check].attributes["allowed"]
        self._producer = {v: i for i, node in enumerate(self._nodes) for v in node.outputs}

    def failure(self, given: Sequence[Any]) -> Failure:
        """The failure of the first node that gave what is not finite.

        Args:
            given: what the check was given.
        """
        nodes, check = self._nodes, self._nodes[self._check]
        values = dict(zip(check.inputs, given, strict=True))
        known: dict[int, Any] = {**self._part.constants, **values}
        for index, node in enumerate(nodes):
            if access(node) is Access.WRITE and not is_allowed(node, self._allowed):
                for value in node.outputs:
                    if value in values and not self._is_finite(values[value]):
                        return self._failure(index, values[value], {})
        for index in self._behind():
            node = nodes[index]
            if runs_again(node) and all(v in known for v in node.inputs):
                known.update(zip(node.outputs, self._units[index].run(known), strict=True))
            if is_allowed(node, self._allowed):
                continue
            for value in node.outputs:
                if value in known and not self._is_finite(known[value]):
                    return self._failure(index, known[value], known)
        # It was given to the step, or came from a write.
        wrong = next(v for v in self._checked() if not self._is_finite(known[v]))
        for index, node in enumerate(nodes):
            if wrong in node.outputs or (wrong in node.inputs and access(node) is Access.WRITE):
                return self._failure(index, known[wrong], known, wrong in node.outputs)
        raise AssertionError(f"value {wrong} has neither a producer nor a write")

    def _checked(self) -> Sequence[int]:
        """The values that the check looks at."""
        check = self._nodes[self._check]
        return check.inputs[: check.attributes["checked"]]

    def _behind(self) -> list[int]:
        """The nodes that gave what the check was given, back to what was checked before.

        They are found by way of the values, which are right whoever else rewrites the program;
        the numbers that nodes had for the guard need not be.
        """
        inputs = self._nodes[self._check].inputs
        given = set(inputs).difference(self._checked())
        found: set[int] = set()
        stack = [*inputs]
        while stack:
            value = stack.pop()
            index = self._producer.get(value)
            if index is None or index in found or is_routing(self._nodes[index]):
                continue
            # What would run again, but was given, was computed before what the check is about.
            if value not in given or not runs_again(self._nodes[index]):
                found.add(index)
                stack += self._nodes[index].inputs
        return sorted(found)

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
        makers = [self._producer[v] for v in self._checked() if v in self._producer]
        later = {own, *[i for i in makers if access(self._nodes[i]) is not Access.WRITE]}
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
