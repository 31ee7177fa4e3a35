"""Files of records in TensorFlow's format (TFRecord): bytes with their length and checksums."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from flowbook.exec.instruments.summaries.records import masked_checksum, record
from flowbook.graph.model.errors import (
    DataLossError,
    InvalidArgumentError,
    InvalidTypeError,
    UnimplementedError,
)

__all__ = ["RecordWriter", "read_records"]

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")


def _opened(path: Any, mode: str, compression: str | None) -> Any:
    if compression not in (None, "gzip"):
        raise InvalidArgumentError(f"compression is 'gzip' or None, not {compression!r}")
    try:
        import fsspec
        import google_crc32c  # noqa: F401  What computes checksums comes with the same extra.
    except ImportError:
        raise UnimplementedError(
            "files are opened by fsspec and checked by google-crc32c, and one is not installed",
            hint="pip install 'flowbook[data]'",
        ) from None
    return fsspec.open(path, mode, compression=compression).open()


class RecordWriter:
    """Writes a file of records. As a context manager it is closed with the block.

    Args:
        path: a path, or a URL that fsspec knows.
        compression: "gzip", or None.

    >>> import flowbook as fb
    >>> with fb.train.RecordWriter("memory://words.records") as records:
    ...     for word in (b"one", b"two"):
    ...         records.write(word)
    >>> list(fb.train.read_records("memory://words.records"))
    [b'one', b'two']
    """

    def __init__(self, path: Any, compression: str | None = None) -> None:
        self._file = _opened(path, "wb", compression)

    def write(self, data: bytes) -> None:
        """Add a record."""
        if not isinstance(data, bytes):
            raise InvalidTypeError(f"a record is bytes, not {data!r:.60}")
        self._file.write(record(data))

    def flush(self) -> None:
        """Hand on what has been written."""
        self._file.flush()

    def close(self) -> None:
        """End the file."""
        self._file.close()

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
        compression: "gzip", or None.
        skip_damaged: whether records with wrong checksums are left out, and what follows a damaged
            length too, as nobody knows where the next record begins.

    Raises:
        DataLossError: with the file and the offset, if a record is damaged.
    """
    with _opened(path, "rb", compression) as file:
        offset = 0
        while head := file.read(_LENGTH.size + _CHECKSUM.size):
            # Of a damaged length nothing is read: it may be of any size.
            if not _is_whole(head[: _LENGTH.size], head[_LENGTH.size :]):
                if skip_damaged:
                    return
                raise _lost(path, offset, "the length")
            (size,) = _LENGTH.unpack_from(head)
            data = file.read(size)
            if _is_whole(data, file.read(_CHECKSUM.size)):
                yield data
            elif not skip_damaged:
                raise _lost(path, offset, "the record")
            offset += len(head) + size + _CHECKSUM.size


def _is_whole(data: bytes, checksum: bytes) -> bool:
    return checksum == _CHECKSUM.pack(masked_checksum(data))


def _lost(path: Any, offset: int, what: str) -> DataLossError:
    return DataLossError(
        f"{path}: {what} at byte {offset} is damaged, or cut off",
        hint="skip_damaged=True leaves out what is damaged",
    )
