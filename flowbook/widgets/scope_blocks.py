"""A graph collapsed to its top-level name scopes: blocks, and the edges between them.

Pure: graph in, values out; drawing is `graph_svg.py`'s. Equal graphs give equal blocks, in the
order in which they were begun.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from flowbook.graph.graph import Graph
from flowbook.graph.operation import Operation
from flowbook.graph.tensor import Tensor
from flowbook.widgets.shown_text import counted

MAX_BLOCKS = 40
_LONG = 12  # A picture of more blocks than these has its chains drawn as one block each.


@dataclass
class Block:
    """A top-level scope, a single operation, or several of these drawn as one.

    Attributes:
        name: the scope's or the operation's name.
        kind: "scope", "variable", "input", "operation" or "several".
        detail: the second line, such as "12 operations".
        operations: how many operations it stands for.
    """

    name: str
    kind: str
    detail: str
    operations: int


@dataclass
class Edge:
    """What flows from one block to another.

    Attributes:
        tensors: how many different tensors.
        controls: how many control dependencies.
        shape: the shape of the only tensor; empty if there are more.
    """

    tensors: int = 0
    controls: int = 0
    shape: str = ""


@dataclass
class Blocks:
    """The collapsed graph: `edges` by the positions of their ends in `blocks`."""

    blocks: list[Block] = field(default_factory=list)
    edges: dict[tuple[int, int], Edge] = field(default_factory=dict)


def collapse(graph: Graph, max_blocks: int = MAX_BLOCKS) -> Blocks:
    """Collapse a graph to at most `max_blocks` blocks.

    Long chains of single operations become one block. Where there are still too many, the
    smallest become one without edges, which would only be a tangle.
    """
    operations = graph.operations
    members: dict[str, list[Operation]] = {}
    for operation in operations:
        members.setdefault(_top(operation), []).append(operation)
    # What has been retired, and is still referred to, is not in the picture.
    top = {operation: name for name, group in members.items() for operation in group}
    names = list(members)
    position = {name: i for i, name in enumerate(names)}
    groups = [[i] for i in range(len(names))]
    if len(groups) > _LONG:
        neighbours = _edges({op: position[name] for op, name in top.items()})
        groups = _join_chains(groups, names, members, neighbours)
    several = _Several(names, members)
    if len(groups) > max_blocks:
        groups, rest = _split(groups, lambda group: several.count(group), max_blocks - 1)
    else:
        rest = []
    group_of = {names[i]: g for g, group in enumerate(groups) for i in group}
    blocks = [several.block(group) for group in groups]
    if rest:
        blocks.append(several.rest(rest))
    return Blocks(
        blocks, _edges({op: group_of[name] for op, name in top.items() if name in group_of})
    )


def _top(operation: Operation) -> str:
    return operation.name.partition("/")[0]


def _edges(block_of: dict[Operation, int]) -> dict[tuple[int, int], Edge]:
    """The edges between the blocks of operations, which are given in order."""
    seen: set[tuple[Tensor, int]] = set()
    edges: dict[tuple[int, int], Edge] = {}
    for operation, target in block_of.items():
        for tensor in operation.inputs:
            source = block_of.get(tensor.op, target)
            if source == target or (tensor, target) in seen:
                continue
            seen.add((tensor, target))
            edge = edges.setdefault((source, target), Edge())
            edge.tensors += 1
            edge.shape = str(tensor.shape) if edge.tensors == 1 else ""
        for control in operation.control_inputs:
            source = block_of.get(control, target)
            if source != target:
                edges.setdefault((source, target), Edge()).controls += 1
    return edges


def _join_chains(
    groups: list[list[int]],
    names: list[str],
    members: dict[str, list[Operation]],
    edges: dict[tuple[int, int], Edge],
) -> list[list[int]]:
    """Put runs of single operations, each of which only feeds the next, into one group."""
    before: dict[int, list[int]] = {}
    after: dict[int, list[int]] = {}
    for source, target in edges:
        after.setdefault(source, []).append(target)
        before.setdefault(target, []).append(source)

    def is_link(i: int) -> bool:
        return (
            _kind(members[names[i]]) == "operation"
            and len(before.get(i, ())) == 1
            and len(after.get(i, ())) <= 1
        )

    joined: list[list[int]] = []
    group_of: dict[int, list[int]] = {}
    for [i] in groups:
        previous = before[i][0] if is_link(i) else -1
        if previous in group_of and is_link(previous):
            group = group_of[previous]
            group.append(i)
        else:
            group = [i]
            joined.append(group)
        group_of[i] = group
    return joined


def _split(
    groups: list[list[int]], size: Callable[[list[int]], int], keep: int
) -> tuple[list[list[int]], list[int]]:
    """The largest `keep` groups in their order, and the members of all others."""
    ranked = sorted(range(len(groups)), key=lambda g: (-size(groups[g]), g))
    kept = set(ranked[:keep])
    rest = [i for g, group in enumerate(groups) if g not in kept for i in group]
    return [groups[g] for g in sorted(kept)], rest


def _kind(members: list[Operation]) -> str:
    handles = [op for op in members if op.op_def.resource == "variable"]
    if len(handles) == 1 and handles[0].name == _top(handles[0]) and len(members) <= 4:
        return "variable"
    if len(members) > 1:
        return "operation" if _is_with_constants(members) else "scope"
    return "input" if members[0].type == "Placeholder" else "operation"


def _is_with_constants(members: list[Operation]) -> bool:
    """Whether it is one operation beside the constants made for its arguments."""
    others = [op for op in members if op.type != "Const"]
    return len(others) == 1 and others[0].name == _top(others[0])


class _Several:
    """Makes blocks out of groups of top-level names."""

    def __init__(self, names: list[str], members: dict[str, list[Operation]]) -> None:
        self._names = names
        self._members = members

    def count(self, group: list[int]) -> int:
        return sum(len(self._members[self._names[i]]) for i in group)

    def block(self, group: list[int]) -> Block:
        first = self._names[group[0]]
        members = self._members[first]
        if len(group) == 1:
            return Block(first, _kind(members), _detail(members), len(members))
        name = f"{first} … {self._names[group[-1]]}"
        return Block(name, "several", counted(len(group), "operation"), self.count(group))

    def rest(self, group: list[int]) -> Block:
        count = self.count(group)
        return Block(f"and {len(group):,} more", "several", counted(count, "operation"), count)


def _detail(members: list[Operation]) -> str:
    kind = _kind(members)
    if kind == "scope":
        variables = sum(op.op_def.resource == "variable" for op in members)
        held = f", {counted(variables, 'variable')}" if variables else ""
        return counted(len(members), "operation") + held
    if kind == "variable":
        handle = next(op for op in members if op.op_def.resource == "variable")
        return f"variable {handle.attributes['shape']}"
    main = next((op for op in members if op.type != "Const"), members[0])
    shapes = " ".join(str(tensor.shape) for tensor in main.outputs[:2])
    # The name mostly says the type already: "MatMul_3".
    typed = "" if main.name.rstrip("0123456789").rstrip("_") == main.type else main.type
    return " ".join(filter(None, (typed, shapes)))
