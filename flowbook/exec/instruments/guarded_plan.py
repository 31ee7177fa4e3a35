"""Where a guarded plan checks its values, and which of them it looks at (see `guard.py`).

Most operations pass on what is not finite, whatever else they are given
(`OpDef.spreads_nonfinite`): where their outputs are finite, so were their inputs. Some give finite
values for finite ones (`OpDef.keeps_finite`). Only what is left is looked at.

In a plan with loops or branches each value is checked in its iteration, right where it was made.
Otherwise the plan is put in an order in which variables are written as late as they can be, and all
that was computed is checked before: a step that fails has not changed them. In a step whose writes
depend on other writes, as Adam's do, those come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from flowbook.exec.engine.diagnosis import access, is_allowed, is_finite, is_routing, runs_again
from flowbook.exec.plan.program import Block, Part, PlanNode, Program
from flowbook.graph.model.dtypes import DType, float32, float64
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.touch import Access
from flowbook.graph.ops.checks.checking import check_finite_op

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


def guarded(program: Program, allowed: tuple[str, ...], waits: bool) -> Program:
    """A program with checks before its writes, and at its end.

    Args:
        program: what is guarded.
        allowed: the names of operations, and of scopes, whose values need not be finite.
        waits: whether some of its feeds arrive after the step has begun.
    """
    parts = tuple([_guarded_part(program, part, allowed, waits) for part in program.parts])
    return program._replace(parts=parts)


def _guarded_part(program: Program, part: Part, allowed: tuple[str, ...], waits: bool) -> Part:
    nodes = part.nodes
    waits = waits or any(op_keyed(n.type).is_async or is_routing(n) for n in nodes)
    facts = _Facts(program, part, allowed)
    written = [v for v in part.fetches if v in facts.written and facts.matters(v)]
    order: list[int] = []
    checks: list[tuple[int, _Group, PlanNode]] = []
    sizes: list[int] = []
    for block in part.block.walk():
        start, before_it = len(order), len(order) + len(checks)
        groups = _one_by_one(block.nodes, start) if waits else _phases(block.nodes)
        if not sizes:
            groups.append(_Group([], [], written))
        for group in groups:
            check = _check_of(facts, group)
            order += group.nodes
            if check is not None:
                checks.append((len(order) + len(checks), group, check))
            order += group.writes
        sizes.append(len(order) + len(checks) - before_it)
    places = _places(len(nodes), order, [place for place, _, _ in checks])
    before = {write: place for place, group, _ in checks for write in group.writes}
    made: list[PlanNode | None] = [None] * (len(order) + len(checks))
    for index in order:
        node = nodes[index]
        after = tuple([places[i] for i in node.after])
        if index in before:
            after += (before[index],)
        behind = tuple([places[i] for i in node.behind])
        made[places[index]] = node._replace(after=after, behind=behind)
    for place, _, check in checks:
        made[place] = check
    block = _filled(part.block, iter([n for n in made if n is not None]), iter(sizes))
    # What is in a loop runs because the loop does.
    outside = [place for place, _, _ in checks if place < sizes[0]]
    targets = (*[places[i] for i in part.targets], *outside)
    return part._replace(block=block, targets=targets)


def _filled(block: Block, nodes: Iterator[PlanNode], sizes: Iterator[int]) -> Block:
    """The block with other nodes, so many for it and for each within it."""
    own = tuple(islice(nodes, next(sizes)))
    inner = tuple([_filled(each, nodes, sizes) for each in block.blocks])
    return block._replace(nodes=own, blocks=inner)


def _phases(nodes: Sequence[PlanNode]) -> list[_Group]:
    """Nodes by how many writes one after the other they depend on; of each phase its writes last.

    The last phase has the nodes that depend on no further write, and none to check before.
    """
    producer = {value: i for i, node in enumerate(nodes) for value in node.outputs}
    phase: list[int] = []
    writes = [access(node) is Access.WRITE for node in nodes]
    for node in nodes:
        sources = {producer[v] for v in node.inputs if v in producer}.union(node.after)
        phase.append(max([phase[i] + writes[i] for i in sources], default=0))
    groups = [_Group([], []) for _ in range(max(phase, default=0) + 2)]
    for index, number in enumerate(phase):
        (groups[number].writes if writes[index] else groups[number].nodes).append(index)
    return [group for group in groups if group.nodes or group.writes]


def _one_by_one(nodes: Sequence[PlanNode], start: int) -> list[_Group]:
    """Each node for itself: one that waits may wait for another, and a check must not delay it.

    What runs in an iteration, or in a branch, is checked there, or not at all.
    """
    return [
        _Group([], [i]) if access(node) is Access.WRITE else _Group([i], [])
        for i, node in enumerate(nodes, start)
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
        nodes: the plan's.
        names: of operations, and of scopes, whose values need not be finite.
        constants: values that are known.
        dtypes: of the values that nodes give and that may be not finite.
        fed: the fed values that may be not finite.
        allowed: the values that may be so without an error.
        unsure: values from outside of the nodes that may be not finite.
        written: what writes give.
        handles: the handles of resources, which are known in every step.
    """

    def __init__(self, program: Program, part: Part, names: tuple[str, ...]) -> None:
        self.nodes = part.nodes
        self.names = names
        self.constants = part.constants
        self.dtypes: dict[int, DType] = {
            value: dtype
            for node in self.nodes
            for value, dtype in zip(node.outputs, node.dtypes, strict=False)
            if _can_be_lost(dtype) and not is_routing(node)
        }
        feeds = [program.feeds[place] for place in part.feeds]
        self.fed = {v for v, feed in enumerate(feeds) if _can_be_lost(feed.dtype)}
        self.allowed = {v for n in self.nodes if is_allowed(n, names) for v in n.outputs}
        self.unsure = self.fed | {v for v, c in part.constants.items() if not is_finite(c)}
        self.written = self._outputs(Access.WRITE)
        self.handles = {v for n in self.nodes if op_keyed(n.type).is_handle for v in n.outputs}

    def _outputs(self, kind: Access) -> set[int]:
        return {v for node in self.nodes if access(node) is kind for v in node.outputs}

    def matters(self, value: int) -> bool:
        """Whether a value is an error where it is not finite."""
        return value in self.dtypes and value not in self.allowed


def _check_of(facts: _Facts, group: _Group) -> PlanNode | None:
    """The check of a group; None where there is nothing to check."""
    nodes, dtypes = facts.nodes, facts.dtypes
    seen = _passed_on(facts, group)
    cleared: set[int] = set()
    checked: list[int] = []
    for index in group.nodes:
        node = nodes[index]
        keeps = op_keyed(node.type).keeps_finite and all(
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
    attributes = {"checked": len(checked), "allowed": facts.names}
    return PlanNode(inputs, (), (), check_finite_op.key, attributes, (), (), None, "guard", ())


def _passed_on(facts: _Facts, group: _Group) -> set[int]:
    """Values that the output of some other node of the group tells of."""
    seen: set[int] = set()
    for index in group.nodes:
        node = facts.nodes[index]
        if op_keyed(node.type).spreads_nonfinite and facts.matters(node.outputs[0]):
            seen.update(_spread(node))
    return seen


def _spread(node: PlanNode) -> Iterator[int]:
    """The values of which what is not finite makes something such in a node's output."""
    definition = op_keyed(node.type)
    grouped = definition.grouped(node.inputs, node.attributes)
    for argument, given in zip(definition.inputs, grouped, strict=True):
        if argument.name in definition.spreads_nonfinite:
            yield from given if argument.is_list else (given,)


def _given(facts: _Facts, group: _Group) -> list[int]:
    """What the group's nodes were given, except what those that run again compute anew."""
    nodes = [facts.nodes[i] for i in group.nodes]
    known = {v for node in nodes if runs_again(node) for v in node.outputs} | facts.handles
    needed = dict.fromkeys(v for node in nodes for v in node.inputs)
    return [v for v in needed if v not in known and v not in facts.constants]


def _can_be_lost(dtype: DType) -> bool:
    return bool(dtype.is_floating or dtype.is_complex)
