"""Threads that keep queues filled: what a graph's `QueueRunner`s ask of a session.

Each thread runs one operation, step after step. They start when something waits at the queue, and
end when their input does, when one of them fails, or with what owns them: the session, the cell
that made the runner, a coordinator.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from flowbook.exec.engine.abandoned import GivenUp, stop, thread_of
from flowbook.exec.engine.under_way import Executions, also_listed_in
from flowbook.exec.resources.kinds import Definition
from flowbook.exec.signature.signature import Signature
from flowbook.graph.model.ancestors import ancestors
from flowbook.graph.model.errors import (
    CancelledError,
    FailedPreconditionError,
    OpError,
    OutOfRangeError,
    UnknownError,
)
from flowbook.graph.model.mark import Mark
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.queue_runners import rounds_of, runners_of
from flowbook.graph.model.resource_key import touched_by
from flowbook.graph.model.touch import STREAM
from flowbook.graph.ops.state.writing import count_up_to_op
from flowbook.graph.redefinition.wording import what_became_of

if TYPE_CHECKING:
    from flowbook.exec.plan.pipeline import Prepared
    from flowbook.exec.resources.session_stores import SessionStores

# How long to wait for a thread that is in the middle of something, in seconds: before its function
# is interrupted, and in all.
PATIENCE, GRACE = 0.25, 5.0


class Master(Protocol):
    """What runs the steps; see `flowbook.exec.master`."""

    stores: SessionStores

    def prepare(self, signature: Signature) -> Prepared:
        """A signature made ready to run."""

    def run(self, prepared: Prepared, feeds: Sequence[Any]) -> Sequence[Any]:
        """Run one step."""


class Coordinator(Protocol):
    """Who has several threads stop together; see `flowbook.train.coordinator`."""

    def request_stop(self, ex: Exception | None = None) -> None:
        """Have them stop, for an error if there is one."""

    def call_on_stop(self, function: Callable[[], Any]) -> None:
        """Have a function called when they are to stop."""

    def register_thread(self, thread: threading.Thread) -> None:
        """Have a thread waited for in the end."""


class Feeder:
    """The threads of one runner.

    Args:
        master: who runs their steps.
        runner: the operation that stands for the runner.
        coordinator: who stops them together with others, if somebody does.
        feeding: all runners of the session.

    Attributes:
        runner: see above.
        coordinator: see above.
        closed: whether they have been told to stop.
        is_spent: whether one has come to the end of its input.
        error: what the first of them failed with.
        threads: the threads.
    """

    def __init__(
        self,
        master: Master,
        runner: Operation,
        coordinator: Coordinator | None,
        feeding: Feeding,
    ) -> None:
        self.runner = runner
        self.coordinator = coordinator
        self.closed = False
        self.is_spent = False
        self.error: OpError | None = None
        self._master = master
        self._feeding = feeding
        self._steps = Executions()
        self._lock = threading.Lock()
        self.threads = [
            thread_of(f"flowbook {runner.name}", self._feed, operation)
            for operation in rounds_of(runner)
        ]
        self._running = len(self.threads)

    @property
    def is_running(self) -> bool:
        """Whether one of the threads has not come to its end."""
        return self._running > 0

    @property
    def running(self) -> int:
        """How many of the threads have not come to their end."""
        return self._running

    @property
    def has_ended(self) -> bool:
        """Whether all that there was has been put into the queue."""
        return self.is_spent and not self.is_running and self.error is None

    @property
    def queue(self) -> Operation:
        """What owns the queue that they fill."""
        return self.runner.inputs[0].op

    def needed(self) -> set[Operation]:
        """What their rounds need."""
        rounds = rounds_of(self.runner)
        return {op for each in rounds for op in ancestors(each, by_control=True)}

    def start(self) -> None:
        """Start the threads."""
        if self.coordinator is not None:
            for thread in self.threads:
                self.coordinator.register_thread(thread)
            self.coordinator.call_on_stop(self.stop)
        for thread in self.threads:
            thread.start()

    def close(self) -> None:
        """As `end`, since the cell that made the runner runs again.

        What a thread waits to put in goes in: it may have been counted. If all of the input was
        used, it is there again: the cell gives what it gave at first.
        """
        has_ended = self.has_ended
        self.closed = True
        self._on_queue(lambda queue: queue.let_in())
        self.end()
        if has_ended and all(each.has_ended for each in self._beside()):
            self._begin_again()

    def _beside(self) -> list[Feeder]:
        """Those that fill the same queue, and those that need it."""
        return [*self._feeding.of(self.queue), *self._feeding.needing(self.queue)]

    def _begin_again(self) -> None:
        """Have the queue be open and empty, and all that it fills or is filled from as at first."""
        stores, key = self._master.stores, self.queue.key
        if key is None or key.container:
            return  # What a named container holds, others use.
        self.closed, self.is_spent = True, False
        queue = stores.find(key)
        if queue is not None:
            queue.start_over()
        others = self._beside()
        for operation in self.needed():
            owner = touched_by(operation)
            if owner is None or owner.key is None or owner.key.container:
                continue
            if operation.op_def is count_up_to_op:
                stores.forget(owner.key)
            elif owner.op_def.owns == STREAM.name and (stream := stores.find(owner.key)):
                stream.start_over()
            others += self._feeding.of(owner)
        for feeder in others:
            if feeder.has_ended:
                feeder._begin_again()

    def end(self) -> None:
        """Stop the threads for good. The queue stays as it is: others may fill it.

        A Python function that a thread is in, as a generator that waits, ends as by an interrupt.
        """
        self.pause(PATIENCE)
        for thread in self._others():
            stop(thread)
        for thread in self._others():
            thread.join(GRACE)

    def finish(self) -> None:
        """Have the threads put into the queue what they are in the middle of, and end behind it."""
        self.closed = True
        self._on_queue(lambda queue: queue.bound(False))

    def bound_queue(self) -> None:
        """Have the queue take no more than its capacity again."""
        self._on_queue(lambda queue: queue.bound(True))

    def pause(self, patience: float = GRACE) -> None:
        """Have the threads end where they wait, or behind what they are in the middle of."""
        self.closed = True
        self._steps.close()
        for thread in self._others():
            thread.join(patience)

    def _others(self) -> list[threading.Thread]:
        """Those of the threads that run; not this one."""
        current = threading.current_thread()
        return [t for t in self.threads if t is not current and t.is_alive()]

    def stop(self) -> None:
        """Stop the threads, and close the queue: nothing else will come."""
        self.closed = True
        self._steps.close()
        self._shut(is_cancelling=True)

    def _feed(self, operation: Operation) -> None:
        try:
            with also_listed_in(self._steps):
                prepared = self._prepared(operation)
                while not self.closed:
                    self._master.run(prepared, ())
        except OutOfRangeError:
            self.is_spent = True
        except (CancelledError, GivenUp):
            pass  # The end of the queue, or of the session.
        except Exception as error:
            self._fail(error)
        finally:
            self._end()

    def _prepared(self, operation: Operation) -> Prepared:
        """One round made ready to run."""
        try:
            return self._master.prepare(Signature((), (operation,), ()))
        except OpError as error:
            if error.operation is not None and error.operation.op_def.must_be_fed:
                error.hint = (
                    "a runner feeds nothing: run `queue.enqueue(...)` with the feed instead"
                )
            raise

    def _fail(self, error: Exception) -> None:
        found = error if isinstance(error, OpError) else UnknownError(str(error))
        found = found.with_traceback(None)
        with self._lock:
            if self.closed or self.error is not None:
                return
            self.error = found
        self._shut(is_cancelling=True)
        if self.coordinator is not None:
            self.coordinator.request_stop(found)

    def _end(self) -> None:
        with self._lock:
            self._running -= 1
        if self.error is None and self._feeding.have_ended(self.queue):
            self._shut(is_cancelling=False)

    def _shut(self, is_cancelling: bool) -> None:
        """Close the queue, with the error if there is one."""
        self._on_queue(lambda queue: queue.shut(is_cancelling, self._passed_on(queue.name)))

    def _passed_on(self, queue: str) -> OpError | None:
        """The error of who waits for what will not come, as a thread failed."""
        failure = self.error
        if failure is None:
            return None
        error = type(failure)(
            f"the runner of queue {queue!r} failed: {failure.message}", hint=failure.hint
        )
        error.details += failure.details
        return error

    def _on_queue(self, act: Callable[[Any], None]) -> None:
        """Call a function with the queue, unless the session was closed, and the queue is gone."""
        queue = self.queue
        assert queue.key is not None
        assert queue.op_def.owns is not None
        definition = Definition(queue.op_def.owns, queue.attributes)
        try:
            resource = self._master.stores.of(queue.key, definition)
        except CancelledError:
            return
        act(resource)


class Feeding:
    """The runners of one session.

    Args:
        master: who runs their steps.
    """

    def __init__(self, master: Master) -> None:
        self._master = master
        self._feeders: dict[Operation, Feeder] = {}
        self._lock = threading.Lock()
        self._is_closed = False
        # While some are stopped, those that are to start when that is over.
        self._to_start: dict[Operation, Coordinator | None] | None = None
        self._stopping = threading.Lock()

    def wanted(self, queue: Operation) -> None:
        """Have a queue filled, now that something waits at it.

        Nothing fills one any more that was redefined, and its runners too.
        """
        runners = runners_of(queue)
        for runner in runners:
            self.start(runner)
        if queue.retired and not runners and queue in queue.graph.members.unfilled:
            self._give_up(queue)

    def _give_up(self, queue: Operation) -> None:
        """Have what waits at a queue fail, now or when it has taken what there is."""
        key = queue.key
        found = self._master.stores.find(key) if key is not None and not key.is_shared else None
        if found is not None:
            what = f"nothing fills queue {found.name!r} any more: it is {what_became_of([queue])}"
            found.shut(is_cancelling=True, failure=FailedPreconditionError(what))

    def start_all(
        self, operations: Sequence[Operation], coordinator: Coordinator | None
    ) -> list[threading.Thread]:
        """Start all runners among operations that have not been started; their threads."""
        runners = [op for op in operations if op.op_def.marks is Mark.RUNNER]
        return [thread for op in runners for thread in self.start(op, coordinator)]

    def start(
        self, runner: Operation, coordinator: Coordinator | None = None
    ) -> list[threading.Thread]:
        """Start a runner, unless it has been; its threads."""
        with self._lock:
            if self._to_start is not None:
                self._to_start.setdefault(runner, coordinator)
                return []
            feeder = self._feeders.get(runner)
            if self._is_closed or (feeder is not None and not feeder.closed):
                return []
            feeder = self._feeders[runner] = Feeder(self._master, runner, coordinator, self)
            author = runner.site.author
            if author is not None:
                author.own(feeder)
            feeder.start()
        return feeder.threads

    @contextmanager
    def stopped(self, owners: Iterable[Operation]) -> Iterator[set[Operation]]:
        """Stop for a block all that hands on what some resources give; it starts again behind it.

        What they have taken and not handed on yet goes into their queues, whatever room there is.

        Args:
            owners: what owns the resources.

        Returns:
            What owns the queues and streams that hold what was read ahead, as for `with`.
        """
        with self._stopping:
            with self._lock:
                self._to_start = {}
            running: list[Feeder] = []
            try:
                depending = self._depending_on(owners)
                running += [feeder for feeder in depending if not feeder.closed]
                for feeder in running:
                    feeder.finish()
                for feeder in running:
                    feeder.pause()
                    self.start(feeder.runner, feeder.coordinator)
                yield {
                    *[feeder.queue for feeder in depending],
                    *[op for f in depending for op in f.needed() if op.op_def.owns == STREAM.name],
                }
            finally:
                for feeder in running:
                    feeder.bound_queue()
                with self._lock:
                    starting, self._to_start = self._to_start, None
                for runner, coordinator in (starting or {}).items():
                    self.start(runner, coordinator)

    def _depending_on(self, owners: Iterable[Operation]) -> list[Feeder]:
        """Those that have been started and need some resources, or queues that such others fill."""
        touched, feeders = set(owners), list(self._feeders.values())
        found: list[Feeder] = []
        while more := [f for f in feeders if f not in found and touched & {f.queue, *f.needed()}]:
            found += more
            touched |= {feeder.queue for feeder in more}
        return found

    def feeder(self, runner: Operation) -> Feeder | None:
        """The threads of a runner, if it has been started."""
        return self._feeders.get(runner)

    def of(self, queue: Operation) -> list[Feeder]:
        """Those that fill a queue, or did."""
        return [f for f in list(self._feeders.values()) if f.queue is queue]

    def needing(self, queue: Operation) -> list[Feeder]:
        """Those whose rounds need a queue."""
        return [f for f in list(self._feeders.values()) if queue in f.needed()]

    @property
    def running(self) -> int:
        """How many threads run."""
        return sum(feeder.running for feeder in list(self._feeders.values()))

    def have_ended(self, queue: Operation) -> bool:
        """Whether all that fill a queue have come to their end, none having been stopped."""
        feeders = [self._feeders.get(runner) for runner in runners_of(queue)]
        return all(f is not None and not f.is_running and not f.closed for f in feeders)

    def drop_retired(self) -> None:
        """Stop those whose runner or queue has been redefined."""
        with self._lock:
            gone = [
                runner for runner in self._feeders if runner.retired or runner.inputs[0].op.retired
            ]
            feeders = [self._feeders.pop(runner) for runner in gone]
        for feeder in feeders:
            feeder.end()

    def close(self) -> None:
        """Stop all of them; none starts any more."""
        with self._lock:
            self._is_closed = True
            feeders = list(self._feeders.values())
            self._feeders.clear()
        for feeder in feeders:
            feeder.end()
