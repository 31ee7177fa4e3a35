"""Values as text: for printing, for formatting strings, for the errors of assertions.

Arrays look as NumPy prints them, without alignment: what is printed often is read in one line.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def text_of(value: Any, summarize: int = 3) -> str:
    """A value as text.

    Args:
        value: an array; a single string stands for itself, strings in arrays are quoted.
        summarize: how many elements of each dimension to show at its beginning and at its end,
            with "..." for what lies between; -1 shows all.
    """
    array = np.asarray(value)
    if not array.ndim:
        item = array.item()
        return item.decode(errors="replace") if isinstance(item, bytes) else str(array[()])
    if not array.size:
        return f"[] (shape {list(array.shape)})" if array.ndim > 1 else "[]"
    return _rows(array, array.size if summarize < 0 else summarize, " ")


def _rows(array: Any, most: int, indent: str) -> str:
    shown: list[Any] = list(array) if len(array) <= 2 * most else [*array[:most], None]
    if len(array) > 2 * most and most:
        shown += list(array[-most:])
    if array.ndim == 1:
        return f"[{' '.join('...' if v is None else _element(v) for v in shown)}]"
    # As many line ends between parts as they have dimensions less one, as NumPy has it.
    between = "\n" * (array.ndim - 1) + indent
    parts = ("..." if v is None else _rows(v, most, indent + " ") for v in shown)
    return f"[{between.join(parts)}]"


def _element(value: Any) -> str:
    if not isinstance(value, bytes):
        return str(value)
    text = value.decode(errors="backslashreplace")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
