"""What this machine does in a second: as it was measured, or as machines commonly do.

What was measured is kept in a file of the user's cache, so that it is measured once. The file says
of which machine it tells; another one's is not read.
"""

from __future__ import annotations

import json
import os
import platform
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np

# Where the file is; by default in the user's folder for such files.
_FOLDER = "FLOWBOOK_CACHE"
_FILE = "calibration.json"


class Figures(NamedTuple):
    """What a device does.

    Attributes:
        flops: floating-point operations in a second.
        bytes: how many bytes of its memory it reads or writes in a second.
        overhead: seconds to call a kernel.
    """

    flops: float
    bytes: float
    overhead: float


class Link(NamedTuple):
    """What lies between two devices.

    Attributes:
        latency: seconds for the smallest transfer: the other device's thread has to wake up.
        bytes: how many bytes go over in a second.
    """

    latency: float
    bytes: float


class Machine(NamedTuple):
    """What is measured of a machine.

    Attributes:
        cpu: what one CPU device does, alone.
        link: what lies between two of them.
    """

    cpu: Figures
    link: Link


# A core or two.
COMMON = Machine(Figures(1e11, 1e10, 1e-6), Link(5e-5, 8e9))

_lock = threading.Lock()
_known: Machine | None = None


def machine() -> Machine:
    """This machine's figures, if they were measured once; else common ones."""
    global _known
    if _known is None:
        with _lock:
            _known = _read() or COMMON
    return _known


def keep(measured: Machine) -> Path | None:
    """Use what was measured from now on, in later processes too; where it is kept.

    None if it cannot be written: it holds for this process then.
    """
    global _known
    with _lock:
        _known = measured
    path = _path()
    text = json.dumps({"of": _identity(), "cpu": measured.cpu, "link": measured.link})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)  # Whoever reads meanwhile sees the old or the new.
    except OSError:
        return None
    return path


def _read() -> Machine | None:
    """What the file says; None if there is none, or it tells of another machine."""
    try:
        found = json.loads(_path().read_text(encoding="utf-8"))
        if found["of"] != _identity():
            return None
        read = Machine(Figures(*map(float, found["cpu"])), Link(*map(float, found["link"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return read if all(0 < each < float("inf") for each in (*read.cpu, *read.link)) else None


def _path() -> Path:
    folder = os.environ.get(_FOLDER)
    if folder:
        return Path(folder) / _FILE
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "flowbook" / _FILE


def _identity() -> list[str]:
    """What the figures depend on."""
    return [platform.node(), platform.machine(), str(os.cpu_count()), np.__version__]
