"""What is fetched: any nesting of lists, tuples, dicts, namedtuples, dataclasses and attrs classes.

`flatten` gives the leaves in order, and a function that rebuilds the structure from their values.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from flowbook.graph.building.graph import Graph, mixed_graphs
from flowbook.graph.model.dtypes import resource, variant
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices, IndexedSlicesValue
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor, SparseTensorValue
from flowbook.graph.ops.state.variables import Variable

Rebuild = Callable[[Sequence[Any]], Any]

# What is no structure; nearly all that is fetched.
_LEAVES = (Tensor, Operation, Variable, str)


class Flat(NamedTuple):
    """Fetches taken apart.

    Attributes:
        tensors: the tensors to fetch.
        targets: the operations to run.
        rebuild: makes the result from the values of `tensors`.
    """

    tensors: list[Tensor]
    targets: list[Operation]
    rebuild: Rebuild


def flatten(graph: Graph, fetches: Any) -> Flat:
    """Take fetches apart.

    Raises:
        InvalidTypeError: if something in them cannot be fetched.
        NotFoundError: if a name is not in the graph.
        InvalidArgumentError: if something belongs to another graph.
    """
    tensors: list[Tensor] = []
    targets: list[Operation] = []
    try:
        rebuild = _flatten(graph, fetches, tensors, targets, fetches)
    except RecursionError:
        raise InvalidArgumentError("what is fetched contains itself") from None
    return Flat(tensors, targets, rebuild)


def graph_of(fetches: Any) -> Graph | None:
    """The graph of the first of them that is not a name; None if all are names."""
    try:
        return _graph_of(fetches)
    except RecursionError:
        return None  # Who takes it apart says that it contains itself.


def _graph_of(fetches: Any) -> Graph | None:
    if isinstance(fetches, Mapping):
        fetches = list(fetches.values())
    if isinstance(fetches, list | tuple):
        return next((found for f in fetches if (found := _graph_of(f)) is not None), None)
    return getattr(fetches, "graph", None)


def _flatten(
    graph: Graph, item: Any, tensors: list[Tensor], targets: list[Operation], whole: Any
) -> Rebuild:
    if isinstance(item, _LEAVES):
        return _leaf(graph, item, tensors, targets, whole)
    return _flatten_nested(graph, item, tensors, targets, whole)


def _flatten_nested(
    graph: Graph, item: Any, tensors: list[Tensor], targets: list[Operation], whole: Any
) -> Rebuild:
    def inner(items: Any) -> list[Rebuild]:
        return [_flatten(graph, i, tensors, targets, whole) for i in items]

    if isinstance(item, list):
        return _rebuilding(list, inner(item))
    if isinstance(item, tuple):
        if hasattr(item, "_fields"):
            kind: Any = type(item)
            return _rebuilding(lambda values: kind(*values), inner(item))
        return _rebuilding(tuple, inner(item))
    if isinstance(item, Mapping):
        keys = list(item)
        return _rebuilding(lambda values: _mapping(item, keys, values), inner(item.values()))
    if isinstance(item, IndexedSlices):
        rows = (item.values, item.indices)
        parts = rows if item.dense_shape is None else (*rows, item.dense_shape)
        return _rebuilding(lambda values: IndexedSlicesValue(*values), inner(parts))
    if isinstance(item, SparseTensor):
        parts = (item.indices, item.values, item.dense_shape)
        return _rebuilding(lambda values: SparseTensorValue(*values), inner(parts))
    names = _field_names(item)
    if names is not None:
        return _rebuilding(
            lambda values: _instance(item, names, values),
            inner(getattr(item, name) for name in names),
        )
    return _leaf(graph, item, tensors, targets, whole)


def _leaf(
    graph: Graph, item: Any, tensors: list[Tensor], targets: list[Operation], whole: Any
) -> Rebuild:
    leaf = fetchable(graph, item, whole)
    if isinstance(leaf, Operation):
        targets.append(leaf)
        return lambda values: None
    place = len(tensors)
    tensors.append(leaf)
    made = leaf.op.op_def.fetched_as
    return (lambda values: values[place]) if made is None else lambda values: made(values[place])


def _rebuilding(kind: Callable[[list[Any]], Any], parts: list[Rebuild]) -> Rebuild:
    return lambda values: kind([part(values) for part in parts])


def _mapping(item: Mapping[Any, Any], keys: list[Any], values: list[Any]) -> Any:
    pairs = zip(keys, values, strict=True)
    if type(item) is dict:
        return dict(pairs)
    try:
        return type(item)(pairs)  # type: ignore[call-arg]
    except TypeError:
        return dict(pairs)


def _field_names(item: Any) -> list[str] | None:
    """The fields of an instance of a dataclass or of an attrs class; None of anything else."""
    if isinstance(item, type):
        return None
    if dataclasses.is_dataclass(item):
        return [field.name for field in dataclasses.fields(item)]
    attributes = getattr(type(item), "__attrs_attrs__", None)
    return None if attributes is None else [attribute.name for attribute in attributes]


def _instance(item: Any, names: list[str], values: list[Any]) -> Any:
    """A copy with other values: fields that `__init__` does not take are set too."""
    made = copy.copy(item)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


def fetchable(graph: Graph, item: Any, whole: Any) -> Tensor | Operation:
    """The tensor or operation that one leaf stands for."""
    if isinstance(item, str):
        return _named(graph, item)
    if isinstance(item, Variable):
        found: Tensor | Operation = item.value
    elif isinstance(item, Tensor | Operation):
        found = item
    else:
        inside = "" if item is whole else f" (in {whole!r})"
        if item is None:
            raise InvalidTypeError(
                f"None cannot be fetched{inside}",
                hint="is it what a function gave that returns nothing, or a gradient of what the "
                "loss does not depend on?",
            )
        raise InvalidTypeError(
            f"{item!r} of type {type(item).__name__} cannot be fetched{inside}",
            hint="fetch tensors, operations, variables or their names, sparse tensors, or lists, "
            "tuples, dicts, namedtuples, dataclasses and attrs classes of them",
        )
    if found.graph is not graph:
        raise mixed_graphs([(found.name, found.graph), ("this session", graph)])
    return _value_of(found)


def _named(graph: Graph, name: str) -> Tensor | Operation:
    if ":" in name:
        return _value_of(graph.get_tensor_by_name(name))
    return graph.get_operation_by_name(name)


def _value_of(item: Tensor | Operation) -> Tensor | Operation:
    """A handle stands for its variable, whose value is what can be fetched."""
    if isinstance(item, Tensor) and item.dtype is resource:
        variable = item.graph.variable_of(item.op)
        if variable is None:
            raise InvalidArgumentError(f"{item.name} is a handle and has no value to fetch")
        value: Tensor = variable.value
        return value
    if isinstance(item, Tensor) and item.dtype is variant:
        raise InvalidArgumentError(
            f"{item.name} is of the dtype that only loops and branches hand on: it has no value "
            "that can be fetched",
            hint="array.stack() and array.read(index) are what can be fetched of a TensorArray",
        )
    return item
