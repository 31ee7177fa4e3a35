"""Nodes with graphs of their own, whose course is known when the model is loaded: If, Loop, Scan.

There is no control flow in a graph yet; so a branch is chosen, and iterations are built one after
the other.
"""

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
from flowbook.onnx.node import Node

# Builds a graph that a node holds, given what its inputs are; gives what its outputs are.
Build = Callable[[Any, Mapping[str, Tensor]], list[Tensor]]


def unrolled(node: Node, proto: Any, build: Build) -> list[Tensor]:
    """The outputs of an If, Loop or Scan.

    Raises:
        UnimplementedError: if a condition or a number of iterations is known to the run only.
    """
    graphs = {a.name: a.g for a in proto.attribute if a.HasField("g")}
    if node.type == "If":
        return build(graphs["then_branch" if _truth(node, 0) else "else_branch"], {})
    return (_loop if node.type == "Loop" else _scan)(node, graphs["body"], build)


def _truth(node: Node, position: int) -> bool:
    value = node.value(position)
    assert value is not None
    return bool(value.reshape(-1)[0])


def _loop(node: Node, body: Any, build: Build) -> list[Tensor]:
    count = node.number(0)
    runs = node.inputs[1] is None or _truth(node, 1)
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
                f"{node} goes on as long as a condition holds that only the run knows; "
                "there is no control flow yet"
            )
        runs = bool(known.reshape(-1)[0])
        iteration += 1
    infos = body.output[1 + len(carried) :]
    return carried + [_stacked(o, i, 0) for o, i in zip(outputs, infos, strict=True)]


def _scan(node: Node, body: Any, build: Build) -> list[Tensor]:
    scanned = node.need("num_scan_inputs")
    if node.opset >= 9:
        return _scanned(node, body, build, node.inputs[:-scanned], node.inputs[-scanned:])
    # Opset 8 has batches, perhaps with a length for each sequence.
    lengths, *states = node.inputs[:-scanned]
    if lengths is not None:
        raise node.refuse("sequences of their own lengths")
    sources: list[Any] = node.inputs[-scanned:]
    results = [
        _scanned(node, body, build, [s[i] for s in states], [s[i] for s in sources])
        for i in range(node.dims(sources[0])[0])
    ]
    return [stack(list(parts)) for parts in zip(*results, strict=True)]


def _scanned(
    node: Node, body: Any, build: Build, states: list[Any], sources: list[Any]
) -> list[Tensor]:
    scanned = len(sources)
    collects = len(body.output) - len(states)
    axes = node.get("scan_input_axes", [0] * scanned)
    directions = "scan_input_directions" if node.opset >= 9 else "directions"
    backward = node.get(directions, [0] * scanned)
    parts = []
    for source, axis, turned in zip(sources, axes, backward, strict=True):
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
    out_axes = node.get("scan_output_axes", [0] * collects)
    turns = node.get("scan_output_directions", [0] * collects)
    infos = body.output[len(states) :]
    return states + [
        _stacked(o[::-1] if t else o, i, a)
        for o, i, a, t in zip(outputs, infos, out_axes, turns, strict=True)
    ]


def _stacked(parts: list[Tensor], info: Any, axis: int) -> Tensor:
    """What the iterations gave, along a new axis."""
    if parts:
        return stack(parts, axis=axis)
    declared = info.type.tensor_type
    dims = [d.dim_value for d in declared.shape.dim]
    return zeros([*dims[:axis], 0, *dims[axis:]], dtype_of(declared.elem_type))
