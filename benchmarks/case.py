"""What a row says: its systems, what each of them times, and the target.

Invariant: every case of a row does the same work, which `Case.value` proves: the driver compares
the values before it believes a single time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.systems import THREADS

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True)
class Case:
    """One system's part of a row, ready to be timed.

    `step` is what is timed.  Without `before_each` it is repeated until a sample lasts long enough
    for the clock; with it, every single call is timed by itself and `before_each` runs, untimed,
    in front of each: for work that can be done only once per graph.  `burst` is how many such
    calls follow each other before the next system has its turn.

    `beside` is the same work without what the row is about.  The two alternate in one process,
    `period` steps of each, so that what they share cannot be taken for their difference; a step
    that does more every so often has that as its period.

    `predicted` is how many seconds the system has said a step would take, before it ran one.
    """

    step: Callable[[], object]
    value: npt.ArrayLike
    before_each: Callable[[], object] | None = None
    burst: int = 1
    beside: Callable[[], object] | None = None
    period: int = 1
    predicted: float | None = None


# Receives the system's module (`fb`, `tf`, `jax`, `torch`, `np`), so that a row can be read in
# an interpreter that has only one of them.
MakeCase = Callable[[Any], Case]


@dataclass(frozen=True)
class AtMost:
    """A target in seconds (per operation where the row counts operations)."""

    seconds: float

    def describe(self, unit: str) -> str:
        """Say the target in the row's unit, as in `10 us`."""
        return f"{self.seconds / UNITS[unit]:g} {unit}"


@dataclass(frozen=True)
class Within:
    """A target relative to another case of the row: at most `factor` times its time."""

    factor: float
    of: str

    def describe(self, unit: str) -> str:
        """Say the target, as in `1.1 x numpy`."""
        return f"{self.factor:g} x {self.of}"


@dataclass(frozen=True)
class Above:
    """A target for what something costs: at most this share above the same work `beside` it."""

    share: float

    def describe(self, unit: str) -> str:
        """Say the target, as in `5 % above plain`."""
        return f"{100 * self.share:g} % above plain"


@dataclass(frozen=True)
class Near:
    """A target for what was predicted: by at most this share from the fastest turn's time."""

    share: float

    def describe(self, unit: str) -> str:
        """Say the target, as in `within 30 % of the prediction`."""
        return f"within {100 * self.share:g} % of the prediction"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    `cases` maps a label to what makes its case.  A label is a system's name (`flowbook`, `tf1`,
    `jax`, `torch`, `numpy`), or that and a variant (`tf1 make_callable`).  `divisor` is the number
    of operations in a step where times are per operation.  The ratio compares the label `flowbook`
    with the fastest label of another system.

    `processes` is among how many processes of each system, one after the other, the rounds are
    divided: where a process's arrays come to lie decides up to a fifth of the time of a step that
    does nothing but go through them.

    `busy` is how many processes that compute without end run beside the turns. A turn then lasts a
    second, so that its mean holds both what the systems get done and what they wait for.
    """

    name: str
    title: str
    cases: Mapping[str, MakeCase]
    target: AtMost | Within | Above | Near
    unit: str
    divisor: int = 1
    rtol: float = 1e-5
    atol: float = 1e-6
    rounds: int = 30
    processes: int = 1
    busy: int = 0
    threads: int = THREADS
    shows_growth: bool = False
    notes: tuple[str, ...] = ()
    not_compared: frozenset[str] = field(default_factory=frozenset)
    """Labels that are shown but take no part in the ratio (the note says why)."""
    section: str = ""
    """The short table that it stands in, beside NumPy only; by default the table of all systems."""


def as_value(value: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The float64 array in which values of all systems are compared."""
    return np.asarray(value, dtype=np.float64)
