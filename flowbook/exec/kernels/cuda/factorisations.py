"""Inverses, solutions and Cholesky factors on GPUs, where a matrix that has none is noticed.

CuPy leaves on the GPU what cuSOLVER reports of a matrix, and goes on with values that mean nothing.
Only when asked to does it wait for the report, and raise NumPy's LinAlgError, which the kernels of
the definitions know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from flowbook.exec.devices import gpu as _gpu  # noqa: F401  # Admits kernels for its kind.
from flowbook.exec.devices.cuda import reported_errors
from flowbook.graph.model.registry import special_kernel
from flowbook.graph.ops.linalg.decompositions import cholesky
from flowbook.graph.ops.linalg.solving import inverse_op, matrix_solve


def _noticing(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel in which CuPy's factorisations fail as NumPy's do."""

    @wraps(kernel)
    def noticing(*arguments: Any, **attributes: Any) -> Any:
        with reported_errors():
            return kernel(*arguments, **attributes)

    return noticing


for _op in (cholesky, inverse_op, matrix_solve):
    assert _op.kernel is not None
    special_kernel(_op.type, "gpu", None)(_noticing(_op.kernel))
