"""Regions of a graph as ONNX nodes: the whole, one side of a branch, a loop's body or condition.

A Switch's value is another name for what it takes, and so is that of an Enter that is constant: a
graph inside of an ONNX node sees the names around it. The Merges of a predicate become an If, the
Exits of a loop a Scan or a Loop. A Loop whose number of iterations is not known before has its
condition twice: before it, of what the variables are at first, and at its body's end, of what they
are next.

Each operation is written where it runs, which its context says. What is alive on one side of a
predicate only, and taken on that side of another node, is computed again there: nothing that is
written touches anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.ancestors import taken_by
from flowbook.graph.model.context import Branch, Context
from flowbook.graph.model.errors import OpError, UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.onnx.elements import NUMBERS
from flowbook.onnx.package import onnx
from flowbook.onnx.saving.course import Collected, Course, Elements
from flowbook.onnx.saving.nodes import used_nodes
from flowbook.onnx.saving.rules.choice import ruled
from flowbook.onnx.saving.rules.holding import type_of
from flowbook.onnx.saving.structure import (
    first_value,
    irregular,
    loop_of,
    next_value,
    once,
    port,
    predicate_of,
)
from flowbook.onnx.saving.writer import Writer
from flowbook.onnx.sums import ZERO, Size, Sum

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
        self._places = [once(place) for place in places]
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
            raise irregular(tensor.op)
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
            if once(op.context) in self._places:
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
            raise irregular(op)
        found = ruled(w, op, inputs)
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
        pred = predicate_of(merge)
        merges = [
            op
            for op in others
            if op.type == "Merge"
            and op.closed_by is None
            and all(t.op.id < merge.id for t in op.inputs)
            and predicate_of(op) is pred
        ]
        # Which of its inputs a Merge gave on is seldom asked for.
        outputs = [t for op in merges for t in op.outputs if not t.index or t.consumers()]
        graphs = {}
        for side, key in ((1, "then_branch"), (0, "else_branch")):
            inner = Region(w, [Branch(pred, side, merge.context)], self)
            ports = {op: port(op, side) for op in merges}
            inner.written([op.inputs[port] for op, port in ports.items()])
            names = [
                w.constant(ports[t.op], dtypes.int32)
                if t.index
                else inner._name(t.op.inputs[ports[t.op]])
                for t in outputs
            ]
            kinds = map(type_of, outputs)
            graphs[key] = inner._graph(key, [], list(zip(names, kinds, strict=True)))
        predicate = self.written([pred])
        if _MISSING in predicate or None in graphs.values():
            return
        found = w.nodes_of("If", predicate, len(outputs), **graphs)
        self.names.update(zip(outputs, found, strict=True))

    # Loops

    def _write_loop(self, exit: Operation, others: Sequence[Operation]) -> None:
        """A Scan or a Loop, for an Exit and the others of the same loop."""
        w = self._writer
        frame = loop_of(exit)
        exits = [op for op in others if op.type == "Exit" and loop_of(op) is frame]
        course = Course(w.sums, frame, exits)
        elements = course.elements()
        inside = course.needed([each.read.outputs[0] for each in elements])
        is_scan = bool(elements) and self._stay(inside.variables)
        if not is_scan:
            elements, inside = [], course.needed()
        # Of a loop that gradients were taken of, some of this was built after the loop.
        self._write_all(inside.around)
        body = Region(w, [frame, Branch(course.outcome, 1, frame)], self)
        write = self._scan if is_scan else self._loop
        found = write(course, body, inside.variables, elements)
        if found is None:
            return
        count = len(inside.variables)
        ends = dict(zip(inside.variables, found[:count], strict=True))
        for each, parts in zip(course.collected, found[count:], strict=True):
            ends[each.variable] = self._whole(course, each, parts, is_scan)
        for op in exits:
            self.names[op.outputs[0]] = ends[op.inputs[0].op.inputs[0].op]

    def _stay(self, variables: Iterable[Operation]) -> bool:
        """Whether variables are tensors of one shape in all iterations, as a Scan's have to be."""
        values = [merge.outputs[0] for merge in variables]
        if any(value.dtype is dtypes.variant for value in values):
            return False
        trial = self._writer.trial
        shapes = [
            (trial.of(v), trial.of(next_value(v.op)))
            for v in values
            if not v.shape.is_fully_defined
        ]
        return all(one.is_fully_defined and one == other for one, other in shapes)

    def _loop(
        self, course: Course, body: Region, variables: Sequence[Operation], _: Sequence[Elements]
    ) -> list[str] | None:
        w = self._writer
        values = [merge.outputs[0] for merge in variables]
        firsts = self.written([first_value(merge) for merge in variables])
        names = [w.fresh(merge.name) for merge in variables]
        goes_on, iteration = w.fresh(course.outcome.op.name), w.fresh("iteration")
        body.names.update(zip(values, names, strict=True))
        body.names[course.outcome] = goes_on
        following = body.written([next_value(merge) for merge in variables])
        parts = [each.part for each in course.collected]
        collected = body.written(parts)
        limit, begins, again = _NO_LIMIT, w.constant(np.array(True)), goes_on
        if course.count is not None:
            limit = self._number(course.count)
            if limit == _MISSING:
                return None
        else:
            frame = body._places[0]
            holds = course.outcome.op.inputs
            before = Region(w, [frame], self, self.nodes)
            before.names.update(zip(values, firsts, strict=True))
            [begins] = before.written(holds)
            after = Region(w, [frame], self, body.nodes)
            after.names.update(zip(values, following, strict=True))
            [again] = after.written(holds)
        kinds = [type_of(value) for value in values]
        tensor = onnx("helper").make_tensor_type_proto
        truth, count = (tensor(NUMBERS[dtype], ()) for dtype in (dtypes.bool, dtypes.int64))
        given = zip((iteration, goes_on, *names), (count, truth, *kinds), strict=True)
        left = zip(
            (again, *following, *collected), (truth, *kinds, *map(type_of, parts)), strict=True
        )
        graph = body._graph("body", list(given), list(left))
        if graph is None or _MISSING in (begins, *firsts):
            return None
        return w.nodes_of("Loop", [limit, begins, *firsts], len(values) + len(parts), body=graph)

    def _scan(
        self,
        course: Course,
        body: Region,
        variables: Sequence[Operation],
        elements: Sequence[Elements],
    ) -> list[str] | None:
        w = self._writer
        values = [merge.outputs[0] for merge in variables]
        firsts = self.written([first_value(merge) for merge in variables])
        wholes = [self._part(e) for e in elements]
        reads = [each.read.outputs[0] for each in elements]
        names = [w.fresh(tensor.op.name) for tensor in (*values, *reads)]
        body.names.update(zip((*values, *reads), names, strict=True))
        body.names[course.outcome] = w.constant(np.array(True))
        parts = [each.part for each in course.collected]
        following = body.written([*map(next_value, variables), *parts])
        given = zip(names, map(type_of, (*values, *reads)), strict=True)
        left = zip(following, map(type_of, (*values, *parts)), strict=True)
        graph = body._graph("body", list(given), list(left))
        if graph is None or _MISSING in (*firsts, *wholes):
            return None
        return w.nodes_of(
            "Scan",
            [*firsts, *wholes],
            len(values) + len(parts),
            body=graph,
            num_scan_inputs=len(elements),
            scan_input_directions=[int(each.is_backward) for each in elements],
            scan_output_directions=[int(c.places.is_backward) for c in course.collected] or None,
        )

    def _part(self, elements: Elements) -> str:
        """The part of a tensor that a loop goes through."""
        w = self._writer
        [whole] = self.written([elements.whole])
        bounds = (elements.begin, elements.end)
        if whole == _MISSING or bounds == (0, elements.whole.shape[0]):
            return whole
        found: str = w.node("Slice", [whole, *[w.integers([n]) for n in (*bounds, 0)]])
        return found

    def _whole(self, course: Course, collected: Collected, parts: str, is_scan: bool) -> str:
        """An array with what the iterations gave in its place."""
        w = self._writer
        places, size = collected.places, collected.size
        if places.is_backward and not is_scan:
            bounds = [w.integers([n]) for n in (-1, -_LAST, 0, -1)]
            parts = w.node("Slice", [parts, *bounds])
        count = course.count
        is_begin = not places.is_backward and places.first == ZERO
        is_begin |= count is not None and places.begin(count) == ZERO
        is_end = size is None or (places.is_backward and places.end(ZERO) == size)
        is_end |= count is not None and places.end(count) == size
        if is_begin and is_end:
            return parts
        [array] = self.written([first_value(collected.variable)])
        edge = w.reshape(self._number(places.first), [1])
        if _MISSING in (array, edge):
            return _MISSING
        length = w.node("Shape", [parts], start=0, end=1)
        if places.is_backward:
            end = w.node("Add", [edge, w.integers([1])])
            begin = w.node("Sub", [end, length])
        else:
            begin, end = edge, w.node("Add", [edge, length])
        axis, joined = w.integers([0]), [parts]
        if not is_begin:
            joined.insert(0, w.node("Slice", [array, axis, begin, axis]))
        if not is_end:
            joined.append(w.node("Slice", [array, end, w.integers([_LAST]), axis]))
        found: str = w.node("Concat", joined, axis=0)
        return found

    def _number(self, total: Sum) -> str:
        """A whole number, which is a sum, as an int64 scalar."""
        w = self._writer
        given = [part for part in total if part is not None]
        names = self.written([p.tensor if isinstance(p, Size) else p for p in given])
        if _MISSING in names:
            return _MISSING
        found = w.integer(total.get(None, 0))
        for part, name in zip(given, names, strict=True):
            if isinstance(part, Size):
                name = w.node("Shape", [name], start=part.axis, end=part.axis + 1)
            number = w.reshape(w.long(name), [])
            found = w.node("Add", [found, w.node("Mul", [number, w.integer(total[part])])])
        return found

    def _graph(
        self, name: str, inputs: Sequence[tuple[str, Any]], outputs: Sequence[tuple[str, Any]]
    ) -> Any:
        """The region as a GraphProto that a node holds; None if a part could not be written.

        Args:
            name: of the graph.
            inputs: their names and types.
            outputs: what they are called so far, and their types.
        """
        if any(label == _MISSING for label, _ in outputs):
            return None
        w, helper = self._writer, onnx("helper")
        with w.writing_to(self.nodes):
            # What is given on belongs to the graph itself.
            given = [w.node("Identity", [label]) for label, _ in outputs]
        types = [type for _, type in outputs]
        return helper.make_graph(
            used_nodes(self.nodes, set(given)),
            w.fresh(name),
            [helper.make_value_info(*info) for info in inputs],
            [helper.make_value_info(*info) for info in zip(given, types, strict=True)],
        )


_NO_LIMIT = ""
_LAST = np.iinfo(np.int64).max
