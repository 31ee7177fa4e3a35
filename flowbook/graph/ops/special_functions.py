"""The one module that loads SciPy's special functions, and only when a kernel first needs them."""

from __future__ import annotations

from typing import Any


def special_functions() -> Any:
    """The module `scipy.special`."""
    import scipy.special

    return scipy.special
