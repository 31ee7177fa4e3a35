"""Numbers that count something: how many elements, threads or steps."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np


def as_whole(value: Any) -> int | None:
    """The number that an argument is, if it is a whole one, Python's or NumPy's.

    Args:
        value: anything.

    Returns:
        An int; None for what is no integer, which truth values are not either.
    """
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None
