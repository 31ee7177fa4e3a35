"""The resource behind readers: where one is in its files, and who waits for its records.

A reader takes the names of files from a queue, one when it has come to the end of the one before.
Its state is one value, which says from where everything goes on that has not been given: a file is
opened again where it ends, after an interrupt or in another process. Reads are served in the order
in which they came. What a file holds is read on the thread of the step that asks for it, or, where
that waits for the next name, of who puts that into the queue.

Invariant: a name that was taken from a queue is in the state, until its file is at its end; a
record was given, or is in front of the place in the state, or was put back and is in the state too.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from flowbook.exec.files.formats import FORMATS, Pair, Place, Record
from flowbook.exec.interruptions import is_interruption
from flowbook.exec.resources.kinds import Birth, Definition, Lasting, makes
from flowbook.exec.resources.waiting import Attempt, WaitingResource, moving
from flowbook.graph.definition.async_context import AsyncContext, Claim
from flowbook.graph.model.attributes import same_value
from flowbook.graph.model.errors import InvalidArgumentError, OutOfRangeError
from flowbook.graph.model.touch import READER


class Progress(NamedTuple):
    """How far a reader has come.

    Attributes:
        file: the name of the file that it reads; None between two.
        place: from where on, as its format says.
        next: names of files that come after that.
        returned: records, as keys and values, that nobody took in the end; they come first.
        files: how many it has read to their ends.
        records: how many records it has given.
        held: of those given who has them and may yet put them back; no part of the state.
    """

    file: bytes | None = None
    place: Place = ()
    next: tuple[bytes, ...] = ()
    returned: tuple[Pair, ...] = ()
    files: int = 0
    records: int = 0
    held: tuple[tuple[_Read, tuple[Pair, ...]], ...] = ()


class Reader(WaitingResource, Lasting):
    """Gives the records of files, whose names come from queues.

    Args:
        name: what errors call it.
        attributes: those of the operation that owns it.
    """

    is_initialized = False

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(lines=1)
        self.name = name
        self._attributes = attributes
        records, self._length_of_place = FORMATS[attributes["format"]]
        options = {k: v for k, v in attributes.items() if k not in _NO_OPTIONS}
        self._format = partial(records, **options)
        self._progress = Progress()
        self._records: Iterator[Record] | None = None
        self._is_over = False

    # What operations do

    def read(self, call: AsyncContext, names: Any) -> None:
        """Give the next record.

        Args:
            call: who is given it.
            names: the queue of names of files.
        """
        self._join(_Read(call, self, names, 1, _one), *self._lines)

    def read_up_to(self, call: AsyncContext, names: Any, count: int) -> None:
        """Give so many records, or fewer where there are no more; at least one."""
        if count < 1:
            raise InvalidArgumentError(f"the number of records is at least 1, not {count}")
        self._join(_Read(call, self, names, int(count), _several), *self._lines)

    def records_produced(self) -> Any:
        """How many records it has given."""
        return np.int64(self._progress.records)

    def work_units_completed(self) -> Any:
        """How many files it has read to their ends."""
        return np.int64(self._progress.files)

    def serialized(self) -> Any:
        """As `state`, as a string scalar; what has been given counts as used."""
        return _scalar(json.dumps(_described(self._progress, ()), sort_keys=True).encode())

    def restore(self, state: bytes) -> tuple[()]:
        """Go on from what `serialized` gave.

        Raises:
            InvalidArgumentError: if that is no such state.
        """
        try:
            self.set_state(json.loads(state))
        except (ValueError, TypeError, RecursionError):
            raise InvalidArgumentError(f"{state!r:.60} is no state of a reader") from None
        return ()

    def reset(self) -> tuple[()]:
        """Begin afresh: with the next name that a queue gives."""
        self._go_on_from(Progress())
        return ()

    # Checkpoints

    def state(self) -> Any:
        """How far it has come."""
        progress = self._progress  # One value: no need of the lock, which whoever reads has.
        return _described(progress, _unsettled(progress.held))

    def set_state(self, state: Any) -> None:
        """Go on from there; ValueError or TypeError if it is no state of a reader."""
        if not isinstance(state, dict) or state.keys() != {*Progress._fields} - {"held"}:
            raise ValueError("a state has other parts")
        numbers = [state["files"], state["records"], *state["place"]]
        if any(type(number) is not int or not 0 <= number < 1 << 63 for number in numbers):
            raise ValueError("places and numbers are integers from 0 on")
        if len(state["place"]) not in (0, self._length_of_place):
            raise ValueError("that is a place of another format")
        self._go_on_from(
            Progress(
                None if state["file"] is None else _bytes(state["file"]),
                tuple(state["place"]),
                tuple([_bytes(name) for name in state["next"]]),
                tuple([(_bytes(key), _bytes(value)) for key, value in state["returned"]]),
                state["files"],
                state["records"],
            )
        )

    def _go_on_from(self, progress: Progress) -> None:
        with self._lock:
            self._close()
            self._progress = progress
            self._serve()
        self._report()

    # Sharing

    def adopt(self, definition: Definition) -> str | None:
        """Be what another operation owns, if it says the same; else what differs."""
        if definition.kind != READER.name:
            return f"a reader, not a {definition.kind}"
        given = definition.attributes
        mine = self._attributes
        differing = [k for k in {**mine, **given} if not same_value(mine.get(k), given.get(k))]
        return f"a reader with another {' and '.join(differing)}" if differing else None

    def forget(self) -> None:
        """Begin afresh."""
        self.reset()

    def let_go(self) -> None:
        """Close the file; while something is read, whoever reads does."""
        self._is_over = True
        if self._lock.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._lock.release()

    # What attempts ask, under the lock

    def take(self, read: _Read, most: int) -> bool:
        """Add the next records to those of a read; whether there are any without another name.

        Args:
            read: what they are added to.
            most: how many at most; fewer come where a file ends.

        Raises:
            OpError: if the file cannot be read.
        """
        target = read.taken
        held = len(target)
        while True:
            before = self._progress
            try:
                if not self._advance(before, read, most):
                    return False
            except BaseException:
                if self._progress is before:
                    del target[held:]
                self._close()  # It is opened again where the progress ends.
                raise
            if len(target) > held:
                return True

    def _advance(self, progress: Progress, read: _Read, most: int) -> bool:
        """Go some records further, or to another file; False if nothing is left."""
        # Made anew, not replaced, as a training may read record by record.
        file, place, names, returned, files, records, held = progress
        if returned:
            pairs = returned[:most]
            read.taken.extend(pairs)
            held = (*_unsettled(held), (read, pairs))
            left = returned[most:]
            after = Progress(file, place, names, left, files, records + len(pairs), held)
        elif file is not None:
            if self._records is None:
                self._records = self._format(os.fsdecode(file), place)
            found = [*islice(self._records, most)]
            if found:
                pairs = tuple([pair for pair, _ in found])
                read.taken.extend(pairs)
                held = (*_unsettled(held), (read, pairs))
                after = Progress(file, found[-1][1], names, (), files, records + len(found), held)
            else:
                self._records = None
                after = Progress(None, (), names, (), files + 1, records, held)
        elif names:
            after = Progress(names[0], (), names[1:], (), files, records, held)
        else:
            return False
        self._progress = after
        return True

    def put_back(self, read: _Read) -> None:
        """Give records again that nobody took in the end; none if it has begun afresh since."""
        progress = self._progress
        taken = [pair for each, pairs in progress.held if each is read for pair in pairs]
        if taken:
            self._progress = progress._replace(
                returned=(*taken, *progress.returned),
                records=progress.records - len(taken),
                held=tuple([each for each in progress.held if each[0] is not read]),
            )

    def _close(self) -> None:
        records, self._records = self._records, None
        close = getattr(records, "close", None)
        if close is not None:
            close()

    # Names

    def _report(self) -> None:
        super()._report()
        if self._is_over:
            self.let_go()
        else:
            self._ask_for_names()

    def _leave(self, attempt: Attempt) -> bool:
        assert isinstance(attempt, _Read)
        if attempt.order is not None:
            attempt.order.cancel()
        return super()._leave(attempt)

    def _ask_for_names(self) -> None:
        """Have the first in the line ask its queue for a name, as long as none has come."""
        while self._lines[0]:
            with self._lock:
                first = next(iter(self._lines[0]), None)
                if not isinstance(first, _Read) or first.is_over or first.order is not None:
                    return
                first.order = order = _Order(self, first)
            try:
                # Without the lock: what the queue tells others then may bring them here.
                first.names.dequeue(order)
            except BaseException:
                order.cancel()
                first.order = None
                raise
            order.is_asking = False
            if not order.is_over:
                return  # The name comes later, and with it whoever brings it.
            self.deliver(order)

    def deliver(self, order: _Order) -> None:
        """Go on with what a queue gave."""
        with self._lock:
            if order.read.order is order:
                order.read.order = None
                order.read.hear(order.error)
            self._serve()
        super()._report()

    def bring(self, order: _Order, name: bytes | None, error: BaseException | None) -> None:
        """Take what a queue gives, from any thread; after an interrupt it does so again."""
        with self._lock:
            if order.is_withdrawn:
                return
            # Two threads may bring the same, and one may have been interrupted while it did.
            with moving:
                if name is not None and not order.is_over:
                    progress = self._progress
                    self._progress = progress._replace(next=(*progress.next, name))
                # No interrupt comes between that and this: Python lets them in where calls end.
                order.error, order.is_over = error, True
        if not order.is_asking:
            try:
                self.deliver(order)
                self._ask_for_names()
            except BaseException:
                # This thread is interrupted, and not the steps that wait for records.
                self.deliver(order)
                self._ask_for_names()
                raise

    def withdraw(self, order: _Order) -> bool:
        """Ask no longer; whether nothing has come."""
        with self._lock:
            order.is_withdrawn = True
            return not order.is_over


# Which attributes of the operation that owns a reader are no options of its format.
_NO_OPTIONS = ("format", "shared_name")


class _Order:
    """What a reader is to its queue: who waits there for a name. It has what it gets at once.

    Args:
        reader: the reader.
        read: the read that waits.

    Attributes:
        is_patient: that it waits.
        wish: set by the queue; what waits says it itself.
        is_asking: whether the queue is being asked, and who does so goes on with what it gives.
        is_over: whether the queue gave something.
        is_withdrawn: whether nothing is wanted any more.
        claim: what it is to the queue.
        error: why nothing will come.
    """

    is_patient = True

    def __init__(self, reader: Reader, read: _Read) -> None:
        self.xp = read.call.xp
        self.wish: Callable[[], str] | None = None
        self.claim: Claim | None = None
        self.read = read
        self.is_asking = True
        self.is_over = False
        self.is_withdrawn = False
        self.error: BaseException | None = None
        self._reader = reader
        self._on_cancel: Callable[[], object] | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the reader has what it wanted."""
        return self.is_over

    def complete(self, outputs: tuple[Any, ...]) -> None:
        """Take a name."""
        (name,) = outputs
        if not isinstance(name.item(), bytes):
            raise InvalidArgumentError(f"{name.item()!r:.60} is no name of a file")
        self._reader.bring(self, name.item(), None)

    def fail(self, error: BaseException) -> None:
        """Take what keeps one from coming."""
        self._reader.bring(self, None, error)

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Have it called if the name is wanted no longer."""
        self._on_cancel = callback

    def cancel(self) -> None:
        """Want no name any longer: one that has not come stays in the queue."""
        if self._reader.withdraw(self) and self._on_cancel is not None:
            self._on_cancel()


class _Read(Attempt):
    """Takes records until it has as many as it wants."""

    __slots__ = ("_as_outputs", "_count", "_reader", "names", "order", "taken")

    def __init__(
        self,
        call: AsyncContext,
        reader: Reader,
        names: Any,
        count: int,
        as_outputs: Callable[[Sequence[Pair]], tuple[Any, ...]],
    ) -> None:
        super().__init__(call)
        self._reader = reader
        self._count = count
        self._as_outputs = as_outputs
        self.taken: list[Pair] = []
        self.names = names
        self.order: _Order | None = None

    def advance(self) -> bool:
        try:
            while (left := self._count - len(self.taken)) and self._reader.take(self, left):
                pass
        except Exception as error:
            if is_interruption(error):
                raise
            self.undo()
            return self.end(error)
        return self.end() if len(self.taken) == self._count else False

    def hear(self, error: BaseException | None) -> None:
        """Hear that a name has come, or why none will."""
        if isinstance(error, OutOfRangeError) and self.taken:
            self.end()
        elif isinstance(error, Exception):
            self.undo()
            self.end(error)

    def undo(self) -> None:
        self._reader.put_back(self)
        self.taken.clear()

    def outputs(self) -> tuple[Any, ...]:
        return self._as_outputs(self.taken)

    def wish(self) -> str:
        return f"waits for the name of a file for {self._reader.name!r}: {self.names.described()}"


def _described(progress: Progress, held: Sequence[tuple[_Read, tuple[Pair, ...]]]) -> Any:
    """A state, in JSON's terms; what is held counts as not given."""
    returned = [pair for _, pairs in held for pair in pairs] + [*progress.returned]
    return {
        "file": None if progress.file is None else _text(progress.file),
        "place": list(progress.place),
        "next": [_text(name) for name in progress.next],
        "returned": [[_text(key), _text(value)] for key, value in returned],
        "files": progress.files,
        "records": progress.records + len(progress.returned) - len(returned),
    }


def _unsettled(
    held: Sequence[tuple[_Read, tuple[Pair, ...]]],
) -> list[tuple[_Read, tuple[Pair, ...]]]:
    return [each for each in held if not each[0].call.is_settled]


def _one(taken: Sequence[Pair]) -> tuple[Any, ...]:
    return tuple([_scalar(part) for part in taken[0]])


def _several(taken: Sequence[Pair]) -> tuple[Any, ...]:
    return tuple([_vector(column) for column in zip(*taken, strict=True)])


def _scalar(value: bytes) -> Any:
    found = np.empty((), object)
    found[()] = value
    return found


def _vector(values: Sequence[bytes]) -> Any:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _bytes(text: Any) -> bytes:
    if not isinstance(text, str):
        raise TypeError("names and records are texts")
    return base64.b64decode(text, validate=True)


@makes(READER)
def _reader(birth: Birth) -> Reader:
    return Reader(birth.key.name, birth.attributes)
