"""Attribute values: fixed at construction, plain data, comparable and digestible.

An attribute is None, a bool, int, float, complex, str, bytes, DType, Shape, NumPy array or scalar,
a tuple of such values, or, for operations that run Python, a callable (which has no digest but its
identity).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import DType, as_dtype
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape

PLAIN_TYPES = frozenset((NoneType, bool, int, float, complex, str, bytes, DType, Shape))
_PLAIN = (*PLAIN_TYPES, np.generic)


def fixed_value(value: Any) -> Any:
    """An attribute value that nobody can change: lists as tuples, arrays as read-only copies.

    Raises:
        InvalidTypeError: if it is not plain data.
    """
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, list | tuple):
        return tuple([fixed_value(item) for item in value])
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject and not all(isinstance(v, bytes | str) for v in value.flat):
            raise InvalidTypeError("an attribute's array holds objects, which are not plain data")
        as_dtype(value.dtype)
        if value.flags.writeable or not value.flags.owndata:
            value = np.array(value)
            value.flags.writeable = False
        return value
    if callable(value):
        return value
    hint = "a tensor is an input: name it in the signature" if hasattr(value, "op") else None
    raise InvalidTypeError(
        f"an attribute is plain data or a function, not the {type(value).__name__} {value!r:.80}",
        hint=hint or "numbers, strings, dtypes, shapes, arrays and tuples of them are plain data",
    )


# What may stand in the place of a default, by its type.
_ALIKE: dict[type, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (int, float, np.number),
    str: (str,),
    bytes: (bytes,),
    Shape: (Shape,),
    DType: (DType,),
}


def check_alike(name: str, value: Any, default: Any) -> None:
    """See that a value of an attribute is of the kind of its default, if that tells one.

    Raises:
        InvalidTypeError: if it is of another.
    """
    wanted = _ALIKE.get(type(default))
    if wanted is not None and not isinstance(value, wanted):
        raise InvalidTypeError(
            f"{name!r} is of type {type(default).__name__}, as its default {default!r} is, "
            f"not {value!r:.80}"
        )


def check_choice(name: str, value: Any, choices: Iterable[str | None]) -> None:
    """See that a value of an attribute, or of an argument, is one of a few strings.

    Args:
        name: what it is called.
        value: the value.
        choices: the strings; None is among them where it may be none.

    Raises:
        InvalidArgumentError: if it is none of them.
    """
    known = tuple(choices)
    if isinstance(value, str | None) and value in known:
        return
    text = str(value).lower()
    meant = next((c for c in known if c and c.lower() == text), None)
    raise InvalidArgumentError(
        f"{name!r} is one of {', '.join(map(repr, known))}, not {value!r:.80}",
        hint=f"write {meant!r}" if meant else None,
    )


def same_value(a: Any, b: Any) -> bool:
    """Whether two attribute values are the same: type, dtype and bits."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return same_array(a, b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same_value, a, b))
    if isinstance(a, float | complex):
        return repr(a) == repr(b)  # NaN is the same as NaN, 0.0 is not -0.0.
    return bool(a == b)


def same_array(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays agree in dtype, shape and bits."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.hasobject:
        return bool(np.array_equal(a, b))
    return a.tobytes() == b.tobytes()


def same_attributes(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two operations of one type have the same attributes."""
    return a is b or (a.keys() == b.keys() and all(same_value(a[k], b[k]) for k in a))


def _dtype_name(array: np.ndarray) -> str:
    # NumPy writes all dtypes that are not its own alike.
    return array.dtype.name if array.dtype.kind == "V" else array.dtype.str


def update_digest(digest: Any, value: Any) -> None:
    """Feed an attribute value to a hashlib object, unambiguously."""
    if isinstance(value, np.ndarray):
        data = repr(value.tolist()).encode() if value.dtype.hasobject else value.tobytes()
        digest.update(f"array {_dtype_name(value)} {value.shape} {len(data)} ".encode())
        digest.update(data)
    elif isinstance(value, tuple):
        digest.update(f"tuple {len(value)} ".encode())
        for item in value:
            update_digest(digest, item)
    elif value is None or isinstance(
        value, bool | int | float | complex | str | bytes | DType | Shape
    ):
        text = repr(value).encode()
        digest.update(f"{type(value).__name__} {len(text)} ".encode())
        digest.update(text)
    else:
        digest.update(f"object {id(value)} ".encode())


def hashable(value: Any) -> Any:
    """A dictionary key that is equal for the same attribute values and no others."""
    if isinstance(value, np.ndarray):
        data = tuple(value.ravel().tolist()) if value.dtype.hasobject else value.tobytes()
        return ("array", _dtype_name(value), value.shape, data)
    if isinstance(value, tuple):
        return tuple(hashable(item) for item in value)
    if isinstance(value, float | complex):
        return (type(value), repr(value))
    return (type(value), value)
