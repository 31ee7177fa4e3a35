"""Regions of a graph as ONNX nodes: the whole, one side of a branch, a loop's body or condition.

A Switch's value is another name for what it takes, and so is that of an Enter that is constant: a
graph inside of an ONNX node sees the names around it. The Merges of a predicate become an If, the
Exits of a loop a Loop, whose condition is written twice: before it, of what the variables are at
first, and at its body's end, of what they are next.

Each operation is written where it runs, which its context says. What is alive on one side of a
predicate only, and taken on that side of another node, is computed again there: nothing that is
written touches anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flowbook.graph.model import dtypes
from flowbook.graph.model.ancestors import taken_by
from flowbook.graph.model.context import (
    Branch,
    Context,
    Frame,
    context_of,
    frame_of,
    is_within,
)
from flowbook.graph.model.errors import OpError, UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.onnx.elements import NUMBERS
from flowbook.onnx.package import onnx
from flowbook.onnx.writer import Writer
from flowbook.onnx.written import RULES, RUN_AXES, FixedAxes
from flowbook.onnx.written.arrays import Elements

# What regions write without a rule.
ROUTING = frozenset(("Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch"))
# What stands in the place of a name where something could not be written, which was noted.
_MISSING = ""


class Region:
    """What runs together, and the nodes that it becomes.

    Args:
        writer: collects what is stored.
        places: the contexts of its operations, the outermost first.
        outer: the region around it; None for the whole graph.
        nodes: where its nodes go; by default to a list of its own.

    Attributes:
        nodes: the NodeProtos, in order.
        names: what tensors are called that are computed here.
        problems: what could not be written, in all regions.
    """

    def __init__(
        self,
        writer: Writer,
        places: Sequence[Context | None],
        outer: Region | None = None,
        nodes: list[Any] | None = None,
    ) -> None:
        self._writer = writer
        self._places = [_once(place) for place in places]
        self._outer = outer
        self.nodes: list[Any] = [] if nodes is None else nodes
        self.names: dict[Tensor, str] = {}
        self.problems: list[tuple[Operation, OpError]] = [] if outer is None else outer.problems

    def written(self, tensors: Sequence[Tensor]) -> list[str]:
        """What tensors are called, once what they are computed from is written."""
        self._write_all(tensors)
        return [self._name(tensor) for tensor in tensors]

    def _find(self, tensor: Tensor) -> str | None:
        found = self.names.get(tensor)
        return self._outer._find(tensor) if found is None and self._outer is not None else found

    def _name(self, tensor: Tensor) -> str:
        found = self._find(tensor)
        if found is None:
            raise _irregular(tensor.op)
        return found

    # What is written, in which order

    def _write_all(self, tensors: Sequence[Tensor]) -> None:
        # What is around was written before, as it was built before.
        found = self._reached(tensors)
        with self._writer.writing_to(self.nodes):
            for op in found:
                if any(self._find(t) is None for t in op.outputs):
                    self._writer.enter(op)
                    self._write(op, found)

    def _reached(self, tensors: Iterable[Tensor]) -> list[Operation]:
        """The operations here that tensors are computed from, in the order of their making."""
        found, seen = [], set()
        stack = list(tensors)
        while stack:
            tensor = stack.pop()
            op = tensor.op
            if op in seen or self._find(tensor) is not None:
                continue
            seen.add(op)
            if _once(op.context) in self._places:
                found.append(op)
            stack += taken_by(op)
            if op.closed_by is not None:
                stack += op.closed_by.inputs
        return sorted(found, key=lambda op: op.id)

    def _write(self, op: Operation, others: Sequence[Operation]) -> None:
        try:
            if op.type == "Merge":
                self._write_branches(op, others)
            elif op.type == "Exit":
                self._write_loop(op, others)
            else:
                self._write_plain(op)
        except UnimplementedError as error:
            self.problems.append((op, error))
        except OpError as error:
            raise error.about(op) from None
        for tensor in op.outputs:
            self.names.setdefault(tensor, _MISSING)

    def _write_plain(self, op: Operation) -> None:
        w = self._writer
        if op.op_def.stands_for is not None:
            results = zip(op.outputs, taken_by(op), strict=True)
            self.names.update((output, self._name(result)) for output, result in results)
            return
        known = [w.values.of(t) for t in op.outputs]
        if op.outputs and all(value is not None for value in known):
            for tensor, value in zip(op.outputs, known, strict=True):
                self._keep(tensor, value)
            return
        inputs = [self._name(t) for t in op.inputs]
        if _MISSING in inputs:
            return
        is_constant = op.type == "Enter" and op.attributes["is_constant"]
        if is_constant or op.type in ("Switch", "ReadVariable"):
            self.names.update(dict.fromkeys(op.outputs, inputs[0]))
            return
        if op.op_def.is_router:
            raise _irregular(op)
        found = _ruled(w, op, inputs)
        labels = found if isinstance(found, list) else [found]
        for tensor, label in zip(op.outputs, labels, strict=True):
            self.names.setdefault(tensor, label)

    def _keep(self, tensor: Tensor, value: Any) -> None:
        if tensor.dtype not in NUMBERS:
            raise UnimplementedError(f"a constant of {tensor.dtype.name}")
        label = self._writer.fresh(tensor.op.name)
        self._writer.stored[label] = value
        self.names.setdefault(tensor, label)

    # Branches

    def _write_branches(self, merge: Operation, others: Sequence[Operation]) -> None:
        """An If, for a Merge and those of the same predicate that do not take what it gives."""
        w = self._writer
        pred = _predicate(merge)
        merges = [
            op
            for op in others
            if op.type == "Merge"
            and op.closed_by is None
            and all(t.op.id < merge.id for t in op.inputs)
            and _predicate(op) is pred
        ]
        # Which of its inputs a Merge gave on is seldom asked for.
        outputs = [t for op in merges for t in op.outputs if not t.index or t.consumers()]
        graphs = {}
        for side, key in ((1, "then_branch"), (0, "else_branch")):
            inner = Region(w, [Branch(pred, side, merge.context)], self)
            ports = {op: _port(op, side) for op in merges}
            inner.written([op.inputs[port] for op, port in ports.items()])
            names = [
                w.constant(ports[t.op], dtypes.int32)
                if t.index
                else inner._name(t.op.inputs[ports[t.op]])
                for t in outputs
            ]
            infos = [(name, *_spec(t)) for name, t in zip(names, outputs, strict=True)]
            graphs[key] = inner._graph(key, [], infos)
        predicate = self.written([pred])
        if _MISSING in predicate or None in graphs.values():
            return
        found = w.node("If", predicate, len(outputs), **graphs)
        found = found if isinstance(found, list) else [found]
        self.names.update(zip(outputs, found, strict=True))

    # Loops

    def _write_loop(self, exit: Operation, others: Sequence[Operation]) -> None:
        """A Loop, for an Exit and the others of the same loop."""
        w = self._writer
        frame = _frame(exit)
        exits = [op for op in others if op.type == "Exit" and _frame(op) is frame]
        outcome = _outcome(exit)
        variables, around = _inside(frame, exits)
        # Of a loop that gradients were taken of, some of this was built after the loop.
        self._write_all(around)
        values = [merge.outputs[0] for merge in variables]
        holds = outcome.op.inputs[0]
        firsts = self.written([merge.inputs[0].op.inputs[0] for merge in variables])
        before = Region(w, [frame], self, self.nodes)
        before.names.update(zip(values, firsts, strict=True))
        [begins] = before.written([holds])

        body = Region(w, [frame, Branch(outcome, 1, frame)], self)
        names = [w.fresh(merge.name) for merge in variables]
        goes_on, iteration = w.fresh(outcome.op.name), w.fresh(f"{frame.name}/iteration")
        body.names.update(zip(values, names, strict=True))
        body.names[outcome] = goes_on
        following = body.written([_next(merge) for merge in variables])
        after = Region(w, [frame], self, body.nodes)
        after.names.update(zip(values, following, strict=True))
        again = after.written([holds])

        specs = [_spec(value) for value in values]
        truth, count = (dtypes.bool, ()), (dtypes.int64, ())
        given = zip((iteration, goes_on, *names), (count, truth, *specs), strict=True)
        taken = zip((*again, *following), (truth, *specs), strict=True)
        graph = body._graph("body", [(n, *s) for n, s in given], [(n, *s) for n, s in taken])
        if graph is None or _MISSING in (begins, *firsts):
            return
        found = w.node("Loop", [_NO_LIMIT, begins, *firsts], len(values), body=graph)
        found = found if isinstance(found, list) else [found]
        ends = dict(zip(variables, found, strict=True))
        for op in exits:
            self.names[op.outputs[0]] = ends[op.inputs[0].op.inputs[0].op]

    def _graph(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """The region as a GraphProto that a node holds; None if a part could not be written."""
        if any(label == _MISSING for label, *_ in outputs):
            return None
        w, helper = self._writer, onnx("helper")
        with w.writing_to(self.nodes):
            # What is given on belongs to the graph itself.
            given = [w.node("Identity", [label]) for label, *_ in outputs]
        info = helper.make_tensor_value_info
        return helper.make_graph(
            used_nodes(self.nodes, set(given)),
            w.fresh(name),
            [info(label, NUMBERS[dtype], dims) for label, dtype, dims in inputs],
            [
                info(label, NUMBERS[dtype], dims)
                for label, (_, dtype, dims) in zip(given, outputs, strict=True)
            ],
        )


_NO_LIMIT = ""


def used_nodes(nodes: Sequence[Any], wanted: set[str]) -> list[Any]:
    """The nodes that lead to what is wanted, whose names are added to it."""
    kept = []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(names_used([node]))
    return kept[::-1]


def names_used(nodes: Iterable[Any]) -> set[str]:
    """The names that nodes take, and the graphs that they hold."""
    found: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        found.update(name for name in node.input if name)
        for attribute in node.attribute:
            stack += attribute.g.node
    return found


def has_rule(op: Operation) -> bool:
    """Whether there is a rule for an operation's type, or what it is with an axis that is known."""
    fixed = op.op_def.fixed_axis
    return op.type in RULES or (fixed is not None and fixed[0].type in RULES)


def _ruled(w: Writer, op: Operation, inputs: Sequence[str]) -> Any:
    """What an operation's rule makes of it."""
    if op.op_def.fixed_axis is None:
        rule = RULES["Gather"] if op.type == "VariableGather" else RULES.get(op.type, _passed_on)
        return rule(w, op, *inputs)
    fixed, name = op.op_def.fixed_axis
    *rest, axes = inputs
    known = w.values.of(op.inputs[-1])
    if known is not None:
        value = tuple(known.tolist()) if known.ndim else known.item()
        attributes = {**op.attributes, name: value}
        view = FixedAxes(fixed.type, op.name, op.inputs[:-1], op.outputs, attributes)
        return RULES[fixed.type](w, view, *rest)
    if fixed.type not in RUN_AXES:
        raise UnimplementedError(
            f"{fixed.type} along what only the run knows, {op.inputs[-1].name}"
        )
    return RUN_AXES[fixed.type](w, op, *rest, w.reshape(w.long(axes), [-1]))


def _passed_on(w: Writer, op: Operation, x: str) -> str:
    found: str = w.node("Identity", [x])
    return found


def _spec(tensor: Tensor) -> tuple[Any, Any]:
    """The dtype and the dimensions of what stands for a tensor; None where they are not known."""
    if tensor.dtype is dtypes.variant:
        elements = Elements.of(tensor)
        dims = elements.shape.dims
        return elements.dtype, None if dims is None else (None, *dims)
    if tensor.dtype not in NUMBERS:
        raise UnimplementedError(f"{tensor.name!r} is of the dtype {tensor.dtype.name}")
    return tensor.dtype, tensor.shape.dims


def _irregular(op: Operation) -> UnimplementedError:
    return UnimplementedError(
        f"{op.type} {op.name!r} is part of no branch or loop "
        "such as fb.cond and fb.while_loop build"
    )


def _predicate(merge: Operation) -> Tensor:
    """What decides which input a Merge gives on."""
    if merge.closed_by is None and len(merge.inputs) == 2:
        sides = {_side(context_of(t), merge.context) for t in merge.inputs}
        preds = {side.pred for side in sides if side is not None}
        if None not in sides and len(sides) == 2 and len(preds) == 1:
            return preds.pop()
    raise _irregular(merge)


def _side(context: Context | None, outer: Context | None) -> Branch | None:
    """The branch right within a context that another one is; it may be entered more than once."""
    sides = []
    while isinstance(context, Branch) and context != outer:
        sides.append(context)
        context = context.outer
    is_one = context == outer and len({(side.pred, side.side) for side in sides}) == 1
    return sides[-1] if is_one else None


def _once(context: Context | None) -> Context | None:
    """The same place in the control flow, where each side of a branch is entered once."""
    if not isinstance(context, Branch):
        return context
    outer = _once(context.outer)
    if isinstance(outer, Branch) and (outer.pred, outer.side) == (context.pred, context.side):
        return outer
    return Branch(context.pred, context.side, outer)


def _port(merge: Operation, side: int) -> int:
    [port] = [i for i, t in enumerate(merge.inputs) if context_of(t).side == side]  # type: ignore[union-attr]
    return port


def _frame(exit: Operation) -> Frame:
    frame = frame_of(context_of(exit.inputs[0]))
    assert frame is not None
    return frame


def _outcome(exit: Operation) -> Tensor:
    """What says whether there is another iteration."""
    switch = exit.inputs[0].op
    if switch.type != "Switch" or switch.inputs[1].op.type != "LoopCond":
        raise _irregular(exit)
    return switch.inputs[1]


def _next(merge: Operation) -> Tensor:
    """What a loop's variable is in the next iteration."""
    if merge.closed_by is None:
        raise _irregular(merge)
    return merge.closed_by.inputs[0]


def _inside(frame: Frame, exits: Iterable[Operation]) -> tuple[list[Operation], list[Tensor]]:
    """The Merges of a loop that its Exits depend on, and what is taken from outside for that."""
    found, around, seen = [], [], set()
    stack = [t for op in exits for t in op.inputs]
    while stack:
        tensor = stack.pop()
        op = tensor.op
        if op in seen:
            continue
        if not is_within(op.context, frame):
            around.append(tensor)
            continue
        seen.add(op)
        stack += taken_by(op)
        if op.closed_by is not None:
            stack += op.closed_by.inputs
            if op.context is frame:
                found.append(op)
    return sorted(found, key=lambda op: op.id), around
