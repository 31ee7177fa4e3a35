"""How much of the machine's memory this process may use."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from flowbook.exec.devices.processors import control_groups, text_of


@cache
def host_memory() -> int | None:
    """How many bytes it may use, as far as was known when this was first asked."""
    return usable_memory()


def usable_memory(root: Path = Path("/")) -> int | None:
    """So many bytes: all that the machine has, or what a control group leaves; None if unknown.

    Args:
        root: where the system's files are.
    """
    limits = []
    for group in control_groups(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            # "max" is no limit; what is not there is empty.
            with suppress(ValueError):
                limits.append(int(text_of(group / name)))
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits, default=None)
