"""Processes that compute without end, beside which a row is measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_ROOT = Path(__file__).parent.parent

# It ends when its input does, whatever becomes of who started it.
_PROGRAM = """
import select, sys
from benchmarks.systems import limit_processors
limit_processors()
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(1_000_000):
        pass
"""


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """So many of them run inside, on the processors that the systems are held to."""
    with ExitStack() as stack:
        for _ in range(count):
            process = stack.enter_context(
                subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, cwd=_ROOT)
            )
            stack.callback(process.kill)
        yield
