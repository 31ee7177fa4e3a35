"""Axes: how reductions, joining and shaping read them. They are attributes, fixed at construction.

A tensor may stand for one where the graph alone determines its value. Where only the run knows it,
some operations take it as an input (`run_axes.py`): they ask for `axis_or_tensor`.
Invariant: what `as_axes` gives is None (all axes) or a tuple of ints, non-negative where the rank
is known; whether they lie in range is for `infer` to say, where the error can name its operation.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from flowbook.graph.definition.inference import constant_value, determining
from flowbook.graph.definition.packing import packed
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import SCALAR, UNKNOWN, Dims, Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor


def settled(value: Any, what: str = "an axis") -> Any:
    """A tensor's value, where the graph alone determines it; anything but a tensor as it is.

    What is built with it remembers the tensor: it is stale once that is redefined, and no feed may
    give the tensor another value.

    Raises:
        InvalidTypeError: if a run might give the tensor one value or another.
    """
    if not isinstance(value, Arithmetic):
        return value
    if not isinstance(value, Tensor) or (known := constant_value(value)) is None:
        raise InvalidTypeError(
            f"{what} is fixed when the graph is built, and the value of {value!r} is not: "
            "give an int, a constant, or what follows from known shapes"
        )
    value.graph.settle(determining(value))
    return known


def as_axis(axis: Any, what: str = "an axis") -> int:
    """An axis, or `what` else is one number fixed at construction, as an int.

    Raises:
        InvalidTypeError: if it is not an integer.
    """
    axis = settled(axis, what)
    try:
        # Old programs give a truth value for each axis, or `keepdims` in the place of an axis.
        if not isinstance(axis, bool | np.bool_):
            return operator.index(axis)
    except TypeError:
        pass
    raise InvalidTypeError(f"{what} is an int, not {axis!r}")


def as_axes(axis: Any, tensor: Any = None) -> tuple[int, ...] | None:
    """Axes as a tuple of ints; None stays, and means all.

    Args:
        axis: None, an int, a sequence of ints, or a tensor of them whose value is known.
        tensor: what they belong to; where its rank is known, negative axes become positive.
    """
    if axis is None:
        return None
    axis = settled(axis)
    several = isinstance(axis, list | tuple | range) or (isinstance(axis, np.ndarray) and axis.ndim)
    found = tuple(as_axis(a) for a in axis) if several else (as_axis(axis),)
    rank = tensor.shape.rank if isinstance(tensor, Tensor) else None
    if rank is None:
        return found
    return tuple(a + rank if -rank <= a < 0 else a for a in found)


def axis_or_tensor(axis: Any) -> Any:
    """An axis as an int; as a tensor, where only the run knows it."""
    tensor = _of_run(axis)
    return as_axis(axis) if tensor is None else tensor


def axes_or_tensor(axis: Any, tensor: Any = None) -> Any:
    """What `as_axes` gives; a tensor of them, where only the run knows one."""
    if isinstance(axis, list | tuple) and any(_of_run(each) is not None for each in axis):
        return packed(axis)
    found = _of_run(axis)
    return as_axes(axis, tensor) if found is None else found


def _of_run(axis: Any) -> Tensor | None:
    """The tensor of which only the run knows the value; None for what is known already."""
    if isinstance(axis, Arithmetic) and hasattr(axis, "as_tensor"):
        axis = axis.as_tensor(False)
    return axis if isinstance(axis, Tensor) and constant_value(axis) is None else None


def in_range(axis: int, rank: int, what: str = "axis") -> int:
    """The axis counted from the first.

    Raises:
        InvalidArgumentError: if there is no such axis.
    """
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"{what} {axis} is out of range for {counted(rank, 'dimension')}"
            + (f": it goes from {-rank} to {rank - 1}" if rank else "")
        )
    return axis + rank if axis < 0 else axis


def all_in_range(axes: tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """The axes counted from the first; all of them for None.

    Raises:
        InvalidArgumentError: if one does not exist or is named twice.
    """
    if axes is None:
        return tuple(range(rank))
    found = tuple(in_range(a, rank) for a in axes)
    if len(set(found)) != len(found):
        raise InvalidArgumentError(f"axis {axes} names a dimension twice")
    return found


def reduced(shape: Shape, axes: tuple[int, ...] | None, keepdims: bool) -> Shape:
    """The shape that is left after reducing over axes."""
    if shape.dims is None:
        return SCALAR if axes is None and not keepdims else UNKNOWN
    gone = all_in_range(axes, len(shape.dims))
    dims: Dims = tuple(1 if i in gone else d for i, d in enumerate(shape.dims))
    if not keepdims:
        dims = tuple(d for i, d in enumerate(dims) if i not in gone)
    return Shape.of(dims)
