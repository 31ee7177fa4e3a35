"""A checkpoint: a folder of arrays in one file per device, and an index that says what they are.

    index.json                          what there is, and the digest of each array
    cpu-0.<random>.safetensors          the arrays of one device (`tensor_file.py`)

The index comes last, and is written whole or not at all: with it the checkpoint exists, and one of
the same name is replaced. The files of arrays have names of their own each time, so that those of
the checkpoint before stay whole until then. What a process left that was killed on the way is
removed when the same checkpoint is written again, or a saver writes another one of that name.

What is read is not trusted: the names of files may not lead out of the folder, sizes are those of
the files, and every array is held against its digest.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from flowbook.exec.checkpoints.folder import Folder, checked_name, folder_at, split
from flowbook.exec.checkpoints.tensor_file import TensorFile, write_arrays
from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
)

__all__ = ["checkpoint_exists", "latest_checkpoint", "list_variables", "load_variable"]

Array = np.ndarray[Any, Any]

# The format that this version writes and reads.
_FORMAT = 1
_INDEX = "index.json"
_MAX_INDEX = 1 << 30
_FILE_NAMES = re.compile(r"\..*\.tmp\Z|.*\.[0-9a-f]{8}\.safetensors\Z")

# The names of the folders that threads of this process write just now. Without the rest of their
# paths: one place may be spelled in several ways.
_under_way: list[str] = []
_lock = threading.Lock()
os.register_at_fork(after_in_child=_lock._at_fork_reinit)  # type: ignore[attr-defined]


class Entry(NamedTuple):
    """One array of a checkpoint.

    Attributes:
        dtype: of its elements.
        shape: its dimensions.
        file: which file has it.
        digest: that of its bytes.
    """

    dtype: DType
    shape: tuple[int, ...]
    file: str
    digest: str

    def __str__(self) -> str:
        return f"{self.dtype.name} {list(self.shape)}"


class About(NamedTuple):
    """What a checkpoint says of itself.

    Attributes:
        time: when it was taken, in seconds since 1970.
        step: the number of the step after which it was taken, if it is known.
        metric: how good it is, if somebody said so.
    """

    time: float
    step: int | None = None
    metric: float | None = None


def write_checkpoint(
    path: str,
    arrays: Mapping[str, Mapping[str, Array]],
    about: About | None = None,
    state: Mapping[str, Any] | None = None,
) -> None:
    """Write a checkpoint, in place of one of the same name.

    Args:
        path: its folder.
        arrays: those of each device, by the device's full name.
        about: what it says of itself.
        state: what else belongs to it, in JSON's terms.

    Raises:
        OSError: if it cannot be written; one that was there before is there still.
    """
    folder, name = split(path)
    with _being_written(name):
        _write(folder.within(name), arrays, about or About(time.time()), state or {})


def _write(
    folder: Folder,
    arrays: Mapping[str, Mapping[str, Array]],
    about: About,
    state: Mapping[str, Any],
) -> None:
    try:
        folder.create()
        _remove_all_but(folder, _files_of(folder))
        written = _written(folder, arrays, about, state)
    except BaseException as error:
        _undo(folder)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = folder.path
        raise
    # It is there: nobody is told otherwise because what it replaces could not be removed.
    with suppress(OSError):
        _remove_all_but(folder, written)


@contextmanager
def _being_written(name: str) -> Iterator[None]:
    """See that nobody takes what is in a folder of this name for what a killed process left."""
    with _lock:
        _under_way.append(name)
    try:
        yield
    finally:
        with _lock:
            _under_way.remove(name)


def _written(
    folder: Folder,
    arrays: Mapping[str, Mapping[str, Any]],
    about: About,
    state: Mapping[str, Any],
) -> Collection[str]:
    """Write the files of a checkpoint, the index last; their names."""
    tensors, written = {}, {_INDEX}
    for device, held in arrays.items():
        file_name = f"{_short(device)}.{secrets.token_hex(4)}.safetensors"
        written.add(file_name)
        with folder.written(file_name) as file:
            digests = write_arrays(file, held)
        for key, array in held.items():
            tensors[key] = {
                "dtype": dtypes.as_dtype(array.dtype).name,
                "shape": list(array.shape),
                "file": file_name,
                "digest": digests[key],
            }
    index = {"format": _FORMAT, **about._asdict(), "state": dict(state), "tensors": tensors}
    content = json.dumps(index, ensure_ascii=False).encode()
    with folder.written(_INDEX) as file:
        file.write(content)
    return written


def _undo(folder: Folder) -> None:
    """Remove what was written of a checkpoint that came to nothing: its room may be wanted."""
    with suppress(OSError):
        _remove_all_but(folder, _files_of(folder))
        if not folder.names():
            folder.remove()


def _short(device: str) -> str:
    """What a device's file is called, such as "cpu-0" or "worker-17-gpu-3"."""
    short = device.removeprefix("/job:localhost/task:0")
    return re.sub(r"/?(job|task|device):|[/:]", "-", short).strip("-")


def _files_of(folder: Folder) -> Collection[str]:
    """The files of the checkpoint that is there; none if there is none, or nobody can read it."""
    try:
        return {_INDEX, *(entry.file for entry in Checkpoint(folder).entries.values())}
    except (NotFoundError, DataLossError):
        return ()


def _remove_all_but(folder: Folder, kept: Collection[str]) -> None:
    """Remove what a checkpoint has no use for, of what some checkpoint has written."""
    for name in folder.names():
        if name not in kept and _FILE_NAMES.match(name):
            folder.delete(name)


def remove_checkpoint(path: str) -> None:
    """Remove a checkpoint: at no moment is there a part of one.

    Raises:
        OSError: if it cannot be removed.
    """
    folder = folder_at(path)
    folder.delete(_INDEX)
    folder.remove()


def remove_unfinished(folder: Folder, prefix: str) -> None:
    """Remove what killed processes left of checkpoints of one name, whatever their steps.

    Raises:
        OSError: if it cannot be removed.
    """
    for name in folder.names():
        if not _is_step(name, prefix):
            continue
        left = folder.within(name)
        with _lock:
            if name in _under_way:
                continue
            # An index is none of these.
            if all(map(_FILE_NAMES.match, left.names())):
                left.remove()


class Checkpoint:
    """A checkpoint that is there.

    Args:
        folder: where.

    Attributes:
        path: its path.
        about: what it says of itself.
        entries: its arrays, by name.
        state: what else belongs to it.

    Raises:
        NotFoundError: if there is none.
        DataLossError: if its index is damaged.
        InvalidArgumentError: if it is of a format that is not known here.
    """

    def __init__(self, folder: Folder) -> None:
        self.path = folder.path
        self._folder = folder
        try:
            with folder.opened(_INDEX) as file:
                content = file.read(_MAX_INDEX + 1)
        except (NotFoundError, NotADirectoryError):
            raise NotFoundError(f"there is no checkpoint {folder.path!r}") from None
        try:
            index = json.loads(content)
            found = index["format"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._damaged() from None
        if found != _FORMAT:
            raise InvalidArgumentError(
                f"the checkpoint {folder.path!r} has the format {found!r:.20}; this version of "
                f"Flowbook reads {_FORMAT}"
            )
        try:
            self.about = _about(index)
            self.state: Mapping[str, Any] = {**index["state"]}
            self.entries = {name: _entry(e) for name, e in index["tensors"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._damaged() from None

    def read(self, names: Iterable[str]) -> dict[str, Array]:
        """Some of its arrays.

        Raises:
            NotFoundError: if it does not have one, or one of its files is missing.
            DataLossError: if one is damaged.
        """
        by_file: dict[str, list[str]] = {}
        for name in names:
            by_file.setdefault(self.entry(name).file, []).append(name)
        found = {}
        for file_name, listed in by_file.items():
            with self._folder.opened(file_name) as file:
                tensors = TensorFile(file, f"{file_name!r} of the checkpoint {self.path!r}")
                for name in listed:
                    entry, stored = self.entries[name], tensors.stored.get(name)
                    if stored is None or (stored.dtype, stored.shape) != entry[:2]:
                        raise self._damaged()
                    found[name] = tensors.read(name, entry.digest)
        return found

    def entry(self, name: str) -> Entry:
        """What it says of an array.

        Raises:
            NotFoundError: if it has none of that name; the nearest names are given.
        """
        entry = self.entries.get(name)
        if entry is None:
            close = difflib.get_close_matches(name, self.entries, 3)
            raise NotFoundError(
                f"the checkpoint {self.path!r} has no {name!r}",
                hint=f"did you mean {' or '.join(map(repr, close))}?"
                if close
                else f"it has {len(self.entries)}: fb.train.list_variables({self.path!r})",
            )
        return entry

    def _damaged(self) -> DataLossError:
        return DataLossError(f"the index of the checkpoint {self.path!r} is damaged")


def _about(index: Mapping[str, Any]) -> About:
    step, metric = index["step"], index["metric"]
    return About(
        float(index["time"]),
        None if step is None else int(step),
        None if metric is None else float(metric),
    )


def _entry(message: Mapping[str, Any]) -> Entry:
    return Entry(
        dtypes.BY_NAME[message["dtype"]],
        tuple([int(dim) for dim in message["shape"]]),
        checked_name(message["file"]),
        str(message["digest"]),
    )


# Finding them


def found_in(folder: Folder, prefix: str = "") -> list[Checkpoint]:
    """The checkpoints of a folder, the oldest first.

    What is no checkpoint is passed over, and so is one whose index cannot be read.

    Args:
        folder: the folder.
        prefix: only those of this name, whatever their step; "" gives all.
    """
    return _looked_through(folder, prefix)[0]


def _looked_through(folder: Folder, prefix: str) -> tuple[list[Checkpoint], list[OpError]]:
    """As `found_in`, and what is wrong with those that have arrays and no index to be read."""
    found: list[Checkpoint] = []
    wrong: list[OpError] = []
    for name in folder.names():
        if not prefix or name == prefix or _is_step(name, prefix):
            inside = folder.within(name)
            try:
                found.append(Checkpoint(inside))
            except NotFoundError:
                pass
            except (DataLossError, InvalidArgumentError) as error:
                if any(map(_FILE_NAMES.match, inside.names())):
                    wrong.append(error)
    return sorted(found, key=lambda each: (each.about.time, each.about.step or 0)), wrong


def _is_step(name: str, prefix: str) -> bool:
    """Whether a folder is called as the checkpoint of a step."""
    return re.fullmatch(rf"{re.escape(prefix)}-\d+", name) is not None


def checkpoint_at(path: Any) -> Checkpoint:
    """The checkpoint of a path, or the latest of those in the folder of that path.

    Raises:
        NotFoundError: if there is none.
        DataLossError: if its index is damaged, or those of all that are in the folder.
        InvalidArgumentError: if they are of a format that is not known here.
    """
    folder = folder_at(path)
    try:
        return Checkpoint(folder)
    except NotFoundError as error:
        missing = error
    found, wrong = _looked_through(folder, "")
    if found:
        return found[-1]
    if wrong:
        raise wrong[-1]
    with suppress(InvalidArgumentError, OSError):  # As of ".", and of what nobody may list.
        if named := found_in(*split(path)):
            missing.hint = f"the latest of this name is {named[-1].path!r}"
    raise missing


def latest_checkpoint(folder: Any, prefix: str = "") -> str | None:
    """The path of the latest checkpoint in a folder; None if there is none.

    Args:
        folder: the folder, as a path or a URL that fsspec knows.
        prefix: only checkpoints of this name, whatever their steps; "" means any.

    One that was not written to its end does not count.
    """
    found = found_in(folder_at(folder), prefix)
    return found[-1].path if found else None


def checkpoint_exists(path: Any) -> bool:
    """Whether there is a checkpoint of this path, or one in the folder of this path."""
    try:
        checkpoint_at(path)
    except NotFoundError:
        return False
    return True


def list_variables(path: Any) -> list[tuple[str, DType, tuple[int, ...]]]:
    """The names, dtypes and shapes of what a checkpoint holds, sorted by name.

    Args:
        path: the checkpoint, or a folder of checkpoints, whose latest it is.

    Raises:
        NotFoundError: if there is none.
        DataLossError: if its index is damaged.
    """
    entries = checkpoint_at(path).entries
    return [(name, entry.dtype, entry.shape) for name, entry in sorted(entries.items())]


def load_variable(path: Any, name: str) -> Any:
    """A value from a checkpoint.

    Args:
        path: the checkpoint, or a folder of checkpoints, whose latest it is.
        name: as `list_variables` gives it.

    Raises:
        NotFoundError: if there is none.
        DataLossError: if it is damaged.
    """
    return checkpoint_at(path).read([name])[name]
