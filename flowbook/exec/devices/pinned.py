"""Pinned host memory, through which arrays go to a GPU and back.

Only what the system keeps in its place can be copied while the host does something else. Such
memory is scarce: what one copy has used serves the next, and arrays too large for it are copied
from where they lie, for which the host waits.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import numpy as np

# The largest block that is kept, and how many bytes all that are kept may have.
LARGEST = 16 << 20
MOST_KEPT = 64 << 20
# The status of CUDA's error where memory cannot be had.
OUT_OF_MEMORY = 2
# Parts of a block begin at multiples of this.
ALIGNMENT = 256

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Pinned:
    """Blocks of pinned memory, each of them of one copy at a time.

    A block that was taken and is not given back, as after an interrupt, is CUDA's to free.

    Args:
        cupy: the module.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._lock = threading.Lock()
        self._free: dict[int, list[Bytes]] = {}
        self._kept = 0
        self._used: deque[tuple[Any, Bytes]] = deque()

    def take(self, size: int) -> Bytes | None:
        """A block of at least so many bytes, as an array; None if that is too much.

        None, too, if the system keeps no more memory in its place.
        """
        if not 0 < size <= LARGEST:
            return None
        size = max(ALIGNMENT, 1 << (size - 1).bit_length())
        with self._lock:
            while self._used and self._used[0][0].done:
                self._keep(self._used.popleft()[1])
            found = self._free.get(size)
            if found:
                self._kept -= size
                return found.pop()
        # Not from CuPy's pool, which would give a block out again without asking the GPU.
        try:
            memory = self._cupy.cuda.PinnedMemory(size)
        except self._cupy.cuda.runtime.CUDARuntimeError as error:
            if error.status != OUT_OF_MEMORY:
                raise
            return None
        return np.frombuffer(self._cupy.cuda.PinnedMemoryPointer(memory, 0), np.uint8, size)

    def give(self, block: Bytes) -> None:
        """Give a block back, which nothing reads or writes any more."""
        with self._lock:
            self._keep(block)

    def give_after(self, event: Any, block: Bytes) -> None:
        """Give a block back for when an event has come."""
        with self._lock:
            self._used.append((event, block))

    def _keep(self, block: Bytes) -> None:
        if self._kept + block.size <= MOST_KEPT:
            self._kept += block.size
            self._free.setdefault(block.size, []).append(block)


def part(block: Bytes, start: int, like: Any) -> Any:
    """The part of a block from a place on as an array of the shape and dtype of another."""
    return block[start : start + like.nbytes].view(like.dtype).reshape(like.shape)


def aligned(size: int) -> int:
    """So many bytes, or up to the next place where a part may begin."""
    return -(-size // ALIGNMENT) * ALIGNMENT
