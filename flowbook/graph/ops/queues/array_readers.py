"""Readers of files of arrays, piece by piece: what is in memory is one array, or one row group."""

from __future__ import annotations

from collections.abc import Sequence

from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.ops.queues.readers import Reader, reader_op

__all__ = ["NpzReader", "ParquetReader"]

npz_reader_op = reader_op("NpzReader", "npz_members", skip_damaged=False)
parquet_reader_op = reader_op("ParquetReader", "parquet_row_groups", columns=(), skip_damaged=False)


@npz_reader_op.front
class NpzReader(Reader):
    """A reader whose records are the arrays of .npz files, one after another, for `decode_npy`.

    A key is the name of the file and that of the array, such as "data.npz:labels".

    Args:
        skip_damaged: whether arrays that cannot be read are left out. A file that is no .npz file
            at all is an error in any case.
        shared_name: as for `WholeFileReader`.
        name: the operation's name.

    >>> import io
    >>> import numpy as np
    >>> import flowbook as fb
    >>> stream = io.BytesIO()
    >>> np.savez(stream, first=np.float32([1, 2]), second=np.float32([3]))
    >>> with fb.Session() as sess:
    ...     sess.run(fb.write_file("memory://parts.npz", stream.getvalue()))
    ...     names = fb.train.string_input_producer(["memory://parts.npz"], num_epochs=1)
    ...     key, content = fb.NpzReader().read(names)
    ...     part = fb.decode_npy(content, fb.float32, [None])
    ...     for found in fb.train.until_end(sess, (key, part)):
    ...         print(*found)
    b'memory://parts.npz:first' [1. 2.]
    b'memory://parts.npz:second' [3.]
    """

    def __init__(
        self,
        skip_damaged: bool = False,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        self._make(npz_reader_op, name, skip_damaged=bool(skip_damaged), shared_name=shared_name)


@parquet_reader_op.front
class ParquetReader(Reader):
    """A reader whose records are the row groups of Parquet files, for `decode_parquet`.

    Each is a Parquet file of its own, without compression. A key is the name of the file and the
    number of the row group in it, from 0 on. With `enqueue_many=True` the functions that make
    batches take the rows one by one.

    Args:
        columns: the names of the columns that are read; all by default.
        skip_damaged: whether row groups that cannot be read are left out. A file that is no Parquet
            file at all is an error in any case.
        shared_name: as for `WholeFileReader`.
        name: the operation's name.

    Raises:
        InvalidTypeError: if the columns are no list of names.
        UnimplementedError: in the run, if pyarrow is not installed.
        NotFoundError: in the run, if a file has no such column.
        DataLossError: in the run, if it is damaged.

    >>> import io
    >>> import pyarrow
    >>> from pyarrow import parquet
    >>> import flowbook as fb
    >>> stream = io.BytesIO()
    >>> parquet.write_table(pyarrow.table({"x": [1.5, 2.5, 3.5]}), stream, row_group_size=2)
    >>> with fb.Session() as sess:
    ...     sess.run(fb.write_file("memory://rows.parquet", stream.getvalue()))
    ...     names = fb.train.string_input_producer(["memory://rows.parquet"], num_epochs=1)
    ...     key, content = fb.ParquetReader(["x"]).read(names)
    ...     rows = fb.decode_parquet(content, {"x": fb.float64})
    ...     for found in fb.train.until_end(sess, rows["x"]):
    ...         print(found)
    [1.5 2.5]
    [3.5]
    """

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        skip_damaged: bool = False,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        listed = [] if columns is None else columns
        if not isinstance(listed, list | tuple) or not all(isinstance(c, str) for c in listed):
            raise InvalidTypeError(f"columns are a list of names, not {columns!r:.80}")
        self._make(
            parquet_reader_op,
            name,
            columns=tuple(listed),
            skip_damaged=bool(skip_damaged),
            shared_name=shared_name,
        )
