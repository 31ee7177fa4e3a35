"""Steps that take from queues and readers, and do nothing else before they have what they wait for.

Such are a training that takes a batch from a queue, and a queue's runner: it reads a record, makes
an element of it and puts that into a queue. Where all is there already, or has room, nothing waits,
and the step is code like any other. Where it is not, what was taken is put back, nothing else has
happened, and the step begins anew as one that waits (`giving_back.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, NoReturn, TypeVar

from flowbook.exec.engine.atomic.acting import Acting
from flowbook.exec.engine.code.statements import Mark
from flowbook.exec.engine.units import AsyncKernel, Kernel, Unit
from flowbook.exec.interruptions import is_interruption
from flowbook.exec.resources.waiting import moving
from flowbook.graph.definition.async_context import Claim

Result = TypeVar("Result")


class MustWait(Exception):
    """What a step asks for is not there yet."""


class _Given(Acting):
    """What takes back all that a step has been given, as long as nobody can tell of it.

    Attributes:
        ways: what takes each back, in the order in which they were given.
        is_refused: whether it was not given something: it does not come, or is not there yet.
        is_over: whether it was given all, or gives up.
        put: what it asks a resource to take, if it has come to that.
    """

    is_refused = False
    is_over = False
    put: Claim | None = None

    def __init__(self) -> None:
        super().__init__()
        self.ways: list[Callable[[], object]] = []

    @property
    def is_used(self) -> bool:
        """Whether nothing is taken back any more."""
        return self.is_over or (self.put is not None and self.put.is_done())

    def use(self) -> None:
        """Take nothing back from now on."""
        self.is_under_way = True
        with moving:
            self.is_over = True
            self.ways.clear()


# Of the step on this thread.
_given: ContextVar[_Given] = ContextVar("flowbook_given")


def asking_first(units: Sequence[Unit], known: Collection[int]) -> list[Unit] | None:
    """The units of a step with those that may have to wait before all others, run at once.

    Args:
        units: all of them, in the order in which they run.
        known: the values that are there before the step.

    Returns:
        None if what has been asked for, or happens before, could not be taken back.
    """
    asking = [unit for unit in units if unit.waits]
    if not asking or not all(isinstance(unit, AsyncKernel) and unit.asks for unit in asking):
        return None
    *earlier, latest = asking
    # What is put somewhere cannot be taken back: it comes last.
    if earlier and not (all(unit.takes for unit in earlier) and (latest.takes or latest.puts)):
        return None
    before = _before(asking, units, known)
    if before is None or any(unit.acts for unit in before if not unit.waits):
        return None
    others = [unit for unit in units if unit not in before]
    first = [_at_once(unit) if isinstance(unit, AsyncKernel) else unit for unit in before]
    acting = next((place for place, unit in enumerate(others) if unit.acts), None)
    if acting is not None:
        others.insert(acting, Mark(_use))
    return [*first, *others]


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


def _use() -> None:
    """Something is done of which others can tell: what the step has taken is used."""
    _given.get().use()


def taking_back(acts: bool, function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function of such units; if one does not get what it asks for, all is taken back.

    If a unit fails on what was given, that has been used: who goes on gets what comes after it.

    Args:
        acts: whether it does something of which others can tell beside giving and taking.
        function: the function.
        arguments: what it is called with.
    """
    given = _Given()
    call = _taking_back, given, function, arguments
    return given.around(*call) if acts else call[0](*call[1:])


def _taking_back(
    given: _Given, function: Callable[..., Result], arguments: Sequence[Any]
) -> Result:
    ways = given.ways
    token = _given.set(given)
    try:
        found = function(*arguments)
        given.use()
        return found
    except Exception as error:
        if not given.is_refused and not is_interruption(error):
            given.use()
        raise
    finally:
        # An interrupt, too, takes back what nobody has.
        while ways:
            if ways[-1]() is False:
                ways.clear()  # The last has been done, so that the others have been used.
            else:
                ways.pop()
        given.is_over = True
        given.put = None
        _given.reset(token)


def _at_once(unit: AsyncKernel) -> Kernel:
    """A kernel that gives what another reports, if that is there when it returns."""
    ask = partial(_asked, unit.function, unit.is_single, unit.puts)
    leading, attributes, call = unit.leading, unit.attributes, unit.call
    return Kernel(unit.index, unit.node, ask, unit.device, leading, attributes, call)


def _asked(
    function: Callable[..., Any],
    is_single: bool,
    is_putting: bool,
    xp: Any,
    *inputs: Any,
    **how: Any,
) -> Any:
    given = _given.get()
    question = _Question(xp, given, is_putting)
    # What is to be done behind what is put is done too.
    given.is_under_way = is_putting
    function(question, *inputs, **how)
    found = question.found
    question.release()
    if found is None:
        given.is_refused = True
        given.pause()
        raise question.error or MustWait
    return found[0] if is_single else found


class _Question:
    """The context of a kernel that is asked once.

    Attributes:
        is_patient: that it does not wait.
        found: the outputs; None if they were not there.
        error: why there will be none, if that has been reported.
    """

    is_patient = False
    __slots__ = ("_claim", "_given", "_is_putting", "error", "found", "wish", "xp")

    def __init__(self, xp: Any, given: _Given, is_putting: bool) -> None:
        self.xp = xp
        self._given = given
        self._is_putting = is_putting
        self._claim: Claim | None = None
        self.wish: Callable[[], str] | None = None
        self.found: tuple[Any, ...] | None = None
        self.error: BaseException | None = None

    @property
    def step(self) -> object:
        """See `AsyncContext`."""
        return self._given

    @property
    def is_settled(self) -> bool:
        """See `AsyncContext`."""
        return self._given.is_used

    @property
    def claim(self) -> Claim | None:
        """See `AsyncContext`."""
        return self._claim

    @claim.setter
    def claim(self, claim: Claim | None) -> None:
        self._claim = claim
        if self._is_putting:
            self._given.put = claim

    def release(self) -> None:
        """Keep nothing of who was asked, nor of what that gave: each refers to the other."""
        self.found = self.wish = self._claim = None

    def complete(self, outputs: tuple[Any, ...] = ()) -> None:
        """See `AsyncContext`."""
        self.found = outputs

    def fail(self, error: BaseException) -> None:
        """See `AsyncContext`."""
        self.error = error

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """See `AsyncContext`."""
        self._given.ways.append(callback)

    def on_end(self, callback: Callable[[], None]) -> NoReturn:
        """See `AsyncContext`. Who holds something until the end of the step has to wait for it."""
        raise MustWait

    def call(self, function: Callable[[], tuple[Any, ...]], name: str) -> NoReturn:
        """See `AsyncContext`."""
        raise MustWait
