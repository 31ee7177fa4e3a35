"""Loops and branches as blocks of a picture, beside the name scopes.

A picture is a tree of names (`name_tree.py`). Here an operation gets the name by which it is
pictured: what runs in a loop's body lies in "loop/body", whatever its own name is. A loop is the
block of its name scope, and in it lie its condition, its body, and a small block for each variable;
a branch lies in the scope of its `cond`, and in it its sides, the predicate and the results. The
body of a function is one block, to which each operation that is a kept call of it leads.

What only routes values (Switch, Merge, Enter, Exit, NextIteration) is in the tree, but is not drawn
unless it is asked for: lines go from who gives a value to who computes with it. Pure, and from the
graph's structure and names alone, so that a graph read from a file is drawn as the one it was. The
calls of templates alone are what only the living graph knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

from flowbook.graph.control_flow.routing import loop_cond
from flowbook.graph.functions.definition import definition_of
from flowbook.graph.model.context import Branch, Context, Frame, chain, frame_of, runs_in
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import variant
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.tensor import Tensor
from flowbook.widgets.graphs.template_blocks import further_calls

# Marks the parts of pictured names that are no names of scopes, and slashes within a part.
_OWN, _SLASH = "\x01", "\x02"

_GRADIENT = "_grad"


class BlockKind(IntEnum):
    """What a block is, beside name scopes; the numbers are those of `payload.ts`."""

    LOOP = 7
    BRANCH = 8
    PART = 9  # A condition, a body, a side.
    ROLE = 10  # A loop's variable, a branch's predicate, its results.
    FUNCTION = 11  # The body of a function.
    CALL = 12  # An operation that is a kept call of one.


@dataclass(frozen=True)
class Block:
    """A block of a picture.

    Attributes:
        kind: what it is.
        name: what it is called as a whole.
        about: more about it, such as whose gradient it is.
        frame: the name of a loop's or a function's frame.
        ends: of a branch the sides that one comes to: by which Switch, by its id, on which of its
            sides, and what that is called.
    """

    kind: BlockKind
    name: str
    about: str = ""
    frame: str = ""
    ends: tuple[tuple[int, int, str], ...] = ()


@dataclass
class Pictured:
    """How operations with loops and branches among them are pictured.

    Attributes:
        names: the pictured name of each operation.
        blocks: what each of these scopes is that is no name scope, by its pictured name.
        routing: the operations that only route values.
        wires: the tensors that lines are drawn from, of each operation of which these are not its
            inputs.
        rounds: the operations to which lines go round, to the next iteration.
        bodies: of each kept call of a function the block that it leads to, by its pictured name.
        calls: the same of each further call of a template, which is a block itself.
    """

    names: list[str]
    blocks: dict[str, Block] = field(default_factory=dict)
    routing: set[Operation] = field(default_factory=set)
    wires: dict[Operation, list[Tensor]] = field(default_factory=dict)
    rounds: set[Operation] = field(default_factory=set)
    bodies: dict[Operation, str] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)


def shown_label(part: str) -> str:
    """What is shown of a part of a pictured name."""
    return part.removeprefix(_OWN).replace(_SLASH, "/")


def plain_name(name: str) -> str:
    """A pictured name without the parts that are no names of scopes."""
    return "/".join(part for part in name.split("/") if not part.startswith(_OWN))


def pictured(operations: Sequence[Operation]) -> Pictured:
    """How the operations of a graph are pictured, in the order of construction."""
    if any(op.op_def.is_router for op in operations):
        found = _Picture(operations).drawn()
    else:
        found = Pictured([op.name for op in operations])
    if operations:
        _note_templates(found, operations)
    return found


def _note_templates(picture: Pictured, operations: Sequence[Operation]) -> None:
    calls = operations[0].graph.members.template_calls
    for first, others in further_calls(operations, picture.names, calls).items():
        if others:
            about = f"used {counted(1 + len(others), 'time')}"
            picture.blocks[first] = Block(BlockKind.FUNCTION, first, about)
        for scope in others:
            picture.blocks[scope] = Block(BlockKind.CALL, scope, f"call of {first}")
            picture.calls[scope] = first


@dataclass(frozen=True)
class _Home:
    """Where a block lies, and what counts as its own.

    Attributes:
        path: its pictured name.
        scopes: the name scopes whose members are its own, the innermost first.
        last: the id of the last operation that is its own; later ones extend it.
    """

    path: str
    scopes: tuple[str, ...]
    last: int = -1

    def relative(self, name: str) -> str | None:
        """A name seen from within; None if it is not one of its own."""
        scope = next((s for s in self.scopes if not s or name.startswith(s + "/")), None)
        if scope is None:
            return None
        return name[len(scope) + 1 :] if scope else name


@dataclass
class _Cond:
    """The branches of one `cond`, or of several decisions that make a `case`.

    Attributes:
        scope: its name scope.
        pivots: the Switch of each predicate on itself.
    """

    scope: str
    pivots: dict[Tensor, Operation] = field(default_factory=dict)

    @property
    def outer(self) -> Context | None:
        """Where it decides: the outermost place of its decisions."""
        return min((op.context for op in self.pivots.values()), key=_depth)

    @cached_property
    def ends(self) -> dict[tuple[Tensor, int], str]:
        """The sides on which nothing more is decided, each with what it is called."""
        within: dict[tuple[Tensor, int], list[Tensor]] = {}
        first: list[Tensor] = []
        for pred, pivot in self.pivots.items():
            around = pivot.context
            if isinstance(around, Branch) and around.pred in self.pivots:
                within.setdefault((around.pred, around.side), []).append(pred)
            else:
                first.append(pred)
        found: list[tuple[Tensor, int]] = []
        stack = [(pred, side) for pred in reversed(first) for side in (0, 1)]
        while stack:
            end = stack.pop()
            inner = within.get(end)
            if inner is None:
                found.append(end)
            else:
                stack += [(pred, side) for pred in reversed(inner) for side in (0, 1)]
        if len(self.pivots) == 1:
            return dict(zip(found, ("true", "false"), strict=True))
        return {end: f"branch {place}" for place, end in enumerate(found)}


def _depth(context: Context | None) -> int:
    return sum(1 for _ in chain(context))


class _Picture:
    """Works out how operations are pictured."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._operations = operations
        self._found = Pictured([])
        self._conds: dict[str, _Cond] = {}
        self._cond_of: dict[Tensor, _Cond] = {}
        self._entrances: dict[Frame, list[Operation]] = {}
        self._conditions: dict[Frame, Operation] = {}
        self._takers: dict[Tensor, list[Operation]] = {}
        self._last: dict[str, int] = {}  # The last operation in each name scope.
        for op in operations:
            self._note(op)
        self._homes: dict[Frame | str, _Home] = {}
        self._roles: dict[Operation, str] = {}
        self._named: dict[Operation, str] = {}
        self._drawn: dict[Operation, Sequence[Tensor]] = {}
        self._origins: dict[Tensor, Tensor] = {}

    def _note(self, op: Operation) -> None:
        for tensor in op.inputs:
            self._takers.setdefault(tensor, []).append(op)
        scope = op.name
        while scope := scope.rpartition("/")[0]:
            self._last[scope] = op.id
        frame = frame_of(op.context)
        if op.op_def.retag is Retag.PUSH:
            assert frame is not None
            self._entrances.setdefault(frame, []).append(op)
        elif op.op_def is loop_cond and frame is not None:
            self._conditions[frame] = op
        elif op.op_def.gives_dead and op.inputs[0] is op.inputs[1]:
            # So `cond` begins, in its own name scope.
            pred, scope = op.inputs[0], _scope_of(op)
            if scope and _scope_of(pred.op) == scope and pred not in self._cond_of:
                cond = self._cond_of[pred] = self._conds.setdefault(scope, _Cond(scope))
                cond.pivots[pred] = op

    def drawn(self) -> Pictured:
        """How everything is pictured."""
        self._found.names = [self._name(op) for op in self._operations]
        for op in self._operations:
            wires = [self._origin(tensor) for tensor in self._drawn.get(op, op.inputs)]
            if wires != list(op.inputs):
                self._found.wires[op] = wires
            if op.op_def.stands_for is not None:
                body = definition_of(op).frame
                if body in self._entrances:  # It is not where old definitions are left out.
                    self._found.bodies[op] = self._loop(body).path
        return self._found

    # Blocks

    def _loop(self, frame: Frame) -> _Home:
        """Where a loop's block lies, or a function's; it is noted when that is first asked for."""
        home = self._homes.get(frame)
        if home is None:
            outer, _, label = frame.name.rpartition("/")
            is_scope = any(e.name.startswith(frame.name + "/") for e in self._entrances[frame])
            scopes, about = [frame.name if is_scope else outer], ""
            forward = self._differentiated(label)
            if forward:
                about = f"gradient of {forward}"
                scopes.insert(0, f"{outer}/{forward}" if outer else forward)
            path = self._within(frame.outer, frame.name)
            last = max(self._last.get(scope, -1) for scope in scopes)
            home = self._homes[frame] = _Home(path, tuple(scopes), last)
            kind = BlockKind.FUNCTION if frame.is_function else BlockKind.LOOP
            self._found.blocks[path] = Block(kind, frame.name, about, frame.name)
        return home

    def _differentiated(self, label: str) -> str:
        """The name of the loop whose gradient is called so; empty if there is none."""
        names = [frame.name for frame in self._entrances]
        return next((n for n in names if f"{n.rpartition('/')[2]}{_GRADIENT}" == label), "")

    def _branch(self, cond: _Cond) -> _Home:
        """Where a branch's block lies, likewise."""
        home = self._homes.get(cond.scope)
        if home is None:
            path = self._within(cond.outer, cond.scope)
            home = self._homes[cond.scope] = _Home(path, (cond.scope,), self._last[cond.scope])
            ends = [
                (switch.id, side, label)
                for (pred, side), label in cond.ends.items()
                for switch in dict.fromkeys(self._takers[pred])
                if switch.op_def.gives_dead and switch.inputs[-1] is pred
            ]
            self._found.blocks[path] = Block(BlockKind.BRANCH, cond.scope, ends=tuple(ends))
        return home

    def _part(self, home: _Home, label: str) -> _Home:
        """A part of a block."""
        return _Home(self._noted(BlockKind.PART, home, home.path, label), home.scopes, home.last)

    def _noted(self, kind: BlockKind, home: _Home, path: str, label: str) -> str:
        """The pictured name of what lies in a block, and is noted as a block of its own."""
        whole = self._found.blocks[home.path].name
        path = f"{path}/{_OWN}{_flat(label)}"
        self._found.blocks.setdefault(path, Block(kind, f"{label} of {whole}"))
        return path

    # Where operations lie

    def _place(self, context: Context | None, of: Operation | None = None) -> _Home:
        """What a place in the control flow is a part of, for an operation that runs there."""
        if context is None:
            return _Home("", ("",))
        if isinstance(context, Frame):
            home = self._loop(context)
            return self._part(home, "condition") if context in self._conditions else home
        frame = frame_of(context)
        if frame is not None and self._goes_on(frame, context.pred):
            home = self._loop(frame)
            return self._part(home, "body") if context.side else home
        cond = self._cond_of.get(context.pred)
        if cond is None:
            return self._place(context.outer, of)
        home = self._branch(cond)
        if of is not None and home.relative(of.name) is None and of.id > home.last:
            return self._place(cond.outer, of)  # Of its gradient, which was built later.
        end = cond.ends.get((context.pred, context.side))
        return self._part(home, end) if end is not None else home

    def _goes_on(self, frame: Frame | None, pred: Tensor) -> bool:
        """Whether a predicate says whether a loop goes on."""
        return frame is not None and self._conditions.get(frame) is pred.op

    def _within(self, context: Context | None, name: str, of: Operation | None = None) -> str:
        """The pictured name of what has a name and lies in some place."""
        home, frame = self._place(context, of), frame_of(context)
        relative = home.relative(name)
        if relative is None and of is not None and of.id > home.last and frame is not None:
            # It was added to the loop, as gradients do that need something of each iteration.
            return f"{self._loop(frame).path}/{name}"
        relative = _flat(name) if relative is None else relative
        return f"{home.path}/{relative}" if home.path else relative

    def _name(self, op: Operation) -> str:
        found = self._named.get(op)
        if found is None:
            found = self._named[op] = self._found_name(op)
        return found

    def _found_name(self, op: Operation) -> str:
        """The pictured name of an operation; it is noted what is drawn of it."""
        op_def, frame = op.op_def, frame_of(op.context)
        merge = _merge_of(op, self._takers)
        if merge is not None:
            return self._in_variable(op, merge)
        if op_def.retag is Retag.PUSH:
            assert frame is not None
            home = self._loop(frame)
            is_argument = frame.is_function and bool(op.attributes.get("label"))
            return (
                f"{home.path}/{home.relative(op.name)}" if is_argument else self._hidden(op, home)
            )
        left = frame_of(runs_in(op)) if op_def.retag is Retag.POP else None
        if left is not None and left.is_function:
            return self._hidden(op, self._loop(left))
        if op_def.gives_dead:
            return self._switch(op, frame)
        if op.op_def is loop_cond:
            self._hide(op)
        elif op_def.fires_on_any and _scope_of(op) in self._conds:
            return self._in_role(op, self._branch(self._conds[_scope_of(op)]), "result")
        elif not op.inputs:
            return self._constant(op)
        elif op_def.is_identity:
            cond = self._decided(op)
            if cond is not None:
                return self._in_role(op, self._branch(cond), "predicate")
            pred = self._followed(op, frame)
            if pred is not None:
                self._hide(op, [pred] if self._is_end(op, pred) else ())
        return self._within(op.context, op.name, op)

    def _hide(self, op: Operation, drawn: Sequence[Tensor] = ()) -> None:
        """Note that it only routes values; lines are drawn to it from some tensors alone."""
        self._found.routing.add(op)
        self._drawn[op] = drawn

    def _hidden(self, op: Operation, home: _Home) -> str:
        self._hide(op)
        relative = home.relative(op.name)
        return f"{home.path}/{_flat(op.name if relative is None else relative)}"

    def _in_variable(self, op: Operation, merge: Operation) -> str:
        """What takes a loop's variable in, round and out lies in a block of that."""
        is_taken_in = op.op_def.retag is Retag.PUSH or op.closes is not None
        self._hide(op, op.inputs if is_taken_in else ())
        if op.closes is not None:
            self._found.rounds.add(op)
        if merge not in self._roles:
            frame = frame_of(merge.context)
            assert frame is not None
            home = self._loop(frame)
            is_own = home.relative(merge.name) is not None
            path = home.path if is_own else f"{home.path}/{_scope_of(merge)}"
            label = merge.inputs[0].op.attributes.get("variable", "")
            if not label:
                kind = "stack" if merge.outputs[0].dtype is variant else "value"
                label = f"{kind} {len(self._roles) + 1}"
            self._roles[merge] = self._noted(BlockKind.ROLE, home, path, label)
        return f"{self._roles[merge]}/{_flat(op.name)}"

    def _in_role(self, op: Operation, home: _Home, label: str) -> str:
        self._hide(op, op.inputs)
        return f"{self._noted(BlockKind.ROLE, home, home.path, label)}/{_flat(op.name)}"

    def _switch(self, op: Operation, frame: Frame | None) -> str:
        pred = op.inputs[-1]
        if self._goes_on(frame, pred):
            assert frame is not None
            return self._hidden(op, self._loop(frame))
        cond = self._cond_of.get(pred)
        if cond is not None and self._branch(cond).relative(op.name) is not None:
            return self._hidden(op, self._branch(cond))
        return self._within(op.context, op.name, op)

    def _decided(self, op: Operation) -> _Cond | None:
        """The cond of which it is a predicate, as it is or taken to where another one is false."""
        tensor = op.outputs[0]
        taken = [t.outputs[0] for t in self._takers.get(tensor, ()) if t.op_def.gives_dead]
        return next((self._cond_of[t] for t in (tensor, *taken) if t in self._cond_of), None)

    def _followed(self, op: Operation, frame: Frame | None) -> Tensor | None:
        """The predicate, if all that an identity says is on which side of it something runs."""
        source = op.inputs[0].op
        if not source.op_def.gives_dead:
            return None
        pred = source.inputs[-1]
        cond = self._cond_of.get(pred)
        if cond is not None and source is cond.pivots[pred]:
            return pred
        is_unused = not self._takers.get(op.outputs[0])
        return pred if is_unused and self._goes_on(frame, pred) else None

    def _is_end(self, op: Operation, pred: Tensor) -> bool:
        """Whether it runs at the beginning of a part."""
        side, cond = op.inputs[0].index, self._cond_of.get(pred)
        return side == 1 if cond is None else (pred, side) in cond.ends

    def _constant(self, op: Operation) -> str:
        """What takes nothing, as a constant, lies in a block where all lie that take it."""
        takers = [taker for tensor in op.outputs for taker in self._takers.get(tensor, ())]
        if len(takers) == 1 and op.name.startswith(takers[0].name + "/"):
            return self._name(takers[0]) + op.name[len(takers[0].name) :]
        places = {self._taken_in(taker) for taker in takers}
        frames = {frame_of(taker.context) for taker in takers}
        frame = frames.pop() if len(frames) == 1 else None
        home = places.pop() if len(places) == 1 else self._place(op.context)
        relative = home.relative(op.name)
        if relative is not None:
            return f"{home.path}/{relative}" if home.path else relative
        if op.id > home.last and frame is not None:
            return f"{self._loop(frame).path}/{op.name}"  # For what was added to the loop.
        return self._within(op.context, op.name, op)

    def _taken_in(self, taker: Operation) -> _Home:
        """Where a constant lies that an operation takes."""
        frame = frame_of(taker.context)
        if taker.op_def.retag is Retag.PUSH and frame is not None:
            return self._loop(frame)
        return self._place(taker.context, taker)

    # Lines

    def _origin(self, tensor: Tensor) -> Tensor:
        """Who gives a value that was only routed."""
        found = self._origins.get(tensor)
        if found is None:
            op = tensor.op
            hands_on = op in self._found.routing and not self._is_in_role(op)
            hands_on = hands_on and not (op.op_def.is_identity and op.op_def is not loop_cond)
            found = self._origins[tensor] = self._origin(op.inputs[0]) if hands_on else tensor
        return found

    def _is_in_role(self, op: Operation) -> bool:
        block = self._found.blocks.get(_scope_of_name(self._named[op]))
        return block is not None and block.kind is BlockKind.ROLE


def _scope_of_name(name: str) -> str:
    return name.rpartition("/")[0]


def _scope_of(op: Operation) -> str:
    return _scope_of_name(op.name)


def _flat(name: str) -> str:
    """A name as one part of a pictured name."""
    return name.replace("/", _SLASH)


def _merge_of(op: Operation, takers: Mapping[Tensor, Sequence[Operation]]) -> Operation | None:
    """The Merge of the loop's variable that an operation takes in, round or out; or None."""
    op_def = op.op_def
    if op.closes is not None:
        return op.closes
    found: Operation | None = None
    if op_def.fires_on_any:
        found = op
    elif op_def.retag is Retag.PUSH:
        found = next((t for t in takers.get(op.outputs[0], ()) if t.op_def.fires_on_any), None)
    elif op_def.gives_dead:
        found = op.inputs[0].op
    elif op_def.retag is Retag.POP and op.inputs[0].op.op_def.gives_dead:
        found = op.inputs[0].op.inputs[0].op
    is_variable = found is not None and found.closed_by is not None
    if op_def.gives_dead and is_variable:
        is_variable = op.inputs[-1].op.op_def is loop_cond
    return found if is_variable else None
