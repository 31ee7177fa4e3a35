"""Values of tensors that the graph alone determines, as translations need them.

Exporters compute shapes, axes and sizes by operations on shapes and constants. What comes out of
those decides which operations a translation builds, so it is computed here, once, with the
operations' own kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.widened import widened
from flowbook.graph.model.dtypes import variant
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor

Array = np.ndarray[Any, Any]

# Larger arrays are data, which decide nothing.
LARGEST = 1 << 16

# Their outputs may be of any size, whatever their inputs' sizes are.
_GROWING = ("BroadcastTo", "Fill", "LinSpace", "OneHot", "Pad", "Range", "Repeat", "Tile")


class Values:
    """What is known of tensors' values before a run; each operation is computed at most once."""

    def __init__(self) -> None:
        self._found: dict[Operation, tuple[Array | None, ...]] = {}
        self._assumed: dict[Tensor, Array] = {}
        self._inputs: dict[Operation, str] = {}

    def add_input(self, name: str, placeholder: Tensor) -> None:
        """Remember a placeholder by its input's name in the model."""
        self._inputs[placeholder.op] = name

    def determining(self, tensor: Tensor) -> list[str]:
        """The names of the inputs that a tensor's value is computed from."""
        found, seen, stack = set(), set(), [tensor.op]
        while stack:
            op = stack.pop()
            if op in seen:
                continue
            seen.add(op)
            if op in self._inputs:
                found.add(self._inputs[op])
            stack.extend(t.op for t in op.inputs)
        return sorted(found)

    def shaping(self, tensor: Tensor) -> list[str]:
        """Those of the inputs that can hold shapes, axes or conditions: whole numbers, truths."""
        kinds = {name: op.outputs[0].dtype for op, name in self._inputs.items()}
        return [
            name
            for name in self.determining(tensor)
            if kinds[name].is_integer or kinds[name].name == "bool"
        ]

    def assume(self, tensor: Tensor, value: Array) -> None:
        """Let a variable's read count as its initial value where that decides what is built."""
        self._assumed[tensor] = value

    def deciding(self, tensor: Tensor) -> Array | None:
        """The value to build by: the tensor's, or what it is assumed to be."""
        return self._assumed[tensor] if tensor in self._assumed else self.of(tensor)

    def of(self, tensor: Tensor) -> Array | None:
        """The tensor's value, or None if only a run knows it."""
        stack = [tensor.op]
        while stack:
            op = stack[-1]
            if op in self._found:
                stack.pop()
                continue
            waiting = [t.op for t in op.inputs if t.op not in self._found]
            if waiting and op.type not in ("Shape", "Size", "Rank"):
                stack += waiting
                continue
            self._found[op] = self._computed(op)
            stack.pop()
        return self._found[tensor.op][tensor.index]

    def _computed(self, op: Operation) -> tuple[Array | None, ...]:
        unknown: tuple[Array | None, ...] = (None,) * len(op.outputs)
        if op.type == "Const":
            return (op.attributes["value"],)
        if op.op_def.routes:
            return self._routed(op)
        shape = op.inputs[0].shape if op.inputs else None
        if op.type in ("Shape", "Size", "Rank") and shape is not None:
            return (_of_shape(op, shape),)
        kernel = op.op_def.kernel
        if (
            not op.op_def.is_pure
            or op.op_def.is_async
            or op.control_inputs
            or kernel is None
            or not op.inputs
            or any(t.dtype is variant for t in op.outputs)
            or any((t.shape.size or 0) > LARGEST for t in (*op.inputs, *op.outputs))
            or (op.type in _GROWING and op.outputs[0].shape.size is None)
        ):
            return unknown
        values = [self._found[t.op][t.index] for t in op.inputs]
        if any(value is None or value.size > LARGEST for value in values):
            return unknown
        attributes = {k: op.attributes[k] for k in op.op_def.kernel_attributes(kernel)}
        try:
            with np.errstate(all="ignore"):
                taken = [t.dtype for t in op.inputs]
                found = widened(op.op_def, taken, op.dtypes, kernel)(np, *values, **attributes)
        except Exception:
            return unknown  # The run says what is wrong.
        declared = op.op_def.outputs
        several = len(declared) != 1 or declared[0].is_list
        return tuple(np.asarray(v) for v in (found if several else (found,)))

    def _routed(self, op: Operation) -> tuple[Array | None, ...]:
        """What is taken into a branch or a loop stays what it is, but for a loop's variables."""
        source = op.inputs[0]
        stays = op.op_def.gives_dead or (op.type == "Enter" and op.attributes["is_constant"])
        return (self._found[source.op][source.index] if stays else None,) * len(op.outputs)


def _of_shape(op: Operation, shape: Any) -> Array | None:
    dtype = op.outputs[0].dtype.numpy
    if shape.dims is None:
        return None
    if op.type == "Rank":
        return np.array(len(shape.dims), dtype)
    if not shape.is_fully_defined:
        return None
    return np.array(shape.dims if op.type == "Shape" else shape.size, dtype)
