"""The one place that loads `scipy.special`, and its CuPy counterpart: lazily, by the first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


def special_of(xp: Any) -> Any:
    """The module of special functions for arrays of `xp`."""
    module = _loaded("cupyx.scipy.special" if xp.__name__ == "cupy" else "scipy.special")
    # What is over NumPy, and checks it, is over SciPy too.
    return xp.over(module) if hasattr(xp, "over") else module


@cache
def _loaded(name: str) -> Any:
    return import_module(name)
