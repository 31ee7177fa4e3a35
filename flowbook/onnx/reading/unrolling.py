"""Loops and scans whose course is known when the model is loaded, one iteration after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import constant
from flowbook.graph.ops.basis.filling import zeros
from flowbook.graph.ops.basis.joining import stack, unstack
from flowbook.onnx.elements import dtype_of
from flowbook.onnx.reading.node import Node

# Builds a graph that a node holds, given what its inputs are; gives what its outputs are.
Build = Callable[[Any, Mapping[str, Tensor]], list[Tensor]]


def unrolled(node: Node, body: Any, build: Build) -> list[Any]:
    """The outputs of a Loop or Scan.

    Raises:
        UnimplementedError: if a condition or a number of iterations is known to the run only.
    """
    return _loop(node, body, build) if node.type == "Loop" else _scan(node, body, build)


def _loop(node: Node, body: Any, build: Build) -> list[Tensor]:
    count = node.number(0)
    runs = node.inputs[1] is None or node.truth(1)
    carried: list[Any] = node.inputs[2:]
    outputs: list[list[Tensor]] = [[] for _ in body.output[1 + len(carried) :]]
    iteration = 0
    names = [info.name for info in body.input]
    while runs and (count is None or iteration < count):
        node.spend(1)
        given = [constant(np.array(iteration, np.int64)), constant(np.array(True)), *carried]
        condition, *found = build(body, dict(zip(names, given, strict=True)))
        carried, parts = found[: len(carried)], found[len(carried) :]
        for collected, part in zip(outputs, parts, strict=True):
            collected.append(part)
        known = node.known(condition)
        if known is None:
            raise UnimplementedError(
                f"{node} goes on as long as a condition holds that only the run knows, "
                "and cannot be unrolled"
            )
        runs = bool(known.reshape(-1)[0])
        iteration += 1
    infos = body.output[1 + len(carried) :]
    return carried + [_stacked(o, i, 0) for o, i in zip(outputs, infos, strict=True)]


class ScanForm:
    """How a Scan goes through its inputs, and lays out its outputs.

    Args:
        node: the Scan.
        scanned: how many inputs it goes through.
        collected: how many outputs are of all iterations.

    Attributes:
        axes: of each such input, along which it goes.
        backward: of each such input, whether it begins at the end.
        out_axes: of each such output, along which its parts lie.
        turned: of each such output, whether its first part is the last.
    """

    def __init__(self, node: Node, scanned: int, collected: int) -> None:
        directions = "scan_input_directions" if node.opset >= 9 else "directions"
        self.axes: list[int] = node.get("scan_input_axes", [0] * scanned)
        self.backward: list[int] = node.get(directions, [0] * scanned)
        self.out_axes: list[int] = node.get("scan_output_axes", [0] * collected)
        self.turned: list[int] = node.get("scan_output_directions", [0] * collected)


def parts_of_scan(node: Node, scan: Callable[[list[Any], list[Any]], list[Tensor]]) -> list[Tensor]:
    """The outputs of a Scan, given what there is of its states and of the inputs it goes through.

    Opset 8 has batches, each of which is gone through by itself.
    """
    scanned = node.need("num_scan_inputs")
    sources: list[Any] = node.inputs[-scanned:]
    if node.opset >= 9:
        return scan(node.inputs[:-scanned], sources)
    lengths, *states = node.inputs[:-scanned]
    if lengths is not None:
        raise node.refuse("sequences of their own lengths")
    size = node.size(sources[0], 0)
    node.spend(size)
    results = [scan([s[i] for s in states], [s[i] for s in sources]) for i in range(size)]
    return [stack(list(parts)) for parts in zip(*results, strict=True)]


def _scan(node: Node, body: Any, build: Build) -> list[Tensor]:
    return parts_of_scan(node, lambda states, sources: _scanned(node, body, build, states, sources))


def _scanned(
    node: Node, body: Any, build: Build, states: list[Any], sources: list[Any]
) -> list[Tensor]:
    collects = len(body.output) - len(states)
    how = ScanForm(node, len(sources), collects)
    parts = []
    for source, axis, turned in zip(sources, how.axes, how.backward, strict=True):
        size = node.dims(source)[axis]
        node.spend(size)
        pieces = unstack(source, size, axis=axis) if size else []
        parts.append(pieces[::-1] if turned else pieces)
    outputs: list[list[Tensor]] = [[] for _ in range(collects)]
    names = [info.name for info in body.input]
    for elements in zip(*parts, strict=True):
        found = build(body, dict(zip(names, [*states, *elements], strict=True)))
        states = found[: len(states)]
        for collected, part in zip(outputs, found[len(states) :], strict=True):
            collected.append(part)
    infos = body.output[len(states) :]
    return states + [
        _stacked(o[::-1] if t else o, i, a)
        for o, i, a, t in zip(outputs, infos, how.out_axes, how.turned, strict=True)
    ]


def _stacked(parts: list[Tensor], info: Any, axis: int) -> Tensor:
    """What the iterations gave, along a new axis."""
    if parts:
        return stack(parts, axis=axis)
    declared = info.type.tensor_type
    dims = [d.dim_value for d in declared.shape.dim]
    return zeros([*dims[:axis], 0, *dims[axis:]], dtype_of(declared.elem_type))
