"""What a step does as one, whether it is of one part or of several.

It passes the gates of what it writes, and what it has drawn is taken back if it fails: the same
step made again draws the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from flowbook.exec.resources.gate import Gate, Passage
from flowbook.exec.resources.random_state import Draws

Result = TypeVar("Result")


class Undivided:
    """What the steps of one program do as one.

    Args:
        gates: of what they write.
        draws: whether they draw random numbers.
        runs_users_code: whether what they run may run steps in turn.
        what: describes a step, to whoever waits for it.

    Attributes:
        gates, draws: see above.
    """

    def __init__(
        self, gates: Sequence[Gate], draws: bool, runs_users_code: bool, what: Callable[[], str]
    ) -> None:
        self.gates = gates
        self.draws = draws
        self._runs_users_code = runs_users_code
        self._what = what
        self._has_ended = False

    def end(self) -> None:
        """Have no step begin any more that is not through the gates; it has to be prepared anew."""
        self._has_ended = bool(self.gates)

    def _is_over(self) -> bool:
        return self._has_ended

    def passage(self, deadline: float | None) -> Passage:
        """A step's way through the gates."""
        return Passage(self.gates, self._what, deadline, self._is_over)

    def inside(
        self, deadline: float | None, function: Callable[..., Result], *arguments: Any
    ) -> Result:
        """Call a function that runs a step inside of the gates."""
        return self._within(self.passage(deadline), function, arguments)

    def going_on(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """As `inside`, where the step is under way already: it ends as it has begun."""
        return self._within(Passage(self.gates, self._what, None), function, arguments)

    def _within(
        self, passage: Passage, function: Callable[..., Result], arguments: Sequence[Any]
    ) -> Result:
        if not self.gates:
            return function(*arguments)
        call = passage.call_known if self._runs_users_code else passage.call
        return call(function, *arguments)

    def drawing(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function that runs a step; what it draws is taken back if it fails."""
        return Draws().during(function, *arguments) if self.draws else function(*arguments)


# What steps do as one that neither write nor draw.
FREE = Undivided((), draws=False, runs_users_code=False, what=str)
