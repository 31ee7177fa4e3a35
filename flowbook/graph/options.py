"""Switches that a person may set for the whole process: `fb.options.stale = "error"`.

An unknown name or value is refused at once, so that a typing error never silently changes nothing.
"""

from __future__ import annotations

from typing import Any

_CHOICES: dict[str, tuple[Any, ...]] = {
    "full_tracebacks": (False, True),
    "stale": ("warn", "error", "ignore"),
}


class Options:
    """The process-wide switches.

    Attributes:
        full_tracebacks: show Flowbook's own frames in tracebacks (default False).
        stale: what running a stale definition does: "warn" (default), "error" or "ignore".
    """

    full_tracebacks: bool
    stale: str

    def __init__(self) -> None:
        for name, choices in _CHOICES.items():
            object.__setattr__(self, name, choices[0])

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _CHOICES:
            raise AttributeError(f"no option {name!r}; the options are {', '.join(_CHOICES)}")
        if value not in _CHOICES[name]:
            raise ValueError(f"option {name!r} is one of {_CHOICES[name]}, not {value!r}")
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return "options(" + ", ".join(f"{n}={getattr(self, n)!r}" for n in _CHOICES) + ")"


options = Options()
