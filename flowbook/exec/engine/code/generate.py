"""Python for units that need no waiting: one line per kernel call, locals for values.

A local is reused as soon as its value has been used for the last time, so that memory is freed
there and a variable's buffer is given back before it is written. Nothing but the kernels costs
time: the line that failed is found in the traceback, not by bookkeeping.

Branches and loops (`statements.py`) are Python's own. Each side of a branch lets go of what it is
the last to need, or does not need; a loop's variable has one local in all iterations. Beside what
is alive then, a local that has been used holds nothing where branches meet or an iteration ends.

What a text names it numbers in the order in which it comes: where a graph repeats itself, so do the
texts, and each is compiled once.

A short program is one function from feeds to fetches (`whole_step`). Of a longer one, each stretch
(`segment.py`) is a function that takes its values from a list, and leaves there what others need
(`on_values`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from flowbook.exec.devices.device import Device
from flowbook.exec.engine.code.overwriting import fits, unshared
from flowbook.exec.engine.code.setting import Setting
from flowbook.exec.engine.code.statements import Branches, Literal, Loop, Move, made_by, taken_by
from flowbook.exec.engine.code.tally import Tally, run_number
from flowbook.exec.engine.units import Handle, Kernel, Router, Unit
from flowbook.exec.plan.failure import LoopPlace, UnitFailure, late
from flowbook.exec.plan.memory import Ownership

_serial = itertools.count()

# So many texts are remembered with what they were compiled to.
COMPILED = 64

# How a fetched value becomes the caller's own, by the name that generated code has for it.
FINISHER_OF = {
    Ownership.FRESH: "scalar",
    Ownership.VIEW: "owned",
    Ownership.FOREIGN: "copied",
}


def finishers(device: Device) -> dict[str, Callable[[Any], Any]]:
    """What makes fetched values of a device the caller's own, by those names.

    Where they are fetched together, they stay where they are until then.
    """
    if device.fetches_together:
        return dict.fromkeys(FINISHER_OF.values(), _as_it_is)
    return {"scalar": device.fetch_own, "owned": device.fetch_view, "copied": device.fetch}


def _as_it_is(value: Any) -> Any:
    return value


class Generated:
    """Units as a function.

    Attributes:
        function: the function.
        text: its text, for whoever wants to see it.
        tally: where it keeps what its loops and branches do, if it has any.
    """

    def __init__(self, name: str, parameters: Sequence[str], writer: _Writer) -> None:
        self._filename = f"<flowbook {name} {next(_serial)}>"
        self._places = writer.places
        self._scope = writer.scope
        self.tally: Tally | None = writer.tally
        self.text = f"def {name}({', '.join(parameters)}):\n" + "\n".join(writer.lines) + "\n"
        exec(_compiled(self.text), self._scope)
        function = self._scope.pop(name)
        # Errors are located by the file's name, which code of the same text does not share.
        function.__code__ = function.__code__.replace(co_filename=self._filename)
        self.function: Callable[..., Any] = function

    def failure(self, error: BaseException) -> UnitFailure | None:
        """Which node's line raised an error, and what that was given; None if none did."""
        traceback = error.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == self._filename:
                index, names, loops = self._places[traceback.tb_lineno - 2]
                if index < 0:
                    return None
                given = traceback.tb_frame.f_locals
                inputs = [given.get(n, self._scope.get(n)) for n in names]
                where = tuple([LoopPlace(frame, given[counter]) for frame, counter in loops])
                failure = UnitFailure(index, inputs, where)
                if isinstance(given, dict):
                    given.clear()  # A copy, which its frame keeps even when that is emptied.
                failure.__cause__ = error
                return failure
            traceback = traceback.tb_next
        return None


@lru_cache(maxsize=COMPILED)
def _compiled(text: str) -> CodeType:
    return compile(text, "<flowbook>", "exec")


def whole_step(
    units: Sequence[Unit],
    feeds: int,
    fetches: Sequence[int],
    finish: Sequence[str],
    setting: Setting,
    with_deadline: bool,
) -> Generated:
    """A program as a function from the feeds to the fetches.

    Args:
        units: all of them, in the order in which they run.
        feeds: how many values are fed, the first ones.
        fetches: the values that it returns, as a tuple.
        finish: for each of them the expression that is returned, such as "copied({})".
        setting: what it is written with.
        with_deadline: whether the function takes a deadline first, and keeps it.
    """
    parameters = [f"f{value}" for value in range(feeds)]
    writer = _Writer(setting, with_deadline)
    writer.locals.update(enumerate(parameters))
    writer.write(units, fetches)
    writer.keep_tally()
    found = [f.format(writer.name(value)) for f, value in zip(finish, fetches, strict=True)]
    writer.line(f"return ({', '.join(found)},)" if found else "return ()")
    if with_deadline:
        parameters.insert(0, "deadline")
    return Generated("step", parameters, writer)


def on_values(
    units: Sequence[Unit], dying: Collection[int], setting: Setting, with_deadline: bool
) -> Generated:
    """Units as a function of the values of a step, by number, and its deadline.

    Args:
        units: in the order in which they run.
        dying: those values that nothing needs after them.
        setting: what it is written with.
        with_deadline: whether the function keeps the deadline.
    """
    made = made_by([unit for unit in units if not isinstance(unit, Handle)])
    writer = _Writer(setting, with_deadline)
    taken = [value for value in taken_by(units) if value not in setting.known]
    for number, value in enumerate(taken):
        local = writer.locals[value] = f"s{number}"
        place = f"values[{writer.shared('p', value, value)}]"
        dropped = f"; {place} = None" if value in dying else ""
        writer.line(f"{local} = {place}{dropped}")
    lasting = [value for value in made if value not in dying]
    writer.write(units, lasting)
    writer.keep_tally()
    for value in lasting:
        writer.line(f"values[{writer.shared('p', value, value)}] = {writer.name(value)}")
    if not writer.lines:
        writer.line("pass")
    return Generated("stretch", ["values", "deadline"], writer)


# What a line belongs to: a node, the locals that it is given, and the loops around it.
_Place = tuple[int, tuple[str, ...], tuple[tuple[str, str], ...]]
_NOWHERE: _Place = (-1, (), ())


class _Writer:
    """Writes the lines of one function, and keeps which local holds which value."""

    def __init__(self, setting: Setting, with_deadline: bool) -> None:
        self.known, self.specs, self.device, self.is_wary, self.tallies = setting
        self.with_deadline = with_deadline
        self.scope: dict[str, Any] = {
            "xp": self.device.xp,
            **finishers(self.device),
            "clock": time.monotonic,
            "late": late,
            "count": itertools.count,
        }
        self.lines: list[str] = []
        self.places: list[_Place] = []
        self.indent = "    "
        # The frames of the loops around, the innermost first, and the locals that count iterations.
        self.loops: tuple[tuple[str, str], ...] = ()
        self.locals: dict[int, str] = {}
        self.free: list[str] = []
        self.count = 0
        self.globals: dict[tuple[str, Any], str] = {}
        # The frames of all loops, and the Switches of all branches: what these do is counted.
        self.counted: list[str] = []
        self.decided: list[Sequence[int]] = []
        self.tally: Tally | None = None
        # The values that may be overwritten when they die.
        self.unshared: set[int] = set()
        # What the other side of a branch leaves behind lies in these.
        self.barred: frozenset[str] = frozenset()
        # For a value the local that it is moved to in the end: one kept for it, one maybe free.
        self.destined: dict[int, str] = {}
        self.hoped: dict[int, str] = {}

    def name(self, value: int) -> str:
        """How the code refers to a value."""
        local = self.locals.get(value)
        if local is None:
            return self.shared("c", value, self.known[value])
        return local

    def shared(self, kind: str, key: Any, value: Any) -> str:
        """A global, the same for each key of a kind however often it is asked for."""
        name = self.globals.get((kind, key))
        if name is None:
            name = self.globals[kind, key] = f"{kind}{len(self.globals)}"
            self.scope[name] = value
        return name

    def line(self, text: str, node: int = -1, names: tuple[str, ...] = ()) -> None:
        """Add a line that belongs to a node."""
        self.lines.append(self.indent + text)
        self.places.append((node, names, self.loops))

    def write(self, units: Sequence[Unit], lasting: Collection[int]) -> None:
        """Add the code of units, after which some values live on."""
        last_use = _last_uses(units, lasting)
        self.unshared |= unshared(units)
        for place, unit in enumerate(units):
            dying = [
                v for v in dict.fromkeys(unit.inputs) if v in self.locals and last_use[v] == place
            ]
            if isinstance(unit, Kernel):
                self._write_kernel(unit, dying, last_use)
            elif isinstance(unit, Move):
                self._write_move(unit, dying, last_use)
            elif isinstance(unit, Literal):
                self._write_literal(unit, last_use)
            elif isinstance(unit, Branches | Loop):
                values = (*unit.inputs, *unit.outputs)
                needed = {v for v in values if last_use.get(v, place) > place}
                if isinstance(unit, Branches):
                    self._write_branches(unit, dying, needed)
                else:
                    self._write_loop(unit, dying, needed)

    def _write_kernel(
        self, kernel: Kernel, dying: Sequence[int], last_use: Mapping[int, int]
    ) -> None:
        index = kernel.index
        inputs = tuple([self.name(v) for v in kernel.inputs])
        used = [port for port, v in enumerate(kernel.outputs) if v in last_use]
        call = self._call(kernel, inputs, used, self._overwritten(kernel, dying))
        released = [self.locals.pop(v) for v in dying]
        self.free.extend(released)
        targets = [self._take(v) for v in kernel.outputs]
        for value, target in zip(kernel.outputs, targets, strict=True):
            if value in last_use:
                self.locals[value] = target
            else:
                self.free.append(target)
        # What dies here and is not overwritten is let go at once, unused outputs included.
        written = {t for v, t in zip(kernel.outputs, targets, strict=True) if v in last_use}
        dropped = [n for n in dict.fromkeys((*released, *targets)) if n not in written]
        if self.with_deadline:
            self.line("if clock() > deadline: raise late()", index)
        if self.is_wary and not isinstance(kernel, Router):
            check = kernel.checked if kernel.is_single else kernel.checked_all
            checked = self.shared("checked", index, check)
            call = f"{checked}({call})"
        if not targets:
            text = call
        elif kernel.is_single:
            text = f"{targets[0]} = {call}"
        else:
            text = f"{', '.join(targets)}, = {call}"
        self.line(text + _dropping(dropped), index, inputs)

    def _take(self, value: int) -> str:
        """A local for a value."""
        if value in self.destined:
            return self.destined[value]
        free = [name for name in self.free if name not in self.barred]
        if free:
            hoped = self.hoped.get(value)
            name = hoped if hoped in free else free[-1]
            self.free.remove(name)
            return name
        self.count += 1
        return f"v{self.count}"

    def _let_go(self, values: Sequence[int], but: int | None = None) -> str:
        """What follows a line to let go of values; a bool, as a predicate is, may stay behind."""
        names = {v: self.locals.pop(v) for v in values}
        self.free.extend(names.values())
        return _dropping([name for v, name in names.items() if v != but])

    def keep_tally(self) -> None:
        """Add what keeps what the loops and branches of the code above have done."""
        trips = [f"t{i}" for i in range(len(self.counted))]
        sides = [f"b{i}" for i in range(len(self.decided))]
        if not trips and not sides:
            return
        self.tally = self.tallies.new(self.counted, self.decided)
        self.scope |= {"ran": self.tally.latest, "number": run_number}
        self.line(f"ran[0] = {', '.join(['next(number)', *trips, *sides])}")
        begin = [
            f"{' = '.join(each)} = {what}" for each, what in ((trips, 0), (sides, None)) if each
        ]
        self.lines[:0] = [self.indent + text for text in begin]
        self.places[:0] = [_NOWHERE] * len(begin)

    # Branches

    def _write_move(self, move: Move, dying: Sequence[int], last_use: Mapping[int, int]) -> None:
        (source,), (target,) = move.inputs, move.outputs
        name = self.locals.get(target)
        if target not in last_use:
            dropped = self._let_go(dying)
            if dropped:
                self.line(dropped.removeprefix("; "))
        elif name is None and dying:
            self.locals[target] = self.locals.pop(source)
        elif name is not None and self.locals.get(source) == name:
            del self.locals[source]  # It was made where it was to go.
        else:
            given = self.name(source)
            if name is None:
                name = self.locals[target] = self._take(target)
            self.line(f"{name} = {given}{self._let_go(dying)}")

    def _write_literal(self, literal: Literal, last_use: Mapping[int, int]) -> None:
        (value,) = literal.outputs
        if value in last_use:
            name = self.shared("d", len(self.globals), literal.value)
            self.line(f"{self.locals[value]} = {name}")

    def _write_branches(
        self, unit: Branches, dying: Sequence[int], needed: Collection[int]
    ) -> None:
        for side in unit.sides:
            for each in side:
                if isinstance(each, Move | Literal):
                    (value,) = each.outputs
                    if value in needed and value not in self.locals:
                        self.locals[value] = self._take(value)
        before, free, count = dict(self.locals), list(self.free), self.count
        false, true = unit.sides
        taken = f"b{len(self.decided)}"
        self.decided.append(unit.switches)
        self.line(f"if {self.name(unit.pred)}:")
        self.line(f"    {taken} = 1")
        self._write_side(true, dying, needed, unit.pred)
        made = {v: n for v, n in self.locals.items() if v not in before}
        self.locals = dict(before)
        self.free = list(free)
        outer, self.barred = self.barred, self.barred.union(made.values())
        self.line("else:")
        self.line(f"    {taken} = 0")
        self._write_side(false, dying, needed, unit.pred)
        self.barred = outer
        self.locals.update(made)
        self._free_rest([*before.values(), *free], count)

    def _write_side(
        self, units: Sequence[Unit], dying: Iterable[int], needed: Collection[int], pred: int
    ) -> None:
        """Add one side of a predicate, which lets go of what dies and it does not take."""
        outer, self.indent = self.indent, self.indent + "    "
        taken = taken_by(units)
        dropped = self._let_go([v for v in dying if v not in taken], pred)
        if dropped:
            self.line(dropped.removeprefix("; "))
        last_use = _last_uses(units, needed)
        for place, unit in enumerate(units):
            if isinstance(unit, Move) and unit.outputs[0] in needed:
                (source,) = unit.inputs
                if last_use[source] == place and source not in self.locals:
                    self.destined[source] = self.locals[unit.outputs[0]]
        self.write(units, needed)
        self.indent = outer

    def _free_rest(self, names: Sequence[str], count: int) -> None:
        """Let all locals be free again in which no value lives.

        Args:
            names: those that there were before a statement.
            count: how many others there were then.
        """
        made = [f"v{number}" for number in range(count + 1, self.count + 1)]
        alive = {*self.locals.values()}
        self.free = [name for name in dict.fromkeys((*names, *made)) if name not in alive]

    # Loops

    def _write_loop(self, unit: Loop, dying: Sequence[int], needed: Collection[int]) -> None:
        before, free, count = dict(self.locals), list(self.free), self.count
        local_of = self._begin_variables(unit, dying)
        around = [v for v in self.locals if v not in local_of]
        for value in unit.invariants:
            if value in self.locals and self._is_number(value):
                # Of a scalar the iterations' operators take a tenth of the time.
                self.line(f"{self.locals[value]} = {self.locals[value]}[()]")
        counter, trips = f"i{len(self.loops)}", f"t{len(self.counted)}"
        self.counted.append(unit.frame)
        self.line(f"for {counter} in count():")
        around_it, self.loops = self.loops, ((unit.frame, counter), *self.loops)
        outer, self.indent = self.indent, self.indent + "    "
        if self.with_deadline:
            self.line("if clock() > deadline: raise late()")
        following = [v.following for v in unit.variables]
        lasting = {*unit.invariants, *following}
        kept = {*needed, *unit.invariants}
        later = {unit.pred, *taken_by(unit.ended), *taken_by(unit.body), *kept, *lasting}
        self.write(unit.condition, later)
        # What the iteration has made, and its variables.
        own = [v for v in self.locals if v not in around]
        here = dict(self.locals), list(self.free)
        self.line(f"if not {self.name(unit.pred)}:")
        self._write_side(unit.ended, [v for v in own if v not in kept], kept, unit.pred)
        self.line("    break")
        after, (self.locals, self.free) = self.locals, here
        self.hoped.update({v.following: local_of[v.value] for v in unit.variables})
        taken = {*taken_by(unit.body), *lasting}
        dropped = self._let_go([v for v in own if v not in taken], unit.pred)
        if dropped:
            self.line(dropped.removeprefix("; "))
        self.write(unit.body, lasting)
        self._end_iteration(unit, local_of, around)
        self.indent, self.loops = outer, around_it
        self.line(f"{trips} += {counter}")
        self.locals = after
        dropped = self._let_go([v for v in dying if v in self.locals and v not in local_of])
        if dropped:
            self.line(dropped.removeprefix("; "))
        self._free_rest([*before.values(), *free], count)

    def _begin_variables(self, unit: Loop, dying: Sequence[int]) -> dict[int, str]:
        """Give a loop's variables their locals: that of the first value, if it dies with it."""
        local_of: dict[int, str] = {}
        for place, (value, first, _) in enumerate(unit.variables):
            others = [variable.first for variable in unit.variables[place + 1 :]]
            is_last = first in dying and first not in unit.invariants and first not in others
            if is_last and self.locals[first] not in self.barred:
                local_of[value] = self.locals.pop(first)
            else:
                given = self.name(first)
                local_of[value] = self._take(value)
                dropped = self._let_go([first] if is_last else [])
                self.line(f"{local_of[value]} = {given}{dropped}")
        self.locals.update(local_of)
        return local_of

    def _end_iteration(self, unit: Loop, local_of: Mapping[int, str], around: list[int]) -> None:
        """Give a loop's variables the values that they have in the next iteration."""
        moves = [(local_of[v.value], self.name(v.following)) for v in unit.variables]
        moves = [(target, source) for target, source in moves if target != source]
        targets = [target for target, _ in moves]
        used = [n for v, n in self.locals.items() if v not in around and v not in local_of]
        dropped = _dropping([name for name in used if name not in local_of.values()])
        if moves:
            self.line(f"{', '.join(targets)} = {', '.join([s for _, s in moves])}{dropped}")

    def _overwritten(self, kernel: Kernel, dying: Sequence[int]) -> str | None:
        """The local of a dying input in whose place the result can be put."""
        expression = kernel.call.expression
        if expression is None or not expression.is_call or self.is_wary or self.device.xp is not np:
            return None
        for value in dying:
            if value in self.unshared and fits(kernel, value, self.specs):
                return self.locals[value]
        return None

    def _call(
        self, kernel: Kernel, inputs: tuple[str, ...], used: Sequence[int], out: str | None
    ) -> str:
        index = kernel.index
        if kernel.call.expression is not None and kernel.call.expression.is_single:
            return self._inlined(kernel, inputs, out)
        function = kernel.function
        if kernel.call.expression is not None and not self.is_wary:
            function = kernel.call.expression.kernel(used)
        first = [self._kernel(function), "xp"]
        first += [self.shared("r", index, resource) for resource in kernel.leading]
        attributes = []
        for name, value in kernel.attributes.items():
            text = self._literal(index, name, value)
            attributes.append(text if kernel.call.is_positional else f"{name}={text}")
        return f"{first[0]}({', '.join([*first[1:], *inputs, *attributes])})"

    def _inlined(self, kernel: Kernel, inputs: tuple[str, ...], out: str | None) -> str:
        expression = kernel.call.expression
        assert expression is not None
        is_scalar = self._takes_scalars(kernel)
        if is_scalar:
            inputs = tuple([self._scalar(v) for v in kernel.inputs])
        names = dict(zip(expression.parameters, inputs, strict=False))
        for name in expression.functions:
            names[name] = f"xp_{name}"
            self.scope[f"xp_{name}"] = getattr(self.device.xp, name)
        for name, value in kernel.attributes.items():
            names[name] = self._literal(kernel.index, name, value)
        if is_scalar:
            return expression.render_for_scalars(names)
        if out is not None:
            # In another order of elements the bits of what is computed from them might differ.
            return expression.render_into(names, f"{out} if {out}.flags.c_contiguous else None")
        large = self._kernel(kernel.function) if expression.has_steps else None
        return expression.render(names, large)

    def _takes_scalars(self, kernel: Kernel) -> bool:
        """Whether a kernel surely takes numbers without dimensions, as NumPy has them."""
        return all(map(self._is_number, kernel.inputs))

    def _is_number(self, value: int) -> bool:
        # A stretch may be written with what was known of a program that this one has grown from.
        shape = self.specs.shapes.get(value)
        if self.is_wary or self.device.xp is not np or shape is None or shape.rank != 0:
            return False
        return self.specs.dtypes[value].numpy.kind in "biuf"

    def _scalar(self, value: int) -> str:
        """How the code refers to a number without dimensions: a constant as NumPy's scalar."""
        if value in self.locals:
            return self.locals[value]
        return self.shared("n", value, self.known[value][()])

    def _kernel(self, function: Callable[..., Any]) -> str:
        """One global per kernel, however many calls."""
        return self.shared("k", id(function), function)

    def _literal(self, index: int, name: str, value: Any) -> str:
        if value is None or value is True or value is False or (type(value) is int and value >= 0):
            return repr(value)
        return self.shared("a", (index, name), value)


def _dropping(names: Collection[str]) -> str:
    """What follows a line to let go of what lies in locals."""
    return f"; {' = '.join(names)} = None" if names else ""


def _last_uses(units: Sequence[Unit], lasting: Collection[int]) -> dict[int, int]:
    """For each value that is used the place of the last unit that uses it, or beyond them all."""
    last = {value: place for place, unit in enumerate(units) for value in unit.inputs}
    last.update(dict.fromkeys(lasting, len(units)))
    return last
