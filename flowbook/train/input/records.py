"""Files of records in TensorFlow's format (TFRecord): bytes with their length and checksums."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from flowbook.exec.files.formats import tf_records
from flowbook.exec.files.framing import record
from flowbook.exec.files.opening import created
from flowbook.graph.model.attributes import check_choice
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.ops.queues.readers import COMPRESSIONS
from flowbook.graph.storing.files import as_path

__all__ = ["RecordWriter", "read_records"]

# What zlib calls the formats that it writes.
_WINDOWS = {"gzip": 31, "zlib": 15}


def _compression(given: str | None) -> str:
    check_choice("compression", given, (None, *COMPRESSIONS))
    return given or ""


class RecordWriter:
    """Writes a file of records. As a context manager it is closed with the block.

    Args:
        path: a path, or a URL that fsspec knows.
        compression: "gzip", "zlib" or None.

    >>> import flowbook as fb
    >>> with fb.train.RecordWriter("memory://words.records") as records:
    ...     for word in (b"one", b"two"):
    ...         records.write(word)
    >>> list(fb.train.read_records("memory://words.records"))
    [b'one', b'two']
    """

    def __init__(self, path: Any, compression: str | None = None) -> None:
        window = _WINDOWS.get(_compression(compression))
        self._compress = None if window is None else zlib.compressobj(wbits=window)
        self._file = created(as_path(path))

    def write(self, data: bytes) -> None:
        """Add a record."""
        if not isinstance(data, bytes):
            raise InvalidTypeError(f"a record is bytes, not {data!r:.60}")
        self._put(record(data))

    def flush(self) -> None:
        """Hand on what has been written."""
        if self._compress is not None:
            self._file.write(self._compress.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def close(self) -> None:
        """End the file."""
        if self._compress is not None and not self._file.closed:
            self._file.write(self._compress.flush())
        self._file.close()

    def _put(self, data: bytes) -> None:
        self._file.write(data if self._compress is None else self._compress.compress(data))

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def read_records(
    path: Any, compression: str | None = None, skip_damaged: bool = False
) -> Iterator[bytes]:
    """The records of a file, one after another; `from_generator` makes an input of them.

    Args:
        path: a path, or a URL that fsspec knows. The file is opened for the first record.
        compression: "gzip", "zlib" or None.
        skip_damaged: whether records with wrong checksums are left out, and what follows a damaged
            length too, as nobody knows where the next record begins.

    Raises:
        DataLossError: with the file and the offset, if a record is damaged.
    """
    for (_, value), _ in tf_records(as_path(path), (), _compression(compression), skip_damaged):
        yield value
