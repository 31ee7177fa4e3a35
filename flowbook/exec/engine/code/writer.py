"""The lines of generated code, and which local holds which value.

A local is reused as soon as its value has been used for the last time, so that memory is freed
there and a variable's buffer is given back before it is written.

Branches and loops (`statements.py`) are Python's own. Each side of a branch lets go of what it is
the last to need, or does not need; a loop's variable has one local in all iterations. Beside what
is alive then, a local that has been used holds nothing where branches meet or an iteration ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from flowbook.exec.engine.code.calls import Calls
from flowbook.exec.engine.code.overwriting import unshared
from flowbook.exec.engine.code.setting import Setting
from flowbook.exec.engine.code.statements import Branches, Literal, Loop, Mark, Move, taken_by
from flowbook.exec.engine.code.tally import Tally, run_number
from flowbook.exec.engine.units import Kernel, Router, Unit

# What a line belongs to: a node, the locals that it is given, and the loops around it.
_Place = tuple[int, tuple[str, ...], tuple[tuple[str, str], ...]]
_NOWHERE: _Place = (-1, (), ())


class Writer:
    """Writes the lines of one function, and keeps which local holds which value.

    Args:
        setting: what it is written with.
        with_deadline: whether the function keeps the deadline.

    Attributes:
        calls: how it calls kernels, and the globals that it names.
        lines: its lines.
        places: what each of them belongs to.
        locals: the local of each value that has one.
        tally: where it keeps what its loops and branches do, if it has any.
    """

    def __init__(self, setting: Setting, with_deadline: bool) -> None:
        self.calls = Calls(setting)
        self._setting = setting
        self._with_deadline = with_deadline
        may_stop = " and may_stop()" if setting.may_stop is not None else ""
        self._keeping_deadline = f"if clock() > deadline{may_stop}: raise late()"
        self._ending = f"if executions.is_closed{may_stop}: raise session_closed()"
        self.lines: list[str] = []
        self.places: list[_Place] = []
        self._indent = "    "
        # The frames of the loops around, the innermost first, and the locals that count iterations.
        self._loops: tuple[tuple[str, str], ...] = ()
        self.locals: dict[int, str] = {}
        self._free: list[str] = []
        self._count = 0
        # The frames of all loops, and the Switches of all branches: what these do is counted.
        self._counted: list[str] = []
        self._decided: list[Sequence[int]] = []
        self.tally: Tally | None = None
        # The values that may be overwritten when they die.
        self._unshared: set[int] = set()
        # What the other side of a branch leaves behind lies in these.
        self._barred: frozenset[str] = frozenset()
        # For a value the local that it is moved to in the end: one kept for it, one maybe free.
        self._destined: dict[int, str] = {}
        self._hoped: dict[int, str] = {}

    def name(self, value: int) -> str:
        """How the code refers to a value."""
        local = self.locals.get(value)
        return local if local is not None else self.calls.constant(value)

    def line(self, text: str, node: int = -1, names: tuple[str, ...] = ()) -> None:
        """Add a line that belongs to a node."""
        self.lines.append(self._indent + text)
        self.places.append((node, names, self._loops))

    def write(self, units: Sequence[Unit], lasting: Collection[int]) -> None:
        """Add the code of units, after which some values live on."""
        last_use = _last_uses(units, lasting)
        self._unshared |= unshared(units)
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
            elif isinstance(unit, Mark):
                self.line(f"{self.calls.shared('m', unit.function, unit.function)}()")
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
        call = self.calls.text(kernel, inputs, used, self._overwritten(kernel, dying))
        released = [self.locals.pop(v) for v in dying]
        self._free.extend(released)
        targets = [self._take(v) for v in kernel.outputs]
        for value, target in zip(kernel.outputs, targets, strict=True):
            if value in last_use:
                self.locals[value] = target
            else:
                self._free.append(target)
        # What dies here and is not overwritten is let go at once, unused outputs included.
        written = {t for v, t in zip(kernel.outputs, targets, strict=True) if v in last_use}
        dropped = [n for n in dict.fromkeys((*released, *targets)) if n not in written]
        if self._with_deadline:
            self.line(self._keeping_deadline, index)
        if self._setting.is_wary and not isinstance(kernel, Router):
            check = kernel.checked if kernel.is_single else kernel.checked_all
            checked = self.calls.shared("checked", index, check)
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
        if value in self._destined:
            return self._destined[value]
        free = [name for name in self._free if name not in self._barred]
        if free:
            hoped = self._hoped.get(value)
            name = hoped if hoped in free else free[-1]
            self._free.remove(name)
            return name
        self._count += 1
        return f"v{self._count}"

    def _let_go(self, values: Sequence[int], but: int | None = None) -> str:
        """What follows a line to let go of values; a bool, as a predicate is, may stay behind."""
        names = {v: self.locals.pop(v) for v in values}
        self._free.extend(names.values())
        return _dropping([name for v, name in names.items() if v != but])

    def keep_tally(self) -> None:
        """Add what keeps what the loops and branches of the code above have done."""
        trips = [f"t{i}" for i in range(len(self._counted))]
        sides = [f"b{i}" for i in range(len(self._decided))]
        if not trips and not sides:
            return
        self.tally = self._setting.tallies.new(self._counted, self._decided)
        self.calls.scope |= {"ran": self.tally.latest, "number": run_number}
        self.line(f"ran[0] = {', '.join(['next(number)', *trips, *sides])}")
        begin = [
            f"{' = '.join(each)} = {what}" for each, what in ((trips, 0), (sides, None)) if each
        ]
        self.lines[:0] = [self._indent + text for text in begin]
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
            name = self.calls.literal(literal.value)
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
        before, free, count = dict(self.locals), list(self._free), self._count
        false, true = unit.sides
        taken = f"b{len(self._decided)}"
        self._decided.append(unit.switches)
        self.line(f"if {self.name(unit.pred)}:")
        self.line(f"    {taken} = 1")
        self._write_side(true, dying, needed, unit.pred)
        made = {v: n for v, n in self.locals.items() if v not in before}
        self.locals = dict(before)
        self._free = list(free)
        outer, self._barred = self._barred, self._barred.union(made.values())
        self.line("else:")
        self.line(f"    {taken} = 0")
        self._write_side(false, dying, needed, unit.pred)
        self._barred = outer
        self.locals.update(made)
        self._free_rest([*before.values(), *free], count)

    def _write_side(
        self, units: Sequence[Unit], dying: Iterable[int], needed: Collection[int], pred: int
    ) -> None:
        """Add one side of a predicate, which lets go of what dies and it does not take."""
        outer, self._indent = self._indent, self._indent + "    "
        taken = taken_by(units)
        dropped = self._let_go([v for v in dying if v not in taken], pred)
        if dropped:
            self.line(dropped.removeprefix("; "))
        last_use = _last_uses(units, needed)
        for place, unit in enumerate(units):
            if isinstance(unit, Move) and unit.outputs[0] in needed:
                (source,) = unit.inputs
                if last_use[source] == place and source not in self.locals:
                    self._destined[source] = self.locals[unit.outputs[0]]
        self.write(units, needed)
        self._indent = outer

    def _free_rest(self, names: Sequence[str], count: int) -> None:
        """Let all locals be free again in which no value lives.

        Args:
            names: those that there were before a statement.
            count: how many others there were then.
        """
        made = [f"v{number}" for number in range(count + 1, self._count + 1)]
        alive = {*self.locals.values()}
        self._free = [name for name in dict.fromkeys((*names, *made)) if name not in alive]

    # Loops

    def _write_loop(self, unit: Loop, dying: Sequence[int], needed: Collection[int]) -> None:
        before, free, count = dict(self.locals), list(self._free), self._count
        local_of = self._begin_variables(unit, dying)
        around = [v for v in self.locals if v not in local_of]
        for value in unit.invariants:
            if value in self.locals and self.calls.is_number(value):
                # Of a scalar the iterations' operators take a tenth of the time.
                self.line(f"{self.locals[value]} = {self.locals[value]}[()]")
        counter, trips = f"i{len(self._loops)}", f"t{len(self._counted)}"
        self._counted.append(unit.frame)
        self.line(f"for {counter} in count():")
        around_it, self._loops = self._loops, ((unit.frame, counter), *self._loops)
        outer, self._indent = self._indent, self._indent + "    "
        self.line(self._ending)
        if self._with_deadline:
            self.line(self._keeping_deadline)
        following = [v.following for v in unit.variables]
        lasting = {*unit.invariants, *following}
        kept = {*needed, *unit.invariants}
        later = {unit.pred, *taken_by(unit.ended), *taken_by(unit.body), *kept, *lasting}
        self.write(unit.condition, later)
        # What the iteration has made, and its variables.
        own = [v for v in self.locals if v not in around]
        here = dict(self.locals), list(self._free)
        self.line(f"if not {self.name(unit.pred)}:")
        self._write_side(unit.ended, [v for v in own if v not in kept], kept, unit.pred)
        self.line("    break")
        after, (self.locals, self._free) = self.locals, here
        self._hoped.update({v.following: local_of[v.value] for v in unit.variables})
        taken = {*taken_by(unit.body), *lasting}
        dropped = self._let_go([v for v in own if v not in taken], unit.pred)
        if dropped:
            self.line(dropped.removeprefix("; "))
        self.write(unit.body, lasting)
        self._end_iteration(unit, local_of, around)
        self._indent, self._loops = outer, around_it
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
            if is_last and self.locals[first] not in self._barred:
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
        for value in dying:
            if value in self._unshared and self.calls.overwrites(kernel, value):
                return self.locals[value]
        return None


def _dropping(names: Collection[str]) -> str:
    """What follows a line to let go of what lies in locals."""
    return f"; {' = '.join(names)} = None" if names else ""


def _last_uses(units: Sequence[Unit], lasting: Collection[int]) -> dict[int, int]:
    """For each value that is used the place of the last unit that uses it, or beyond them all."""
    last = {value: place for place, unit in enumerate(units) for value in unit.inputs}
    last.update(dict.fromkeys(lasting, len(units)))
    return last
