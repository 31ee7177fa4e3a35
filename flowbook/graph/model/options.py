"""Switches that a person may set for the whole process: `fb.options.stale = "error"`.

An unknown name or value is refused at once, so that a typing error never silently changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["options"]

# The values of each option, its default first. What has none here is a number or None, and who acts
# on it says what it may be.
_CHOICES: dict[str, tuple[Any, ...] | None] = {
    "full_tracebacks": (False, True),
    "intra_op_threads": None,
    "machine_code": ("behind", "now", "never"),
    "report_waits": None,
    "stale": ("warn", "error", "ignore"),
}

# The defaults of those that are numbers; the others' is None.
_NUMBERS = {"report_waits": 1.0}

_actions: dict[str, Callable[[Any], None]] = {}


class Options:
    """The process-wide switches.

    Attributes:
        full_tracebacks: show Flowbook's own frames in tracebacks (default False).
        intra_op_threads: how many threads one matrix product or convolution may use; None (default)
            is as many as the BLAS library and OpenMP have, by their environment variables, but no
            more than there are processors for this process.
        machine_code: when the loops of `fb.hot_loops()` are compiled: "behind" (default) the runs,
            once they have taken a while; "now", before this is set, for what else would be timed
            in two forms; "never", which also takes back what is in use.
        report_waits: how many seconds a run waits at queues and their like before it says so
            (default 1); None lets it wait in silence.
        stale: what running a stale definition does: "warn" (default), "error" or "ignore".
    """

    full_tracebacks: bool
    intra_op_threads: int | None
    machine_code: str
    report_waits: float | None
    stale: str

    def __init__(self) -> None:
        for name, choices in _CHOICES.items():
            object.__setattr__(self, name, choices[0] if choices else _NUMBERS.get(name))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _CHOICES:
            raise AttributeError(f"no option {name!r}; the options are {', '.join(_CHOICES)}")
        choices = _CHOICES[name]
        if choices and value not in choices:
            raise ValueError(f"option {name!r} is one of {choices}, not {value!r}")
        act = _actions.get(name)
        if act is not None:
            act(value)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return "options(" + ", ".join(f"{n}={getattr(self, n)!r}" for n in _CHOICES) + ")"


def act_on(name: str, act: Callable[[Any], None]) -> None:
    """Have a function called with each new value of an option before it is kept.

    Args:
        name: of the option.
        act: raises ValueError for what an option that is no choice cannot be.
    """
    _actions[name] = act


options = Options()
