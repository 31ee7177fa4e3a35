"""What operations that route values do with them: into which iteration, or that there are none."""

from __future__ import annotations

from enum import Enum
from typing import Any

__all__ = ["DEAD", "Retag"]


class Retag(Enum):
    """Into which iteration an operation's outputs go, seen from the one that it runs in."""

    NONE = "the same"
    PUSH = "the first of the frame that it enters"
    POP = "the one that its frame was entered from"
    INCREMENT = "the next"


class _Dead:
    """What a kernel gives for an output that there is not, being of a branch not taken."""

    def __repr__(self) -> str:
        return "DEAD"

    def __reduce__(self) -> str:
        return "DEAD"  # Copies and what is unpickled are the one that there is.


DEAD: Any = _Dead()
