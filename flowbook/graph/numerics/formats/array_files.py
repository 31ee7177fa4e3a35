"""Arrays in the contents of files: NumPy's .npy and .npz, and columns of Parquet's."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from flowbook.graph.model.parsing import undisturbed


def npy_array(content: bytes) -> Any:
    """The array of a .npy file; DataLossError if it is none, or holds Python objects."""
    try:
        shape, is_fortran, dtype, start = undisturbed(_npy_header, content)
    except Exception as error:  # The header is an expression of Python's, which NumPy takes apart.
        raise DataLossError(f"this is no .npy file: {error}") from None
    if dtype.hasobject:
        raise DataLossError("a .npy file of Python objects is not read: it may run any code")
    size = math.prod(shape) * dtype.itemsize
    # Of what the header says nothing is made before it is there.
    if len(content) - start != size:
        raise DataLossError(
            f"a .npy file of shape {list(shape)} and {dtype} has {size} bytes, not "
            f"{len(content) - start}"
        )
    flat = np.frombuffer(content, dtype, offset=start)
    found = flat.reshape(shape[::-1]).T if is_fortran else flat.reshape(shape)
    return np.array(found, dtype.newbyteorder("="), order="C")


def _npy_header(content: bytes) -> tuple[tuple[int, ...], bool, Any, int]:
    """An array's shape, whether columns come first, its dtype, and where its elements begin."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0}
    header = read.get(version, np.lib.format.read_array_header_2_0)
    return *header(stream), stream.tell()


def npz_arrays(content: bytes, names: Sequence[str]) -> list[Any]:
    """Arrays of a .npz file by their names.

    Raises:
        DataLossError: if it is none, or damaged.
        NotFoundError: if it has none of such a name.
    """
    with _archive(io.BytesIO(content)) as archive:
        there = {n.removesuffix(".npy"): n for n in archive.namelist() if n.endswith(".npy")}
        for name in names:
            if name not in there:
                raise NotFoundError(
                    f"the .npz file has no array {name!r}; it has {', '.join(sorted(there))}"
                )
        members = [archive.getinfo(there[name]) for name in names]
        return [npy_array(_member(archive, member)) for member in members]


def npz_members(file: BinaryIO, start: int, skip_damaged: bool) -> Iterator[tuple[int, str, bytes]]:
    """The arrays of a .npz file from the given one on: their numbers and names, and .npy files.

    Args:
        file: can be read anywhere; of what is in it one array at a time is in memory.
        start: the number of the first array.
        skip_damaged: whether those are left out that cannot be read.

    Raises:
        DataLossError: if it is none, or damaged.
    """
    with _archive(file) as archive:
        for number, member in enumerate(archive.infolist()[start:], start):
            try:
                content = _member(archive, member)
            except DataLossError:
                if skip_damaged:
                    continue
                raise
            yield number, member.filename.removesuffix(".npy"), content


# What the module raises of a file that is damaged, or of a kind that it does not read.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


def _archive(file: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except _UNREADABLE as error:
        raise DataLossError(f"this is no .npz file: {error}") from None


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """What is in one file of a .npz file."""
    try:
        return archive.read(member)
    except _UNREADABLE as error:
        raise DataLossError(
            f"{member.filename!r} at byte {member.header_offset} of the .npz file cannot be read: "
            f"{error}"
        ) from None


def parquet_row_groups(
    file: BinaryIO, names: Sequence[str], start: int, skip_damaged: bool
) -> Iterator[tuple[int, bytes]]:
    """The row groups of a Parquet file from the given one on: their numbers, and each as a file.

    Args:
        file: can be read anywhere; of what is in it one row group at a time is in memory.
        names: those of the columns that are wanted; none are all.
        start: the number of the first row group.
        skip_damaged: whether those are left out that cannot be read.

    Raises:
        UnimplementedError: if pyarrow is not installed.
        DataLossError: if it is none, or damaged.
        NotFoundError: if it has no such column.
    """
    pyarrow, parquet = _pyarrow()
    try:
        whole = parquet.ParquetFile(file)
        _check_columns(names, whole.schema_arrow.names)
        groups = range(start, whole.num_row_groups)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataLossError(f"this is no Parquet file: {str(error)[:200]}") from None
    for number in groups:
        try:
            table = whole.read_row_group(number, list(names) or None)
            sink = io.BytesIO()
            # It is decoded at once: what makes a file small costs time alone.
            parquet.write_table(
                table, sink, compression="NONE", use_dictionary=False, write_statistics=False
            )
        except (pyarrow.ArrowException, OSError) as error:
            if skip_damaged:
                continue
            raise DataLossError(
                f"row group {number} at byte {_start_of(whole.metadata.row_group(number))} of the "
                f"Parquet file cannot be read: {str(error)[:200]}"
            ) from None
        yield number, sink.getvalue()


def _start_of(group: Any) -> int:
    """Where a row group begins in its file."""
    columns = [group.column(number) for number in range(group.num_columns)]
    return min([c.dictionary_page_offset or c.data_page_offset for c in columns], default=0)


def parquet_columns(content: bytes, names: Sequence[str]) -> list[Any]:
    """Columns of a Parquet file by their names, as vectors.

    Raises:
        UnimplementedError: if pyarrow is not installed.
        DataLossError: if it is none, or damaged.
        NotFoundError: if it has no such column.
        InvalidArgumentError: if a value is missing.
    """
    pyarrow, parquet = _pyarrow()
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(content))
        _check_columns(names, file.schema_arrow.names)
        table = file.read(list(names))
    except (pyarrow.ArrowException, OSError) as error:
        raise DataLossError(f"this is no Parquet file: {str(error)[:200]}") from None
    found = []
    for name in names:
        column = table.column(name)
        if column.null_count:
            raise InvalidArgumentError(
                f"column {name!r} lacks {counted(column.null_count, 'value')}"
            )
        found.append(column.to_numpy())
    return found


def _pyarrow() -> tuple[Any, Any]:
    """pyarrow, and what reads its Parquet files; UnimplementedError if it is not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UnimplementedError(
            "Parquet files are read by pyarrow, which is not installed",
            hint="pip install pyarrow",
        ) from None
    return pyarrow, parquet


def _check_columns(wanted: Sequence[str], there: Sequence[str]) -> None:
    for name in wanted:
        if name not in there:
            raise NotFoundError(
                f"the Parquet file has no column {name!r}; it has {', '.join(there)}"
            )
