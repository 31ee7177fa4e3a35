"""Arrays decoded from the contents of files: NumPy's own, and columns of Parquet's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowbook.graph.definition.inference import uncounted
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.convert import dtype_of, to_array
from flowbook.graph.model.dtypes import DType, as_dtype
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import SCALAR, UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.formats.array_files import npy_array, npz_arrays, parquet_columns

__all__ = ["decode_npy", "decode_npz", "decode_parquet"]


def _shapes(contents: Tensor, shapes: tuple[Shape, ...], **_: Any) -> list[Shape]:
    _check_contents(contents)
    return list(shapes)


def _check_contents(contents: Any) -> None:
    shape = Shape(contents.shape)
    if not shape.is_compatible_with(SCALAR):
        raise InvalidArgumentError(
            f"the contents of one file are a string scalar, not of shape {shape}"
        )


def _fitting(name: str, value: Any, dtype: DType, shape: Shape) -> Any:
    """A value of a file, if it is what was promised."""
    array = to_array(value)
    if dtype_of(array) is not dtype or not shape.is_compatible_with(array.shape):
        raise InvalidArgumentError(
            f"{name} is {dtype_of(array).name} {list(array.shape)}, and {dtype.name} {shape} was "
            "promised"
        )
    return array


def _npy(xp: Any, contents: Any, dtype: DType, shape: Shape) -> Any:
    _check_contents(contents)
    return _fitting("the array", npy_array(contents.item()), dtype, shape)


decode_npy_op = OpDef(
    "DecodeNpy",
    "contents: string -> array: dtype",
    attributes={"dtype": REQUIRED, "shape": UNKNOWN},
    infer=lambda contents, shape, **_: _shapes(contents, (shape,))[0],
    kernel=_npy,
    kinds=HOST,
    grad=NO_GRADIENT,
    cost=uncounted,
)


@decode_npy_op.front
def decode_npy(contents: Any, dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """The array of a file of NumPy's, as `numpy.save` writes it.

    Args:
        contents: of a .npy file, a string scalar, as `read_file` or a `WholeFileReader` gives it.
        dtype: that of the array.
        shape: what is known of its shape; None is nothing.

    Raises:
        DataLossError: in the run, if it is damaged, or holds Python objects.
        InvalidArgumentError: in the run, if the array has another dtype or shape.

    >>> import io
    >>> import flowbook as fb
    >>> import numpy as np
    >>> stream = io.BytesIO()
    >>> np.save(stream, np.float32([[1, 2], [3, 4]]))
    >>> rows = fb.decode_npy(stream.getvalue(), fb.float32, [None, 2])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.reduce_sum(rows, axis=0)))
    [4. 6.]
    """
    wanted = as_dtype(dtype)
    known = UNKNOWN if shape is None else Shape(shape)
    return decode_npy_op(contents, dtype=wanted, shape=known, name=name)


def _members(
    read: Callable[[bytes, Sequence[str]], list[Any]], what: str
) -> Callable[..., tuple[Any, ...]]:
    """A kernel that gives what a file holds by names."""

    def kernel(
        xp: Any,
        contents: Any,
        names: tuple[str, ...],
        dtypes: tuple[DType, ...],
        shapes: tuple[Shape, ...],
    ) -> tuple[Any, ...]:
        _check_contents(contents)
        promised = zip(names, read(contents.item(), names), dtypes, shapes, strict=True)
        return tuple([_fitting(f"{what} {name!r}", *rest) for name, *rest in promised])

    return kernel


def _decoding(type: str, kernel: Callable[..., Any]) -> OpDef[list[Tensor]]:
    return OpDef(
        type,
        "contents: string -> values: *dtypes",
        attributes={"names": REQUIRED, "dtypes": REQUIRED, "shapes": REQUIRED},
        infer=_shapes,
        kernel=kernel,
        kinds=HOST,
        grad=NO_GRADIENT,
        cost=uncounted,
    )


decode_npz_op: OpDef[list[Tensor]] = _decoding("DecodeNpz", _members(npz_arrays, "array"))
decode_parquet_op: OpDef[list[Tensor]] = _decoding(
    "DecodeParquet", _members(parquet_columns, "column")
)


@decode_npz_op.front
def decode_npz(
    contents: Any, arrays: Mapping[str, Any], name: str | None = None
) -> dict[str, Tensor]:
    """Arrays of a file of several, as `numpy.savez` writes it.

    Args:
        contents: of a .npz file, a string scalar.
        arrays: what to read, by name: a dtype and a shape, of which dimensions may be None.

    Returns:
        The arrays by their names.

    Raises:
        NotFoundError: in the run, if it has none of such a name.
        DataLossError: in the run, if it is damaged.
        InvalidArgumentError: in the run, if an array has another dtype or shape.
    """
    _check_wanted("arrays", arrays)
    for key, promised in arrays.items():
        if not isinstance(promised, tuple | list) or len(promised) != 2:
            raise InvalidTypeError(f"array {key!r} is (dtype, shape), not {promised!r:.80}")
    promised = {key: (as_dtype(t), Shape(shape)) for key, (t, shape) in arrays.items()}
    return _read(decode_npz_op, contents, promised, name)


@decode_parquet_op.front
def decode_parquet(
    contents: Any, columns: Mapping[str, Any], name: str | None = None
) -> dict[str, Tensor]:
    """Columns of a Parquet file, which pyarrow reads.

    With `enqueue_many=True` the functions that make batches take them row by row.

    Args:
        contents: of a file, a string scalar, as `read_file` or a `WholeFileReader` gives it.
        columns: what to read: the dtype of each column by its name.

    Returns:
        The columns by their names: vectors of one length.

    Raises:
        NotFoundError: in the run, if it has no such column.
        DataLossError: in the run, if it is damaged.
        InvalidArgumentError: in the run, if a column has another dtype, or values are missing.
    """
    _check_wanted("columns", columns)
    promised = {key: (as_dtype(dtype), Shape([None])) for key, dtype in columns.items()}
    return _read(decode_parquet_op, contents, promised, name)


def _check_wanted(what: str, given: Any) -> None:
    if not isinstance(given, Mapping) or not given:
        raise InvalidTypeError(f"{what} are a dict of what to read, not {given!r:.80}")


def _read(
    op_def: OpDef[list[Tensor]],
    contents: Any,
    promised: Mapping[str, tuple[DType, Shape]],
    name: str | None,
) -> dict[str, Tensor]:
    """What a file holds, by names, each of which has a dtype and a shape."""
    dtypes, shapes = zip(*promised.values(), strict=True)
    found = op_def(contents, names=tuple(promised), dtypes=dtypes, shapes=shapes, name=name)
    return dict(zip(promised, found, strict=True))
