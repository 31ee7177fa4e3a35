"""Folders of files that are there whole or not at all: on this machine's disks, or anywhere else.

A path is a local one, or a URL that fsspec knows, such as "s3://bucket/runs" or "memory://run".
Locally a file is written aside, brought to the disk, and renamed. Elsewhere that is the file
system's own business: object stores have no file before it is closed.
"""

from __future__ import annotations

import os
import posixpath
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, BinaryIO, Protocol

from flowbook.graph.model.errors import DataLossError, InvalidArgumentError, UnimplementedError
from flowbook.graph.storing import files


class Folder(Protocol):
    """A folder.

    Attributes:
        path: its path, as it was given.
    """

    path: str

    def within(self, name: str) -> Folder:
        """The folder of that name in it, which need not exist."""

    def names(self) -> list[str]:
        """What is in it; nothing if it does not exist."""

    def create(self) -> None:
        """See that it exists."""

    def written(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A stream whose content becomes the file when the block ends without an error."""

    def opened(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A stream of a file's bytes, which can be read anywhere.

        Raises:
            NotFoundError: if there is no such file.
        """

    def delete(self, name: str) -> None:
        """Remove a file, if it is there; it is gone before anything that is done later."""

    def remove(self) -> None:
        """Remove the folder and all that is in it."""


def folder_at(path: Any) -> Folder:
    """The folder of a path or a URL.

    Raises:
        InvalidTypeError: if it is neither.
        UnimplementedError: if what knows such URLs is not installed.
    """
    text = files.as_path(path).removeprefix("file://")
    return FarFolder(text) if "://" in text else LocalFolder(text)


def split(path: Any) -> tuple[Folder, str]:
    """The folder of a path or a URL, and the name of what it leads to in there."""
    text = files.as_path(path)
    if "://" in text:
        around, _, name = text.rstrip("/").rpartition("/")
        around += "/" * around.endswith(":/")
    else:
        around, name = os.path.split(text.rstrip(os.sep))
    if not name or name in (os.curdir, os.pardir):
        raise InvalidArgumentError(f"{text!r} does not end in the name of a file")
    return folder_at(around or os.curdir), name


def checked_name(name: Any) -> str:
    """The name of a file in a folder; DataLossError if it would lead out of that."""
    if not isinstance(name, str) or not name or name in (".", "..") or {*name} & {*"/\\:\0"}:
        raise DataLossError(f"{name!r:.80} is not the name of a file")
    return name


class LocalFolder:
    """A folder of a file system that this machine has mounted."""

    def __init__(self, path: str) -> None:
        self.path = path

    def within(self, name: str) -> LocalFolder:
        """See `Folder`."""
        return LocalFolder(os.path.join(self.path, name))

    def names(self) -> list[str]:
        """See `Folder`."""
        try:
            return sorted(os.listdir(self.path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def create(self) -> None:
        """See `Folder`."""
        if os.path.isdir(self.path):
            return
        os.makedirs(self.path, exist_ok=True)
        files.flush_folder(os.path.dirname(os.path.abspath(self.path)))

    def written(self, name: str) -> AbstractContextManager[BinaryIO]:
        """See `Folder`."""
        return files.written_whole(os.path.join(self.path, name))

    def opened(self, name: str) -> AbstractContextManager[BinaryIO]:
        """See `Folder`."""
        return files.opened(os.path.join(self.path, name))

    def delete(self, name: str) -> None:
        """See `Folder`."""
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.path, name))
            files.flush_folder(self.path)

    def remove(self) -> None:
        """See `Folder`."""
        shutil.rmtree(self.path, ignore_errors=True)


class FarFolder:
    """A folder of a file system that fsspec knows.

    Args:
        url: its URL.
    """

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs

            self._system, self._root = url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise UnimplementedError(f"{url!r} cannot be opened: {error}") from None
        self.path = url

    def within(self, name: str) -> FarFolder:
        """See `Folder`."""
        return FarFolder(posixpath.join(self.path, name))

    def names(self) -> list[str]:
        """See `Folder`."""
        self._system.invalidate_cache(self._root)
        try:
            found = self._system.ls(self._root, detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(posixpath.basename(path.rstrip("/")) for path in found)

    def create(self) -> None:
        """See `Folder`."""
        self._system.makedirs(self._root, exist_ok=True)

    @contextmanager
    def written(self, name: str) -> Iterator[BinaryIO]:
        """See `Folder`."""
        file = self._system.open(posixpath.join(self._root, name), "wb", autocommit=False)
        try:
            yield file
            file.close()
        except BaseException:
            with suppress(Exception):
                file.discard()
            raise
        file.commit()

    @contextmanager
    def opened(self, name: str) -> Iterator[BinaryIO]:
        """See `Folder`."""
        path = posixpath.join(self._root, name)
        try:
            file = self._system.open(path, "rb")
        except FileNotFoundError:
            raise files.no_such_file(posixpath.join(self.path, name)) from None
        with file:
            yield file

    def delete(self, name: str) -> None:
        """See `Folder`."""
        with suppress(FileNotFoundError):
            self._system.rm(posixpath.join(self._root, name))

    def remove(self) -> None:
        """See `Folder`."""
        with suppress(FileNotFoundError):
            self._system.rm(self._root, recursive=True)
