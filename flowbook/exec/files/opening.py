"""Files opened: on this machine's disks, or anywhere that fsspec knows.

What is in a file is not trusted: nothing is read because of a number in it but in pieces, so that
one which lies needs no more memory than the file has bytes.
"""

from __future__ import annotations

import glob
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from flowbook.graph.model.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
    UnimplementedError,
)

# Where who reads may leave out what is damaged.
SKIPPING = "skip_damaged=True leaves out what is damaged"

# As much as is read at once of what may be of any size.
_PIECE = 1 << 20


@contextmanager
def opened(path: str, compression: str = "", hint: str | None = None) -> Iterator[BinaryIO]:
    """A stream of a file's bytes, decompressed; what goes wrong with it in the block is named.

    Args:
        path: a path, or a URL that fsspec knows.
        compression: "gzip" or "zlib"; "" if it is not compressed.
        hint: what to do where what is compressed is damaged.

    Raises:
        NotFoundError: if there is no such file.
        FailedPreconditionError: if it may not be read, or is none.
        UnavailableError: if it cannot be read now.
        UnimplementedError: if nothing here opens such URLs.
        DataLossError: if what is compressed is damaged.
    """
    with naming(path), _opened(path) as raw:
        try:
            yield _decompressed(raw, compression)
        except (zlib.error, EOFError, gzip.BadGzipFile):
            place = raw.tell()
            raise damaged(path, place, "what is compressed", "before", hint) from None


def created(path: str) -> Any:
    """A stream of what becomes a file's bytes, in place of a file that is there."""
    if not _is_far(path):
        return open(path, "wb")
    system, place = _located(path)
    return system.open(place, "wb")


def file_names(pattern: str) -> list[str]:
    """The names of the files that a pattern describes, sorted.

    Args:
        pattern: a path, or a URL that fsspec knows, in which `*`, `?` and `[...]` stand for
            characters of one name, and `**` for folders.

    Raises:
        UnimplementedError: if nothing here opens such URLs.
        UnavailableError: if they cannot be asked for now.
    """
    with naming(pattern):
        if not _is_far(pattern):
            return sorted(filter(os.path.isfile, glob.glob(pattern, recursive=True)))
        system, path = _located(pattern)
        return sorted(system.unstrip_protocol(n) for n in system.glob(path) if system.isfile(n))


def read_all(file: BinaryIO, count: int) -> bytes:
    """So many bytes of a file; fewer where it ends before."""
    found = file.read(min(count, _PIECE))
    if len(found) == count:
        return found
    pieces = [found]
    while pieces[-1]:
        count -= len(pieces[-1])
        pieces.append(file.read(min(count, _PIECE)))
    return b"".join(pieces)


def skip(file: BinaryIO, count: int) -> None:
    """Leave out so many bytes of a file."""
    if file.seekable():
        file.seek(count, os.SEEK_CUR)
        return
    while count > 0 and (found := file.read(min(count, _PIECE))):
        count -= len(found)


def damaged(
    path: str, offset: int, what: str, where: str = "at", hint: str | None = None
) -> DataLossError:
    """The error of a file that is damaged."""
    return DataLossError(f"{path}: {what} {where} byte {offset} is damaged, or cut off", hint=hint)


def _is_far(path: str) -> bool:
    return "://" in path or "::" in path


def _opened(path: str) -> Any:
    if not _is_far(path):
        return open(path, "rb")
    system, place = _located(path)
    return system.open(place, "rb")


def _located(url: str) -> tuple[Any, str]:
    """The file system of a URL, and where the file is in there."""
    from fsspec.core import url_to_fs

    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise UnimplementedError(f"{url!r} cannot be opened: {error}") from None
    return system, path


@contextmanager
def naming(path: str, done: str = "read") -> Iterator[None]:
    """Have what the operating system says be an error of Flowbook's own that names the file.

    Args:
        path: the file's.
        done: what is done to it.

    Raises:
        InvalidArgumentError: if it is no path.
        NotFoundError: if there is no such file.
        FailedPreconditionError: if that may not be done, or it is no file.
        UnavailableError: if that cannot be done now.
    """
    if "\0" in path:
        raise InvalidArgumentError(f"{path!r:.80} is no name of a file")
    try:
        yield
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path!r}") from None
    except (IsADirectoryError, NotADirectoryError, FileExistsError, PermissionError) as error:
        raise FailedPreconditionError(f"{path!r} cannot be {done}: {_reason(error)}") from None
    except OSError as error:
        raise UnavailableError(f"{path!r} cannot be {done}: {_reason(error)}") from None


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _decompressed(raw: BinaryIO, compression: str) -> BinaryIO:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
    if compression == "zlib":
        return io.BufferedReader(_Inflated(raw))
    return raw


class _Inflated(io.RawIOBase):
    """The content of a stream that zlib has compressed.

    Args:
        raw: the stream.
    """

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._inflate = zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as one piece of the stream does.

        Raises:
            EOFError: if the stream ends before what is compressed does.
            zlib.error: if that is damaged.
        """
        inflate = self._inflate
        while not inflate.eof:
            given = inflate.unconsumed_tail or self._raw.read(_PIECE)
            found = inflate.decompress(given, len(buffer))
            if found:
                buffer[: len(found)] = found
                return len(found)
            if not given:
                raise EOFError
        return 0
