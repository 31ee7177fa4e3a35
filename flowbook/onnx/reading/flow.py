"""Nodes with graphs of their own as branches and loops: If, Loop, Scan.

A branch that is known when the model is loaded is the only one that is built. Loops are loops,
however often they run; but they are unrolled that carry what is no tensor, or where something can
only be built if what they give is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flowbook.graph.control_flow.cond import cond
from flowbook.graph.control_flow.over_elements import noted
from flowbook.graph.control_flow.tensor_array import TensorArray
from flowbook.graph.control_flow.while_loop import while_loop
from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import constant, convert_to_tensor
from flowbook.graph.ops.basis.permuting import transpose
from flowbook.graph.ops.basis.shaping import reshape, shape_of
from flowbook.graph.ops.math.comparison import logical_and
from flowbook.onnx.elements import declared_shape, dtype_of
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.unrolling import Build, ScanForm, parts_of_scan, unrolled

_LONGEST_ARRAY = 2**31 - 1


class Learnt(Exception):
    """Something was learnt of a loop without which the model has to be built again."""


@dataclass
class Loops:
    """What is known of a model's loops from having built it before.

    Attributes:
        shapes: of the variables of each, by its number, what holds in every iteration.
        dtypes: of what each collects, where the model does not say it.
        unknown: the loops of which these are still to be learnt.
        are_unrolled: whether those are unrolled whose course is known.
        count: how many were built as loops.
    """

    shapes: dict[int, list[Shape]] = field(default_factory=dict)
    dtypes: dict[int, list[DType]] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)
    are_unrolled: bool = False
    count: int = 0

    def enter(self, variables: Sequence[Tensor]) -> tuple[int, list[Shape]]:
        """The number of another loop, and what is known of the shapes of its variables."""
        number = self.count
        self.count += 1
        return number, self.shapes.setdefault(number, [t.shape for t in variables])

    def check(self, number: int, following: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        """See to it that variables have the shapes that they are said to have in a loop.

        Args:
            number: the loop's.
            following: the variables in the next iteration.
            parts: what is collected of one.

        Raises:
            Learnt: if they have others, or it was not known which dtypes are collected.
        """
        if number in self.unknown:
            self.unknown.remove(number)
            self.dtypes[number] = [t.dtype for t in parts]
            raise Learnt
        known = self.shapes[number]
        if all(s.admits(t.shape) for s, t in zip(known, following, strict=True)):
            return
        self.shapes[number] = [s.generalise(t.shape) for s, t in zip(known, following, strict=True)]
        raise Learnt

    def arrays(self, number: int, infos: Sequence[Any], size: Any) -> list[TensorArray]:
        """Arrays of what a loop's iterations give; none while it is still to be learnt what."""
        kinds = [info.type.tensor_type.elem_type for info in infos]
        found = [dtype_of(kind) for kind in kinds] if all(kinds) else self.dtypes.get(number)
        if found is None:
            self.unknown.add(number)
            return []
        is_open = size is None or (isinstance(size, int) and size > _LONGEST_ARRAY)
        return [
            TensorArray(
                dtype,
                0 if is_open else size,
                dynamic_size=is_open,
                # Without any iteration nothing else tells it.
                element_shape=declared_shape(info),
            )
            for dtype, info in zip(found, infos, strict=True)
        ]


def routed(node: Node, proto: Any, build: Build, loops: Loops) -> list[Any]:
    """The outputs of an If, Loop or Scan."""
    graphs = {a.name: a.g for a in proto.attribute if a.HasField("g")}
    if node.type == "If":
        return _branches(node, graphs["then_branch"], graphs["else_branch"], build)
    body = graphs["body"]
    if loops.are_unrolled or not _is_of_tensors(node, body):
        return unrolled(node, body, build)
    return (
        _loop(node, body, build, loops) if node.type == "Loop" else _scan(node, body, build, loops)
    )


def _is_of_tensors(node: Node, *graphs: Any) -> bool:
    """Whether a node takes and gives nothing but tensors, and so do its graphs."""
    infos = [info for graph in graphs for info in graph.output]
    return all(isinstance(value, Tensor | None) for value in node.inputs) and all(
        info.type.WhichOneof("value") in (None, "tensor_type") for info in infos
    )


def _branches(node: Node, then: Any, otherwise: Any, build: Build) -> list[Any]:
    if node.decides(0) or not _is_of_tensors(node, then, otherwise):
        return build(then if node.truth(0) else otherwise, {})
    found: list[Any] = cond(
        _scalar(node.inputs[0]), lambda: build(then, {}), lambda: build(otherwise, {})
    )
    return found


def _scalar(tensor: Tensor) -> Tensor:
    """A single value, which a model may say as a vector of one."""
    return tensor if tensor.shape.rank == 0 else reshape(tensor, [])


def _loop(node: Node, body: Any, build: Build, loops: Loops) -> list[Tensor]:
    limit, begins, *first = node.inputs
    names = [info.name for info in body.input]
    known = None if limit is None else node.known(limit)
    is_counted = limit is not None and _goes_on(body) and (begins is None or node.holds(begins))
    size = None if known is None or not is_counted else max(int(known.reshape(-1)[0]), 0)
    number, shapes = loops.enter(first)
    limit = None if limit is None else _scalar(limit)

    def again(step: Tensor, goes_on: Tensor, *_: Any) -> Tensor:
        if limit is None:
            return goes_on
        return step < limit if is_counted else logical_and(step < limit, goes_on)

    def following(step: Tensor, goes_on: Tensor, values: Any, outputs: Any) -> Any:
        holds = constant(True) if is_counted else goes_on
        given = dict(zip(names, [step, holds, *values], strict=True))
        condition, *found = build(body, given)
        carried, parts = found[: len(first)], found[len(first) :]
        loops.check(number, carried, parts)
        written = noted(outputs, cast(step, dtypes.int32), parts) if parts else []
        return step + 1, goes_on if is_counted else _scalar(condition), carried, written

    begins = constant(True) if begins is None else _scalar(begins)
    arrays = loops.arrays(number, body.output[1 + len(first) :], size)
    variables = (constant(np.array(0, np.int64)), begins, first, arrays)
    invariants = (None, None, shapes, [None] * len(arrays))
    *_, last, outputs = while_loop(again, following, variables, invariants)
    return [*last, *[output.stack() for output in outputs]]


def _goes_on(body: Any) -> bool:
    """Whether a Loop's body leaves its condition as it is."""
    sources = {o: n.input[0] for n in body.node if n.op_type == "Identity" for o in n.output}
    name = body.output[0].name
    while name in sources:
        name = sources.pop(name)
    return bool(name == body.input[1].name)


def _scan(node: Node, body: Any, build: Build, loops: Loops) -> list[Tensor]:
    return parts_of_scan(
        node, lambda states, sources: _scanned(node, body, build, loops, states, sources)
    )


def _scanned(
    node: Node,
    body: Any,
    build: Build,
    loops: Loops,
    first: list[Tensor],
    sources: list[Tensor],
) -> list[Tensor]:
    how = ScanForm(node, len(sources), len(body.output) - len(first))
    names = [info.name for info in body.input]
    fronts = [_moved(node, s, a, 0) for s, a in zip(sources, how.axes, strict=True)]
    size = fronts[0].shape[0]
    length = convert_to_tensor(shape_of(fronts[0])[0] if size is None else size, dtypes.int32)
    elements = [TensorArray(t.dtype, length, clear_after_read=False).unstack(t) for t in fronts]
    number, shapes = loops.enter(first)

    def place(step: Tensor, is_backward: int) -> Tensor:
        return length - 1 - step if is_backward else step

    def following(step: Tensor, values: Any, outputs: Any) -> Any:
        parts = [e.read(place(step, b)) for e, b in zip(elements, how.backward, strict=True)]
        found = build(body, dict(zip(names, [*values, *parts], strict=True)))
        carried, given = found[: len(first)], found[len(first) :]
        loops.check(number, carried, given)
        written = [
            output.write(place(step, turned), part)
            for output, turned, part in zip(outputs, how.turned, given, strict=True)
        ]
        return step + 1, carried, written

    arrays = loops.arrays(number, body.output[len(first) :], length if size is None else size)
    invariants = (None, shapes, [None] * len(arrays))
    _, last, outputs = while_loop(
        lambda step, *_: step < length, following, (0, first, arrays), invariants
    )
    stacks = [output.stack() for output in outputs]
    return [*last, *[_moved(node, s, 0, a) for s, a in zip(stacks, how.out_axes, strict=True)]]


def _moved(node: Node, tensor: Tensor, source: int, target: int) -> Tensor:
    """A tensor with one of its dimensions in another place."""
    if source == target:
        return tensor
    rank = node.rank(tensor)
    source, target = node.axis(source, rank), node.axis(target, rank)
    order = [axis for axis in range(rank) if axis != source]
    order.insert(target, source)
    return transpose(tensor, order)
