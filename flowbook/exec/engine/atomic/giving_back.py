"""What a step takes from queues and readers, and gives back if it is given up.

A step that waits at one queue may have taken from another already. If it is given up, by a timeout,
an interrupt or who stops its runner, or if what it waits for does not come, it puts back what it
took, the last first. So nothing is lost, and what is taken in pairs stays in pairs. That holds for
a step of several devices and for a partial run as for any other, and inside of loops and branches.

What has been used is not put back: something was computed from it that others can tell of, such as
a variable's value, another queue's element, or what a partial run has fetched. Of a loop that is
looked at iteration by iteration: what one has used keeps no other's from going back. Where
computing fails, all that the step had is used: who goes on gets what comes after it. Of what was
taken and put elsewhere in part, as there was no room for all, the rest goes there too, over the
queue's capacity; rows that were fed, and are no queue's, do not.

What has been written is not written by half: from the first use on, an interrupt and a deadline
are put off until the step has done all that it does (`acting.py`). So either nothing was written,
and what was taken goes back, or all was, and it has been used. Code says where it comes to that
(`code/marking.py`); before, what it computes uses nothing.

Who puts back what, in all:

- A step gives back what it took, as above: here, and in `at_once.py` for a step that is code as a
  whole and waits for nothing.
- A resource takes back what an attempt has (`exec/resources/waiting.py`), to where it was. Until
  the step has used it, who took it is known there (`is_settled`), so that a checkpoint counts it as
  not taken. What is used at once, of however many resources, a checkpoint has as taken of all or of
  none: that changes while `moving` is held. What goes into two queues is used one after the other.
- A feeder gives nothing back that its steps do not. It has queues begin anew when the cell that
  made it runs again behind the end of its input (`exec/queue_threads.py`): there is nothing to put
  back then, but all to be made again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from flowbook.exec.engine.async_call import AsyncCall
from flowbook.exec.engine.atomic.acting import Acting
from flowbook.exec.engine.step import Iteration
from flowbook.exec.engine.under_way import session_closed
from flowbook.exec.engine.units import AsyncKernel, Kernel, Unit, Values
from flowbook.exec.plan.program import Block, Part, PlanNode
from flowbook.exec.resources.waiting import moving
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.retag import Retag
from flowbook.graph.ops.communicate.transfer import receive_op, send_op

Result = TypeVar("Result")

# A node of a program: its number, where those of all parts are counted.
Node = int
# The numbers of the iterations that something is in, those of the outermost loop first.
Place = tuple[int, ...]


class Use(NamedTuple):
    """That what one node does tells what another has taken.

    Attributes:
        taking: the node that takes.
        depth: how many loops are around both.
        in_turn: whether it tells that of the iteration in which it is itself.
    """

    taking: Node
    depth: int
    in_turn: bool

    def covers(self, taken_at: Place, used_at: Place) -> bool:
        """Whether what is done in one place tells what was taken in another."""
        taken, used = taken_at[: self.depth], used_at[: self.depth]
        return taken < used or (taken == used and self.in_turn)


class Uses:
    """Who uses what the steps of one program take.

    Args:
        parts: those of the program.
        units: the units of each part's nodes, by their numbers.

    Attributes:
        first: the number of each part's first node.
    """

    def __init__(self, parts: Sequence[Part], units: Sequence[Sequence[Unit]]) -> None:
        self._parts = parts
        self.first = [0, *itertools.accumulate(len(part.nodes) for part in parts)]
        self._of: dict[Node, list[Use]] = {}
        course = _Course(parts, self.first)
        numbered = list(itertools.chain.from_iterable(units))
        for taking in course.taking:
            self._find_uses(course, taking, numbered)

    def _find_uses(self, course: _Course, taking: Node, units: Sequence[Unit]) -> None:
        in_turn: dict[int, set[Node]] = {}
        for other in course.behind(taking):
            if other in course.taking or not units[other].acts:
                continue
            depth = _common(course.frames[taking], course.frames[other])
            if depth not in in_turn:
                in_turn[depth] = course.behind(taking, depth)
            self._of.setdefault(other, []).append(Use(taking, depth, other in in_turn[depth]))

    @cached_property
    def behind(self) -> Mapping[Node, Collection[Node]]:
        """All by which what each node takes may be told."""
        course = _Course(self._parts, self.first)
        return {taking: {taking, *course.behind(taking)} for taking in course.taking}

    @property
    def are_any(self) -> bool:
        """Whether anything is used."""
        return bool(self._of)

    def of_units(self, part: int, units: Sequence[Unit]) -> dict[int, list[Use]]:
        """For each unit of a part, by its number, whose takings it tells."""
        first = self.first[part]
        found = {
            number: [use for index in _nodes_in(unit) for use in self._of.get(first + index, ())]
            for number, unit in enumerate(units)
        }
        return {number: uses for number, uses in found.items() if uses}


def uses_of(parts: Sequence[Part], units: Sequence[Sequence[Unit]]) -> Uses | None:
    """Who uses what; None if nothing is taken. The arguments are those of `Uses`."""
    return Uses(parts, units) if take(parts) else None


def take(parts: Sequence[Part]) -> bool:
    """Whether the steps of a program take anything."""
    return any(_takes(node) for part in parts for node in part.nodes)


def _takes(node: PlanNode) -> bool:
    touch = op_keyed(node.type).touches
    return touch is not None and touch.takes


class _Course:
    """What runs after what in a program, on whatever device.

    Args:
        parts: those of the program.
        first: the number of each part's first node.

    Attributes:
        taking: the nodes that take.
        frames: for each node the names of the loops around it, the outermost first.
    """

    def __init__(self, parts: Sequence[Part], first: Sequence[Node]) -> None:
        nodes = [node for part in parts for node in part.nodes]
        self.taking = {place for place, node in enumerate(nodes) if _takes(node)}
        self.frames = [frames for part in parts for frames in _frames_of(part.block)]
        types = {node.type for node in nodes}
        going_round = {type: op_keyed(type).retag is Retag.INCREMENT for type in types}
        self._goes_round = [going_round[node.type] for node in nodes]
        self._following: list[list[Node]] = [[] for _ in nodes]
        received = {
            node.attributes["key"]: place
            for place, node in enumerate(nodes)
            if node.type == receive_op.key
        }
        for part, begin in zip(parts, first, strict=False):
            self._add(part, begin, received)

    def _add(self, part: Part, begin: Node, received: Mapping[str, Node]) -> None:
        following = self._following
        producer = {v: i for i, node in enumerate(part.nodes, begin) for v in node.outputs}
        for place, node in enumerate(part.nodes, begin):
            for value in node.inputs:
                if value in producer:
                    following[producer[value]].append(place)
            for other in (*node.after, *node.behind):
                following[begin + other].append(place)
            if node.type == send_op.key:
                following[place].append(received[node.attributes["key"]])

    def behind(self, taking: Node, depth: int = 0) -> set[Node]:
        """What needs what a node takes, or runs after it, in the same iteration of outer loops.

        Args:
            taking: the node.
            depth: of how many of the loops around it.
        """
        stays = [self.frames[taking][: each + 1] for each in range(depth)]
        found: set[Node] = set()
        left = [taking]
        while left:
            place = left.pop()
            if self._goes_round[place] and self.frames[place] in stays:
                continue
            for other in self._following[place]:
                if other not in found:
                    found.add(other)
                    left.append(other)
        return found


def _frames_of(block: Block, around: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """For each node the names of the loops around it, the outermost first."""
    yield from itertools.repeat(around, len(block.nodes))
    for inner in block.blocks:
        yield from _frames_of(inner, (*around, inner.frame))


def _common(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    """How many loops are around both of two nodes."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _nodes_in(unit: Unit) -> Iterator[int]:
    """The nodes that a unit runs and of which somebody can tell."""
    if isinstance(unit, Kernel):
        yield unit.index
    else:
        for each in unit.within:
            yield from _nodes_in(each)


def _place(tag: Iteration) -> Place:
    """Where an iteration is in the loops around it."""
    return tuple([loop.iteration for loop in reversed(tag.loops)])


class GivingBack(Acting):
    """What a step, of however many parts, has taken and not used.

    Args:
        uses: who uses what.

    Attributes:
        uses: see above.
        is_over: whether nothing will be put back any more.
    """

    def __init__(self, uses: Uses) -> None:
        super().__init__()
        self.uses = uses
        self.is_over = False
        self._taken: dict[Node, dict[Place, tuple[int, AsyncCall]]] = {}
        self._numbers = itertools.count()
        self._has_failed = False
        self._is_spent = False
        self._is_given_up = False

    def during(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function that runs the step; if it fails, what was not used is put back."""
        if not self.uses.are_any:
            return self._during(function, arguments)
        found: Result = self.around(self._during, function, arguments)
        return found

    def _during(self, function: Callable[..., Result], arguments: Sequence[Any]) -> Result:
        try:
            found = function(*arguments)
            self.settle()
        except BaseException:
            try:
                self.end()
            except BaseException:
                self.end()  # An interrupt leaves some; no harm in giving back twice.
                raise
            raise
        return found

    def take(self, part: int, call: AsyncCall) -> None:
        """Note what is about to be taken."""
        if call.unit.takes:
            calls = self._taken.setdefault(self.uses.first[part] + call.unit.index, {})
            calls[_place(call.tag)] = next(self._numbers), call
            self._check()

    def lead(self, uses: Sequence[Use], call: AsyncCall) -> None:
        """Note that what was taken is used as soon as a call has put something somewhere."""
        for calls, place in self._covered(uses, _place(call.tag)):
            calls[place][1].leads_to(call)

    def use(self, uses: Sequence[Use], here: Place) -> None:
        """Note that what was taken is used by what is about to be done there, or has been.

        Raises:
            CancelledError: if the step has been given up.
        """
        self.is_under_way = True
        with moving:
            self._check()
            for calls, place in self._covered(uses, here):
                found = calls.get(place)  # Several uses may cover the same.
                if found is not None:
                    found[1].is_used = True
                    found[1].release()
                    del calls[place]

    def show(self, part: int, node: int) -> None:
        """Note that somebody outside of the step gets what a node of a part gives."""
        place = self.uses.first[part] + node
        told = [taking for taking, behind in self.uses.behind.items() if place in behind]
        self.use([Use(taking, 0, True) for taking in told], ())

    def _covered(
        self, uses: Sequence[Use], here: Place
    ) -> list[tuple[dict[Place, tuple[int, AsyncCall]], Place]]:
        return [
            (calls, place)
            for use in uses
            if (calls := self._taken.get(use.taking))
            for place in list(calls)
            if use.covers(place, here)
        ]

    def _check(self) -> None:
        # Another part may not have heard of it yet.
        if self._is_given_up:
            raise session_closed()

    def fail(self, gives_back: bool) -> None:
        """Note that the step fails; only the first time counts.

        Args:
            gives_back: whether it puts back what it has not used.
        """
        if not self._has_failed:
            self._has_failed, self._is_spent = True, not gives_back

    def end(self) -> None:
        """Put back what is left, the last first; after an interrupt once more."""
        with moving:
            self._is_given_up = True
            self.is_over = self._is_spent
        if not self.is_over:
            for _, call in sorted(self._left(), key=lambda each: each[0], reverse=True):
                if not call.is_settled:
                    call.give_back()
            self.is_over = True
        self._release()

    def settle(self) -> None:
        """Put nothing back any more: all that was taken is used, for whoever saves, at once."""
        with moving:
            self.is_over = True
        self._release()

    def _left(self) -> list[tuple[int, AsyncCall]]:
        """What was taken and not used, each with its number."""
        return [each for calls in list(self._taken.values()) for each in list(calls.values())]

    def _release(self) -> None:
        for _, call in self._left():
            call.release()
        self._taken.clear()


class _Using(NamedTuple):
    """What code that runs for a step uses when it comes to do what others can tell of."""

    giving: GivingBack
    uses: Sequence[Use] | tuple[()]
    tag: Iteration


_using: ContextVar[_Using | None] = ContextVar("flowbook_using", default=None)


def begin_acting() -> None:
    """In code: something is done of which others can tell.

    Raises:
        CancelledError: if the step has been given up.
    """
    using = _using.get()
    if using is not None:
        using.giving.use(using.uses, _place(using.tag))


def pause_acting() -> None:
    """In code: an iteration of a loop begins."""
    using = _using.get()
    if using is not None:
        using.giving.pause()


def may_stop() -> bool:
    """In code: whether a step whose deadline has passed may be left."""
    using = _using.get()
    return using is None or not using.giving.is_under_way


class Account(NamedTuple):
    """What one part of a step takes and uses.

    Attributes:
        giving: what the whole step has taken.
        part: the part's number.
        uses: for each unit of the part, by its number, whose takings it tells.
    """

    giving: GivingBack
    part: int
    uses: Mapping[int, Sequence[Use]]

    def take(self, call: AsyncCall) -> None:
        """Note what is about to be taken."""
        self.giving.take(self.part, call)

    def use(self, unit: int, tag: Iteration) -> None:
        """Note what a unit does, or has done; raises CancelledError if the step was given up."""
        uses = self.uses.get(unit)
        if uses is not None:
            self.giving.use(uses, _place(tag))

    def run(self, index: int, tag: Iteration, unit: Unit, values: Values) -> Sequence[Any]:
        """Run a unit, and note what it does; raises as `use` and `Unit.run`."""
        uses = self.uses.get(index, ())
        if isinstance(unit, Kernel):
            if uses:
                self.giving.use(uses, _place(tag))
            return unit.run(values)
        token = _using.set(_Using(self.giving, uses, tag))
        try:
            return unit.run(values)
        finally:
            _using.reset(token)

    def lead(self, call: AsyncCall) -> None:
        """Note what a call uses as soon as it has put something somewhere."""
        uses = self.uses.get(call.index)
        if uses is not None:
            self.giving.lead(uses, call)

    def finish(self, call: AsyncCall) -> None:
        """Have a call do the rest of what it did in part, if that is what the step has taken."""
        if call.index in self.uses:
            call.finish()

    def show(self, node: int) -> None:
        """Note that somebody outside of the step gets what a node gives."""
        self.giving.show(self.part, node)


def is_putting(unit: AsyncKernel) -> bool:
    """Whether a kernel puts something somewhere, for which it may have to wait."""
    return unit.puts
