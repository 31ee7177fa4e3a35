"""Code that says when it comes to do what others can tell of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowbook.exec.engine.code.statements import Branches, Loop, Mark
from flowbook.exec.engine.units import Unit


def marked(
    units: Sequence[Unit], begin: Callable[[], None], pause: Callable[[], None]
) -> list[Unit]:
    """Units, and marks before those of which others can tell that they ran.

    Args:
        units: in the order in which they run.
        begin: called before the first of them, on each side of a branch, and behind a loop again.
        pause: called where an iteration of a loop begins.
    """
    found: list[Unit] = []
    is_marked = False
    for unit in units:
        if isinstance(unit, Branches):
            false, true = (marked(side, begin, pause) for side in unit.sides)
            found.append(Branches(unit.pred, (false, true), unit.switches))
        elif isinstance(unit, Loop):
            condition, body, ended = (
                marked(each, begin, pause) for each in (unit.condition, unit.body, unit.ended)
            )
            condition.insert(0, Mark(pause))
            variables, pred = unit.variables, unit.pred
            found.append(Loop(unit.frame, variables, condition, pred, body, ended))
            is_marked = False
        else:
            if unit.acts and not is_marked:
                found.append(Mark(begin))
                is_marked = True
            found.append(unit)
    return found
