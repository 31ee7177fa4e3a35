"""What an instrument is: it watches runs. A plan becomes a plan plus a sink of events.

There are two things that an instrument may do with a signature. It may rewrite the plan, which
stays plain data: a guard adds nodes that check values. And it may tap the signature: ask for
further tensors in some of its runs, and take their values: summaries do so. Everything else that
watches runs is made of these two; none of it lives in the session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor

if TYPE_CHECKING:
    from flowbook.exec.engine.executable import Executable
    from flowbook.exec.engine.units import Unit
    from flowbook.exec.plan.pipeline import Prepared


class Signature(NamedTuple):
    """What a step is asked for.

    Attributes:
        fetches: whose values are wanted.
        targets: what is to run beside.
        feeds: what is given.
        is_late: for each of the feeds, whether it arrives after the step has begun; empty if none.
    """

    fetches: tuple[Tensor, ...]
    targets: tuple[Operation, ...]
    feeds: tuple[Tensor, ...]
    is_late: tuple[bool, ...] = ()


class Tap(Protocol):
    """What an instrument takes from the runs of one signature.

    Attributes:
        tensors: what it wants to know of a run for which it is due.
    """

    tensors: Sequence[Tensor]

    def begin(self) -> Callable[[Sequence[Any]], None] | None:
        """Asked once before each run: what takes the values when it has ended without an error.

        None says that nothing of this run is wanted.
        """


class Instrument:
    """What may watch the runs of a session; it does nothing unless a subclass says so.

    Attributes:
        rewrites: whether it rewrites plans.
    """

    rewrites = False

    def rewritten(self, prepared: Prepared, has_late_feeds: bool) -> Prepared:
        """The plan that runs instead: plain data like every plan.

        Args:
            prepared: the plan, rewritten by those before.
            has_late_feeds: whether some of its feeds arrive after the step has begun.
        """
        return prepared

    def bound(self, prepared: Prepared, units: Sequence[Unit]) -> None:
        """Give what it added to a plan what that needs in this process."""

    def tap(self, signature: Signature, executable: Executable) -> Sequence[Tap]:
        """What it takes from the runs of a signature."""
        return ()

    def close(self) -> None:
        """Be done: no more runs will come."""
