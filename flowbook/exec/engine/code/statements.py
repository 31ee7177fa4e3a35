"""What generated code is made of beside calls of kernels: branches, loops, moves.

Each is a unit like others, which takes the values that it needs from outside and gives those that
it makes, so that whoever asks how long values live need not look into it. They run as code only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowbook.exec.engine.units import Unit, Values


class Move(Unit):
    """Lets a value be known by another number too, as the one that a branch gives."""

    __slots__ = ()

    def __init__(self, source: int, target: int) -> None:
        super().__init__((source,), (target,), ())


class Literal(Unit):
    """Gives a value that is known when code is written, as which branch was taken."""

    __slots__ = ("value",)

    def __init__(self, value: Any, target: int) -> None:
        super().__init__((), (target,), ())
        self.value = value


class Mark(Unit):
    """Says how far code has come, by calling a function.

    Attributes:
        function: the function.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[[], None]) -> None:
        super().__init__((), (), ())
        self.function = function

    def run(self, values: Values) -> Sequence[Any]:
        """Call the function."""
        self.function()
        return ()


class Branches(Unit):
    """Runs one of two sides.

    Attributes:
        pred: the value that says which.
        sides: what runs if it is false, and what if it is true.
        switches: the ids of the Switches that it was made of.
    """

    __slots__ = ("pred", "sides", "switches")

    def __init__(
        self,
        pred: int,
        sides: tuple[Sequence[Unit], Sequence[Unit]],
        switches: Sequence[int] = (),
    ) -> None:
        taken: dict[int, None] = {pred: None}
        made: dict[int, None] = {}
        for side in sides:
            taken |= taken_by(side)
            made |= made_by(side)
        super().__init__(tuple(taken), tuple(made), ())
        self.pred = pred
        self.sides = sides
        self.switches = switches

    @property
    def within(self) -> Sequence[Unit]:
        """See `Unit`."""
        return [unit for side in self.sides for unit in side]


class Variable(NamedTuple):
    """A value that a loop carries from one iteration to the next.

    Attributes:
        value: what it is in an iteration.
        first: what it is in the first one.
        following: what an iteration makes it for the next one.
    """

    value: int
    first: int
    following: int


class Loop(Unit):
    """Runs a body as often as a predicate holds, which each iteration computes first.

    Attributes:
        frame: the name of its frame.
        variables: what it carries.
        condition: what runs first in each iteration, in the last one too.
        pred: the value that says whether the iteration goes on.
        body: what runs then.
        ended: what runs once, if it does not.
        invariants: the values from outside that are needed in every iteration.
    """

    __slots__ = ("body", "condition", "ended", "frame", "invariants", "pred", "variables")

    def __init__(
        self,
        frame: str,
        variables: Sequence[Variable],
        condition: Sequence[Unit],
        pred: int,
        body: Sequence[Unit],
        ended: Sequence[Unit],
    ) -> None:
        steps = [Move(v.following, v.value) for v in variables]
        own = [v.value for v in variables]
        inside = [*condition, Branches(pred, (ended, [*body, *steps]))]
        self.invariants = [value for value in taken_by(inside) if value not in own]
        firsts = [v.first for v in variables]
        made = (*own, *made_by(condition), *made_by(ended))
        super().__init__(tuple(dict.fromkeys((*self.invariants, *firsts))), made, ())
        self.frame = frame
        self.variables = variables
        self.condition = condition
        self.pred = pred
        self.body = body
        self.ended = ended

    @property
    def within(self) -> Sequence[Unit]:
        """See `Unit`."""
        return [*self.condition, *self.body, *self.ended]


def taken_by(units: Sequence[Unit]) -> dict[int, None]:
    """The values that units, one after the other, take from outside."""
    taken: dict[int, None] = {}
    made: set[int] = set()
    for unit in units:
        taken.update(dict.fromkeys([v for v in unit.inputs if v not in made]))
        made.update(unit.outputs)
    return taken


def made_by(units: Sequence[Unit]) -> dict[int, None]:
    """The values that units make."""
    return dict.fromkeys([v for unit in units for v in unit.outputs])
