"""The feeds of a session's last run, kept for looking at tensors: only where someone asked for it.

They are copies: what is done to a fed array after the run changes nothing of what the run was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowbook.exec.instruments.attached import Instruments
from flowbook.exec.plan.watching import Instrument, Tap
from flowbook.exec.signature.signature import Signature
from flowbook.graph.model.dtypes import resource
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.whole_numbers import as_whole
from flowbook.graph.ops.state.variables import Variable

MOST_BYTES = 1 << 28


class RetainedFeeds(Instrument):
    """The instrument behind `Session.retain_feeds`; as a context manager it ends with the block.

    Args:
        instruments: those of the session.
        most_bytes: feeds that take more together are not kept.

    Attributes:
        latest: what the last run that was fed was fed with, by tensor; empty if that was too much.
        left_out: how many bytes that were, if it was too much; 0 otherwise.
    """

    def __init__(self, instruments: Instruments, most_bytes: int) -> None:
        self._instruments = instruments
        self._most_bytes = most_bytes
        self.latest: Mapping[Tensor, Any] = {}
        self.left_out = 0

    def tap(self, signature: Signature, operations: Sequence[Operation]) -> Sequence[Tap]:
        """What is fed, fetched: so each value is a copy."""
        return [_Feeds(signature.feeds, self._take)] if signature.feeds else []

    def _take(self, feeds: Sequence[Tensor], values: Sequence[Any]) -> None:
        size = sum(map(_bytes, values))
        self.left_out = size if size > self._most_bytes else 0
        self.latest = {} if self.left_out else dict(zip(feeds, values, strict=True))

    def close(self) -> None:
        """Let go of the arrays."""
        self.latest = {}

    def remove(self) -> None:
        """Keep feeds no longer."""
        self._instruments.remove(self)

    def __enter__(self) -> RetainedFeeds:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<RetainedFeeds of {[tensor.name for tensor in self.latest]}>"


class _Feeds:
    """Takes what the runs of one signature are fed with."""

    def __init__(
        self, feeds: Sequence[Tensor], take: Callable[[Sequence[Tensor], Sequence[Any]], None]
    ) -> None:
        self._feeds = feeds
        self._take = take
        # A fed variable has its value where it is read.
        self.tensors: Sequence[Tensor] = [
            Variable.of(t.op).value if t.dtype is resource else t for t in feeds
        ]

    def begin(self) -> Callable[[Sequence[Any]], None]:
        return lambda values: self._take(self._feeds, values)


def _bytes(value: Any) -> int:
    """How much memory a fetched value takes; that of strings lies outside the array."""
    if isinstance(value, bytes):
        return len(value)
    strings = sum(map(len, value.ravel())) if value.dtype.kind == "O" else 0
    return int(value.nbytes) + strings


def retain_feeds(instruments: Instruments, retain: bool, most_bytes: int) -> RetainedFeeds | None:
    """Keep the feeds of a session's runs, or stop; see `Session.retain_feeds`."""
    if (as_whole(most_bytes) or 0) < 1:
        raise InvalidArgumentError(f"most_bytes is a positive integer, not {most_bytes!r}")
    instruments.remove(instruments.find(RetainedFeeds))
    if not retain:
        return None
    made = RetainedFeeds(instruments, most_bytes)
    instruments.add(made)
    return made
