"""The one place that loads `scipy.special`, and its CuPy counterpart: lazily, by the first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


def special_of(xp: Any) -> Any:
    """The module of special functions for arrays of `xp`."""
    return _loaded(xp.__name__)


@cache
def _loaded(arrays: str) -> Any:
    return import_module("cupyx.scipy.special" if arrays == "cupy" else "scipy.special")
