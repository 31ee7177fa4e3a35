"""What a trace consists of: steps, calls of kernels, and values that went between devices."""

from __future__ import annotations

from typing import NamedTuple


class TracedStep(NamedTuple):
    """One run of a session.

    Attributes:
        number: which one of the trace, from 0.
        thread: the name of the thread that asked for it.
        start: when it began, in nanoseconds on the clock of `time.perf_counter_ns`.
        end: when it ended, with an error or without; None if it has not.
    """

    number: int
    thread: str
    start: int
    end: int | None


class TracedCall(NamedTuple):
    """One call of a kernel. Times are in nanoseconds on the clock of `time.perf_counter_ns`.

    Attributes:
        operation: the name of the operation, or of the first that it stands for.
        operations: the names of all that it stands for; empty of what the compiler added.
        type: what was computed, an operation type; after rewriting not always the operation's own.
        step: the number of the step.
        iteration: how often the step had called it before.
        device: where it ran, by name.
        thread: the name of the thread that called it.
        ready: when the last that it needs had ended; its start where that is not known, as where
            values come through the branches and loops of generated code.
        start: when it was called; on a GPU, where kernels run later, when all before it had run.
        end: when it had its outputs, or reported them.
        bytes: the size of its outputs, as far as they are arrays.
        live: how many bytes that this step has made on the device were there when it ended: its
            outputs, what it took, and what others still need.
        waits: whether it is asynchronous: nobody was kept busy from start to end.
        key: under which a Send or a Recv exchanges its value; empty of others.
    """

    operation: str
    operations: tuple[str, ...]
    type: str
    step: int
    iteration: int
    device: str
    thread: str
    ready: int
    start: int
    end: int
    bytes: int
    live: int
    waits: bool
    key: str

    @property
    def duration(self) -> int:
        """From start to end."""
        return self.end - self.start

    @property
    def delay(self) -> int:
        """How long it was ready and did not run yet: the queueing delay."""
        return self.start - self.ready


class Transfer(NamedTuple):
    """A value that went from one device to another.

    Attributes:
        send: the call that sent it.
        receive: the call that received it.
    """

    send: TracedCall
    receive: TracedCall
