"""Checks that hold of the code, and not of each moment of the machine."""

from collections.abc import Callable


def in_one_try(holds: Callable[[], bool], tries: int = 5) -> bool:
    """Whether something that was measured holds in one of a few tries.

    The machine may become slower in the middle of one, also by the processor's own seconds. What is
    wrong with the code is wrong in all of them.
    """
    return any(holds() for _ in range(tries))
