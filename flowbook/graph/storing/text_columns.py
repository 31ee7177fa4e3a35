"""Columns of a file of text, as a vocabulary is one: what fills look-up tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import DType, string
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.storing.files import contents

Array = np.ndarray[Any, Any]

# What stands for a column: all of a line, or its number.
WHOLE_LINE, LINE_NUMBER = -2, -1

_MOST_BYTES = 2**31 - 1  # Of a message that holds a graph, in which all of it is a constant.


def lines_of(path: str, count: int | None = None) -> list[bytes]:
    """The first lines of a file, without what ends them.

    Args:
        path: the file's.
        count: how many lines are wanted; by default all.

    Raises:
        NotFoundError: if there is no such file.
        InvalidArgumentError: if it cannot be read, or has fewer lines.
        ResourceExhaustedError: if it is too large to be a constant of a stored graph.
    """
    lines = contents(Path(path), _MOST_BYTES).replace(b"\r", b"").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    if count is None:
        return lines
    if count > len(lines):
        raise InvalidArgumentError(f"{path!r} has {counted(len(lines), 'line')}, and not {count}")
    return lines[:count]


def column(
    lines: list[bytes], index: int, delimiter: bytes, dtype: DType, path: str, offset: int = 0
) -> Array:
    """A column of lines, as a vector.

    Args:
        lines: the lines.
        index: which column, from 0 on; or WHOLE_LINE or LINE_NUMBER.
        delimiter: what stands between two columns.
        dtype: of the result.
        path: the file's, for errors.
        offset: the number of the first line.

    Raises:
        InvalidArgumentError: if a line has no such column, or something else there.
    """
    if index == LINE_NUMBER:
        return np.arange(offset, offset + len(lines)).astype(dtype.numpy)
    try:
        parts = lines if index == WHOLE_LINE else [line.split(delimiter)[index] for line in lines]
        if dtype is not string:
            return np.array([part.decode() for part in parts]).astype(dtype.numpy)
    except (IndexError, ValueError):
        raise InvalidArgumentError(
            f"the lines of {path!r} have no column {index} of {dtype.name}"
        ) from None
    found = np.empty(len(parts), object)
    found[:] = parts
    return found
