"""A guard against NaN and infinities: it names the operation that was the first to produce one.

It checks every floating-point value of a step, but looks at few of them (`guarded_plan.py`). A
check only reports. If something is not finite, the nodes since the last check run again where their
values are, one by one, until one gives what is not finite (`engine/diagnosis.py`). So runs are
exact, and cost next to nothing while all is well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from flowbook.exec.instruments.attached import Instruments
from flowbook.exec.instruments.guarded_plan import guarded
from flowbook.exec.plan.program import Program
from flowbook.exec.plan.watching import Instrument
from flowbook.graph.model.errors import InvalidTypeError

Some = TypeVar("Some", bound=Instrument)


class Guard(Instrument):
    """The instrument behind `Session.guard`; as a context manager it ends with the block.

    The latest of a session is in force. Made for good it replaces one made for good; in a block it
    leaves what was in force to come back after the block. Two that allow the same are equal.

    Args:
        instruments: those of the session.
        allow: names of operations, and of scopes, whose values need not be finite.
    """

    rewrites = True

    def __init__(self, instruments: Instruments, allow: Sequence[str]) -> None:
        self._instruments = instruments
        self._allow = tuple(sorted(set(allow)))
        self._replaced: tuple[Guard, ...] = ()
        self._is_entered = False
        self._has_ended = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guard) and self._allow == other._allow

    def __hash__(self) -> int:
        return hash((Guard, self._allow))

    def rewritten(self, program: Program, has_late_feeds: bool) -> Program:
        """The program with checks in it."""
        return guarded(program, self._allow, has_late_feeds)

    def remove(self) -> None:
        """Guard no more runs."""
        self._has_ended = True
        self._instruments.remove(self)

    def begin(self, present: tuple[Instrument, ...]) -> tuple[Instrument, ...]:
        """The instruments of the session with this guard, in place of what was made for good."""
        self._replaced = tuple([g for g in present if isinstance(g, Guard) and not g._is_entered])
        return (*_without(present, self._replaced), self)

    def __enter__(self) -> Guard:
        self._is_entered = True
        self._instruments.exchange(self._begin_block)
        return self

    def _begin_block(self, present: tuple[Instrument, ...]) -> tuple[Instrument, ...]:
        again = [g for g in _without(self._replaced, present) if not g._has_ended]
        return (*_without(present, [self]), *again, self)

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<Guard against NaN and Inf{f', allowing {self._allow}' if self._allow else ''}>"


def guard(instruments: Instruments, nonfinite: bool, allow: Any) -> Guard | None:
    """Guard a session, or stop; see `Session.guard`."""
    names = list(allow) if isinstance(allow, list | tuple | set | frozenset) else [allow]
    found = []
    for item in names:
        name = item if isinstance(item, str) else getattr(getattr(item, "op", item), "name", None)
        if not isinstance(name, str) or not name:
            raise InvalidTypeError(f"operations are allowed by name, not {item!r:.80}")
        found.append(name.partition(":")[0].rstrip("/"))
    if not nonfinite:
        for each in [i for i in instruments.all if isinstance(i, Guard)]:
            each.remove()
        return None
    made = Guard(instruments, found)
    instruments.exchange(made.begin)
    return made


def _without(present: Sequence[Some], others: Sequence[Instrument]) -> list[Some]:
    """Those that are none of the others, whatever they are equal to."""
    return [each for each in present if all(each is not other for other in others)]
