"""What the steps of one session share: resources, what waits, and what loops did."""

from __future__ import annotations

from dataclasses import dataclass, field

from flowbook.exec.engine.code.tally import Tallies
from flowbook.exec.engine.under_way import Executions
from flowbook.exec.resources.session_stores import SessionStores


@dataclass(frozen=True)
class Engine:
    """What runners run in.

    Attributes:
        stores: where resources live.
        executions: where steps that may wait are listed.
        tallies: where it is kept what loops and branches did.
    """

    stores: SessionStores
    executions: Executions = field(default_factory=Executions)
    tallies: Tallies = field(default_factory=Tallies)
