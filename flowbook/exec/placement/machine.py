"""What this machine does in a second: as it was measured, or as machines commonly do.

A device's figures tell what the machine can do; what kernels make of it is told by a curve for each
type of operation: how long they took where the figures let so many seconds be expected. So a curve
has what a call costs besides, what fits into caches and what does not, how many threads share the
work, and whose kernel it is.

What was measured is kept in a file of the user's cache, so that it is measured once. The file says
of which machine it tells; another one's is not read.
"""

from __future__ import annotations

import bisect
import json
import math
import os
import platform
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from flowbook.exec.devices.figures import Figures, Link

# Where the file is; by default in the user's folder for such files.
_FOLDER = "FLOWBOOK_CACHE"
_FILE = "calibration.json"

# The points of a curve are so many doublings apart, and none is less.
_OCTAVES = 2
_LEAST = 1e-10

# Seconds that were expected by the figures, in rising order, and those that it took.
Curve = Sequence[tuple[float, float]]


class Machine(NamedTuple):
    """What is measured of a machine.

    Attributes:
        cpu: what one CPU device does, alone.
        link: what lies between two of them.
        kernels: the curves of the types of operations that were measured, by their keys.
    """

    cpu: Figures
    link: Link
    kernels: Mapping[str, Curve] = {}


# A core or two.
COMMON = Machine(Figures(1e11, 1e10, 1e-6), Link(5e-5, 8e9))


def along(curve: Curve, expected: float) -> float:
    """How long it takes where so many seconds are expected.

    Between two points it rises by a power, and goes on in proportion. What is expected to take less
    than the first takes as long: that is what a call costs.
    """
    place = bisect.bisect_left(curve, (expected,))
    if place == 0:
        return curve[0][1]
    if place == len(curve):
        return curve[-1][1] * (expected / curve[-1][0])
    (left, low), (right, high) = curve[place - 1], curve[place]
    share = math.log(expected / left) / math.log(right / left)
    return float(low * (high / low) ** share)


def curve_of(samples: Iterable[tuple[float, float]]) -> Curve:
    """The curve through what was expected and measured: one point for what is much alike."""
    alike: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for expected, seconds in samples:
        expected = max(expected, _LEAST)
        alike[round(math.log2(expected) / _OCTAVES)].append((expected, seconds))
    return [
        (median(expected for expected, _ in found), median(seconds for _, seconds in found))
        for _, found in sorted(alike.items())
    ]


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
    text = json.dumps({"of": _identity(), **measured._asdict()})
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
        read = Machine(
            Figures(*map(_positive, found["cpu"])),
            Link(*map(_positive, found["link"])),
            {str(key): _curve(points) for key, points in found["kernels"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return read


def _curve(points: Any) -> Curve:
    """A curve of the file."""
    read = [(_positive(expected), _positive(seconds)) for expected, seconds in points]
    if not read or any(one[0] >= other[0] for one, other in pairwise(read)):
        raise ValueError("the points of a curve do not rise")
    return read


def _positive(number: Any) -> float:
    read = float(number)
    if not 0 < read < math.inf:
        raise ValueError(f"{read} is no figure")
    return read


def _path() -> Path:
    folder = os.environ.get(_FOLDER)
    if folder:
        return Path(folder) / _FILE
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "flowbook" / _FILE


def _identity() -> list[str]:
    """What the figures depend on."""
    return [platform.node(), platform.machine(), str(os.cpu_count()), np.__version__]
