"""Switches that a person may set for the whole process: `fb.options.stale = "error"`.

An unknown name or value is refused at once, so that a typing error never silently changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_CHOICES: dict[str, tuple[Any, ...]] = {
    "full_tracebacks": (False, True),
    "stale": ("warn", "error", "ignore"),
}

# An option that is no choice: its default is None, and who acts on it says what it may be.
_ACTIONS: dict[str, Callable[[Any], None] | None] = {"intra_op_threads": None}


class Options:
    """The process-wide switches.

    Attributes:
        full_tracebacks: show Flowbook's own frames in tracebacks (default False).
        intra_op_threads: how many threads one matrix product may use; None (default) leaves it to
            the BLAS library and its environment variables. Beside another busy process 1 may be
            many times faster than 2: a product waits for its slowest thread.
        stale: what running a stale definition does: "warn" (default), "error" or "ignore".
    """

    full_tracebacks: bool
    intra_op_threads: int | None
    stale: str

    def __init__(self) -> None:
        for name, choices in _CHOICES.items():
            object.__setattr__(self, name, choices[0])
        for name in _ACTIONS:
            object.__setattr__(self, name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        names = sorted((*_CHOICES, *_ACTIONS))
        if name not in names:
            raise AttributeError(f"no option {name!r}; the options are {', '.join(names)}")
        if name in _CHOICES and value not in _CHOICES[name]:
            raise ValueError(f"option {name!r} is one of {_CHOICES[name]}, not {value!r}")
        act = _ACTIONS.get(name)
        if act is not None:
            act(value)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        names = sorted((*_CHOICES, *_ACTIONS))
        return "options(" + ", ".join(f"{n}={getattr(self, n)!r}" for n in names) + ")"


def act_on(name: str, act: Callable[[Any], None]) -> None:
    """Have a function called with each new value of an option before it is kept.

    Args:
        name: one of those that are no choice.
        act: raises ValueError for what the option cannot be.
    """
    _ACTIONS[name] = act


options = Options()
