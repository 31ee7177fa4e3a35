"""A graph collapsed to its top-level name scopes: blocks, and the edges between them.

Pure: graph in, values out; drawing is `graph_svg.py`'s. Equal graphs give equal blocks, in the
order in which they were begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from flowbook.graph.building.graph import Graph
from flowbook.graph.model.counted import counted
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin.called import called
from flowbook.graph.model.tensor import Tensor
from flowbook.widgets.graphs import block_groups
from flowbook.widgets.graphs.block_groups import Group
from flowbook.widgets.graphs.flow_blocks import BlockKind, Pictured, pictured
from flowbook.widgets.graphs.overlay import Overlay
from flowbook.widgets.graphs.payload import Needed
from flowbook.widgets.graphs.setting_aside import aside_on_top

MAX_BLOCKS = 40
_OPERATIONS = ("variable", "input", "operation", "call")  # Kinds that are one operation.
_LONG = 12  # A picture of more blocks than these has several drawn as one.


@dataclass
class Block:
    """A top-level scope, a single operation, or several of these drawn as one.

    Attributes:
        name: the scope's name, or what the operation is called.
        kind: "scope", "loop", "branch", "function", "call", "variable", "input", "operation" or
            "several".
        detail: the second line, such as "12 operations".
        operations: how many operations it stands for.
        is_faint: whether something else stands out: it has nothing to do with a given run.
        marks: "fed" and "fetched", where the run does that to something in it.
        members: those operations.
    """

    name: str
    kind: str
    detail: str
    operations: int
    is_faint: bool = False
    marks: tuple[str, ...] = ()
    members: Sequence[Operation] = ()


@dataclass
class Edge:
    """What flows from one block to another.

    Attributes:
        tensors: how many different tensors.
        controls: how many control dependencies.
        shape: the shape of the only tensor; empty if there are more.
        is_faint: whether nothing of it flows in a given run.
        crossings: what of it goes to another device, as in `Overlay.crossings`.
    """

    tensors: int = 0
    controls: int = 0
    shape: str = ""
    is_faint: bool = False
    crossings: set[tuple[str, int]] = field(default_factory=set)


@dataclass
class Blocks:
    """The collapsed graph: `edges` by the positions of their ends in `blocks`."""

    blocks: list[Block] = field(default_factory=list)
    edges: dict[tuple[int, int], Edge] = field(default_factory=dict)


def collapse(
    graph: Graph,
    max_blocks: int = MAX_BLOCKS,
    needed: Needed | None = None,
    ran: Mapping[str, str] | None = None,
    overlay: Overlay | None = None,
) -> Blocks:
    """Collapse a graph to at most `max_blocks` blocks; what a run needs stands out.

    What is given in `ran` is said of loops and branches, by their names. With an overlay, edges
    have what of them crosses between devices.

    In a picture of many blocks, variables have their initialisers in them, and long chains of
    single operations and blocks that are alike become one block each. What is fed from everywhere,
    such as gradients, has no edges. Where there are still too many, the smallest become one
    without edges, which would only be a tangle.
    """
    operations = graph.operations
    picture = pictured(operations)
    members: dict[str, list[Operation]] = {}
    for operation, pictured_name in zip(operations, picture.names, strict=True):
        members.setdefault(pictured_name.partition("/")[0], []).append(operation)
    # What has been retired, and is still referred to, is not in the picture.
    top = {operation: name for name, group in members.items() for operation in group}
    names = list(members)
    position = {name: i for i, name in enumerate(names)}
    faces = _Faces(names, members, picture, ran or {})
    groups = block_groups.single(len(names))
    if len(groups) > _LONG:
        pairs = set(_edges({op: position[name] for op, name in top.items()}, None))
        groups = block_groups.with_initialisers(groups, pairs, faces.is_variable)
        groups = block_groups.with_chains(groups, pairs, faces.is_operation)
        groups = block_groups.with_alike(groups, pairs, faces.make)
    rest: list[int] = []
    if len(groups) > max_blocks:
        groups, rest = _split(groups, faces.count, max_blocks - 1)
    group_of = {names[i]: g for g, group in enumerate(groups) for i in group.all}
    blocks = [faces.block(group, needed) for group in groups]
    shown = {op: group_of[name] for op, name in top.items() if name in group_of}
    edges = _edges(shown, needed, overlay)
    unseen = {position[top[op]] for op in aside_on_top(operations, picture.names)}
    aside = {g for g, group in enumerate(groups) if unseen.issuperset(group.all)}
    for g, feeders in _crowded(aside, edges).items():
        held = counted(blocks[g].operations, "operation")
        blocks[g].detail = f"{held}, fed by {counted(feeders, 'block')}"
        edges = {ends: edge for ends, edge in edges.items() if g not in ends}
    if rest:
        blocks.append(faces.rest(rest, needed))
    return Blocks(blocks, edges)


def _top(operation: Operation) -> str:
    return operation.name.partition("/")[0]


def _edges(
    block_of: dict[Operation, int], needed: Needed | None, overlay: Overlay | None = None
) -> dict[tuple[int, int], Edge]:
    """The edges between the blocks of operations, which are given in order."""

    def edge_to(operation: Operation, source: Operation) -> Edge:
        ends = block_of[source], block_of[operation]
        edge = edges.setdefault(ends, Edge(is_faint=needed is not None))
        edge.is_faint = edge.is_faint and not (needed and needed.joins(source, operation))
        return edge

    seen: set[tuple[Tensor, int]] = set()
    edges: dict[tuple[int, int], Edge] = {}
    for operation, target in block_of.items():
        for tensor in operation.inputs:
            if block_of.get(tensor.op, target) == target:
                continue
            edge = edge_to(operation, tensor.op)
            crossing = None if overlay is None else overlay.crossing(tensor, operation)
            if crossing is not None:
                edge.crossings.add(crossing)
            if (tensor, target) in seen:
                continue
            seen.add((tensor, target))
            edge.tensors += 1
            edge.shape = str(tensor.shape) if edge.tensors == 1 else ""
        for control in operation.control_inputs:
            if block_of.get(control, target) != target:
                edge_to(operation, control).controls += 1
    return edges


def _crowded(candidates: set[int], edges: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Those that still have several neighbours, and how many blocks feed each.

    Blocks that are drawn as one may have been all the neighbours that there were.
    """
    before: dict[int, set[int]] = {g: set() for g in sorted(candidates)}
    after: dict[int, set[int]] = {g: set() for g in candidates}
    for source, target in edges:
        before.get(target, set()).add(source)
        after.get(source, set()).add(target)
    return {g: len(before[g]) for g in before if len(before[g] | after[g]) > 1}


def _split(
    groups: list[Group], size: Callable[[Group], int], keep: int
) -> tuple[list[Group], list[int]]:
    """The largest `keep` groups in their order, and the members of all others."""
    ranked = sorted(range(len(groups)), key=lambda g: (-size(groups[g]), g))
    kept = set(ranked[:keep])
    rest = [i for g, group in enumerate(groups) if g not in kept for i in group.all]
    return [groups[g] for g in sorted(kept)], rest


def _kind(members: list[Operation]) -> str:
    if _handle(members) is not None:
        return "variable"
    if len(members) > 1:
        return "operation" if _is_with_constants(members) else "scope"
    return "input" if members[0].op_def.must_be_fed else "operation"


def _handle(members: list[Operation]) -> Operation | None:
    """The variable that a block of its name is: its reads, and what optimizers keep for it."""
    for op in members:
        if op.op_def.owns == "variable" and op.name == _top(op):
            return op
    return None


def _is_with_constants(members: list[Operation]) -> bool:
    """Whether it is one operation beside the constants made for its arguments."""
    others = [op for op in members if not op.op_def.is_constant]
    return len(others) == 1 and others[0].name == _top(others[0])


class _Faces:
    """What groups of top-level names look like as blocks."""

    def __init__(
        self,
        names: list[str],
        members: dict[str, list[Operation]],
        picture: Pictured,
        ran: Mapping[str, str],
    ) -> None:
        self._names = names
        self._members = [members[name] for name in names]
        self._blocks = picture.blocks
        self._bodies = picture.bodies
        # What is told of them, which is not how they route values.
        self._shown = [
            [op for op in group if op not in picture.routing] or group for group in self._members
        ]
        self._ran = ran

    def is_variable(self, i: int) -> bool:
        return _handle(self._members[i]) is not None

    def is_operation(self, group: Group) -> bool:
        is_block = any(self._names[i] in self._blocks for i in group.shown)
        return not is_block and all(_kind(self._members[i]) == "operation" for i in group.shown)

    def look(self, group: Group) -> tuple[str, str]:
        members, name = self._shown[group.shown[0]], self._names[group.shown[0]]
        block = self._blocks.get(name)
        if block is None:
            return self._look(name, members)
        held = self._ran.get(block.name) or block.about or counted(len(members), "operation")
        return block.kind.name.lower(), held

    def _look(self, name: str, members: list[Operation]) -> tuple[str, str]:
        """What is neither a loop nor a branch looks like."""
        kind = _kind(members)
        called = [self._bodies[op] for op in members if op in self._bodies]
        if kind == "operation" and called:
            return "call", f"call of {self._blocks[called[0]].name.removeprefix('functions/')}"
        held = [
            path
            for path, block in self._blocks.items()
            if block.kind is BlockKind.FUNCTION and path.startswith(f"{name}/")
        ]
        functions = f", {counted(len(held), 'function')}" if held else ""
        return kind, _detail(members) + functions

    def make(self, group: Group) -> tuple[str, ...]:
        """What blocks that are alike have in common: the look, and the types of operations."""
        members = self._members[group.shown[0]]
        return *self.look(group), *sorted(op.type for op in members)

    def count(self, group: Group) -> int:
        return sum(len(self._members[i]) for i in group.all)

    def block(self, group: Group, needed: Needed | None) -> Block:
        first, last = (self._names[group.shown[i]] for i in (0, -1))
        if group.how == "one":
            kind, detail = self.look(group)
            if kind in _OPERATIONS and first not in self._blocks:
                first = called(_main(self._members[group.shown[0]]))
            return self._block(first, kind, detail, group.all, needed)
        detail = counted(len(group.shown), "operation")
        if group.how == "alike":
            detail = f"{len(group.shown):,} × {self.look(group)[1]}"
        return self._block(f"{first} … {last}", "several", detail, group.all, needed)

    def rest(self, numbers: list[int], needed: Needed | None) -> Block:
        detail = counted(sum(len(self._members[i]) for i in numbers), "operation")
        return self._block(f"and {len(numbers):,} more", "several", detail, numbers, needed)

    def _block(
        self, name: str, kind: str, detail: str, numbers: list[int], needed: Needed | None
    ) -> Block:
        members = dict.fromkeys(op for i in numbers for op in self._members[i])
        if needed is None:
            return Block(name, kind, detail, len(members), members=list(members))
        marks = {"fed": needed.fed, "fetched": needed.fetched}
        shown = tuple(mark for mark, marked in marks.items() if members.keys() & marked)
        return Block(
            name,
            kind,
            detail,
            len(members),
            is_faint=not shown and not members.keys() & needed.operations,
            marks=shown,
            members=list(members),
        )


def _main(members: list[Operation]) -> Operation:
    """The operation that others are for: constants for its arguments, reads of a variable."""
    return _handle(members) or next((op for op in members if not op.op_def.is_constant), members[0])


def _detail(members: list[Operation]) -> str:
    kind = _kind(members)
    if kind == "scope":
        variables = sum(op.op_def.owns == "variable" for op in members)
        held = f", {counted(variables, 'variable')}" if variables else ""
        return counted(len(members), "operation") + held
    if kind == "variable":
        handle = _handle(members)
        assert handle is not None
        slots = sum(op.op_def.owns == "variable" for op in members) - 1
        kept = f", {counted(slots, 'slot')}" if slots else ""
        return f"variable {handle.attributes['shape']}{kept}"
    main = _main(members)
    shapes = " ".join(str(tensor.shape) for tensor in main.outputs[:2])
    # The name mostly says the type already: "MatMul_3".
    typed = "" if main.name.rstrip("0123456789").rstrip("_") == main.type else main.type
    return " ".join(filter(None, (typed, shapes)))
