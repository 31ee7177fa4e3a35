"""Nested structures of tensors: what branches give and loops carry.

Lists, tuples, named tuples, dicts and dataclasses, in each other, whose leaves are tensors; sparse
tensors, `IndexedSlices` and `TensorArray` count as structures of their parts. Dicts go by sorted
keys.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from flowbook.graph.control_flow.tensor_array import TensorArray
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor


def _sorted(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:
        return list(mapping)


def parts_of(item: Any) -> dict[str, Any] | None:
    """What a structure consists of, by where it stands; None for a leaf."""
    if isinstance(item, SparseTensor):
        return {
            ".indices": item.indices,
            ".values": item.values,
            ".dense_shape": item.dense_shape,
        }
    if isinstance(item, IndexedSlices):
        rows = {".values": item.values, ".indices": item.indices}
        return rows if item.dense_shape is None else {**rows, ".dense_shape": item.dense_shape}
    if isinstance(item, TensorArray):
        return {".flow": item.flow}
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return {f".{name}": part for name, part in zip(item._fields, item, strict=True)}
    if isinstance(item, list | tuple):
        return {f"[{index}]": part for index, part in enumerate(item)}
    if isinstance(item, Mapping):
        return {f"[{key!r}]": item[key] for key in _sorted(item)}
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {f".{field.name}": getattr(item, field.name) for field in dataclasses.fields(item)}
    return None


def leaves(structure: Any) -> list[Any]:
    """The leaves of a structure, in order."""
    return [leaf for _, leaf in paths(structure)]


def paths(structure: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a structure in order, each with the place where it stands, such as `[0].x`."""
    parts = parts_of(structure)
    if parts is None:
        yield where, structure
        return
    for name, part in parts.items():
        yield from paths(part, where + name)


def packed_like(structure: Any, given: Sequence[Any]) -> Any:
    """A structure of the same kind, with other leaves."""
    rest = iter(given)
    made = _packed(structure, lambda leaf: next(rest))
    assert next(rest, None) is None
    return made


def mapped(function: Callable[[Any], Any], structure: Any) -> Any:
    """A structure of the same kind, whose leaves a function gives."""
    return _packed(structure, function)


def _packed(item: Any, leaf: Callable[[Any], Any]) -> Any:
    parts = parts_of(item)
    if parts is None:
        return leaf(item)
    values = [_packed(part, leaf) for part in parts.values()]
    if isinstance(item, SparseTensor | IndexedSlices):
        return type(item)(*values)
    if isinstance(item, TensorArray):
        return item.with_flow(*values)
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return type(item)(*values)
    if isinstance(item, list | tuple):
        return type(item)(values)
    if isinstance(item, Mapping):
        made = dict(zip(_sorted(item), values, strict=True))
        return {key: made[key] for key in item}
    names = [field.name for field in dataclasses.fields(item)]
    return dataclasses.replace(item, **dict(zip(names, values, strict=True)))


def require_same(
    one: Any,
    other: Any,
    what: str,
    what_else: str,
    where: str = "",
    hint: str = "both have to give the same structure",
) -> None:
    """Refuse two structures that differ, but in their leaves.

    Raises:
        InvalidTypeError: if they differ in kind, saying where.
        InvalidArgumentError: if they differ in number, saying where.
    """
    first, second = parts_of(one), parts_of(other)
    place = f" at {where}" if where else ""
    if (first is None) != (second is None) or (first is not None and _kind(one) != _kind(other)):
        raise InvalidTypeError(
            f"{what} gives {_described(one)}{place}, but {what_else} {_described(other)}",
            hint=hint,
        )
    if first is None or second is None:
        return
    if first.keys() != second.keys():
        raise InvalidArgumentError(
            f"{what} gives {_described(one)}{place}, but {what_else} {_described(other)}",
            hint=hint,
        )
    for name in first:
        require_same(first[name], second[name], what, what_else, where + name, hint)


def _kind(item: Any) -> Any:
    """What must be equal of two structures: lists and tuples differ, all dicts are alike.

    Of two arrays, that one is made of the other by writes, or both of a third.
    """
    if isinstance(item, TensorArray):
        return item.lineage
    return dict if isinstance(item, Mapping) else type(item)


def _described(item: Any) -> str:
    parts = parts_of(item)
    if isinstance(item, Tensor):
        return f"the tensor {item.name!r}"
    if isinstance(item, Operation):
        return f"the operation {item.name!r}"
    if isinstance(item, TensorArray):
        return f"the TensorArray {item.lineage.name!r}"
    if item is None:
        return "nothing"
    if parts is None:
        return f"{item!r:.40}"
    if isinstance(item, Mapping):
        return f"a dict with the keys {', '.join(map(repr, _sorted(item)))}"
    article = "an" if type(item).__name__[0] in "AEIOU" else "a"
    return f"{article} {type(item).__name__} of {len(parts)}"
