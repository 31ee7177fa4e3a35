"""Whole numbers as sums of what determines them, as far as a graph tells: `3`, `n - 1 - i`.

Two numbers are equal in every run if their sums are equal. A dimension of a tensor is the same
number however often it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.onnx.values import Values


class Size(NamedTuple):
    """A dimension of a tensor that only the run knows."""

    tensor: Tensor
    axis: int


# How often each scalar or dimension is taken; None stands for one. Nothing is taken zero times.
Sum = Mapping[Tensor | Size | None, int]

ZERO: Sum = {}
ONE: Sum = {None: 1}

_HANDED_ON = frozenset(("Identity", "Switch"))
# What is further away stands for itself.
_DEEPEST = 32


def added(one: Sum, other: Sum, times: int = 1) -> Sum:
    """A sum and so many times another."""
    found = dict(one)
    for part, count in other.items():
        found[part] = found.get(part, 0) + times * count
    return {part: count for part, count in found.items() if count}


def fixed(total: Sum) -> int | None:
    """The number that a sum always is; None if it depends on something."""
    return total.get(None, 0) if total.keys() <= {None} else None


class Sums:
    """Scalars of a graph as sums; what is taken into a loop or a branch is what it is outside.

    Args:
        values: what is known of tensors' values.
    """

    def __init__(self, values: Values) -> None:
        self._values = values
        self._found: dict[Tensor, Sum] = {}

    def of(self, scalar: Tensor, depth: int = 0) -> Sum:
        """A scalar of whole numbers as a sum; of itself, if nothing more is known."""
        if scalar not in self._found:
            self._found[scalar] = self._taken_apart(scalar, depth)
        return self._found[scalar]

    def size(self, tensor: Tensor, axis: int) -> Sum:
        """A dimension of a tensor, of an axis counted from the front."""
        tensor = outside(tensor)
        known = tensor.shape[axis]
        return {Size(tensor, axis): 1} if known is None else added(ZERO, {None: known})

    def each(self, vector: Tensor, depth: int = 0) -> list[Sum] | None:
        """The elements of a vector as it describes a shape; None if that is not told."""
        known = self._values.of(vector)
        if known is not None:
            return [added(ZERO, {None: int(n)}) for n in known.reshape(-1)]
        op = vector.op
        if depth > _DEEPEST or vector.shape.rank != 1:
            return None
        if op.type == "Shape":
            source = op.inputs[0]
            return [self.size(source, axis) for axis in range(source.shape.rank or 0)]
        if op.type == "Cast" or is_handed_on(op):
            return self.each(op.inputs[0], depth + 1)
        if op.type == "Concat":
            parts = [self.each(part, depth + 1) for part in op.inputs]
            return None if None in parts else [n for part in parts for n in part or ()]
        if op.type == "StridedSlice" and len(op.attributes["key"]) == 1:
            whole, [key] = self.each(op.inputs[0], depth + 1), op.attributes["key"]
            is_known = isinstance(key, tuple) and all(isinstance(n, int | None) for n in key[1:])
            return whole[slice(*key[1:])] if whole is not None and is_known else None
        return None

    def _taken_apart(self, scalar: Tensor, depth: int) -> Sum:
        op = scalar.op
        known = self._values.of(scalar)
        if known is not None:
            return added(ZERO, {None: int(known)})
        if depth > _DEEPEST:
            return {scalar: 1}
        if is_handed_on(op) or (op.type == "Cast" and op.inputs[0].dtype.is_integer):
            return self.of(op.inputs[0], depth + 1)
        if op.type in ("Add", "Sub"):
            one, other = (self.of(t, depth + 1) for t in op.inputs)
            return added(one, other, 1 if op.type == "Add" else -1)
        if op.type == "StridedSlice" and op.inputs[0].op.type == "Shape":
            key, source = op.attributes["key"], op.inputs[0].op.inputs[0]
            if len(key) == 1 and isinstance(key[0], int) and 0 <= key[0] < (source.shape.rank or 0):
                return self.size(source, key[0])
        return {scalar: 1}


def is_handed_on(op: Operation) -> bool:
    """Whether an operation gives what it takes first, perhaps elsewhere."""
    return op.type in _HANDED_ON or (op.type == "Enter" and op.attributes["is_constant"])


def outside(tensor: Tensor) -> Tensor:
    """What a tensor was before it was taken to where it is."""
    while is_handed_on(tensor.op):
        tensor = tensor.op.inputs[0]
    return tensor
