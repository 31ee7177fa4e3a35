"""How much memory there is for a second copy of what is saved."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

_SYSTEM = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


def free_memory() -> float:
    """How many bytes this process may still take; infinity where nobody says."""
    found = [float("inf")]
    with suppress(OSError):
        available = re.search(r"MemAvailable: *(\d+) kB", _SYSTEM.read_text())
        found += [int(available[1]) * 1024] if available else []
    with suppress(OSError, ValueError):  # What limits a container; "max" is no limit.
        limit, used = (int((_GROUP / f"memory.{n}").read_text()) for n in ("max", "current"))
        found.append(limit - used)
    return min(found)
