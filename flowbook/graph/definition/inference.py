"""Inference rules that several families share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.model.errors import InvalidTypeError, OpError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import SCALAR, UNKNOWN, Shape, broadcast
from flowbook.graph.model.tensor import Tensor

__all__ = ["constant_value"]


def same_as_input(x: Tensor, *_: Any, **__: Any) -> Shape:
    """The shape of the first input."""
    return x.shape


def broadcast_inputs(first: Tensor, *others: Tensor, **_: Any) -> Shape:
    """What NumPy's broadcasting makes of the inputs."""
    shape = first.shape
    for other in others:
        shape = broadcast(shape, other.shape)
    return shape


def scalar(*_: Any, **__: Any) -> Shape:
    """A scalar."""
    return SCALAR


def nothing(*_: Any, **__: Any) -> list[Shape]:
    """No outputs."""
    return []


_MOST_ELEMENTS = 64
_DEPTH = 8
_MOST_DIMENSIONS = 64  # NumPy's: no array has a shape with more.

# What is known of an integer tensor's elements, row after row; None is one that only the run knows.
Elements = tuple[int | None, ...]
# Says it of a tensor; None where not even their number is known.
Known = Callable[[Tensor], Elements | None]


def constant_value(tensor: Tensor) -> np.ndarray[Any, Any] | None:
    """A tensor's value where the graph alone determines it: constants, and arithmetic of shapes.

    A feed may still replace it in a run; so inference uses it for shapes only, which every feed
    is checked against.

    Args:
        tensor: of any dtype and shape.

    Returns:
        A read-only array, or None where only the run knows.

    Raises:
        InvalidTypeError: if it is no tensor.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [None, 784])
    >>> print(fb.constant_value(fb.shape(x)[1] * 2), fb.constant_value(fb.shape(x)))
    1568 None
    """
    if not isinstance(tensor, Tensor):
        raise InvalidTypeError(f"what has a value is a tensor, not {tensor!r:.80}")
    value = _Following().value(tensor, _DEPTH)
    if value is not None:
        value = value.view()
        value.flags.writeable = False
    return value


def determining(tensor: Tensor) -> list[Tensor]:
    """A tensor whose value the graph determines, and all others that the value was followed to."""
    found = {tensor: None}
    stack = [tensor]
    while stack:
        op = stack.pop().op
        # Of others the shape alone counts, which a feed cannot change.
        for source in op.inputs if op.op_def.computes_shapes else ():
            # Where a part was taken, the rest may be what only the run knows.
            if source not in found and any(d is not None for d in known_elements(source) or ()):
                found[source] = None
                stack.append(source)
    return list(found)


def shape_from(tensor: Tensor) -> Shape:
    """What is known of the shape that an integer vector holds; -1 means unknown."""
    dims = known_elements(tensor)
    if dims is None:
        return UNKNOWN
    return Shape.of(tuple(None if d is None or d < 0 else d for d in dims))


def known_elements(tensor: Tensor) -> Elements | None:
    """An integer tensor's elements, row after row, None for each that only the run knows.

    None where not even their number is known.
    """
    return _Following().elements(tensor, _DEPTH)


class _Following:
    """Values that are followed through the graph, each as far back as a depth says.

    What was found is kept by tensor and depth: one tensor may lie on very many paths.
    """

    def __init__(self) -> None:
        self._values: dict[tuple[Tensor, int], np.ndarray[Any, Any] | None] = {}
        self._told: dict[tuple[Tensor, int], Elements | None] = {}

    def value(self, tensor: Tensor, depth: int) -> np.ndarray[Any, Any] | None:
        """A tensor's value, if all of it is known."""
        op = tensor.op
        if op.op_def.is_constant:
            return op.attributes["value"]  # type: ignore[no-any-return]
        key = (tensor, depth)
        if key not in self._values:
            found = self._computed(op, depth) if op.op_def.computes_shapes and depth else None
            self._values[key] = self._complete(tensor, depth) if found is None else found
        return self._values[key]

    def elements(self, tensor: Tensor, depth: int) -> Elements | None:
        """The elements of an integer tensor; see `known_elements`."""
        value = self.value(tensor, depth) if tensor.dtype.is_integer else None
        if value is not None:
            return tuple(value.ravel().tolist())
        told = self._told_by_operation(tensor, depth)
        count = tensor.shape.size
        if told is None and count is not None and count <= _MOST_DIMENSIONS:
            return (None,) * count
        return told

    def _computed(self, op: Operation, depth: int) -> np.ndarray[Any, Any] | None:
        """The value of an integer operation on known values."""
        [output] = op.outputs
        if not output.dtype.is_integer or not (output.shape.size or 0) <= _MOST_ELEMENTS:
            return None
        values = []
        for source in op.inputs:
            if not source.dtype.is_integer or (source.shape.size or 0) > _MOST_ELEMENTS:
                return None
            value = self.value(source, depth - 1)
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

    def _complete(self, tensor: Tensor, depth: int) -> np.ndarray[Any, Any] | None:
        """The value of a tensor of which its operation tells all elements."""
        told = self._told_by_operation(tensor, depth)
        if told is None or None in told or not tensor.shape.is_fully_defined:
            return None
        return np.array(told, tensor.dtype.numpy).reshape(tensor.shape.dims)

    def _told_by_operation(self, tensor: Tensor, depth: int) -> Elements | None:
        """What an operation says of the elements of its output, without being computed."""
        elements = tensor.op.op_def.elements
        if elements is None or not tensor.dtype.is_integer:
            return None
        key = (tensor, depth)
        if key not in self._told:
            told = elements(tensor.op, lambda t: self.elements(t, depth - 1) if depth else None)
            self._told[key] = None if told is None or len(told) > _MOST_DIMENSIONS else told
        return self._told[key]


def elementwise(flops: int = 1) -> Any:
    """A cost of so many floating-point operations per element of the first output."""

    def cost(operation: Operation) -> int:
        return flops * (operation.outputs[0].shape.size or 0)

    return cost


def halvings(length: int | None) -> int:
    """How often so many elements are halved until one is left: what finding one of them takes."""
    return max((length or 1) - 1, 0).bit_length()


def uncounted(_: Operation) -> int:
    """The cost of what does more than to move data, but nothing that counts as arithmetic."""
    return 0
