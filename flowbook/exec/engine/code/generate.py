"""Python for units that need no waiting: one line per kernel call, locals for values.

Nothing but the kernels costs time: the line that failed is found in the traceback, not by
bookkeeping. How the lines are written is in `writer.py` and `calls.py`.

What a text names it numbers in the order in which it comes: where a graph repeats itself, so do the
texts, and each is compiled once.

A short program is one function from feeds to fetches (`whole_step`). Of a longer one, each stretch
(`segment.py`) is a function that takes its values from a list, and leaves there what others need
(`on_values`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

from flowbook.exec.engine.code.setting import Setting
from flowbook.exec.engine.code.statements import made_by, taken_by
from flowbook.exec.engine.code.tally import Tally
from flowbook.exec.engine.code.writer import Writer
from flowbook.exec.engine.units import Handle, Unit
from flowbook.exec.plan.failure import LoopPlace, UnitFailure

_serial = itertools.count()

# So many texts are remembered with what they were compiled to.
COMPILED = 64


class Generated:
    """Units as a function.

    Attributes:
        function: the function.
        text: its text, for whoever wants to see it.
        tally: where it keeps what its loops and branches do, if it has any.
    """

    def __init__(self, name: str, parameters: Sequence[str], writer: Writer) -> None:
        self._filename = f"<flowbook {name} {next(_serial)}>"
        self._places = writer.places
        self._scope = writer.calls.scope
        self.tally: Tally | None = writer.tally
        # What most lines name is a local, as Python finds these sooner.
        head = f"def {name}({', '.join([*parameters, 'xp=xp'])}):\n"
        self.text = head + "\n".join(writer.lines) + "\n"
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
    writer = Writer(setting, with_deadline)
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
    writer = Writer(setting, with_deadline)
    taken = [value for value in taken_by(units) if value not in setting.known]
    for number, value in enumerate(taken):
        local = writer.locals[value] = f"s{number}"
        place = f"values[{writer.calls.shared('p', value, value)}]"
        dropped = f"; {place} = None" if value in dying else ""
        writer.line(f"{local} = {place}{dropped}")
    lasting = [value for value in made if value not in dying]
    writer.write(units, lasting)
    writer.keep_tally()
    for value in lasting:
        writer.line(f"values[{writer.calls.shared('p', value, value)}] = {writer.name(value)}")
    if not writer.lines:
        writer.line("pass")
    return Generated("stretch", ["values", "deadline"], writer)
