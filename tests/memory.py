"""How much memory a piece of code takes at its peak."""

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def bounded(limit: int) -> Iterator[None]:
    """Fail if the block's objects and arrays take more than `limit` bytes at once."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= limit, f"{peak} bytes at the peak, where {limit} are allowed"
