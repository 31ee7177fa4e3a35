"""What there is to see of what goes on in a session of this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flowbook.exec.engine.code.tally import Ran
from flowbook.exec.engine.engine import Engine
from flowbook.exec.queue_threads import Feeding
from flowbook.exec.stalled import Waiter
from flowbook.graph.model.resource_key import ResourceKey


@dataclass(frozen=True)
class LocalMonitor:
    """Sees what goes on in a session of this process; see `Monitor`.

    Attributes:
        engine: what its steps run in.
        feeding: what fills its queues.
    """

    engine: Engine
    feeding: Feeding

    @property
    def under_way(self) -> int:
        """How many of the steps that may wait are under way, those that fill queues among them."""
        return self.engine.executions.under_way

    def waiters(self) -> Sequence[Waiter]:
        """What waits now."""
        return self.engine.executions.waiters()

    def ran(self) -> Ran:
        """What loops and branches did in the last run that had them."""
        return self.engine.tallies.ran()

    def find(self, key: ResourceKey) -> Any:
        """The resource of a key if it exists already, or None."""
        return self.engine.stores.find(key)
