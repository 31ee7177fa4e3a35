"""The state machine of one step: what may run next (white paper, sections 3.1 and 4.4).

Pure: no threads, no kernels. It holds the values of a step, and counts for every unit of work what
it still waits for; `complete` takes what a unit gave, and says what became ready by it. A unit is
one kernel call, or several that run together, or the arrival of a late feed, which is never ready
and completed from outside.

Units run in frames. The outermost has one iteration; a unit with `Retag.PUSH` (Enter) makes its
outputs appear in the first iteration of a new frame, one with `Retag.INCREMENT` (NextIteration) in
the next iteration, one with `Retag.POP` (Exit) in the iteration that the frame was entered from. A
tag is an `Iteration`, which has a value of its own for each number. Each unit runs once in each
iteration, as soon as all that it takes is there; one that fires on any input (Merge) as soon as one
is there that is alive.

`DEAD` stands for a value that there will not be, being of a branch not taken. A unit that takes one
does not run and gives dead values itself, and so on, until a unit that fires on any input has
another. A dead value starts no iteration. What leaves a frame dead is reported when the frame has
ended, since a later iteration may give a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowbook.exec.engine.structure import Frame, Structure
from flowbook.exec.engine.units import Unit
from flowbook.exec.plan.failure import LoopPlace
from flowbook.graph.model.retag import DEAD, Retag

# A unit that may run, and the iteration in which it does.
Ready = tuple[int, "Iteration"]

# A unit that has run, the iteration in which it did, what it gave, and whether that is dead.
Ended = tuple[int, "Iteration", Sequence[Any], bool]


class Iteration:
    """One iteration of a frame under way: the tag of what runs in it.

    Attributes:
        frame: the frame.
        run: the frame as it was entered from one iteration of another one.
        number: which iteration, from 0.
        values: the values that are there.
        pending: how many units are ready, or under way, or frames entered from here.
    """

    __slots__ = ("choices", "dead", "fired", "frame", "number", "pending", "run", "uses",
                 "values", "waits")  # fmt: skip

    def __init__(self, run: FrameRun, number: int, values: Any) -> None:
        self.run = run
        self.frame = run.frame
        self.number = number
        self.values = values
        self.waits = run.frame.waits.copy()
        self.uses = run.frame.uses.copy()
        self.dead: set[int] = set()
        self.fired: set[int] = set()
        self.choices = run.frame.choices[number > 0].copy()
        self.pending = 0

    @property
    def loops(self) -> tuple[LoopPlace, ...]:
        """Where this is in the loops around, the innermost first."""
        around = self.run.parent
        return (LoopPlace(self.frame.name, self.number), *around.loops) if around else ()

    def __lt__(self, other: Iteration) -> bool:
        """Whether it goes first where the same unit may run in both."""
        return self.number < other.number


class FrameRun:
    """A frame, entered from one iteration of the frame around it.

    Attributes:
        frame: the frame.
        parent: the iteration that it was entered from; None for the outermost.
        entrances: how many units have still to enter it.
        iterations: those under way, by number.
        constants: what is there in every iteration: the unit that gave it, and what.
        deferred: what the next iteration begins with, when there is room for it.
        exited: the units that have left it alive.
    """

    __slots__ = (
        "constants", "deferred", "entrances", "exited", "frame", "iterations", "oldest", "parent"
    )  # fmt: skip

    def __init__(self, frame: Frame, parent: Iteration | None) -> None:
        self.frame = frame
        self.parent = parent
        self.entrances = frame.entrances
        self.iterations: dict[int, Iteration] = {}
        self.oldest = 0
        self.constants: list[tuple[int, Sequence[Any]]] = []
        self.deferred: list[tuple[int, Sequence[Any]]] = []
        self.exited: set[int] = set()


class Step:
    """One run of a plan.

    Args:
        structure: of the plan.
        values: those that are there; a place for each.

    Attributes:
        root: the only iteration of the outermost frame.
        trips: how many iterations of each frame went on to another one.
        sides: for each unit that gives a value on one of two sides which one it was last.
    """

    def __init__(self, structure: Structure, values: Any) -> None:
        self._structure = structure
        self._units = structure.units
        self._taken = structure.taken
        self._next = structure.next
        self.root = Iteration(FrameRun(structure.root, None), 0, values)
        self._frames: dict[tuple[str, Iteration], FrameRun] = {}
        self.trips: dict[str, int] = dict.fromkeys(structure.frames, 0)
        self.sides: dict[int, int] = {}
        self._complete: set[int] = set()
        self._ready: list[Ready] = []

    def begin(self) -> list[Ready]:
        """What may run at the beginning."""
        return [(unit, self.root) for unit in self._structure.first]

    def has_run(self, unit: int) -> bool:
        """Whether a unit of the outermost frame, or what leaves a loop there, has completed."""
        return unit in self._complete

    def give_up(self) -> None:
        """Let go of what inner frames hold: nothing of them will go on."""
        for run in self._frames.values():
            run.iterations.clear()
        self._frames.clear()

    def complete(
        self, unit: int, tag: Iteration, outputs: Sequence[Any], is_dead: bool = False
    ) -> list[Ready]:
        """Note what a unit gave in an iteration; return what became ready by it."""
        waiting = None if is_dead else self._next[unit]
        if waiting is None or not self._pass_on(unit, tag, outputs, waiting):
            self._end([(unit, tag, outputs, is_dead)])
        if tag is not self.root and not self._units[unit].is_external:
            tag.pending -= 1
            self._end_what_is_over(tag.run)
        ready, self._ready = self._ready, []
        return ready

    def _pass_on(
        self, index: int, tag: Iteration, outputs: Sequence[Any], waiting: Sequence[int]
    ) -> bool:
        """Do what `_end` does, where that is the same for all outputs and all who wait for them.

        Returns:
            Whether it is: none of the outputs is dead.
        """
        values, uses, waits = tag.values, tag.uses, tag.waits
        for value, output in zip(self._units[index].outputs, outputs, strict=True):
            if output is DEAD:
                return False
            if uses[value]:  # A merge that takes it may have had another.
                values[value] = output
        for value in self._taken[index]:
            left = uses[value] = uses[value] - 1
            if not left:
                values[value] = None
        if tag is self.root:
            self._complete.add(index)
        work: list[Ended] = []
        for other in waiting:
            left = waits[other] = waits[other] - 1
            if not left:
                self._go_on(other, tag, work)
        if work:
            self._end(work)
        return True

    # What has ended

    def _end(self, work: list[Ended]) -> None:
        """Send the outputs of units to where they belong, and those of dead units that follow."""
        units, taken = self._units, self._taken
        while work:
            index, tag, outputs, is_dead = work.pop()
            uses, values = tag.uses, tag.values
            for value in taken[index]:
                left = uses[value] = uses[value] - 1
                if not left:
                    values[value] = None
            unit = units[index]
            retag = unit.retag
            if retag is Retag.NONE:
                if unit.gives_dead and not is_dead:
                    self.sides[index] = int(outputs[0] is DEAD)
                self._deliver(index, tag, outputs, is_dead, work)
            elif retag is Retag.PUSH:
                self._enter(index, unit, tag, outputs, is_dead, work)
            elif is_dead or outputs[0] is DEAD:
                continue  # It starts no iteration; what leaves dead, leaves when the frame ends.
            elif retag is Retag.POP:
                tag.run.exited.add(index)
                assert tag.run.parent is not None
                self._deliver(index, tag.run.parent, outputs, False, work)
            else:
                self._iterate(index, tag, outputs, work)

    def _deliver(
        self, index: int, tag: Iteration, outputs: Sequence[Any], is_dead: bool, work: list[Ended]
    ) -> None:
        """Let outputs appear in an iteration, and those who wait for the unit go on."""
        if tag is self.root:
            self._complete.add(index)
        structure, uses, choices = self._structure, tag.uses, tag.choices
        takers = structure.takers
        for value, output in zip(self._units[index].outputs, outputs, strict=True):
            if uses.get(value):
                tag.values[value] = output
                for taker in takers.get(value, ()):
                    if taker in choices:
                        self._arrive(taker, tag, output is DEAD, work)
                    else:
                        self._wait_less(taker, tag, output is DEAD, work)
        for follower in structure.followers[index]:
            self._wait_less(follower, tag, is_dead, work)
        if index in structure.later:
            for follower in structure.later[index]:
                self._wait_less(follower, tag, False, work)

    def _arrive(self, index: int, tag: Iteration, is_dead: bool, work: list[Ended]) -> None:
        """Note that an input is there of a unit that fires on any."""
        if index in tag.fired:
            return
        if is_dead:
            tag.choices[index] -= 1
            if tag.choices[index]:
                return
        tag.fired.add(index)
        self._wait_less(index, tag, is_dead, work)

    def _wait_less(self, index: int, tag: Iteration, is_dead: bool, work: list[Ended]) -> None:
        """Note that one of those that a unit waits for has ended."""
        if is_dead:
            tag.dead.add(index)
        left = tag.waits[index] = tag.waits[index] - 1
        if not left:
            self._go_on(index, tag, work)

    def _go_on(self, index: int, tag: Iteration, work: list[Ended]) -> None:
        """Have a unit run that waits for nothing any more; pass it by if it takes a dead value."""
        if index in tag.dead and not self._units[index].sees_dead:
            work.append((index, tag, (DEAD,) * len(self._units[index].outputs), True))
        else:
            tag.pending += 1
            self._ready.append((index, tag))

    # Frames

    def _enter(
        self,
        index: int,
        unit: Unit,
        tag: Iteration,
        outputs: Sequence[Any],
        is_dead: bool,
        work: list[Ended],
    ) -> None:
        if tag is self.root:
            self._complete.add(index)
        run = self._frames.get((unit.enters, tag))
        if run is None:
            run = self._frames[unit.enters, tag] = FrameRun(
                self._structure.frames[unit.enters], tag
            )
            tag.pending += 1
            self._new_iteration(run, 0, work)
        run.entrances -= 1
        if unit.is_constant:
            run.constants.append((index, outputs))
            for iteration in list(run.iterations.values()):
                self._deliver(index, iteration, outputs, is_dead, work)
        else:
            self._deliver(index, run.iterations[0], outputs, is_dead, work)
        if not run.entrances:
            # All that came into it may have been dead, and nothing of it ready. The frame does not
            # end before that has gone all the way, through the frames within it too.
            first = run.iterations[0]
            first.pending += 1
            self._end(work)
            first.pending -= 1
            self._end_what_is_over(run)

    def _new_iteration(self, run: FrameRun, number: int, work: list[Ended]) -> Iteration:
        made = run.iterations[number] = Iteration(run, number, run.frame.values.copy())
        for value in run.frame.fed:
            made.values[value] = self.root.values[value]
        port = self._structure.port
        if port is not None and port in made.values:
            made.values[port] = self.root.values[port].within(made.loops)
        for index, outputs in run.constants:
            self._deliver(index, made, outputs, outputs[0] is DEAD, work)
        return made

    def _iterate(
        self, index: int, tag: Iteration, outputs: Sequence[Any], work: list[Ended]
    ) -> None:
        run, number = tag.run, tag.number + 1
        following = run.iterations.get(number)
        if following is None:
            if len(run.iterations) >= run.frame.parallel_iterations:
                run.deferred.append((index, outputs))
                return
            following = self._new_iteration(run, number, work)
        self._deliver(index, following, outputs, False, work)

    def _end_what_is_over(self, run: FrameRun) -> None:
        """End a frame's iterations in which nothing is left, the oldest first, and the frame."""
        while run.parent is not None and not run.entrances:
            oldest = run.iterations.get(run.oldest)
            if oldest is not None:
                if oldest.pending:
                    return
                del run.iterations[run.oldest]
                run.oldest += 1
            if run.deferred:
                self._begin_deferred(run)
            elif not run.iterations:
                self._leave(run)
                run.parent.pending -= 1
                run = run.parent.run

    def _begin_deferred(self, run: FrameRun) -> None:
        deferred, run.deferred = run.deferred, []
        work: list[Ended] = []
        number = run.oldest + len(run.iterations)
        following = self._new_iteration(run, number, work)
        for index, outputs in deferred:
            self._deliver(index, following, outputs, False, work)
        self._end(work)

    def _leave(self, run: FrameRun) -> None:
        """A frame has ended: what has not left it alive never will."""
        assert run.parent is not None
        self.trips[run.frame.name] += run.oldest - 1
        del self._frames[run.frame.name, run.parent]
        for index in run.frame.exits:
            if index not in run.exited:
                work: list[Ended] = []
                dead = (DEAD,) * len(self._units[index].outputs)
                self._deliver(index, run.parent, dead, True, work)
                self._end(work)
