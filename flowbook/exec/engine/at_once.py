"""Steps that wait for one thing only, and for that first, as those that take a batch from a queue.

Where it is there already, nothing waits, and the step is code like any other. Where it is not, what
was asked for is taken back, nothing else has happened, and the step begins anew as one that waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, NoReturn

from flowbook.exec.engine.units import AsyncKernel, Kernel, Unit
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.touch import Access


class MustWait(Exception):
    """What a step asks for first is not there yet."""


def asking_first(units: Sequence[Unit], known: Collection[int]) -> list[Unit] | None:
    """The units of a step with the one that may have to wait before all others, run at once.

    Args:
        units: all of them, in the order in which they run.
        known: the values that are there before the step.

    Returns:
        None if several may have to wait, if others come before, or if what has been asked for
        cannot be taken back, as it is not asked of a resource.
    """
    waiting = [unit for unit in units if unit.waits]
    if len(waiting) != 1:
        return None
    [first] = waiting
    if (
        not isinstance(first, AsyncKernel)
        or first.after
        or first.behind
        or not {*known}.issuperset(first.inputs)
        or op_keyed(first.node.type).access is not Access.WAIT
        or first.call.is_users
    ):
        return None
    others = [unit for unit in units if unit is not first]
    return [_at_once(first), *others]


def _at_once(unit: AsyncKernel) -> Kernel:
    """A kernel that gives what another reports, if that is there when it returns."""
    ask = partial(_asked, unit.function, unit.is_single)
    leading, attributes, call = unit.leading, unit.attributes, unit.call
    return Kernel(unit.index, unit.node, ask, unit.device, leading, attributes, call)


def _asked(function: Callable[..., Any], is_single: bool, xp: Any, *given: Any, **how: Any) -> Any:
    question = _Question(xp)
    try:
        function(question, *given, **how)
        found = question.found
        if found is None:
            raise question.error or MustWait
        question.on_cancelling = None
        return found[0] if is_single else found
    finally:
        # An interrupt, too, takes back what nobody has.
        if question.on_cancelling is not None:
            question.on_cancelling()


class _Question:
    """The context of a kernel that is asked once.

    Attributes:
        found: the outputs; None if they were not there.
        error: why there will be none, if that has been reported.
        on_cancelling: takes back what was asked for.
    """

    __slots__ = ("error", "found", "on_cancelling", "wish", "xp")

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.wish: Callable[[], str] | None = None
        self.found: tuple[Any, ...] | None = None
        self.error: BaseException | None = None
        self.on_cancelling: Callable[[], None] | None = None

    def complete(self, outputs: tuple[Any, ...] = ()) -> None:
        """See `AsyncContext`."""
        self.found = outputs

    def fail(self, error: BaseException) -> None:
        """See `AsyncContext`."""
        self.error = error

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """See `AsyncContext`."""
        self.on_cancelling = callback

    def on_end(self, callback: Callable[[], None]) -> NoReturn:
        """See `AsyncContext`. Who holds something until the end of the step has to wait for it."""
        raise MustWait

    def call(self, function: Callable[[], tuple[Any, ...]], name: str) -> NoReturn:
        """See `AsyncContext`."""
        raise MustWait
