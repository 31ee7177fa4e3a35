"""The plan of a run without the run: where, why, how long, how much memory, what crosses.

Everything is computed in the virtual time of `simulation.py`, by the figures of the cost model; so
it can be told of devices too that are not here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from flowbook.exec.placement.decisions import Decision, Placement
from flowbook.exec.plan.drafts import is_apart
from flowbook.exec.report import Report, Table, in_bytes, in_seconds
from flowbook.exec.signature.signature import Signature
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import NotFoundError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin.called import called
from flowbook.graph.model.tensor import Tensor

# So many operations of a critical path are named.
MOST_NAMED = 8


class Planned(NamedTuple):
    """An operation of the plan.

    Attributes:
        device: the name of the device that it runs on.
        begin: when it begins, in seconds from the step's beginning.
        end: when it ends.
        bytes: of the values that it makes; what lies in another's memory is not counted.
        decision: why it runs there; None if nothing constrains it.
        is_measured: whether how long it takes is known from steps that were traced.
    """

    device: str
    begin: float
    end: float
    bytes: int
    decision: Decision | None
    is_measured: bool = False


class Load(NamedTuple):
    """What a device has to do in a step.

    Attributes:
        operations: how many run there.
        busy: how many seconds it computes.
        variable_bytes: of the variables that live there and are part of the run.
        value_bytes: of the other values, at most at once; of a loop those of one iteration count.
            What kernels take while they compute is not known, and does not count.
        received_bytes: of what it receives from the host's memory and other devices.
        largest: the values that take most where `value_bytes` do, with their bytes.
        swapped_bytes: of the values that wait in host memory for their gradients, of all iterations
            of a loop together. Where the device's memory is the host's, that saves nothing.
    """

    operations: int
    busy: float
    variable_bytes: int
    value_bytes: int
    received_bytes: int
    largest: Sequence[tuple[str, int]]
    swapped_bytes: int = 0

    @property
    def peak_bytes(self) -> int:
        """The most memory that variables and values take together."""
        return self.variable_bytes + self.value_bytes


class Moved(NamedTuple):
    """A transfer.

    Attributes:
        value: the name of the tensor; of an operation, if it is only waited for.
        source: the name of the device that it comes from; "host" is the caller's memory.
        destination: the name of the device that it goes to.
        bytes: how many bytes go over.
        begin: when it sets out, in seconds from the step's beginning.
        end: when it is there.
    """

    value: str
    source: str
    destination: str
    bytes: int
    begin: float
    end: float


class Explanation(Report):
    """The plan of a run.

    Attributes:
        asked: the signature of the run.
        operations: each operation that runs, and where, when and why.
        loads: what each device has to do, by its name.
        transfers: what goes from one device to another.
        critical_path: the operations that one after the other decide when the step ends.
        seconds: how long the step is predicted to take.
        better: the plan of a placement by which the step would take at least 5 % less, if there is
            one: by the shapes that were given here, by what was measured, and with variables on
            other devices. `sess.replace` takes it.
        went: what became of operations of which nothing is left to run.
        in_place_of: for tensors of operations of which nothing is left to run, those that are made
            or fed in their place.
    """

    def __init__(
        self,
        asked: Signature,
        operations: Mapping[Operation, Planned],
        loads: Mapping[str, Load],
        transfers: Sequence[Moved],
        critical_path: Sequence[Operation],
        seconds: float,
        placement: Placement,
        went: Mapping[Operation, str],
        in_place_of: Mapping[Tensor, Tensor],
        is_here: bool = True,
    ) -> None:
        self.asked = asked
        self.operations = operations
        self.loads = loads
        self.transfers = transfers
        self.critical_path = critical_path
        self.seconds = seconds
        self.better: Explanation | None = None
        self._placement = placement
        self.went = went
        self.in_place_of = in_place_of
        self._is_here = is_here

    @property
    def fetched(self) -> Sequence[Tensor | Operation]:
        """What the run is asked for."""
        return (*self.asked.fetches, *self.asked.targets)

    @property
    def fed(self) -> Sequence[Tensor]:
        """What it is given."""
        return self.asked.feeds

    @property
    def graph(self) -> Graph | None:
        """The graph of what is asked for; None if that is nothing."""
        return next((_operation(each).graph for each in self.fetched), None)

    def device(self, operation: Operation | Tensor) -> str:
        """The name of the device that an operation runs on.

        Raises:
            NotFoundError: if it is no part of the run, or nothing of it is left to run.
        """
        return self._planned(operation).device

    def reason(self, operation: Operation | Tensor) -> str:
        """Why an operation runs where it does, in a sentence.

        Raises:
            NotFoundError: if it is no part of the run, or nothing of it is left to run.
        """
        self._planned(operation)
        return self._placement.reason(_operation(operation))

    def _planned(self, operation: Operation | Tensor) -> Planned:
        wanted = _operation(operation)
        found = self.operations.get(wanted)
        if found is None:
            went = self.went.get(wanted)
            why = f"nothing of it is left to run: {went}" if went else "it does not run here"
            raise NotFoundError(why, wanted)
        return found

    @property
    def transferred_bytes(self) -> int:
        """The bytes of all transfers."""
        return sum(each.bytes for each in self.transfers)

    @property
    def table(self) -> Table:
        """A row for each device."""
        rows = [
            (
                name,
                f"{load.operations:,}",
                in_seconds(load.busy),
                in_bytes(load.peak_bytes),
                in_bytes(load.received_bytes),
            )
            for name, load in self.loads.items()
        ]
        return Table(
            f"{in_seconds(self.seconds)} predicted, {counted(len(self.transfers), 'transfer')} of "
            f"{in_bytes(self.transferred_bytes)}",
            ("device", "operations", "busy", "memory at most", "received"),
            rows,
            self._notes(),
            (1, 2, 3, 4),
        )

    def _notes(self) -> list[str]:
        names = [called(operation) for operation in self.critical_path]
        notes = []
        if names:
            half = MOST_NAMED // 2
            left_out = len(names) - MOST_NAMED
            if left_out > 0:
                names = [*names[:half], f"{left_out:,} more", *names[-half:]]
            notes.append(f"The step ends when this is done: {', '.join(names)}.")
        for name, load in self.loads.items():
            if load.swapped_bytes:
                waiting = f"{in_bytes(load.swapped_bytes)} of {name} wait"
                notes.append(
                    f"{waiting} in host memory for their gradients."
                    if is_apart(name)
                    else f"{waiting} where they are for their gradients: it has the host's memory, "
                    "and nothing is gained by swapping."
                )
        count = sum(each.is_measured for each in self.operations.values())
        if count:
            notes.append(
                f"What {count:,} of {counted(len(self.operations), 'operation')} take was measured."
            )
        if self.better is not None:
            taken = ": `sess.replace(plan.better)` takes that" if self._is_here else ""
            notes.append(
                "Placed by what is known now, the shapes given here among it, it would take "
                f"{in_seconds(self.better.seconds)}{taken}."
            )
        return notes


def _operation(of: Operation | Tensor) -> Operation:
    return of.op if isinstance(of, Tensor) else of
