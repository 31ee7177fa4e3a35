"""What machine this is, as a benchmark's reader needs to know it, and how busy; never its name."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from time import perf_counter, sleep

GIBIBYTE = 2**30
_STAT = Path("/proc/stat")


def describe_machine() -> dict[str, str]:
    """Processor, cores, memory, operating system."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": _memory(),
        "system": _system(),
    }


def busy_processors(seconds: float = 0.5) -> float | None:
    """How many processors other work keeps busy, watched for `seconds` while ours rests.

    None where the system does not tell (it does on Linux).
    """
    if not _STAT.exists():
        return None
    start, busy = perf_counter(), _busy_seconds()
    sleep(seconds)
    return max(0.0, (_busy_seconds() - busy) / (perf_counter() - start))


def _busy_seconds() -> float:
    """Processor time spent since the machine started, all processors together, stolen time too."""
    fields = [int(field) for field in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, kernel, _idle, _waiting, interrupts, soft_interrupts, stolen = fields
    ticks = user + nice + kernel + interrupts + soft_interrupts + stolen
    return ticks / float(os.sysconf("SC_CLK_TCK"))


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return platform.processor() or platform.machine()
    fields: dict[str, str] = {}
    for line in cpuinfo.read_text().splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    name = fields.get("model name", platform.machine())
    vectors = fields.get("flags", "").split()
    widest = next((v for v in ("avx512f", "avx2", "avx") if v in vectors), "")
    return f"{name} ({widest})" if widest else name


def _memory() -> str:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return "unknown"
    return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / GIBIBYTE:.0f} GiB"


def _system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.system()
    return f"{name}, {platform.system()} {platform.release()}"
