"""When kernels run, noted while a step is traced.

The kernels of a traced program are called through `timed`. In a step that is being recorded each
call leaves one tuple, from which records are made when somebody looks; in others it leaves nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from threading import get_ident
from time import perf_counter_ns as clock
from typing import Any, NamedTuple

from flowbook.exec.devices.device import Moment
from flowbook.exec.plan.program import PlanNode

# On the clock of `time.perf_counter_ns`; of what runs later, whoever can tell.
Time = int | Moment


class Place(NamedTuple):
    """Which kernel a call is of.

    Attributes:
        device: where it runs, by name.
        part: a number that the kernels of one part have in common, and no others.
        number: that of its node in the part.
        node: what it computes.
        needs: the nodes that end before it, by number.
        size: how many bytes its outputs always have; None if that is not known before.
    """

    device: str
    part: int
    number: int
    node: PlanNode
    needs: tuple[int, ...]
    size: int | None


class Noted(NamedTuple):
    """One call of a kernel, which has ended.

    Attributes:
        place: which kernel.
        step: the number of the step.
        start: when it was called, in nanoseconds on the clock of `time.perf_counter_ns`; where
            kernels run later, when all before it had run.
        end: when it had its outputs, or reported them.
        thread: the thread that called it, by its number.
        size: how many bytes its outputs have.
    """

    place: Place
    step: int
    start: int
    end: int
    thread: int
    size: int


class Recorder:
    """Takes down the calls of steps, as long as there is room.

    Args:
        most: so many calls at most.

    Attributes:
        most: likewise.
        dropped: how many calls there was no room for.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.dropped = 0
        self._moments: deque[Moment] = deque()
        # What a `Noted` is made of, one after the other: nothing that the collector has to visit.
        self._noted: list[Any] = []
        self._longest = most * len(Noted._fields)

    def __len__(self) -> int:
        return len(self._noted) // len(Noted._fields)

    def add(self, place: Place, step: int, start: Time, end: Time, thread: int, found: Any) -> None:
        """Take down a call that has ended, and what it gave."""
        size = place.size
        if size is None:
            size = _size(found)
        if len(self._noted) < self._longest:
            # One step of the interpreter's: threads do not come between.
            self._noted += (place, step, start, end, thread, size)
            if not isinstance(start, int) and not isinstance(end, int):
                self._moments += (start, end)
        else:
            self.dropped += 1

    def settle(self) -> None:
        """Wait until all that was called has run."""
        while self._moments:
            with suppress(IndexError):  # Another thread settles it too.
                self._moments.popleft().ns()

    def calls(self) -> list[Noted]:
        """The calls, in the order in which they ended."""
        noted, width = self._noted, len(Noted._fields)
        found = []
        for i in range(0, len(self) * width, width):
            place, step, start, end, thread, size = noted[i : i + width]
            found.append(Noted(place, step, _ns(start), _ns(end), thread, size))
        return found


# Who records the step that is under way, and the step's number.
recording: ContextVar[tuple[Recorder, int] | None] = ContextVar("recording", default=None)


def timed(
    function: Callable[..., Any], place: Place, now: Callable[[], Time] | None
) -> Callable[..., Any]:
    """A kernel's function that notes when it was called.

    Args:
        function: the kernel's.
        place: which kernel it is.
        now: the moment of a device that runs kernels later; None for others.
    """
    time = now or clock

    def call(*given: Any, **attributes: Any) -> Any:
        under_way = recording.get()
        if under_way is None:
            return function(*given, **attributes)
        recorder, step = under_way
        start = time()
        found = function(*given, **attributes)
        recorder.add(place, step, start, time(), get_ident(), found)
        return found

    return call


def timed_until_report(function: Callable[..., Any], place: Place) -> Callable[..., Any]:
    """An asynchronous kernel's function that notes when it was called, and when it reported."""

    def call(context: Any, *given: Any, **attributes: Any) -> None:
        under_way = recording.get()
        if under_way is not None:
            recorder, step = under_way
            start, thread = clock(), get_ident()

            def note(outputs: Any) -> None:
                recorder.add(place, step, start, clock(), thread, outputs)

            context.on_report = note
        function(context, *given, **attributes)

    return call


def _ns(time: Time) -> int:
    return time if isinstance(time, int) else time.ns()


def _size(found: Any) -> int:
    """How many bytes the outputs of a kernel have, as far as they are arrays."""
    if isinstance(found, tuple | list):
        return sum(map(_size, found))
    return getattr(found, "nbytes", 0)
