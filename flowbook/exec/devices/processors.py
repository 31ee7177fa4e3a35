"""How many processors this process may keep busy.

Those that the system lets it run on, or less where a control group, which is how containers are
limited, gives it a share of their time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path


@cache
def processors() -> int:
    """How many it may keep busy, as far as was known when this was first asked."""
    return usable_processors()


def usable_processors(root: Path = Path("/")) -> int:
    """So many processors, at least one; a share that is no whole number is rounded down.

    With more threads than that, a control group's time is used up early, and all of them stand
    still for the rest of each period.

    Args:
        root: where the system's files are.
    """
    shares = [int(share) for group in control_groups(root, "cpu") for share in _shares(group)]
    return max(1, min([_allowed(), *shares]))


def _allowed() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def control_groups(root: Path, controller: str) -> Iterator[Path]:
    """The directories of the groups that this process is in, and of those around them.

    A container may be told the path that its group has outside, and see the group as the topmost.

    Args:
        root: where the system's files are.
        controller: what the groups limit, such as "cpu".
    """
    for line in text_of(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / controllers
        group = top / path.lstrip("/")
        yield from (group, *(outer for outer in group.parents if outer.is_relative_to(top)))


def _shares(group: Path) -> Iterator[float]:
    """How many processors' time a group has, if that is limited; as version 2, then 1 tells it."""
    quotas = (
        text_of(group / "cpu.max"),
        f"{text_of(group / 'cpu.cfs_quota_us')} {text_of(group / 'cpu.cfs_period_us')}",
    )
    for quota in quotas:
        # "max" and negative numbers are no limit; what is not there is empty.
        with suppress(ValueError):
            time, period = map(int, quota.split())
            if time > 0 and period > 0:
                yield time / period


def text_of(file: Path) -> str:
    """What a file of the system says; nothing if it is not there."""
    try:
        return file.read_text()
    except OSError:
        return ""
