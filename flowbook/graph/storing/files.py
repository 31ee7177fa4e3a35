"""Files that are there whole or not at all. The one module of this layer that opens files.

What a graph is as a file is `graph_file.py`'s to know, which works on streams; `Graph.save` and
`Graph.load` belong to the graph as `to_bytes` does, so the few lines that turn a path into a stream
stand here rather than in a layer above.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from flowbook.graph.model.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    NotFoundError,
    ResourceExhaustedError,
)


def as_path(path: Any) -> str:
    """A path as text; InvalidTypeError if it is none."""
    try:
        found = os.fspath(path)
    except TypeError:
        raise InvalidTypeError(f"a file is named by a path, not {path!r:.80}") from None
    return os.fsdecode(found)


@contextmanager
def written_whole(path: str) -> Iterator[BinaryIO]:
    """A stream whose content becomes the file when the block ends without an error.

    Until then, and if it ends with one, the file stays as it was: readers never see a part.

    Raises:
        InvalidArgumentError: if there is something else than a regular file of that name, such as a
            folder, a device or a pipe: it is not replaced.
    """
    target = os.path.realpath(path)  # A link stays, and leads to it.
    if os.path.exists(target) and not os.path.isfile(target):
        raise InvalidArgumentError(
            f"{path!r} is no regular file, and is not replaced",
            hint="give the name of a file",
        )
    folder, name = os.path.split(target)
    # In the same folder, as renaming is atomic within one file system only.
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, os.path.join(folder, name))
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    flush_folder(folder)


def flush_folder(folder: str) -> None:
    """Make the new name last, where the system can: not every one opens folders."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """A stream of a file's bytes; NotFoundError if there is no such file."""
    try:
        file = open(path, "rb")  # noqa: SIM115 (the block is the caller's)
    except FileNotFoundError:
        raise no_such_file(path) from None
    with file:
        yield file


def contents(path: Path, most: int) -> bytes:
    """All bytes of a file.

    Raises:
        NotFoundError: if it is not there.
        InvalidArgumentError: if it cannot be read.
        ResourceExhaustedError: if there are more than `most`.
    """
    try:
        if path.stat().st_size > most:
            raise ResourceExhaustedError(f"{str(path)!r} is larger than {most} bytes")
        return path.read_bytes()
    except FileNotFoundError:
        raise no_such_file(str(path)) from None
    except OSError as error:
        raise InvalidArgumentError(f"{str(path)!r} cannot be read: {error.strerror}") from None


def no_such_file(path: str) -> NotFoundError:
    """The error of a file that is not there."""
    return NotFoundError(f"there is no file {path!r}")
