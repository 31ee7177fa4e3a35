"""What an asynchronous kernel gets in place of `xp`, and reports to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["AsyncContext"]


class Claim(Protocol):
    """What an asynchronous kernel is to the resource at which it waits."""

    def is_done(self) -> bool:
        """Whether something has been done that cannot be undone."""

    def finish(self) -> None:
        """Do the rest of it, whatever room there is; from any thread."""


class AsyncContext(Protocol):
    """What an asynchronous kernel gets in place of `xp`.

    Attributes:
        xp: the device's array module.
        wish: says what it waits for, such as "waits for an element of queue 'q'", to who asks why
            a step takes so long; None if the kernel does not set it.
        is_patient: whether it waits. If not, what cannot be had at once is not wanted, and what
            could be done in part alone is not to be begun.
        claim: what it is to the resource at which it waits; None if the kernel does not set it.
        step: what all calls of its step on the device have in common, and no others.
        is_settled: whether the step has used what it was given, or has come to its end.
    """

    xp: Any
    wish: Callable[[], str] | None
    is_patient: bool
    claim: Claim | None

    @property
    def step(self) -> object:
        """See above."""

    @property
    def is_settled(self) -> bool:
        """See above."""

    def complete(self, outputs: tuple[Any, ...]) -> None:
        """Report the outputs; may be called from any thread."""

    def fail(self, error: BaseException) -> None:
        """Report an error; may be called from any thread."""

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Have `callback` called if the step is given up before it has what is reported.

        It gives False if something of what was wanted has been done, and cannot be undone.
        """

    def on_end(self, callback: Callable[[], None]) -> None:
        """Have `callback` called when the step has come to its end, whatever that is."""

    def call(self, function: Callable[[], tuple[Any, ...]], name: str) -> None:
        """Call a function that may take any time on a thread of its own, and report its outputs.

        Errors of the step name it if it still runs when the step is given up.
        """
