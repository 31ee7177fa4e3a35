"""Taking parts: `x[key]` with NumPy's meaning for ints, slices, newaxis and Ellipsis, and `slice`.

A key is stored as an attribute: a tuple of ints, `("slice", start, stop, step)`, "newaxis" and
"...". Where a part of it is a tensor it is `("input", i)`, the i-th of the operation's bounds.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from flowbook.graph.definition.batching import Batch, Batched, Batching
from flowbook.graph.definition.inference import (
    Elements,
    Known,
    constant_value,
    shape_from,
)
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import INDICES, MOVABLE, NUMBERS
from flowbook.graph.model.errors import InvalidArgumentError, InvalidIndexError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import check_vector, dims_of, shape_of

Key = tuple[Any, ...]

NEWAXIS, REST = "newaxis", "..."


def encoded(key: Any) -> tuple[Key, list[Tensor]]:
    """A Python key as an attribute, and the tensors in it.

    Raises:
        InvalidTypeError: if a part of it is neither an int, a slice, None nor Ellipsis.
    """
    bounds: list[Tensor] = []
    parts = key if isinstance(key, tuple) else (key,)
    return tuple(_encoded_part(part, bounds) for part in parts), bounds


def _encoded_part(part: Any, bounds: list[Tensor]) -> Any:
    if part is None:
        return NEWAXIS
    if part is Ellipsis:
        return REST
    if isinstance(part, builtins.slice):
        ends = (part.start, part.stop, part.step)
        return ("slice", *(None if e is None else _encoded_int(e, bounds) for e in ends))
    return _encoded_int(part, bounds)


def _encoded_int(value: Any, bounds: list[Tensor]) -> Any:
    if isinstance(value, Arithmetic):
        tensor = convert_to_tensor(value)
        if not tensor.dtype.is_integer or tensor.shape.rank not in (None, 0):
            raise InvalidTypeError(
                f"an index is an integer scalar, not {tensor.name}, "
                f"{tensor.dtype.name} of shape {tensor.shape}",
                hint=_GATHER,
            )
        bounds.append(tensor)
        return ("input", len(bounds) - 1)
    if isinstance(value, bool | np.bool_ | list | np.ndarray) and not (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iu"
    ):
        raise InvalidTypeError(f"an index is an int, not {value!r}", hint=_GATHER)
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidTypeError(f"an index is an int or a slice, not {value!r}") from None


_GATHER = (
    "rows by a vector of indices: fb.gather(x, indices); "
    "values chosen by a condition: fb.boolean_mask(x, condition)"
)


@lru_cache(maxsize=4096)
def _decoded_static(key: Key) -> Key:
    return _decode(key, ())


def decoded(key: Key, bounds: tuple[Any, ...]) -> Key:
    """The Python key that an attribute and the values of its tensors stand for."""
    return _decode(key, bounds) if bounds else _decoded_static(key)


def _decode(key: Key, bounds: tuple[Any, ...]) -> Key:
    def number(item: Any) -> Any:
        return operator.index(bounds[item[1]]) if type(item) is tuple else item

    found: list[Any] = []
    for part in key:
        if type(part) is tuple and part[0] == "slice":
            found.append(builtins.slice(*map(number, part[1:])))
        elif type(part) is str:
            found.append(None if part == NEWAXIS else Ellipsis)
        else:
            found.append(number(part))
    return tuple(found)


def indexed_shape(whole: Shape, key: Key) -> Shape:
    """The shape of the part that a stored key names.

    Raises:
        InvalidIndexError: if an index is out of range, or there are too many.
    """
    used = [part for part in key if type(part) is not str]
    if key.count(REST) > 1:
        raise InvalidArgumentError("a key has at most one Ellipsis (...)")
    for part in used:
        if type(part) is tuple and part[0] == "slice" and part[3] == 0:
            raise InvalidArgumentError("the step of a slice is not 0")
    dims = whole.dims
    if dims is None:
        return UNKNOWN
    if len(used) > len(dims):
        raise InvalidIndexError(
            f"{counted(len(used), 'index', 'indices')} for the "
            f"{counted(len(dims), 'dimension')} of the shape {whole}"
        )
    if REST not in key:
        key = (*key, REST)
    result: list[int | None] = []
    axis = 0
    for part in key:
        if part == NEWAXIS:
            result.append(1)
        elif part == REST:
            kept = len(dims) - len(used)
            result.extend(dims[axis : axis + kept])
            axis += kept
        else:
            if type(part) is tuple and part[0] == "slice":
                result.append(_sliced(dims[axis], part[1:]))
            else:
                _check_index(part, dims[axis], axis, whole)
            axis += 1
    return Shape.of(tuple(result))


def _sliced(dim: int | None, ends: Key) -> int | None:
    if ends == (None, None, None):
        return dim
    if dim == 0:
        return 0
    if dim is None or any(type(e) is tuple for e in ends):
        return None
    return len(range(*builtins.slice(*ends).indices(dim)))


def _check_index(index: Any, dim: int | None, axis: int, shape: Any) -> None:
    if dim is not None and type(index) is int and not -dim <= index < dim:
        raise InvalidIndexError(
            f"index {index} is out of range for axis {axis} of the shape {shape}, which has {dim}"
        )


def _indexed(apply: Callable[[Key], Any], key: Key, bounds: tuple[Any, ...], shape: Any) -> Any:
    try:
        return apply(decoded(key, bounds))
    except (IndexError, ValueError, TypeError) as error:
        raise _index_error(error, key, bounds, shape) from None


def place_of(key: Key, bounds: tuple[Any, ...], dims: tuple[int, ...]) -> tuple[Key, Any]:
    """The NumPy key of a part in a run, and the part's shape.

    Raises:
        InvalidIndexError: if there is no such part.
    """
    # All of its elements are one, so that this takes no memory.
    blank = np.broadcast_to(np.zeros(()), dims)
    part = _indexed(blank.__getitem__, key, bounds, dims)
    return decoded(key, bounds), part.shape


def _index_error(error: Exception, key: Key, bounds: tuple[Any, ...], shape: Any) -> Exception:
    """What is wrong with a key in a run."""
    for bound in bounds:
        if bound.ndim:
            return InvalidArgumentError(f"an index is a scalar, not of shape {list(bound.shape)}")
    actual = decoded(key, bounds)
    used = [part for part in actual if part is not None and part is not Ellipsis]
    if len(used) > len(shape):
        return InvalidIndexError(
            f"{counted(len(used), 'index', 'indices')} for the shape {list(shape)}"
        )
    axis = 0
    for part in actual:
        if part is Ellipsis:
            axis += len(shape) - len(used)
        elif part is not None:
            if isinstance(part, builtins.slice):
                if part.step == 0:
                    return InvalidArgumentError("the step of a slice is not 0")
            elif not -shape[axis] <= part < shape[axis]:
                return InvalidIndexError(
                    f"index {part} is out of range for axis {axis} of the shape {list(shape)}"
                )
            axis += 1
    return error


def _part_shape(input: Tensor, bounds: list[Tensor], key: Key) -> Shape:
    def number(item: Any) -> Any:
        known = constant_value(bounds[item[1]]) if type(item) is tuple else None
        return item if known is None else int(known)

    return indexed_shape(
        input.shape,
        tuple(
            ("slice", *map(number, part[1:]))
            if type(part) is tuple and part[0] == "slice"
            else number(part)
            for part in key
        ),
    )


def _strided_slice(xp: Any, input: Any, *bounds: Any, key: Key) -> Any:
    part = _indexed(input.__getitem__, key, bounds, input.shape)
    # One string is a bytes object where one number is a NumPy scalar.
    return part if input.dtype.kind != "O" else np.asarray(part, dtype=object)


def _strided_slice_gradient(op: Operation, dy: Tensor) -> Any:
    input, *bounds = op.inputs
    grad = strided_slice_gradient_op(dy, shape_of(input), bounds, key=op.attributes["key"])
    return grad, *(None,) * len(bounds)


def _part_elements(op: Operation, known: Known) -> Elements | None:
    whole, dims = known(op.inputs[0]), op.inputs[0].shape.dims
    if len(op.inputs) > 1 or whole is None or dims is None or None in dims:
        return None
    array = np.array(whole, object).reshape(dims)  # type: ignore[arg-type]
    return tuple(np.ravel(array[decoded(op.attributes["key"], ())]).tolist())


def _part_for_all(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
    key = (("slice", None, None, None), *op.attributes["key"])
    return batch.again(op, [value.tensor for value in inputs], key=key)


strided_slice_op = OpDef(
    "StridedSlice",
    "input: T, bounds: *bounds -> output: T",
    T=MOVABLE,
    attributes={"key": REQUIRED},
    infer=_part_shape,
    kernel=_strided_slice,
    host_args=("bounds",),
    grad=_strided_slice_gradient,
    aliases={0: 0},
    keeps_finite=True,
    computes_shapes=True,
    elements=_part_elements,
    batching=Batching(_part_for_all),
    only_moves=True,
)


@strided_slice_op.front
def strided_slice(x: Any, key: Any, name: str | None = None) -> Tensor:
    """`x[key]`, with NumPy's meaning.

    Args:
        x: of any dtype.
        key: an int, a slice with any step, None for a new axis, Ellipsis, or a tuple of them. Ints
            may be scalar integer tensors.

    Raises:
        InvalidIndexError: if an index is out of range; in the run, where it is known only then.
        InvalidTypeError: if an index is an array, a bool or a float.
    """
    stored, bounds = encoded(key)
    return strided_slice_op(x, bounds, key=stored, name=name)


def _scattered_shape(dy: Tensor, shape: Tensor, bounds: list[Tensor], key: Key) -> Shape:
    check_vector("shape", shape)
    return shape_from(shape)


def _scatter_slice(xp: Any, dy: Any, shape: Any, *bounds: Any, key: Key) -> Any:
    result = xp.zeros(dims_of(shape), dtype=dy.dtype)

    def write(actual: Key) -> None:
        result[actual] = dy

    _indexed(write, key, bounds, result.shape)
    return result


strided_slice_gradient_op = OpDef(
    "StridedSliceGrad",
    "dy: T, shape: I, bounds: *bounds -> output: T",
    T=NUMBERS,
    I=INDICES,
    attributes={"key": REQUIRED},
    infer=_scattered_shape,
    kernel=_scatter_slice,
    host_args=("shape", "bounds"),
    grad=lambda op, dz: (
        strided_slice_op(dz, list(op.inputs[2:]), key=op.attributes["key"]),
        *(None,) * (len(op.inputs) - 1),
    ),
    only_moves=True,
)
