"""From units that route values to branches and loops: where each runs is settled before the step.

A Switch's value is alive on one side of its predicate, and so is all that takes it: every unit has
a guard, the sides of predicates on which it runs. What has one guard runs together, in the branch
of an `if`. A Switch itself is nothing then but another name for its value, and so are Enter, Exit
and what hands its input on; a Merge is an assignment on each of two sides. A frame is one unit of
the frame around it: what has no guard in it is the loop's condition, what runs on the two sides of
the condition's outcome is its body, and what there is to do when it has ended.

Not every program has this form: what is built of Switch and Merge by hand may do anything that the
state machine (`step.py`) can do. Then there is no lowered form, and that runs it.
"""

from __future__ import annotations

import copy
import heapq
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flowbook.exec.engine.code.setting import Setting
from flowbook.exec.engine.code.statements import Branches, Literal, Loop, Move, Variable
from flowbook.exec.engine.units import Handle, Kernel, Router, Unit
from flowbook.exec.plan.program import Block
from flowbook.graph.model.retag import DEAD, Retag

# Python's own limit for loops that lie in each other.
DEEPEST = 20

# On which sides of which predicates something runs, from the outermost.
Guard = tuple[tuple[int, int], ...]


def lowered(
    units: Sequence[Unit],
    block: Block,
    fetches: Sequence[int],
    setting: Setting,
    waited: Iterable[int] = (),
) -> list[Unit] | None:
    """Units that mean the same, one after the other, of which none routes values.

    Args:
        units: all units of a program, none of which waits.
        block: which of them run in which frames.
        fetches: the values that are needed in the end.
        setting: what it will be written with.
        waited: the numbers of the units for which others wait that run only if these have run.

    Returns:
        The units in the order in which they run; None if the program has no such form.
    """
    program = _Program(units, fetches, setting)
    try:
        root = _Suite(program, _Frame(block, itertools.count()))
        suite = root.write()
        for value in dict.fromkeys(fetches):
            if program.guard_of([value]):
                raise _Irregular
            if program.stands(value) != value:
                suite.append(Move(program.stands(value), value))
        if any(program.guard_of((), [unit]) for unit in waited):
            raise _Irregular
    except _Irregular:
        return None
    return suite if _depth(suite) <= DEEPEST else None


def _depth(units: Sequence[Unit]) -> int:
    """How many branches and loops lie in each other."""
    inner = [0]
    for unit in units:
        if isinstance(unit, Branches):
            inner += [1 + _depth(side) for side in unit.sides]
        elif isinstance(unit, Loop):
            inner += [1 + _depth(units) for units in (unit.condition, unit.body, unit.ended)]
    return max(inner)


class _Irregular(Exception):
    """The program cannot be written as branches and loops."""


class _Program:
    """What is known of values and units, in whatever frame they are.

    Attributes:
        units: see `lowered`.
        producer: for each value that a unit gives, and that is not known before, its number.
        taken: the values that something takes.
        switches: for each predicate the ids of the Switches that it decides.
        guards: where each value is there, of those that have their place.
        guard_of_unit: where each unit runs, likewise, as seen by those that wait for it.
    """

    def __init__(self, units: Sequence[Unit], fetches: Sequence[int], setting: Setting) -> None:
        self.units = units
        self.producer = {
            value: index
            for index, unit in enumerate(units)
            for value in unit.outputs
            if value not in setting.known
        }
        self.taken = {v for unit in units for v in unit.inputs}.union(fetches)
        self.switches: dict[int, list[int]] = {}
        for unit in units:
            if isinstance(unit, Router) and unit.gives_dead:
                self.switches.setdefault(unit.inputs[-1], []).extend(unit.node.sources)
        self.guards: dict[int, Guard | None] = {}
        self.guard_of_unit: dict[int, Guard] = {}
        self._specs = setting.specs
        self._is_wary = setting.is_wary
        self._stands: dict[int, int] = {}

    def stands(self, value: int) -> int:
        """The value that one is another name for."""
        return self._stands.get(value, value)

    def name(self, value: int, other: int, guard: Guard | None) -> None:
        """Let a value be another name for one, alive in its place."""
        self._stands[value] = self.stands(other)
        self.guards[value] = guard

    def guard_of(self, values: Iterable[int], after: Iterable[int] = ()) -> Guard:
        """Where something runs that takes values and waits for units."""
        found: Guard = ()
        for value in values:
            found = _both(found, self.guards.get(value) if value in self.producer else ())
        for unit in after:
            found = _both(found, self.guard_of_unit.get(unit))
        return found

    def is_scalar(self, value: int) -> bool:
        """Whether a value surely has no dimensions."""
        return not self._is_wary and self._specs.of(self.stands(value))[1].rank == 0

    def admits(self, value: int, other: int) -> bool:
        """Whether what is known of one value surely holds of another one."""
        dtype, shape = self._specs.of(value)
        other_dtype, other_shape = self._specs.of(self.stands(other))
        return dtype is other_dtype and shape.admits(other_shape)

    def hands_on(self, unit: Unit) -> bool:
        """Whether a unit's output is its input, and nothing more is said of it."""
        if self._is_wary or not isinstance(unit, Kernel) or not unit.call.is_identity:
            return False
        return self.admits(unit.outputs[0], unit.inputs[0])

    def moved(self, unit: Unit) -> Unit:
        """A unit that takes what its inputs stand for."""
        inputs = tuple([self.stands(v) for v in unit.inputs])
        if inputs == unit.inputs:
            return unit
        moved = copy.copy(unit)
        moved.inputs = inputs
        return moved


def _both(one: Guard, other: Guard | None) -> Guard:
    """The guard of what runs only where two others hold."""
    if other is None:
        raise _Irregular
    if one == other[: len(one)]:
        return other
    sides = dict(one)
    for pred, side in other:
        if sides.get(pred, side) != side:
            raise _Irregular
        if pred not in sides:
            one = (*one, (pred, side))
    return one


def _on_side(guard: Guard, pred: int, side: int) -> Guard | None:
    """The guard of what lies on a side of a predicate within another guard."""
    if (pred, 1 - side) in guard:
        return None
    return guard if (pred, side) in guard else (*guard, (pred, side))


class _Frame:
    """A block's units by their numbers, and the frames that they enter, by name."""

    def __init__(self, block: Block, numbers: Iterable[int]) -> None:
        numbers = iter(numbers)
        self.name = block.frame
        self.members = list(itertools.islice(numbers, len(block.nodes)))
        self.inner = {inner.frame: _Frame(inner, numbers) for inner in block.blocks}


class _Level:
    """What is ready in one place: without a guard, or on one side of a predicate in another place.

    Attributes:
        pred: the predicate.
        around: the place that it decides in; None for the outermost.
        sides: by predicates that decide here, the places on their sides, that of false first.
        ready: the earliest first: units with the items that they come from, or predicates on whose
            sides something is ready.
        is_open: whether it is looked at as long as there is something, without being announced.
    """

    def __init__(self, pred: int = -1, around: _Level | None = None) -> None:
        self.pred = pred
        self.around = around
        self.sides: dict[int, tuple[_Level, _Level]] = {}
        self.ready: list[tuple[int, int, Any]] = []
        self.is_open = False

    def within(self, guard: Guard) -> _Level:
        """The place with a guard, seen from here."""
        level = self
        for pred, side in guard:
            if pred not in level.sides:
                level.sides[pred] = (_Level(pred, level), _Level(pred, level))
            level = level.sides[pred][side]
        return level

    def add(self, index: int, serial: int, entry: Any) -> None:
        """Note what is ready, and say so around."""
        level = self
        heapq.heappush(level.ready, (index, serial, entry))
        while level.around is not None and not level.is_open:
            heapq.heappush(level.around.ready, (index, serial, level.pred))
            level = level.around


# What is to be put in order: a unit by its number, an inner frame.
_Item = int | _Frame

# Units that run on these sides.
_Piece = tuple[Guard, Sequence[Unit]]


class _Suite:
    """Puts the units of one frame in order, each in the branch in which it runs.

    The order is that of the plan, but that what is in one branch stays together where it can.
    """

    def __init__(self, program: _Program, frame: _Frame) -> None:
        self._program = program
        self._units = program.units
        self._frame = frame
        self._members = set(frame.members)
        self._entrances: dict[str, list[int]] = {}
        self._exits: dict[int, _Frame] = {}
        self._carrying: list[int] = []
        items: list[_Item] = [*frame.inner.values()]
        for inner in frame.inner.values():
            for index in inner.members:
                if self._units[index].retag is Retag.POP:
                    self._exits[index] = inner
        for index in frame.members:
            unit = self._units[index]
            if unit.retag is Retag.PUSH:
                self._entrances.setdefault(unit.enters, []).append(index)
            elif unit.retag is Retag.POP:
                continue
            elif unit.fires_on_any and any(map(self._is_carried, unit.inputs)):
                self._carrying.append(index)
                program.guard_of_unit[index] = ()
                program.guards[unit.outputs[0]] = ()
            else:
                items.append(index)
        self._root = _Level()
        self._root.is_open = True
        self._serial = itertools.count()
        self._left = len(items)
        self._waits: dict[_Item, int] = {}
        self._unplaced: dict[_Item, int] = {}
        self._dependents: dict[_Item, list[_Item]] = {}
        for item in items:
            before = self._before(item)
            self._waits[item] = len(before)
            for other in before:
                self._dependents.setdefault(other, []).append(item)

    def _is_carried(self, value: int) -> bool:
        producer = self._program.producer.get(value)
        return producer is not None and self._units[producer].retag is Retag.INCREMENT

    # What waits for what

    def _before(self, item: _Item) -> set[_Item]:
        """The items that have to be done before another one."""
        if isinstance(item, _Frame):
            entrances = [self._units[i] for i in self._entrances.get(item.name, ())]
            return set().union(*[self._before_unit(unit) for unit in entrances])
        return self._before_unit(self._units[item])

    def _before_unit(self, unit: Unit) -> set[_Item]:
        producer = self._program.producer
        sources = [producer[v] for v in unit.inputs if v in producer]
        return {i for source in (*sources, *unit.after, *unit.behind) for i in self._items(source)}

    def _items(self, index: int) -> list[_Item]:
        """What has to be done for a unit to have run."""
        unit = self._units[index]
        if index in self._exits:
            return [self._exits[index]]
        if unit.retag is Retag.PUSH and unit.enters == self._frame.name:
            return []
        if unit.retag is Retag.PUSH or index not in self._members:
            raise _Irregular
        if index in self._carrying:
            return []
        return [index]

    # The order

    def write(self) -> list[Unit]:
        """All units of the outermost frame."""
        self._begin()
        suite = self._emptied(self._root)
        if self._left:
            raise _Irregular
        return suite

    def loop(self, entrances: Sequence[int]) -> Loop:
        """The frame as a loop; what its exits stand for has a place then."""
        program, units = self._program, self._units
        firsts: dict[int, int] = {}
        for entrance in entrances:
            unit = units[entrance]
            if unit.is_constant:
                program.name(unit.outputs[0], unit.inputs[0], ())
                program.guard_of_unit[entrance] = ()
            else:
                firsts[unit.outputs[0]] = program.stands(unit.inputs[0])
        exits = [units[i] for i in self._frame.members if units[i].retag is Retag.POP]
        pred = self._outcome(exits)
        ended, body = self._root.within(((pred, 0),)), self._root.within(((pred, 1),))
        ended.is_open = body.is_open = True
        self._begin()
        condition = self._emptied(self._root)
        sides = self._both_sides((ended, body))
        for unit in exits:
            if program.guard_of(unit.inputs, unit.after) != ((pred, 0),):
                raise _Irregular
        variables = [self._variable(units[i], firsts, pred) for i in self._carrying]
        if self._left or self._root.ready or not variables:
            raise _Irregular
        return Loop(
            self._frame.name, variables, condition, program.stands(pred), sides[1], sides[0]
        )

    def _outcome(self, exits: Sequence[Unit]) -> int:
        """The value that says whether there is another iteration."""
        producer, units = self._program.producer, self._units
        sources = [units[producer[unit.inputs[0]]] for unit in exits if unit.inputs[0] in producer]
        preds = {s.inputs[-1] for s in sources if isinstance(s, Router) and s.gives_dead}
        if len(preds) != 1:
            raise _Irregular
        return preds.pop()

    def _variable(self, merge: Unit, firsts: Mapping[int, int], pred: int) -> Variable:
        """What a Merge at the beginning of the loop gives."""
        program = self._program
        if len(merge.inputs) != 2 or merge.after or merge.behind:
            raise _Irregular
        value, *others = merge.outputs
        first, carried = merge.inputs
        source = self._units[program.producer[carried]]
        is_plain = first in firsts and program.taken.isdisjoint(others)
        if not is_plain or program.guards.get(carried) != ((pred, 1),):
            raise _Irregular
        following = source.inputs[0]
        if not program.admits(value, following):
            raise _Irregular
        return Variable(value, firsts[first], program.stands(following))

    def _begin(self) -> None:
        for item in [item for item, waits in self._waits.items() if not waits]:
            if self._place(item):
                self._end(item)

    def _emptied(self, level: _Level) -> list[Unit]:
        """The units of a place, in order, until none is ready there any more."""
        suite: list[Unit] = []
        while level.ready:
            _, _, entry = heapq.heappop(level.ready)
            if isinstance(entry, int):
                sides = level.sides[entry]
                for side in sides:
                    side.is_open = True
                found = self._both_sides(sides)
                for side in sides:
                    side.is_open = False
                if any(found):
                    program = self._program
                    suite.append(Branches(program.stands(entry), found, program.switches[entry]))
            else:
                item, units = entry
                suite += units
                self._unplaced[item] -= 1
                if not self._unplaced[item]:
                    self._end(item)
        return suite

    def _both_sides(self, sides: tuple[_Level, _Level]) -> tuple[list[Unit], list[Unit]]:
        found: tuple[list[Unit], list[Unit]] = ([], [])
        while any(side.ready for side in sides):
            for units, side in zip(found, sides, strict=True):
                units += self._emptied(side)
        return found

    def _end(self, item: _Item) -> None:
        """An item is done: what waited for it may have its place."""
        done = [item]
        while done:
            self._left -= 1
            for other in self._dependents.get(done.pop(), ()):
                self._waits[other] -= 1
                if not self._waits[other] and self._place(other):
                    done.append(other)

    def _place(self, item: _Item) -> bool:
        """Give an item its place; whether it is done at once, being another name for something."""
        if isinstance(item, _Frame):
            index, pieces = self._placed_loop(item)
        elif self._units[item].fires_on_any:
            index, pieces = item, self._placed_merge(item)
        else:
            index, pieces = item, self._placed_unit(item)
        for guard, units in pieces:
            self._root.within(guard).add(index, next(self._serial), (item, units))
        self._unplaced[item] = len(pieces)
        return not pieces

    # What becomes of an item

    def _placed_unit(self, index: int) -> list[_Piece]:
        program, unit = self._program, self._units[index]
        guard = program.guard_of(unit.inputs, () if unit.sees_dead else unit.after)
        if unit.sees_dead and guard:
            raise _Irregular
        if unit.retag is Retag.NONE:
            program.guard_of_unit[index] = guard
        if isinstance(unit, Handle):
            return []
        if isinstance(unit, Router) and unit.gives_dead:
            pred = unit.inputs[-1]
            for side, value in enumerate(unit.outputs):
                program.name(value, unit.inputs[0], _on_side(guard, pred, side))
            # It refuses a predicate that is no scalar.
            return [] if program.is_scalar(pred) else [(guard, [program.moved(unit)])]
        if unit.retag is Retag.INCREMENT or program.hands_on(unit):
            program.name(unit.outputs[0], unit.inputs[0], guard)
            return []
        program.guards.update(dict.fromkeys(unit.outputs, guard))
        return [(guard, [program.moved(unit)])]

    def _placed_merge(self, index: int) -> list[_Piece]:
        """An assignment on each of two sides."""
        program, unit = self._program, self._units[index]
        guards = [program.guard_of([value]) for value in unit.inputs]
        if len(guards) != 2 or not all(guards) or not isinstance(unit, Router):
            raise _Irregular
        around, (pred, side) = guards[0][:-1], guards[0][-1]
        waited = program.guard_of((), unit.after)
        if guards[1] != (*around, (pred, 1 - side)) or _both(around, waited) != around:
            raise _Irregular
        program.guard_of_unit[index] = around
        program.guards.update(dict.fromkeys(unit.outputs, around))
        value, *others = unit.outputs
        pieces: list[_Piece] = []
        for port, guard in enumerate(guards):
            made: list[Unit] = [Move(program.stands(unit.inputs[port]), value)]
            given = [DEAD, DEAD]
            given[port] = value
            for place, output in enumerate(others, 1):
                if output in program.taken:
                    made.append(Literal(unit.function(unit.xp, *given)[place], output))
            pieces.append((guard, made))
        return pieces

    def _placed_loop(self, frame: _Frame) -> tuple[int, list[_Piece]]:
        program = self._program
        entrances = self._entrances.get(frame.name, [])
        entering = [self._units[index] for index in entrances]
        guards = {program.guard_of(unit.inputs, unit.after) for unit in entering}
        if len(guards) != 1:
            raise _Irregular
        guard = guards.pop()
        loop = _Suite(program, frame).loop(entrances)
        for index, inner in self._exits.items():
            if inner is frame:
                unit = self._units[index]
                program.name(unit.outputs[0], unit.inputs[0], guard)
                program.guard_of_unit[index] = guard
        return entrances[0], [(guard, [loop])]
