"""The element types of tensors (white paper, section 3) and their NumPy counterparts."""

from __future__ import annotations

import builtins
from typing import Any

import ml_dtypes
import numpy as np

from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidTypeError

__all__ = [
    "COMPLEX",
    "DType",
    "FLOATS",
    "INDICES",
    "INTS",
    "NUMBERS",
    "REALS",
    "SMALL",
    "SMALL_FLOATS",
    "VALUES",
    "as_dtype",
    "bfloat16",
    "bool",
    "complex128",
    "complex64",
    "float16",
    "float32",
    "float4_e2m1fn",
    "float64",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "int16",
    "int2",
    "int32",
    "int4",
    "int64",
    "int8",
    "string",
    "uint16",
    "uint2",
    "uint32",
    "uint4",
    "uint64",
    "uint8",
]

# What TensorFlow 1 calls otherwise.
_ELSEWHERE = {
    "as_numpy_dtype": "dtype.numpy",
    "base_dtype": "the dtype itself: there are no reference dtypes",
    "is_bool": "dtype == fb.bool",
    "is_compatible_with": "dtype == other",
    "is_numpy_compatible": "dtype.numpy, which each has",
    "is_unsigned": "dtype.is_integer and dtype.min == 0",
    "limits": "dtype.min and dtype.max",
    "real_dtype": "the dtype of fb.real(x)",
}


@elsewhere(_ELSEWHERE)
class DType:
    """The type of a tensor's elements; there is one object per type.

    Attributes:
        name: such as "float32".
        numpy: the NumPy dtype of its arrays (strings are object arrays of bytes).
    """

    __slots__ = ("is_complex", "is_floating", "is_integer", "name", "numpy", "type")

    def __init__(self, name: str, numpy: Any) -> None:
        self.name = name
        self.numpy = np.dtype(numpy)
        self.type = self.numpy.type
        # NumPy counts one of 8 bits among its floats.
        is_wide = self.numpy.kind == "f" and self.numpy.itemsize > 1
        self.is_floating = is_wide or self.numpy == ml_dtypes.bfloat16
        self.is_integer = self.numpy.kind in "iu"
        self.is_complex = self.numpy.kind == "c"

    @property
    def is_numeric(self) -> builtins.bool:
        """Whether arithmetic is defined: integers, floating point and complex numbers.

        Of the dtypes of 8 bits and fewer only int8 and uint8 have it.
        """
        return self.is_integer or self.is_floating or self.is_complex

    @property
    def size(self) -> int:
        """Bytes per element; 0 where it is not fixed (strings, resources)."""
        return 0 if self.numpy.kind == "O" else self.numpy.itemsize

    @property
    def min(self) -> Any:
        """The smallest finite value."""
        return self._limits().min

    @property
    def max(self) -> Any:
        """The largest finite value."""
        return self._limits().max

    def _limits(self) -> Any:
        if self.is_integer or self in SMALL_INTS:
            return ml_dtypes.iinfo(self.numpy)  # type: ignore[no-untyped-call]
        if self.is_floating or self in SMALL_FLOATS:
            return ml_dtypes.finfo(self.numpy)  # type: ignore[no-untyped-call]
        raise InvalidTypeError(f"{self.name} has no smallest or largest value")

    def __eq__(self, other: object) -> builtins.bool:
        if self is other:
            return True
        if other is None or isinstance(other, DType):
            return False
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"fb.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name


int8 = DType("int8", np.int8)
int16 = DType("int16", np.int16)
int32 = DType("int32", np.int32)
int64 = DType("int64", np.int64)
uint8 = DType("uint8", np.uint8)
uint16 = DType("uint16", np.uint16)
uint32 = DType("uint32", np.uint32)
uint64 = DType("uint64", np.uint64)
bfloat16 = DType("bfloat16", ml_dtypes.bfloat16)
float16 = DType("float16", np.float16)
float32 = DType("float32", np.float32)
float64 = DType("float64", np.float64)
float8_e4m3fn = DType("float8_e4m3fn", ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = DType("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = DType("float8_e5m2", ml_dtypes.float8_e5m2)
float8_e5m2fnuz = DType("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = DType("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu)
float4_e2m1fn = DType("float4_e2m1fn", ml_dtypes.float4_e2m1fn)
int4 = DType("int4", ml_dtypes.int4)
uint4 = DType("uint4", ml_dtypes.uint4)
int2 = DType("int2", ml_dtypes.int2)
uint2 = DType("uint2", ml_dtypes.uint2)
complex64 = DType("complex64", np.complex64)
complex128 = DType("complex128", np.complex128)
bool = DType("bool", np.bool_)
string = DType("string", np.object_)
resource = DType("resource", np.object_)
# What only loops hold: stacks of values and arrays of tensors. It is neither fed nor fetched.
variant = DType("variant", np.object_)

INTS = (int8, int16, int32, int64, uint8, uint16, uint32, uint64)
FLOATS = (bfloat16, float16, float32, float64)
COMPLEX = (complex64, complex128)
REALS = FLOATS + INTS
NUMBERS = FLOATS + INTS + COMPLEX
INEXACT = FLOATS + COMPLEX
INDICES = (int32, int64)
VALUES = (*NUMBERS, bool, string)

# What quantised weights are kept in. They are stored, fed, moved and cast, each element in a byte
# of its own; nothing computes with them and no gradient flows through them.
SMALL_FLOATS = (
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float4_e2m1fn,
)
SMALL_INTS = (int4, uint4, int2, uint2)
SMALL = SMALL_FLOATS + SMALL_INTS
# What operations admit that only move values, and those that also put zeros in between.
MOVABLE = VALUES + SMALL
ZEROED = tuple(t for t in MOVABLE if t not in (string, float8_e8m0fnu))  # These have no zero.

# What loops and branches hand on: anything.
ANYTHING = (*MOVABLE, resource, variant)

BY_NAME: dict[str, DType] = {t.name: t for t in ANYTHING}
_BY_NUMPY: dict[Any, DType] = {t.numpy: t for t in (*NUMBERS, bool, *SMALL)}
_BY_PYTHON: dict[Any, DType] = {
    float: float32,
    int: int32,
    complex: complex128,
    type(True): bool,  # noqa: UP003 (this module's own bool shadows Python's)
    str: string,
    bytes: string,
}
_BY_PYTHON_NAME = {python.__name__: found for python, found in _BY_PYTHON.items()}


def widened(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same values in a dtype that NumPy computes with, for an array of a small dtype."""
    dtype = _BY_NUMPY.get(array.dtype)
    if dtype in SMALL_INTS:
        return array.astype(np.int8)
    return array.astype(np.float32) if dtype in SMALL_FLOATS else array


def _numpy_dtype(value: Any) -> np.dtype[Any] | None:
    """NumPy's dtype for what names one: to NumPy None, any class and any array would, too."""
    is_named = isinstance(value, str) and value != "a"  # A deprecated name.
    is_class = isinstance(value, type) and (value is object or issubclass(value, np.generic))
    if not (is_named or is_class or isinstance(value, np.dtype)):
        return None
    try:
        found: np.dtype[Any] = np.dtype(value)
    except TypeError:
        return None
    return found


def as_dtype(value: Any) -> DType:
    """The DType that a DType, a name, a NumPy dtype or a Python type stands for.

    Python's `float` and `int`, and their names, stand for float32 and int32, as their values do in
    a graph.

    Raises:
        InvalidTypeError: if nothing corresponds.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in BY_NAME:
        return BY_NAME[value]
    if isinstance(value, str) and value in _BY_PYTHON_NAME:
        return _BY_PYTHON_NAME[value]
    if isinstance(value, type) and value in _BY_PYTHON:
        return _BY_PYTHON[value]
    numpy = _numpy_dtype(value)
    if numpy is not None:
        if numpy.kind in "OSU":
            return string
        found = _BY_NUMPY.get(numpy.newbyteorder("="))
        if found is not None:
            return found
    raise InvalidTypeError(f"{value!r} is not a dtype; known are {', '.join(BY_NAME)}")
