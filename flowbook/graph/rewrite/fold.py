"""Constant folding: what constants alone determine is computed once, before the first run.

An error is left to the run, where it belongs; results above a megabyte are not kept, as they cost
more memory than computing them again costs time. Nothing stateful or random is ever folded.

It has a budget, as nobody asked for it and no timeout ends it: what costs more is left to the run,
and so is what is not Flowbook's own, of which nobody knows how long it takes, or what it does.

It computes on the CPU, by the kernels that a run would take there, and keeps views as the views
that these would see: a value does not depend, to the bit, on whether it was folded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from flowbook.graph.definition.widened import widened
from flowbook.graph.model.registry import asked_of, kernel_for
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.rewrite.subgraph import Node, Subgraph

LARGEST = 1 << 20

# What is computed before a run in all, in floating-point operations: a tenth of a second's.
MOST = 50_000_000

# What it costs to move or look at an element, in floating-point operations.
_PER_ELEMENT = 10


def fold(graph: Subgraph) -> None:
    """Replace nodes whose inputs are constants by their values."""
    constants = graph.constants
    if not constants:
        return
    kept: list[Node] = []
    folded: dict[Node, tuple[Node, ...]] = {}
    left = MOST
    with np.errstate(all="ignore"):
        for node in graph.new:
            inputs = node.inputs
            # Most nodes are told by their first input.
            if inputs and inputs[0] in constants and _is_foldable(node, constants, folded):
                given = [constants[v] for v in inputs]
                cost = _cost(node, given)
                outputs = None
                if cost <= left:
                    left -= cost
                    outputs = _evaluate(node, given)
                if outputs is not None:
                    constants.update(zip(node.outputs, outputs, strict=True))
                    folded[node] = ()
                    graph.went[node.operation] = "computed before the run: its inputs are constants"
                    continue
            kept.append(node)
    if folded:
        graph.replace(kept, {}, folded)


def _is_foldable(
    node: Node, constants: Mapping[int, Any], folded: dict[Node, tuple[Node, ...]]
) -> bool:
    return (
        all(v in constants for v in node.inputs)
        and all(n in folded for n in (*node.after, *node.behind))
        and node.op_def.is_repeatable
        and not node.op_def.is_router
        and kernel_for(node.op_def, "cpu") is not None
    )


def _cost(node: Node, inputs: list[Any]) -> int:
    """What computing a node costs, in floating-point operations."""
    operation = node.operation
    flops = operation.op_def.cost(operation) if operation.op_def.cost is not None else 0
    sizes: list[int] = [v.size for v in inputs]
    sizes += [t.shape.size or 0 for t in operation.outputs]
    return flops + _PER_ELEMENT * sum(sizes)


def _evaluate(node: Node, inputs: list[Any]) -> list[np.ndarray[Any, Any]] | None:
    """The outputs, read-only; None where folding is not worth it or fails."""
    operation = node.operation
    asked = asked_of(operation)
    kernel = kernel_for(node.op_def, "cpu", asked if operation.op_def is node.op_def else None)
    assert kernel is not None
    tensors = node.operation.outputs
    if any((t.shape.size or 0) * t.dtype.size > LARGEST for t in tensors):
        return None
    attributes = {k: node.attributes[k] for k in node.op_def.kernel_attributes(kernel)}
    try:
        compute = widened(node.op_def, asked.dtypes, operation.dtypes, kernel)
        found = compute(np, *inputs, **attributes)
    except Exception:
        return None
    results = []
    outputs = (found,) if node.op_def.is_single else found
    if not isinstance(outputs, list | tuple) or len(outputs) != len(tensors):
        return None
    for value, tensor in zip(outputs, tensors, strict=True):
        if not _fits(value, tensor) or value.nbytes > LARGEST:
            return None
        # A part of a constant stays one: in another order of memory sums are rounded otherwise.
        is_part = any(np.may_share_memory(value, i) for i in inputs)
        kept = np.asarray(value).view() if is_part else np.array(value)
        kept.flags.writeable = False
        results.append(kept)
    return results


def _fits(value: Any, tensor: Tensor) -> bool:
    """Whether a kernel gave what its definition declares; if not, the run says so."""
    return (
        isinstance(value, np.ndarray | np.generic)
        and value.dtype == tensor.dtype.numpy
        and tensor.shape.is_compatible_with(value.shape)
    )
