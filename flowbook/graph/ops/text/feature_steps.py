"""The operation that reads features of any number of steps, of examples and sequence examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from flowbook.graph.definition.inference import uncounted
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.formats.examples import (
    feature_lists_of,
    features_of,
    lacking,
    rows_as_sparse,
    values_in,
    values_of,
)


def _shapes(
    serialized: Tensor,
    defaults: list[Tensor],
    shapes: tuple[Shape, ...],
    ragged: tuple[str, ...],
    **_: Any,
) -> list[Shape]:
    batch = serialized.shape
    if batch.rank not in (0, 1):
        raise InvalidArgumentError(f"examples are a string scalar or vector, not of shape {batch}")
    dense = [batch.concatenate([None]).concatenate(shape) for shape in shapes]
    rank = batch.rank + 2
    parts = [Shape(s) for _ in ragged for s in ([None, rank], [None], [rank])]
    return [*dense, *[batch for _ in shapes], *parts]


def _parse(
    xp: Any,
    serialized: Any,
    *defaults: Any,
    names: tuple[str, ...],
    shapes: tuple[Shape, ...],
    may_miss: tuple[bool, ...],
    ragged: tuple[str, ...],
    in_lists: bool,
    Tout: tuple[DType, ...],
) -> tuple[Any, ...]:
    steps_of: Callable[..., Any] = _steps_of_lists if in_lists else _steps_of_features
    features_in = feature_lists_of if in_lists else features_of
    read: list[tuple[tuple[int, ...], Mapping[str, Any]]] = [
        (place, features_in(record)) for place, record in np.ndenumerate(serialized)
    ]
    dense, lengths = [], []
    kinds = zip(names, shapes, may_miss, defaults, Tout, strict=False)
    for name, shape, may, default, dtype in kinds:
        dims: Any = shape.dims
        found = {}
        for place, features in read:
            rows = steps_of(features, name, dims, dtype)
            if rows is None and not may:
                raise lacking(name, place, features)
            found[place] = [] if rows is None else rows
        length = np.zeros(serialized.shape, np.int64)
        whole: Any = np.full(
            (*serialized.shape, max(map(len, found.values()), default=0), *dims),
            default.item(),
            dtype.numpy,
        )
        for place, rows in found.items():
            length[place] = len(rows)
            for step, row in enumerate(rows):
                whole[(*place, step, ...)] = row
        dense.append(whole)
        lengths.append(length)
    sparse: list[Any] = []
    for name, dtype in zip(ragged, Tout[2 * len(names) + 1 :: 3], strict=True):
        parts = [(place, steps_of(each, name, None, dtype) or []) for place, each in read]
        longest = max((len(steps) for _, steps in parts), default=0)
        rows = [((*place, n), values) for place, each in parts for n, values in enumerate(each)]
        sparse += rows_as_sparse(rows, (*serialized.shape, longest), dtype.numpy)
    return (*dense, *lengths, *sparse)


def _steps_of_lists(
    lists: Mapping[str, Any], name: str, dims: tuple[int, ...] | None, dtype: DType
) -> Any:
    """What the steps of a sequence example's feature hold; None if there is none."""
    if name not in lists:
        return None
    rows = [values_in(each, name, dtype.numpy) for each in lists[name].feature]
    rows = [np.empty(0, dtype.numpy) if row is None else row for row in rows]
    if dims is None:
        return rows
    for number, row in enumerate(rows):
        if row.size != math.prod(dims):
            raise InvalidArgumentError(
                f"step {number} (the first is 0) of feature {name!r} has "
                f"{counted(row.size, 'value')}, "
                f"not the {math.prod(dims)} of shape {list(dims)}"
            )
    return [row.reshape(dims) for row in rows]


def _steps_of_features(
    features: Mapping[str, Any], name: str, dims: tuple[int, ...], dtype: DType
) -> Any:
    """As `_steps_of_lists`, of an example, whose steps follow one another in one vector."""
    values = values_of(features, name, dtype.numpy)
    if values is None:
        return None
    if values.size % math.prod(dims):
        raise InvalidArgumentError(
            f"feature {name!r} has {counted(values.size, 'value')}, which are no multiple of the "
            f"{math.prod(dims)} of shape {list(dims)}"
        )
    return list(values.reshape(-1, *dims))


parse_steps_op: OpDef[list[Tensor]] = OpDef(
    "ParseFeatureSteps",
    "serialized: string, defaults: *defaults -> output: *Tout",
    attributes={
        "names": REQUIRED,
        "shapes": REQUIRED,
        "may_miss": REQUIRED,
        "ragged": REQUIRED,
        "in_lists": REQUIRED,
        "Tout": REQUIRED,
    },
    infer=_shapes,
    kernel=_parse,
    kinds=HOST,
    grad=NO_GRADIENT,
    cost=uncounted,
)
