"""How many threads one matrix product uses: `fb.options.intra_op_threads`.

The products of NumPy and SciPy run in BLAS libraries, whose limit holds for all of the process.
So it is an option of the process, not of a session, whose steps may run beside another's. What
runs in oneDNN reads the option itself.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.whole_numbers import as_whole

_before: list[Any] = []


def limit(threads: Any) -> None:
    """Let products use so many threads from now on, as many as before for None.

    Raises:
        ValueError: if it is neither None nor an int from 1 on.
        UnimplementedError: if threadpoolctl is not installed.
    """
    if threads is not None and (as_whole(threads) or 0) < 1:
        raise ValueError(
            f"option 'intra_op_threads' is None or a number of threads from 1 on, not {threads!r}"
        )
    if threads is None and not _before:
        return
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise UnimplementedError(
            "threads are limited by threadpoolctl, which is not installed",
            hint="pip install threadpoolctl, or set OPENBLAS_NUM_THREADS before Python starts",
        ) from None
    # SciPy has a BLAS of its own, which can be limited once it is loaded.
    import scipy.linalg  # noqa: F401

    while _before:
        _before.pop().restore_original_limits()
    if threads is not None:
        _before.append(threadpool_limits(limits=threads, user_api="blas"))
