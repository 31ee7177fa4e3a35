"""How much memory a piece of code takes: at its peak, or at most."""

import gc
import os
import resource
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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


@contextmanager
def refusing(limit: int) -> Iterator[None]:
    """Have a MemoryError in the block for what would take the process `limit` bytes further.

    It slows nothing down, as `bounded` does. What the allocator has at hand does not count, which
    is much in a process that has done much: use it in a fresh one.
    """
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * os.sysconf("SC_PAGE_SIZE") + limit
    resource.setrlimit(resource.RLIMIT_AS, (wanted, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
