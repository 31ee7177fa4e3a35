"""Inference rules that several families share."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from flowbook.graph.model.errors import OpError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import SCALAR, UNKNOWN, Shape, broadcast
from flowbook.graph.model.tensor import Tensor


def same_as_input(x: Tensor, *_: Any, **__: Any) -> Shape:
    """The shape of the first input."""
    return x.shape


def broadcast_inputs(*inputs: Tensor, **_: Any) -> Shape:
    """What NumPy's broadcasting makes of the inputs."""
    return reduce(broadcast, [t.shape for t in inputs])


def scalar(*_: Any, **__: Any) -> Shape:
    """A scalar."""
    return SCALAR


def nothing(*_: Any, **__: Any) -> list[Shape]:
    """No outputs."""
    return []


# Arithmetic of shapes: what is computed at construction where all of its inputs are known.
# fmt: off
_FOLLOWED = frozenset(
    (
        "Add",
        "BroadcastArgs",
        "Cast",
        "Concat",
        "ExpandDims",
        "FloorDiv",
        "Gather",
        "Identity",
        "Maximum",
        "Minimum",
        "Mod",
        "Mul",
        "Neg",
        "Prod",
        "Range",
        "Reshape",
        "Slice",
        "Squeeze",
        "Stack",
        "StridedSlice",
        "Sub",
        "Sum",
    )
)
_MOST_ELEMENTS = 64
_DEPTH = 8
_MOST_DIMENSIONS = 64  # NumPy's: no array has a shape with more.


def constant_value(tensor: Tensor) -> np.ndarray[Any, Any] | None:
    """A tensor's value where the graph alone determines it: constants, and arithmetic of shapes.

    A feed may still replace it in a run; so inference uses it for shapes only, which every feed
    is checked against.
    """
    op = tensor.op
    if op.type == "Const":
        value: np.ndarray[Any, Any] = op.attributes["value"]
        return value
    return _computed(tensor, _DEPTH, {})


def determining(tensor: Tensor) -> list[Tensor]:
    """A tensor whose value the graph determines, and all others that the value was followed to."""
    found = {tensor: None}
    stack = [tensor]
    while stack:
        op = stack.pop().op
        # Of others the shape alone counts, which a feed cannot change.
        for source in op.inputs if op.type in _FOLLOWED else ():
            # Where a part was taken, the rest may be what only the run knows.
            if source not in found and any(d is not None for d in known_elements(source) or ()):
                found[source] = None
                stack.append(source)
    return list(found)


# What was found, by tensor and depth: one tensor may lie on very many paths.
_Known = dict[tuple[Tensor, int], Any]


def _computed(tensor: Tensor, depth: int, known: _Known) -> np.ndarray[Any, Any] | None:
    op = tensor.op
    shape = op.inputs[0].shape if op.inputs else UNKNOWN
    match op.type:
        case "Const":
            value: np.ndarray[Any, Any] = op.attributes["value"]
            return value
        case "Shape" if shape.is_fully_defined:
            return np.array(shape.dims, dtype=tensor.dtype.numpy)
        case "Size" if shape.size is not None:
            return np.array(shape.size, dtype=tensor.dtype.numpy)
        case "Rank" if shape.dims is not None:
            return np.array(len(shape.dims), dtype=tensor.dtype.numpy)
        case "StridedSlice" if depth and len(op.inputs) == 1:
            return _element(op, depth, known)
    if not depth or op.type not in _FOLLOWED:
        return None
    key = (tensor, depth)
    if key not in known:
        known[key] = _folded(op, depth, known)
    return known[key]  # type: ignore[no-any-return]


def _element(op: Operation, depth: int, known: _Known) -> np.ndarray[Any, Any] | None:
    """A part of a shape, also of one that is known in that part only."""
    dims = _dimensions(op.inputs[0], depth - 1, known)
    [part, *rest] = op.attributes["key"]
    if dims is None or rest or type(part) is not int or None in dims[part : part + 1 or None]:
        return _folded(op, depth, known)
    return np.array(dims[part], dtype=op.outputs[0].dtype.numpy)


def _folded(op: Operation, depth: int, known: _Known) -> np.ndarray[Any, Any] | None:
    """The value of an integer operation on known values."""
    [output] = op.outputs
    if not output.dtype.is_integer or not (output.shape.size or 0) <= _MOST_ELEMENTS:
        return None
    values = []
    for source in op.inputs:
        if not source.dtype.is_integer or (source.shape.size or 0) > _MOST_ELEMENTS:
            return None
        value = _computed(source, depth - 1, known)
        if value is None:
            return None
        values.append(value)
    kernel = op.op_def.kernel
    assert kernel is not None
    attributes = {n: op.attributes[n] for n in op.op_def.kernel_attributes(kernel)}
    try:
        return np.asarray(kernel(np, *values, **attributes))
    except OpError:
        return None  # The run says what is wrong.


def shape_from(tensor: Tensor) -> Shape:
    """What is known of the shape that an integer vector holds; -1 means unknown."""
    dims = _dimensions(tensor, _DEPTH, {})
    if dims is not None:
        return Shape.of(tuple(None if d is None or d < 0 else d for d in dims))
    if tensor.op.type == "Shape":
        return tensor.op.inputs[0].shape
    length = tensor.shape.dims[0] if tensor.shape.dims else None
    return UNKNOWN if length is None or length > _MOST_DIMENSIONS else Shape.of((None,) * length)


def known_elements(tensor: Tensor) -> tuple[int | None, ...] | None:
    """An integer tensor's elements, row after row, None for each that only the run knows.

    None where not even their number is known.
    """
    return _part(tensor, _DEPTH, {})


def _dimensions(tensor: Tensor, depth: int, known: _Known) -> tuple[int | None, ...] | None:
    """The elements of an integer tensor, where something more than their number is known."""
    value = _computed(tensor, depth, known)
    if value is not None:
        return tuple(value.ravel().tolist())
    key = (tensor, -depth)  # `_computed` takes the positive ones.
    if depth and key not in known:
        dims = _dimensions_of(tensor.op, depth, known)
        known[key] = None if dims is None or len(dims) > _MOST_DIMENSIONS else dims
    return known[key] if depth else None


def _dimensions_of(op: Operation, depth: int, known: _Known) -> tuple[int | None, ...] | None:
    """What an operation says of the elements of its output, without being computed."""
    match op.type:
        case "Shape":
            return op.inputs[0].shape.dims
        case "Cast" | "Identity":
            return _dimensions(op.inputs[0], depth - 1, known)
        case "Stack" if any(t.shape.rank == 0 for t in op.inputs):
            items = [_computed(t, depth - 1, known) for t in op.inputs]
            return tuple(None if item is None else int(item) for item in items)
        case "Concat" | "Stack" if op.attributes["axis"] == 0 or op.outputs[0].shape.rank == 1:
            parts = [_part(t, depth - 1, known) for t in op.inputs]
            if all(part is not None for part in parts):
                return tuple(d for part in parts if part is not None for d in part)
        case "StridedSlice" if len(op.inputs) == 1 and len(op.attributes["key"]) == 1:
            dims = _dimensions(op.inputs[0], depth - 1, known)
            [part] = op.attributes["key"]
            if dims is not None and type(part) is tuple:
                return dims[slice(*part[1:])]
    return None


def _part(tensor: Tensor, depth: int, known: _Known) -> tuple[int | None, ...] | None:
    """The elements of a part of a tensor, unknown ones where their number is all that is known."""
    dims = _dimensions(tensor, depth, known)
    count = tensor.shape.size
    if dims is None and count is not None and count <= _MOST_DIMENSIONS:
        return (None,) * count
    return dims


def elementwise(flops: int = 1) -> Any:
    """A cost of so many floating-point operations per element of the first output."""

    def cost(operation: Operation) -> int:
        return flops * (operation.outputs[0].shape.size or 0)

    return cost


def halvings(length: int | None) -> int:
    """How often so many elements are halved until one is left: what finding one of them takes."""
    return max((length or 1) - 1, 0).bit_length()


def no_flops(_: Operation) -> int:
    """The cost of what only moves or names data."""
    return 0


def uncounted(_: Operation) -> int:
    """The cost of what does more than to move data, but nothing that counts as arithmetic."""
    return 0
