"""Who carries out what a session asks for: the protocols.

A `Master` runs steps: `prepare` gives a handle, which `run` and `begin` take. A session holds it,
and knows nothing of what stands behind it. What else a session may be asked for, a master may
offer: a `Placer`, the `Resources`, a `Monitor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from flowbook.exec.checkpoints.snapshot import Snapshot
from flowbook.exec.devices.device import Device, DeviceDescription
from flowbook.exec.engine.code.tally import Ran
from flowbook.exec.placement.measurements import Measured
from flowbook.exec.placement.search import Search
from flowbook.exec.plan.explanation import Explanation
from flowbook.exec.plan.pipeline import Prepared
from flowbook.exec.plan.replacing import Replacement
from flowbook.exec.plan.watching import Instrument
from flowbook.exec.queue_threads import Feeding
from flowbook.exec.signature.signature import Signature
from flowbook.exec.stalled import Waiter
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.state.variables import Variable


class PartialStep(Protocol):
    """A step under way whose feeds arrive one by one."""

    def feed(self, place: int, value: Any) -> None:
        """Give the feed of that place in the signature its value."""

    def advance(self, places: Sequence[int], targets: Sequence[Operation]) -> None:
        """Run what is ready, and wait for what is under way as long as something is not there.

        Args:
            places: of the fetches that are asked for.
            targets: the operations that are.

        Raises:
            OpError: what an operation raised; the step is over.
        """

    def fetched(self, place: int) -> Any:
        """The value of the fetch of that place; None if it is not there yet."""

    def has_run(self, operation: Operation) -> bool:
        """Whether an operation has run, or nothing of it is left to run."""

    def close(self, is_complete: bool) -> None:
        """End it: give the rest up, unless all that was wanted has been had."""


class Placer(Protocol):
    """Says and changes where operations run."""

    def list_devices(self) -> list[DeviceDescription]:
        """The devices that operations run on."""

    def explain(
        self, signature: Signature, shapes: Mapping[Tensor, Shape], devices: Sequence[Device] | None
    ) -> Explanation:
        """The plan of a signature for these devices, or its own; nothing is run or kept.

        Raises:
            InvalidArgumentError: as `Master.prepare`.
        """

    def search(
        self, signature: Signature, shapes: Mapping[Tensor, Shape], search: Search
    ) -> Sequence[tuple[str, Explanation]]:
        """The plan of a signature as it is placed now, and those that a search finds, with names.

        Raises:
            InvalidArgumentError: as `Master.prepare`.
        """

    def learn(self, measured: Iterable[tuple[Operation, str, Measured]]) -> None:
        """Predict from now on by what operations took on devices, which are given by name."""

    @property
    def moved(self) -> Mapping[Operation, str]:
        """The devices, by name, of the operations that were put somewhere."""

    def replace(
        self, moves: Mapping[Operation, str | None], asked: Signature, deadline: float | None
    ) -> Replacement:
        """Have operations run on other devices, given by name, and what they touch live there.

        Args:
            moves: where operations are to be; None for wherever a step ends early.
            asked: what has to be possible then, besides what is prepared.
            deadline: when to give up waiting for steps that are under way.

        Raises:
            InvalidArgumentError: if an operation cannot be where it should; nothing has moved then.
            DeadlineExceededError: if steps that write were under way until the deadline; likewise.
        """


class Resources(Protocol):
    """What a session's resources hold."""

    def values(self) -> Mapping[ResourceKey, Any]:
        """The values of the session's own variables now, by their keys; they stay as they are."""

    def take(self, values: Mapping[Operation, Any]) -> None:
        """Give variables values, each named by its handle's operation."""

    def snapshot(self, variables: Sequence[Variable], deadline: float | None) -> Snapshot:
        """What variables hold between two steps, and what else a training goes on from.

        Those without values are initialised before.

        Raises:
            DeadlineExceededError: if steps that write were under way until the deadline.
        """

    def put(self, snapshot: Snapshot, deadline: float | None) -> None:
        """Give variables values, and the rest its state, between two steps.

        Raises:
            InvalidArgumentError: if a state does not fit; nothing has changed then.
            DeadlineExceededError: as `snapshot`.
        """

    def reset(self) -> None:
        """Have all that is the session's own begin afresh."""


class Monitor(Protocol):
    """Sees what goes on in the runs of a session."""

    @property
    def feeding(self) -> Feeding:
        """What fills its queues."""

    @property
    def under_way(self) -> int:
        """How many of the steps that may wait are under way, those that fill queues among them."""

    def waiters(self) -> Sequence[Waiter]:
        """What waits now."""

    def ran(self) -> Ran:
        """What loops and branches did in the last run that had them."""

    def find(self, key: ResourceKey) -> Any:
        """The resource of a key if it exists already, or None."""


class Master(Protocol):
    """What a session needs of whoever runs its graph.

    The keys of the variables that have values are in `graph.values.held_by(master)`.

    Attributes:
        graph: the graph.
    """

    graph: Graph

    def extend(self) -> None:
        """Take what the graph gained, and drop what it lost, since the last time."""

    def prepare(self, signature: Signature, instruments: Sequence[Instrument] = ()) -> Prepared:
        """A signature made ready to run, its program rewritten by instruments."""

    @property
    def drops(self) -> int:
        """How many programs it has dropped, to make room or with what a cell redefined.

        A handle may still be run, and holds memory: whoever has some lets go of them.
        """

    def run(
        self,
        prepared: Prepared,
        feeds: Sequence[Any],
        deadline: float | None = None,
        initializes: bool = True,
    ) -> Sequence[Any]:
        """Run one step.

        Args:
            prepared: what `prepare` gave; it is prepared again if it was dropped.
            feeds: the fed values, in the order of the signature.
            deadline: when to give up, on the clock of `time.monotonic`, or None.
            initializes: whether variables that it needs are initialised before.

        Raises:
            OpError: what an operation raised; it names the operation and its line.
        """

    def begin(self, prepared: Prepared) -> PartialStep:
        """Begin a step that goes on as late feeds arrive; variables are initialised before."""

    def close(self) -> None:
        """Cancel what waits, and free memory."""

    @property
    def placer(self) -> Placer | None:
        """Says and changes where operations run, if anything may."""

    @property
    def resources(self) -> Resources | None:
        """Has what resources hold, if that may be asked for."""

    @property
    def monitor(self) -> Monitor | None:
        """Sees what goes on, if anything may."""


Offer = TypeVar("Offer")


def offered(offer: Offer | None, what: str) -> Offer:
    """What a master offers besides running steps.

    Args:
        offer: that, or None.
        what: what it is called in the error.

    Raises:
        UnimplementedError: if it does not.
    """
    if offer is None:
        raise UnimplementedError(f"what runs the steps of this session offers no {what}")
    return offer
