"""A search among sorted keys: what tables that never change consist of."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.gathering import gather
from flowbook.graph.ops.arrays.positions import searchsorted
from flowbook.graph.ops.basis.broadcasting import broadcast_to
from flowbook.graph.ops.basis.shaping import reshape, shape
from flowbook.graph.ops.math.arithmetic import minimum
from flowbook.graph.ops.math.comparison import equal, where

Array = np.ndarray[Any, Any]


def sorted_table(name: str, keys: Array, values: Array) -> tuple[Array, Array]:
    """Keys [n] in their order, and their values [n].

    Args:
        name: of the table, for errors.
        keys: [n], each once, or always with the same value.
        values: [n].

    Raises:
        InvalidArgumentError: if there are not as many of both, or a key has two values.
    """
    if len(keys) != len(values):
        raise InvalidArgumentError(
            f"{name!r} has {counted(len(keys), 'key')} and {counted(len(values), 'value')}"
        )
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    repeated = keys[1:] == keys[:-1]
    differs = np.flatnonzero(repeated & (values[1:] != values[:-1]))
    if len(differs):
        raise InvalidArgumentError(
            f"the table {name!r} has two values for one key: {keys[differs[0]]!r}"
        )
    kept = np.concatenate([[True], ~repeated])[: len(keys)].astype(bool)
    return keys[kept], values[kept]


def found(known: Tensor, values: Tensor, keys: Tensor, default: Any, name: str | None) -> Tensor:
    """The values of keys.

    Args:
        known: [n], sorted keys without repetition; n is known.
        values: [n].
        keys: those to look for, of any shape.
        default: the value of a key that is not among them, or [keys]; of the values' dtype.
        name: the last operation's name.
    """
    count = known.shape[0]
    if not count:
        return broadcast_to(default, shape(keys), name=name)
    places = searchsorted(known, reshape(keys, [-1]))
    places = reshape(minimum(places, count - 1), shape(keys))
    there = equal(gather(known, places), keys)
    return where(there, gather(values, places), default, name=name)
