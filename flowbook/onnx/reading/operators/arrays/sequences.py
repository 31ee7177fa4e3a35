"""Sequences of tensors and optional values, which exist only while a model is read.

How many elements a sequence has, and whether a value is there, is known when the model is loaded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import NOTHING, Node, TensorSequence
from flowbook.onnx.reading.operators.types import Table


def _at(node: Node, sequence: Any, position: Any) -> Any:
    return sequence.tensors[_place(node, len(sequence.tensors), 1)]


def _place(node: Node, count: int, position: int) -> int:
    place = int(node.number(position))
    if not -count <= place < count:
        raise node.refuse(f"the element {place} of a sequence of {count}")
    return place


def _insert(node: Node, sequence: Any, tensor: Any, position: Any = None) -> Any:
    found = list(sequence.tensors)
    place = len(found) if position is None else int(node.number(2))
    if not -len(found) <= place <= len(found):
        raise node.refuse(f"an insertion at {place} of a sequence of {len(found)}")
    found.insert(place, tensor)
    return TensorSequence(tuple(found))


def _erase(node: Node, sequence: Any, position: Any = None) -> Any:
    found = list(sequence.tensors)
    del found[-1 if position is None else _place(node, len(found), 1)]
    return TensorSequence(tuple(found))


def _split(node: Node, x: Any, split: Any = None) -> Any:
    axis = node.along(x, 0)
    if split is None:
        node.spend(node.size(x, axis))
        parts = fb.split(x, node.size(x, axis), axis)
        if not node.get("keepdims", 1):
            parts = [fb.squeeze(part, axis) for part in parts]
        return TensorSequence(tuple(parts))
    given = node.value(1)
    assert given is not None
    if given.ndim == 0:
        size, each = node.size(x, axis), int(given)
        if each < 1:
            raise node.refuse(f"parts of {each}")
        node.spend(-(-size // each))
        sizes = [min(each, size - start) for start in range(0, size, each)]
    else:
        sizes = [int(s) for s in given]
    return TensorSequence(tuple(fb.split(x, sizes, axis)))


def _concat(node: Node, sequence: Any) -> Any:
    axis = node.need("axis")
    if node.get("new_axis", 0):
        return fb.stack(list(sequence.tensors), axis=axis)
    return fb.concat(list(sequence.tensors), axis)


def _length(node: Node, sequence: Any) -> Any:
    return fb.constant(np.array(len(sequence.tensors), np.int64))


def _has_element(node: Node, value: Any = None) -> Any:
    return fb.constant(value is not None and value is not NOTHING)


def _element(node: Node, value: Any) -> Any:
    if value is NOTHING:
        raise node.refuse("the element of an optional value that is not there")
    return value


TABLE: Table = {
    "ConcatFromSequence": _concat,
    "Optional": lambda node, value=None: NOTHING if value is None else value,
    "OptionalGetElement": _element,
    "OptionalHasElement": _has_element,
    "SequenceAt": _at,
    "SequenceConstruct": lambda node, *tensors: TensorSequence(tensors),
    "SequenceEmpty": lambda node: TensorSequence(()),
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
