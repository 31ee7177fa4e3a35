"""Who carries out what a session asks for: the protocol, and its implementation in this process.

The master keeps the executables of signatures and the resources, and initialises variables before
the first step that needs them.
"""

from __future__ import annotations

import secrets
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from flowbook.exec.devices.cpu import local_devices
from flowbook.exec.engine.executable import Executable
from flowbook.exec.engine.executor import Execution, Executions
from flowbook.exec.engine.extension import Extension, Extensions
from flowbook.exec.engine.initialisation import Initialisation
from flowbook.exec.engine.instrument import Instrument, Signature
from flowbook.exec.plan.pipeline import prepare
from flowbook.exec.resources.container import Resources
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.redefinition.stale_runs import check_stale, old_feed_error

# Executables are kept while they have no more nodes than this together, the latest in any case.
# Those that ran only once go first, so that a graph which grows under a loop drops its past, and
# not what a training loop comes back to; beyond the second number everything goes.
KEPT_NODES = 100_000
KEPT_NODES_IN_USE = 1_000_000

# What an executable costs besides its nodes, in nodes.
OVERHEAD = 20


class Runnable(Protocol):
    """What runs a signature: an executable, or what stands in its place.

    Attributes:
        is_initialized: whether the variables that it needs have their values, or are seen to
            when it runs.
    """

    is_initialized: bool

    def run(self, feeds: Sequence[Any], deadline: float | None) -> Sequence[Any]:
        """Run one step; see `Executable.run`."""


class Master(Protocol):
    """What a session needs of whoever runs its graph."""

    def extend(self) -> None:
        """Take what the graph gained, and drop what it lost, since the last time."""

    def asked_for(self, signature: Signature, instruments: Sequence[Instrument]) -> Executable:
        """What runs a signature that a person asked for, its plan rewritten by instruments."""

    def plainly_asked_for(self, signature: Signature) -> Executable | Extension:
        """What runs a signature that a person asked for, where no instrument watches."""

    def executable(
        self, signature: Signature, instruments: Sequence[Instrument] = ()
    ) -> Executable:
        """What runs a signature, its plan rewritten by instruments."""

    def run(
        self, executable: Runnable, feeds: Sequence[Any], deadline: float | None
    ) -> Sequence[Any]:
        """Run one step."""

    def close(self) -> None:
        """Cancel what waits, and free memory."""


def _check_feeds(signature: Signature) -> None:
    error = old_feed_error(signature.fetches, signature.targets, signature.feeds)
    if error is not None:
        raise error


class LocalMaster:
    """Runs a graph in this process.

    Attributes:
        graph: the graph.
        entropy: the seed of random operations without one; recorded so that runs can be repeated.
        resources: variables and random states.
        drops: how many executables were dropped.
    """

    def __init__(self, graph: Graph, auto_initialize: bool) -> None:
        self.graph = graph
        self.devices = local_devices()
        self.entropy = secrets.randbits(63)
        self.resources = Resources(self.entropy)
        self._lock = threading.RLock()
        self._executables: dict[Any, Executable] = {}
        self._nodes = 0
        self.drops = 0
        self._retirements = graph.retirements
        self._made: weakref.WeakSet[Executable] = weakref.WeakSet()
        self._made_lock = threading.Lock()
        self._initialisation = Initialisation(self, auto_initialize)
        self._executions = Executions()
        self._extensions = Extensions(self)
        graph.values.add_holder(self)

    def extend(self) -> None:
        """Take what the graph gained, and drop what it lost, since the last time."""
        with self._lock:
            self._initialisation.extend()
            if self._retirements != self.graph.retirements:
                self._retirements = self.graph.retirements
                for key, executable in list(self._executables.items()):
                    if any(op.retired for op in executable.operations):
                        self._drop(key)
                self._extensions.forget_dropped()

    def executable(
        self, signature: Signature, instruments: Sequence[Instrument] = ()
    ) -> Executable:
        """What runs a signature, prepared on first use; its plan is rewritten by instruments."""
        key = signature, tuple(instruments)
        fetches, targets, feeds, is_late = signature
        with self._lock:
            found = self._executables.get(key)
            if found is None:
                prepared = prepare(fetches, targets, feeds, self.devices)
                for instrument in instruments:
                    prepared = instrument.rewritten(prepared, any(is_late))
                found = Executable(
                    prepared, self.devices[0], self.resources, is_late, self._executions
                )
                for instrument in instruments:
                    instrument.bound(prepared, found.units)
                with self._made_lock:
                    self._made.add(found)
                self._executables[key] = found
                self._nodes += found.size + OVERHEAD
                self._make_room(key)
            return found

    def asked_for(self, signature: Signature, instruments: Sequence[Instrument]) -> Executable:
        """What runs a signature that a person asked for, who hears of stale definitions in it.

        Raises:
            FailedPreconditionError: if a feed misses its aim, because a cell redefined the tensor.
            StaleDefinitionError: if something is stale and `options.stale` is "error".
        """
        _check_feeds(signature)
        executable = self.executable(signature, instruments)
        executable.is_stale = check_stale(executable.operations, signature.feeds)
        return executable

    def plainly_asked_for(self, signature: Signature) -> Executable | Extension:
        """As `asked_for` without instruments; what is new of a long signature is enough."""
        _check_feeds(signature)
        with self._lock:
            is_new = (signature, ()) not in self._executables
            extension = self._extensions.extended(signature) if is_new else None
            made = extension or self.executable(signature)
            self._extensions.note(signature, made)
        made.is_stale = check_stale(made.operations, signature.feeds)
        return made

    def known_executables(self) -> list[Executable]:
        """All executables that anyone may still run, those dropped from the cache included."""
        with self._made_lock:
            return list(self._made)

    def has_value(self, operation: Operation) -> bool:
        """Whether the variable of this handle operation has a value here now."""
        resource = self.resources.find(operation)
        return resource is not None and resource.is_initialized

    def _make_room(self, latest: Any) -> None:
        if self._nodes <= KEPT_NODES:
            return
        for key, executable in list(self._executables.items()):
            if key is not latest and (not executable.ran_again or self._nodes > KEPT_NODES_IN_USE):
                self._drop(key)
            if self._nodes <= KEPT_NODES * 3 // 4:
                break  # Room for many more at once: dropping has a price per time.
        self._extensions.forget_dropped()

    def _drop(self, key: Any) -> None:
        executable = self._executables.pop(key)
        self._nodes -= executable.size + OVERHEAD
        executable.is_dropped = True
        self.drops += 1

    def run(
        self, executable: Runnable, feeds: Sequence[Any], deadline: float | None
    ) -> Sequence[Any]:
        """Run one step; variables that it needs are initialised before."""
        if not executable.is_initialized:
            assert isinstance(executable, Executable)
            given = dict(zip(executable.prepared.feeds, feeds, strict=True))
            self.initialize(executable, given, deadline)
        return executable.run(feeds, deadline)

    def initialize(
        self, executable: Executable, given: Mapping[Tensor, Any], deadline: float | None
    ) -> None:
        """Initialise the variables that the executable needs and that have no value yet.

        Args:
            executable: what is about to run.
            given: the feeds that the initialising step sees.
            deadline: when to give up.
        """
        self._initialisation.prepare_for(executable, given, deadline)

    def begin(self, executable: Executable, feeds: Sequence[Any]) -> Execution:
        """Begin a step that goes on as late feeds arrive."""
        execution = executable.start(executable.reference, feeds)
        self._executions.add(execution)
        return execution

    def close(self) -> None:
        """Cancel what waits, and free memory."""
        self._executions.close()
        with self._lock:
            self._executables.clear()
            self._extensions.clear()
            self._nodes = 0
            self.resources.close()
