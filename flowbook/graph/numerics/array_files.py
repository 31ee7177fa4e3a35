"""Arrays in the contents of files: NumPy's .npy and .npz, and columns of Parquet's."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.model.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)


def npy_array(content: bytes) -> Any:
    """The array of a .npy file; DataLossError if it is none, or holds Python objects."""
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0}
        header = read.get(version, np.lib.format.read_array_header_2_0)
        shape, is_fortran, dtype = header(stream)
    except Exception as error:  # The header is an expression of Python's, which NumPy takes apart.
        raise DataLossError(f"this is no .npy file: {error}") from None
    if dtype.hasobject:
        raise DataLossError("a .npy file of Python objects is not read: it may run any code")
    start, size = stream.tell(), math.prod(shape) * dtype.itemsize
    # Of what the header says nothing is made before it is there.
    if len(content) - start != size:
        raise DataLossError(
            f"a .npy file of shape {list(shape)} and {dtype} has {size} bytes, not "
            f"{len(content) - start}"
        )
    flat = np.frombuffer(content, dtype, offset=start)
    found = flat.reshape(shape[::-1]).T if is_fortran else flat.reshape(shape)
    return np.array(found, dtype.newbyteorder("="), order="C")


def npz_arrays(content: bytes, names: Sequence[str]) -> list[Any]:
    """Arrays of a .npz file by their names.

    Raises:
        DataLossError: if it is none, or damaged.
        NotFoundError: if it has none of such a name.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            there = {name.removesuffix(".npy") for name in archive.namelist()}
            for name in names:
                if name not in there:
                    raise NotFoundError(
                        f"the .npz file has no array {name!r}; it has {', '.join(sorted(there))}"
                    )
            return [npy_array(archive.read(f"{name}.npy")) for name in names]
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, DataLossError):
            raise
        raise DataLossError(f"this is no .npz file: {error}") from None


def parquet_columns(content: bytes, names: Sequence[str]) -> list[Any]:
    """Columns of a Parquet file by their names, as vectors.

    Raises:
        UnimplementedError: if pyarrow is not installed.
        DataLossError: if it is none, or damaged.
        NotFoundError: if it has no such column.
        InvalidArgumentError: if a value is missing.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UnimplementedError(
            "Parquet files are read by pyarrow, which is not installed",
            hint="pip install 'flowbook[data]'",
        ) from None
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(content))
        there = file.schema_arrow.names
        table = file.read([name for name in names if name in there])
    except (pyarrow.ArrowException, OSError) as error:
        raise DataLossError(f"this is no Parquet file: {str(error)[:200]}") from None
    found = []
    for name in names:
        if name not in there:
            raise NotFoundError(
                f"the Parquet file has no column {name!r}; it has {', '.join(there)}"
            )
        column = table.column(name)
        if column.null_count:
            raise InvalidArgumentError(f"column {name!r} lacks {column.null_count} values")
        found.append(column.to_numpy())
    return found
