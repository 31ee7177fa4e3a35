"""Products of matrices, and what LAPACK makes of them: the work that BLAS divides among threads.

Kernels ask for it here, so that who knows the machine (`flowbook/exec/kernels/shared_products.py`)
can say how many threads take part. Until somebody does, NumPy and SciPy are called as they are.

Invariant: whoever computes them, what is fed, folded or run gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_multiply: Callable[..., Any] = np.matmul


def _as_it_is(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    return function(*arguments, **options)


_factorise: Callable[..., Any] = _as_it_is


def compute_with(multiply: Callable[..., Any], factorise: Callable[..., Any]) -> None:
    """Have products and factorisations computed by functions.

    Args:
        multiply: as `numpy.matmul`, of arrays with two dimensions or more, and where to write, or
            None.
        factorise: as `factorised`.
    """
    global _multiply, _factorise
    _multiply, _factorise = multiply, factorise


def matmul(xp: Any, x: Any, y: Any, out: Any = None) -> Any:
    """The product of matrices, in the last two dimensions; those before them broadcast.

    Args:
        xp: NumPy or a module like it.
        x: [..., n, k].
        y: [..., k, m].
        out: [..., n, m], where to write; it belongs to the caller alone, who lets it go if this
            fails or is interrupted.
    """
    return _multiply(x, y, out) if xp is np else xp.matmul(x, y, out=out)


def factorised(function: Callable[..., Any], matrix: Any, *others: Any, **options: Any) -> Any:
    """What a function of NumPy's or SciPy's that uses LAPACK makes of matrices.

    Args:
        function: such as `xp.linalg.svd`.
        matrix: [..., n, k], its first argument.
        others: those that follow.
        options: by name.
    """
    return _factorise(function, matrix, *others, **options)
