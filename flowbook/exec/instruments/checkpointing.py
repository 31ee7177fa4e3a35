"""Checkpoints of a training, taken beside it: `Session.checkpoint`.

When a checkpoint is due, the run that trains takes a snapshot, which is references to values, and
goes on; a thread of its own writes them. What the training changes meanwhile, it writes to new
memory: where there is none for another copy, the run waits until everything is written. While the
checkpoint before is still being written, the latest snapshot waits for that: what was last due is
always written, were it after the end.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

from flowbook.exec.checkpoints.checkpoint import found_in
from flowbook.exec.checkpoints.folder import folder_at
from flowbook.exec.checkpoints.free_memory import free_memory
from flowbook.exec.checkpoints.saver import Holder, Saver
from flowbook.exec.instruments.attached import Instruments
from flowbook.exec.plan.watching import Instrument, Tap
from flowbook.exec.signature.feeds import feedable
from flowbook.exec.signature.signature import Signature
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import touched_by
from flowbook.graph.model.summaries import trainings_among
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Access
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.storing.files import as_path

# How often a training is saved of which nobody said how often.
_SECONDS = 600.0


class Checkpointing(Instrument):
    """What saves a session's training; `Session.checkpoint` makes it.

    As a context manager it ends with the block. It ends with its session in any case, or with the
    process; each end waits until what was last due is written. What could not be saved is an error
    of the next run that trains, or of `close`.

    Attributes:
        path: the folder of the checkpoints.
        latest: the path of the latest one that it has written; None if it has written none.
    """

    def __init__(
        self,
        sess: Holder,
        instruments: Instruments,
        path: str,
        every: int | None,
        seconds: float | None,
        saver: Saver,
        metric: Tensor | None,
    ) -> None:
        self.path = path
        self.latest: str | None = None
        self._session = weakref.ref(sess)
        self._instruments = instruments
        self._every = every
        self._seconds = seconds
        self._saver = saver
        self._metric = metric
        self._lock = threading.Lock()
        self._steps = 0
        self._left = every
        self._since = time.monotonic()
        self._writer: threading.Thread | None = None
        # What is being written, and what is next.
        self._line: list[tuple[Any, ...]] = []
        self._error: BaseException | None = None
        before = found_in(folder_at(path), "step")
        self._first = (before[-1].about.step or 0) if before else 0

    def tap(self, signature: Signature, operations: Sequence[Operation]) -> Sequence[Tap]:
        """What it takes of runs that train: that they have ended, and how good the model is."""
        with self._instruments.graph.lock:
            trainings = trainings_among(self._instruments.graph.operations)
        made = [op for op in operations if op in trainings]
        if not made and (trainings or not any(map(_trains, operations))):
            return ()
        counter = next((c for op in made if (c := trainings[op]) is not None), None)
        computed = self._metric is not None and self._metric.op in set(operations)
        metrics = [self._metric] if computed and self._metric is not None else []
        return [_Step(self, metrics, counter)]

    def begin(self) -> bool:
        """Count a step that trains; whether it is to be saved when it has ended."""
        with self._lock:
            self._raise()
            self._steps += 1
            if self._left is not None:
                self._left -= 1
            is_due = (self._left is not None and self._left <= 0) or (
                self._seconds is not None and time.monotonic() - self._since >= self._seconds
            )
            if is_due:
                self._left, self._since = self._every, time.monotonic()
            return is_due

    def save(self, metric: float | None = None, counter: Variable | None = None) -> None:
        """Save what the session holds now; it is written behind the training, if it can be.

        Args:
            metric: how good it is.
            counter: the variable that counts the steps; by default the runs that train are counted.
        """
        self.flush()
        self.save_latest(metric, counter)

    def save_latest(self, metric: float | None, counter: Variable | None) -> None:
        """As `save`; what waits to be written gives way to it."""
        sess = self._session()
        if sess is None:
            return
        variables = self._saver.chosen(sess.graph)
        counters = [] if counter is None else [counter]
        snapshot = sess.snapshot([*variables.values(), *counters])
        step = self._first + self._steps if counter is None else int(snapshot.values[counter.op])
        size = sum(value.nbytes for value in snapshot.values.values())
        given = snapshot, variables, f"{self.path}/step", step, metric
        if size > free_memory() / 2:
            self.flush()
            self.latest = self._saver.write(*given)
            return
        with self._lock:
            if not self._line:
                # The process does not end before that thread has.
                writer = threading.Thread(target=self._write, name="flowbook checkpoint")
                writer.start()
                self._writer = writer
            self._line[1:] = [given]

    def _write(self) -> None:
        """Write what is in line, until nothing is."""
        with self._lock:
            first = self._line[:1]
        while first:
            try:
                self.latest = self._saver.write(*first[0])
            except BaseException as error:
                self._error = error
            with self._lock:
                del self._line[0]
                first = self._line[:1]

    def _raise(self) -> None:
        """Say what has become of what was written behind the training."""
        error, self._error = self._error, None
        if error is not None:
            try:
                error.add_note(f"flowbook: while a checkpoint was written to {self.path!r}")
                raise error
            finally:
                del error  # It holds this frame.

    def flush(self) -> None:
        """Wait until what is being saved is written.

        Raises:
            OSError: if it cannot be.
        """
        writer = self._writer
        if writer is not None:
            writer.join()
        self._raise()

    @property
    def closed(self) -> bool:
        """Whether it was ended."""
        return self not in self._instruments.all

    def close(self) -> None:
        """Save no more, when what is being saved is written; raises as `flush`."""
        if not self.closed:
            self._instruments.remove(self)  # Which calls this again.
        else:
            self.flush()

    def __enter__(self) -> Checkpointing:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Checkpointing to {self.path!r}, latest {self.latest!r}>"


def _trains(operation: Operation) -> bool:
    """Whether it changes a trainable variable: a step that somebody wrote by hand has one."""
    owner = touched_by(operation)
    is_write = operation.op_def.access is Access.WRITE
    if owner is None or not is_write or operation.op_def.initializes(operation):
        return False
    return owner.variable is not None and owner.variable.trainable


class _Step:
    """Sees the runs of one signature end."""

    def __init__(
        self, owner: Checkpointing, tensors: Sequence[Tensor], counter: Variable | None
    ) -> None:
        self.tensors = tensors
        self._owner = owner
        self._counter = counter

    def begin(self) -> Callable[[Sequence[Any]], None] | None:
        return self._take if self._owner.begin() else None

    def _take(self, values: Sequence[Any]) -> None:
        self._owner.save_latest(float(values[0]) if values else None, self._counter)


def checkpointed(
    sess: Holder,
    instruments: Instruments,
    to: Any,
    every: int | None,
    seconds: float | None,
    saver: Saver | None,
    metric: Any,
) -> Checkpointing:
    """Have a session's training saved; see `Session.checkpoint`."""
    for name, number, kinds in (("every", every, Integral), ("seconds", seconds, Real)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, kinds)):
            raise InvalidTypeError(f"{name} is a number, not {number!r:.80}")
        if number is not None and not number > 0:
            raise InvalidArgumentError(f"{name} is greater than 0, not {number}")
    if every is None and seconds is None:
        seconds = _SECONDS
    tensor = None if metric is None else feedable(sess.graph, metric)
    path = as_path(to).rstrip("/")
    made = Checkpointing(sess, instruments, path, every, seconds, saver or Saver(), tensor)
    instruments.add(made)
    return made
