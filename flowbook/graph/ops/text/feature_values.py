"""The operation that reads the features of examples that have no steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.inference import uncounted
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.formats.examples import features_of, lacking, rows_as_sparse, values_of

# A `SparseFeature` as an attribute: the features of the places, that of the values, the sizes, and
# whether the places are sorted.
Placed = tuple[tuple[str, ...], str, tuple[int, ...], bool]


def _shapes(
    serialized: Tensor,
    defaults: list[Tensor],
    shapes: tuple[Shape, ...],
    ragged: tuple[str, ...],
    placed: tuple[Placed, ...],
    **_: Any,
) -> list[Shape]:
    if serialized.shape.rank not in (0, 1):
        raise InvalidArgumentError(
            f"examples are a string scalar or vector, not of shape {serialized.shape}"
        )
    dense = [serialized.shape.concatenate(shape) for shape in shapes]
    ranks = [
        serialized.shape.rank + n for n in (*[1 for _ in ragged], *[len(p[2]) for p in placed])
    ]
    return [*dense, *[Shape(s) for rank in ranks for s in ([None, rank], [None], [rank])]]


def _parse(
    xp: Any,
    serialized: Any,
    *defaults: Any,
    names: tuple[str, ...],
    shapes: tuple[Shape, ...],
    may_miss: tuple[bool, ...],
    ragged: tuple[str, ...],
    placed: tuple[Placed, ...],
    Tout: tuple[DType, ...],
) -> tuple[Any, ...]:
    dense = [
        np.empty((*serialized.shape, *shape), dtype.numpy)
        for shape, dtype in zip(shapes, Tout, strict=False)
    ]
    types = Tout[len(names) + 1 :: 3]
    found: list[list[tuple[tuple[int, ...], Any]]] = [[] for _ in ragged]
    pairs: list[list[tuple[Any, Any]]] = [[] for _ in placed]
    for place, record in np.ndenumerate(serialized):
        features = features_of(record)
        for target, name, default, may in zip(dense, names, defaults, may_miss, strict=True):
            values = values_of(features, name, target.dtype)
            if values is None and not may:
                raise lacking(name, place, features)
            values = default if values is None else values
            part = target[place]
            if values.size != np.size(part):
                raise InvalidArgumentError(
                    f"feature {name!r} of example {_number(place)}has "
                    f"{counted(values.size, 'value')}, "
                    f"not the {np.size(part)} of shape {list(np.shape(part))}"
                )
            target[(*place, ...)] = values.reshape(np.shape(part))
        for rows, name, dtype in zip(found, ragged, types, strict=False):
            values = values_of(features, name, dtype.numpy)
            if values is not None:
                rows.append((place, values))
        for parts, each, dtype in zip(pairs, placed, types[len(ragged) :], strict=True):
            try:
                parts.append(_in_places(features, place, each, dtype))
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"example {_number(place)}{error.message}") from None
    sparse = [
        rows_as_sparse(rows, serialized.shape, dtype.numpy)
        for rows, dtype in zip(found, types, strict=False)
    ]
    for parts, each, dtype in zip(pairs, placed, types[len(ragged) :], strict=True):
        shape = (*serialized.shape, *each[2])
        indices = [np.empty((0, len(shape)), np.int64), *[indices for indices, _ in parts]]
        values = [np.empty(0, dtype.numpy), *[values for _, values in parts]]
        sparse.append((np.concatenate(indices), np.concatenate(values), np.array(shape, np.int64)))
    return (*dense, *[part for parts in sparse for part in parts])


def _in_places(
    features: Any, place: tuple[int, ...], placed: Placed, dtype: DType
) -> tuple[Any, Any]:
    """The indices and the values of one example."""
    index_keys, value_key, sizes, is_sorted = placed
    columns = [values_of(features, key, np.dtype(np.int64)) for key in index_keys]
    columns = [np.empty(0, np.int64) if column is None else column for column in columns]
    values = values_of(features, value_key, dtype.numpy)
    values = np.empty(0, dtype.numpy) if values is None else values
    for key, column, size in zip(index_keys, columns, sizes, strict=True):
        if len(column) != len(values):
            raise InvalidArgumentError(
                f"has {len(column)} places in feature {key!r} for "
                f"{counted(len(values), 'value')} in "
                f"{value_key!r}"
            )
        wrong = column[(column < 0) | (column >= size)]
        if wrong.size:
            raise InvalidArgumentError(
                f"has the place {wrong[0]} in feature {key!r}, where there are {size}, from 0 on"
            )
    indices = np.stack([*[np.full(len(values), n) for n in place], *columns], axis=1)
    if is_sorted:
        return indices, values
    order = np.lexsort(columns[::-1])
    return indices[order], values[order]


def _number(place: tuple[int, ...]) -> str:
    return f"{place[0]} (the first is 0) " if place else ""


parse_example_op: OpDef[list[Tensor]] = OpDef(
    "ParseExample",
    "serialized: string, defaults: *defaults -> output: *Tout",
    attributes={
        "names": REQUIRED,
        "shapes": REQUIRED,
        "may_miss": REQUIRED,
        "ragged": REQUIRED,
        "placed": (),
        "Tout": REQUIRED,
    },
    infer=_shapes,
    kernel=_parse,
    kinds=HOST,
    grad=NO_GRADIENT,
    cost=uncounted,
)
