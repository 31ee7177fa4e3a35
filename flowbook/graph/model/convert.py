"""From Python values to arrays of a given dtype: the one rule for constants and feeds.

Numbers and lists take the dtype that is asked for: floats may round, integers must fit, and
nothing changes its kind silently (a float never becomes an integer).
"""

from __future__ import annotations

from contextvars import Context
from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Arithmetic

DEEPEST = 64  # NumPy's: no array has more dimensions. A list may hold itself.


def to_array(value: Any, dtype: DType | None = None) -> np.ndarray[Any, Any]:
    """An array of `dtype` with the given values; the same array if it is one already.

    Args:
        value: anything array-like.
        dtype: the wanted dtype; None takes NumPy arrays and scalars as they are, and numbers alone
            or in lists, of whichever type, as float32, int32 (or int64 where a number needs it),
            bool, complex128 or string.

    Raises:
        InvalidTypeError: if values are not of that kind.
        InvalidArgumentError: if an integer does not fit, a list is ragged, or a column of a table
            lacks values: an array would have NaN for them, or nothing.
    """
    if dtype is not None and type(value) is np.ndarray and value.dtype == dtype.numpy:
        return _as_bytes(value) if dtype is dtypes.string else value
    array = _plain_array(value, dtype)
    if dtype is None:
        return _default_dtype(value, array)
    return _cast(array, dtype)


def dtype_of(array: np.ndarray[Any, Any]) -> DType:
    """The DType of an array that `to_array` made."""
    return dtypes.as_dtype(array.dtype)


def _is_masked(array: Any) -> bool:
    """Whether an element of an array is masked; `numpy.ma` is not imported for that."""
    return bool(np.any(getattr(array, "mask", False)))


def _lacking(column: Any) -> int:
    """How many values a column of pandas' or pyarrow's lacks; 0 of anything else.

    NaN is a value where the floats are NumPy's own, which cannot tell the one from the other.
    """
    if hasattr(column, "is_null"):
        return int(np.count_nonzero(column.is_null()))
    dtype = getattr(column, "dtype", None)
    if hasattr(column, "isna") and (not isinstance(dtype, np.dtype) or dtype.kind == "O"):
        return int(np.count_nonzero(column.isna())) if dtype is not None else 0
    return 0


def _plain_array(value: Any, dtype: DType | None) -> np.ndarray[Any, Any]:
    if type(value) is float:  # As a rate is that every step is fed.
        return np.asarray(value)
    if isinstance(value, Arithmetic):
        raise InvalidTypeError(
            f"{value!r} is symbolic where a value is wanted",
            hint="fetch it with sess.run first",
        )
    first = _first(value)
    arrays = [value] if first is value else value
    if isinstance(first, np.ndarray) and any(map(_is_masked, arrays)):
        raise InvalidArgumentError(
            "a masked array has elements without values, which an array cannot have",
            hint="array.filled(0) gives them one",
        )
    lacking = _lacking(value) if hasattr(value, "__array__") else 0
    if lacking:
        raise InvalidArgumentError(
            f"it lacks {counted(lacking, 'value')} of {len(value)}",
            hint="fill them first, as with pandas' fillna or pyarrow's fill_null, or drop the rows",
        )
    try:
        # NumPy's own dtypes for bytes and text lose trailing zeros.
        array = np.asarray(value, dtype=object if isinstance(first, bytes | str) else None)
        if array.dtype.kind in "SU" and not isinstance(value, np.ndarray):
            array = np.asarray(value, dtype=object)
    except InvalidTypeError as error:  # What `__array__` of a tensor in a list raises.
        raise (_not_packed(value) if isinstance(value, list | tuple) else error) from None
    except ValueError as error:
        if "inhomogeneous" in str(error):
            raise _uneven() from None
        raise InvalidArgumentError(f"not an array: {error}") from None
    except OverflowError:
        raise InvalidArgumentError(f"an integer does not fit any dtype: {value!r}") from None
    if array.dtype.kind in "fO" and type(first) is int:
        inexact = dtype is not None and (dtype.is_floating or dtype.is_complex)
        array = _floats(value, array) if inexact else _exact_integers(value, array)
    if array.dtype.kind in "SUO":
        return _as_bytes(array)
    if array.dtype.kind in "mM":
        raise InvalidTypeError(
            f"dates and durations have no dtype, as those of {array.dtype} here",
            hint="np.asarray(value).astype(np.int64) counts them in their unit, dates since 1970",
        )
    if array.dtype.newbyteorder("=") != array.dtype:
        array = array.astype(array.dtype.newbyteorder("="))
    return array


def _not_packed(value: Any) -> InvalidTypeError:
    """The error for tensors among values."""
    leaves = [value]
    while leaves and not isinstance(leaves[-1], Arithmetic):
        leaf = leaves.pop()
        if isinstance(leaf, list | tuple | np.ndarray):
            leaves.extend(reversed(list(leaf)))
    what = repr(leaves[-1]) if leaves else "a tensor"
    return InvalidTypeError(
        f"{what} stands in a list, where values of one dtype are wanted",
        hint="tensors go together with fb.stack([...])",
    )


def _floats(value: Any, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array with Python's integers as floats, however large; as it is if it holds others."""
    if not all(type(item) is int for item in np.asarray(value, dtype=object).flat):
        return array
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise InvalidArgumentError(f"an integer does not fit any dtype: {value!r:.80}") from None


def _exact_integers(value: Any, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array, or if all its values are integers too large for int64, as uint64 exactly.

    NumPy makes of such lists floating-point numbers, or objects.
    """
    exact = np.asarray(value, dtype=object)
    if not all(type(item) is int for item in exact.flat):
        return array
    low, high = min(exact.flat), max(exact.flat)
    if low < 0 or high > np.iinfo(np.uint64).max:
        worst = low if -low > high else high
        raise InvalidArgumentError(f"the integer {worst} does not fit any dtype with the others")
    return exact.astype(np.uint64)


def _as_bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An object array of bytes; text becomes UTF-8."""
    if array.dtype.kind == "O" and all(type(item) is bytes for item in array.flat):
        return array
    result = np.empty(array.shape, dtype=object)
    for position, item in np.ndenumerate(array):
        if isinstance(item, str):
            item = item.encode()
        elif not isinstance(item, bytes):
            if isinstance(item, list | tuple | np.ndarray):
                raise _nested(array)
            if isinstance(item, Arithmetic):
                raise _not_packed(item)
            what = f"{item!r} of type {type(item).__name__}"
            if array.ndim == 0:
                raise InvalidTypeError(
                    f"{what} has no dtype", hint="tensors hold numbers, booleans and strings"
                )
            raise InvalidTypeError(
                f"an array of Python's objects has no dtype; one of them is {what}",
                hint="give it one: np.asarray(value, np.float32)",
            )
        result[position] = bytes(item)
    return result


def _uneven() -> InvalidArgumentError:
    return InvalidArgumentError(
        "not an array: the lists in it differ in length",
        hint="pad them to one length, and give their lengths beside them",
    )


def _nested(array: np.ndarray[Any, Any]) -> InvalidArgumentError:
    """The error for lists or arrays as the elements of an array."""
    if len({np.size(item) for item in array.flat}) > 1:
        return _uneven()
    return InvalidArgumentError(
        "not an array: its elements are lists or arrays themselves",
        hint="np.stack(np.asarray(value)) makes one array of them",
    )


def _default_dtype(value: Any, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__"):
        dtypes.as_dtype(array.dtype)
        return array
    if array.dtype == np.float64:
        return array.astype(np.float32) if _holds_no_arrays(value) else array
    if array.dtype == np.int64 and _holds_no_arrays(value):
        narrow = array.astype(np.int32)
        return narrow if np.array_equal(narrow, array) else array
    dtypes.as_dtype(array.dtype)
    return array


def _holds_no_arrays(value: Any) -> bool:
    """Whether lists hold numbers, and no arrays that have chosen a dtype."""
    return not isinstance(_first(value), np.ndarray)


def _first(value: Any) -> Any:
    """The first value in nested lists."""
    for _ in range(DEEPEST):
        if not isinstance(value, list | tuple) or not value:
            break
        value = value[0]
    return value


def _cast(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    source, target = array.dtype, dtype.numpy
    if source == target:
        return array
    if source.kind == "f" and source.itemsize > 1 and dtype.is_floating:
        return _rounded(array, target)
    if array.size == 0 and dtype is not dtypes.resource:
        return array.astype(target)
    whole = dtypes.widened(array)
    if whole is not array:
        return _cast(whole, dtype)
    if dtype is dtypes.string or source.kind == "O" or dtype is dtypes.resource:
        raise InvalidTypeError(f"values of {_name(source)} where {dtype.name} is wanted")
    is_small_int = dtype in dtypes.SMALL_INTS
    if (dtype.is_integer or is_small_int) and source.kind in "iu":
        low, high = int(array.min()), int(array.max())
        if low < dtype.min or high > dtype.max:
            worst = low if low < dtype.min else high
            raise InvalidArgumentError(
                f"{worst} does not fit {dtype.name}, which goes from {dtype.min} to {dtype.max}"
            )
        return array.astype(target)
    # To bfloat16 NumPy would take complex numbers, and to small integers anything.
    lossy = source.kind != "b" if is_small_int else source.kind == "c" and not dtype.is_complex
    if lossy or not np.can_cast(source, target, "same_kind"):
        module = "np" if hasattr(np, dtype.name) else "ml_dtypes"
        raise InvalidTypeError(
            f"values of {_name(source)} where {dtype.name} is wanted",
            hint=f"convert them yourself, as with np.asarray(values).astype({module}.{dtype.name})",
        )
    return _rounded(array, target)


# In which NumPy does not warn that a number is too large for floats, and becomes infinite.
_TO_INFINITY = Context()
_TO_INFINITY.run(np.seterr, over="ignore")


def _rounded(array: np.ndarray[Any, Any], target: np.dtype[Any]) -> np.ndarray[Any, Any]:
    return _TO_INFINITY.copy().run(array.astype, target)


def _name(numpy: np.dtype[Any]) -> str:
    return "string" if numpy.kind == "O" else numpy.name
