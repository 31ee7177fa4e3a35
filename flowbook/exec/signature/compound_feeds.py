"""Feeds of several tensors at once: sparse tensors and IndexedSlices, and tuples of keys.

`expanded` replaces such a feed by those of its tensors, after checking that the values go
together; what runs knows of nothing but tensors. A feed is expanded whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from flowbook.graph.model.convert import to_array
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError, OpError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices, IndexedSlicesValue
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor, SparseTensorValue

_FORMS: dict[type, Any] = {SparseTensor: SparseTensorValue, IndexedSlices: IndexedSlicesValue}
_SPARSE = tuple(_FORMS)
_COMPOUND = (*_SPARSE, tuple)

Array = np.ndarray[Any, Any]


def has_compound(keys: Iterable[Any] | None) -> bool:
    """Whether one of the keys of feeds stands for several tensors."""
    return any(isinstance(key, _COMPOUND) for key in keys or ())


def expanded_keys(keys: Iterable[Any]) -> list[Any]:
    """The keys, those that stand for several tensors replaced by these."""
    found: list[Any] = []
    for key in keys:
        if isinstance(key, tuple):
            found += expanded_keys(key)
        elif isinstance(key, _SPARSE):
            found += _parts(key)
        else:
            found.append(key)
    return found


def expanded(feeds: Mapping[Any, Any]) -> dict[Any, Any]:
    """The feeds, those of several tensors replaced by one for each.

    Raises:
        InvalidTypeError: if a value for a sparse key is not three arrays of its dtypes, or one for
            a tuple not as many values.
        InvalidArgumentError: if they do not go together, or a tensor is fed twice.
    """
    found: dict[Any, Any] = {}
    for key, value in feeds.items():
        for part, given in _fed(key, value):
            if part in found:
                raise InvalidArgumentError(f"{getattr(part, 'name', part)!r} is fed twice")
            found[part] = given
    return found


def _fed(key: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """What is fed for each tensor of a key."""
    if isinstance(key, _SPARSE):
        yield from _checked(key, value).items()
    elif isinstance(key, tuple):
        if not isinstance(value, list | tuple) or len(value) != len(key):
            given = f"{len(value)}" if isinstance(value, list | tuple) else f"{value!r:.80}"
            raise InvalidTypeError(
                f"a tuple of {len(key)} is fed with a tuple or list of "
                f"{counted(len(key), 'value')}, "
                f"not {given}: {key!r:.200}"
            )
        for part, given in zip(key, value, strict=True):
            yield from _fed(part, given)
    else:
        yield key, value


def _parts(key: Any) -> tuple[Tensor, ...]:
    """The tensors of a sparse key, in the order of its value."""
    if isinstance(key, SparseTensor):
        return key.indices, key.values, key.dense_shape
    rows = key.values, key.indices
    return rows if key.dense_shape is None else (*rows, key.dense_shape)


def _checked(key: Any, value: Any) -> dict[Any, Any]:
    """The values for a sparse key's tensors."""
    try:
        arrays = _arrays(key, value)
        shape = _dense_shape(arrays["dense_shape"], key) if "dense_shape" in arrays else None
        check: Any = _check_sparse_tensor if isinstance(key, SparseTensor) else _check_slices
        check(arrays["indices"], arrays["values"], shape)
    except OpError as error:
        error.message = f"the value fed for {key!r}: {error.message}"
        error.details.append(f"its values are defined at {key.op.site}")
        raise
    found: dict[Any, Any] = {}
    for name, part in zip(arrays, _parts(key), strict=True):
        # One tensor may serve twice, as where the indices of a vector are its values.
        if part in found and not np.array_equal(found[part], arrays[name]):
            raise InvalidArgumentError(f"{part.name!r} is two parts of {key!r}, fed differently")
        found[part] = arrays[name]
    return found


def _arrays(key: Any, value: Any) -> dict[str, Array]:
    form, parts = _FORMS[type(key)], _parts(key)
    names = form._fields[: len(parts)]
    other = tuple(f for f in _FORMS.values() if f is not form)
    if isinstance(value, IndexedSlicesValue) and value.dense_shape is None:
        value = value[:2]
    if not isinstance(value, list | tuple) or isinstance(value, other) or len(value) != len(parts):
        hint = f"feed fb.{form.__name__}({', '.join(names)}), or a tuple of these"
        if form is SparseTensorValue and hasattr(value, "tocoo"):
            # A sparse matrix of SciPy, in any of its formats.
            hint = (
                "m = matrix.tocsr().tocoo(), then "
                "fb.SparseTensorValue(np.stack([m.row, m.col], 1), m.data, m.shape)"
            )
        given = type(value).__name__ if hasattr(value, "tocoo") else f"{value!r:.80}"
        count = "two" if len(parts) == 2 else "three"
        raise InvalidTypeError(f"it is {given}, not {count} arrays", hint=hint)
    arrays = {}
    for name, part, given in zip(names, parts, value, strict=True):
        try:
            arrays[name] = to_array(given, part.dtype)
        except OpError as error:
            error.message = f"{name}: {error.message}"
            raise
    return arrays


def _dense_shape(dims: Array, key: Any) -> tuple[int, ...]:
    if dims.ndim != 1:
        raise InvalidArgumentError(f"dense_shape is a vector, not of shape {list(dims.shape)}")
    shape = tuple(dims.tolist())
    if any(d < 0 for d in shape):
        raise InvalidArgumentError(f"dense_shape is {list(shape)}: no dimension is negative")
    if isinstance(key, SparseTensor) and not key.shape.is_compatible_with(shape):
        raise InvalidArgumentError(f"dense_shape is {list(shape)}, which does not fit {key.shape}")
    return shape


def _check_sparse_tensor(indices: Array, values: Array, shape: tuple[int, ...]) -> None:
    if indices.ndim != 2 or indices.shape[1] != len(shape):
        raise InvalidArgumentError(
            f"indices have the shape {list(indices.shape)}, "
            f"where [n, {len(shape)}] goes with the dense shape {list(shape)}",
            hint=f"of no elements: np.empty((0, {len(shape)}))" if not indices.size else None,
        )
    if values.shape != indices.shape[:1]:
        raise InvalidArgumentError(
            f"values have the shape {list(values.shape)}, for "
            f"{counted(len(indices), 'index', 'indices')}"
        )
    for column, d in zip(indices.T, shape, strict=True):
        if len(column) and (column.min() < 0 or column.max() >= d):
            inside = (indices >= 0) & (indices < np.array(shape, np.int64))
            first = np.flatnonzero(~inside.all(axis=1))[0]
            raise InvalidArgumentError(
                f"indices[{first}] is {indices[first].tolist()}, "
                f"which lies outside the dense shape {list(shape)}"
            )


def _check_slices(indices: Array, values: Array, shape: tuple[int, ...] | None) -> None:
    if shape == ():
        raise InvalidArgumentError("dense_shape is empty: a scalar has no rows")
    if indices.ndim != 1:
        raise InvalidArgumentError(f"indices are a vector, not of shape {list(indices.shape)}")
    wanted = Shape((len(indices), *(shape or values.shape)[1:]))
    if values.shape != wanted.dims:
        whole = "" if shape is None else f" and the dense shape {list(shape)}"
        raise InvalidArgumentError(
            f"values have the shape {list(values.shape)}, where {wanted} goes with "
            f"{counted(len(indices), 'index', 'indices')}{whole}"
        )
    rows = np.iinfo(indices.dtype).max if shape is None else shape[0]
    wrong = np.flatnonzero((indices < 0) | (indices >= rows))
    if wrong.size:
        there = "" if shape is None else f": there are {rows} rows, from 0"
        raise InvalidArgumentError(
            f"indices[{wrong[0]}] is {indices[wrong[0]]}, which is out of range{there}"
        )
