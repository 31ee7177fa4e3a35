"""Steps that take from queues and readers, and do nothing else before they have what they wait for.

Such are a training that takes a batch from a queue, and a queue's runner: it reads a record, makes
an element of it and puts that into a queue. Where all is there already, or has room, nothing waits,
and the step is code like any other. Where it is not, what was taken is put back, nothing else has
happened, and the step begins anew as one that waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, NoReturn

from flowbook.exec.engine.units import AsyncKernel, Kernel, Unit
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.touch import Access
from flowbook.graph.ops.queues.queue_ops import PUTTING, TAKING


class MustWait(Exception):
    """What a step asks for is not there yet."""


# What takes back all that the step on this thread has been given, as long as it may have to wait.
_given: ContextVar[list[Callable[[], object]]] = ContextVar("flowbook_given")


def asking_first(units: Sequence[Unit], known: Collection[int]) -> list[Unit] | None:
    """The units of a step with those that may have to wait before all others, run at once.

    Args:
        units: all of them, in the order in which they run.
        known: the values that are there before the step.

    Returns:
        None if what has been asked for, or happens before, could not be taken back.
    """
    asking = [unit for unit in units if unit.waits]
    if not asking or not all(map(_can_be_asked, asking)):
        return None
    types = [unit.node.type for unit in asking if isinstance(unit, Kernel)]
    # What is put somewhere cannot be taken back: it comes last.
    if len(types) > 1 and not ({*types[:-1]} <= {*TAKING} and types[-1] in (*TAKING, *PUTTING)):
        return None
    before = _before(asking, units, known)
    if before is None or not all(_changes_nothing(unit) for unit in before if not unit.waits):
        return None
    first = [
        _at_once(unit, unit is asking[-1]) if isinstance(unit, AsyncKernel) else unit
        for unit in before
    ]
    return [*first, *[unit for unit in units if unit not in before]]


def _can_be_asked(unit: Unit) -> bool:
    """Whether it takes from a resource, or puts into one."""
    return (
        isinstance(unit, AsyncKernel)
        and op_keyed(unit.node.type).access is Access.WAIT
        and not unit.call.is_users
    )


def _changes_nothing(unit: Unit) -> bool:
    """Whether nobody can tell that it ran; what it drew is put back too."""
    if not isinstance(unit, Kernel):
        return True
    harmless = (None, Access.READ, Access.DRAW)
    return op_keyed(unit.node.type).access in harmless and not unit.call.is_users


def _before(
    asking: Sequence[Unit], units: Sequence[Unit], known: Collection[int]
) -> list[Unit] | None:
    """Those that ask, and what has to run before them, in order; None if that is not all here."""
    needed, values = set(asking), {value for unit in asking for value in unit.inputs}
    after = {number for unit in asking for number in (*unit.after, *unit.behind)}
    for number, unit in reversed([*enumerate(units)]):
        if unit in needed or number in after or not values.isdisjoint(unit.outputs):
            needed.add(unit)
            values.update(unit.inputs)
            after.update((*unit.after, *unit.behind))
    found = [unit for unit in units if unit in needed]
    made = {value for unit in found for value in unit.outputs}
    return found if values <= {*known} | made else None


def taking_back(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of such units; if it fails before the last has it, all is taken back."""
    given: list[Callable[[], object]] = []
    token = _given.set(given)
    try:
        return function(*arguments)
    finally:
        # An interrupt, too, takes back what nobody has.
        while given:
            if given[-1]() is False:
                given.clear()  # The last has been done, so that the others have been used.
            else:
                given.pop()
        _given.reset(token)


def _at_once(unit: AsyncKernel, is_last: bool) -> Kernel:
    """A kernel that gives what another reports, if that is there when it returns."""
    ask = partial(_asked, unit.function, unit.is_single, is_last)
    leading, attributes, call = unit.leading, unit.attributes, unit.call
    return Kernel(unit.index, unit.node, ask, unit.device, leading, attributes, call)


def _asked(
    function: Callable[..., Any],
    is_single: bool,
    is_last: bool,
    xp: Any,
    *given: Any,
    **how: Any,
) -> Any:
    question = _Question(xp)
    function(question, *given, **how)
    found = question.found
    if found is None:
        raise question.error or MustWait
    if is_last:
        _given.get().clear()
    return found[0] if is_single else found


class _Question:
    """The context of a kernel that is asked once.

    Attributes:
        is_patient: that it does not wait.
        found: the outputs; None if they were not there.
        error: why there will be none, if that has been reported.
    """

    is_patient = False
    __slots__ = ("error", "found", "wish", "xp")

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.wish: Callable[[], str] | None = None
        self.found: tuple[Any, ...] | None = None
        self.error: BaseException | None = None

    def complete(self, outputs: tuple[Any, ...] = ()) -> None:
        """See `AsyncContext`."""
        self.found = outputs

    def fail(self, error: BaseException) -> None:
        """See `AsyncContext`."""
        self.error = error

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """See `AsyncContext`."""
        _given.get().append(callback)

    def on_end(self, callback: Callable[[], None]) -> NoReturn:
        """See `AsyncContext`. Who holds something until the end of the step has to wait for it."""
        raise MustWait

    def call(self, function: Callable[[], tuple[Any, ...]], name: str) -> NoReturn:
        """See `AsyncContext`."""
        raise MustWait
