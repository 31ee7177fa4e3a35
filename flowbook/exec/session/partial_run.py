"""A step continued with more feeds: what is ready runs, the rest waits for its values."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from flowbook.exec.engine.parts import threads
from flowbook.exec.master import Master
from flowbook.exec.plan.watching import Instrument
from flowbook.exec.signature.asking import asked
from flowbook.exec.signature.compound_feeds import expanded, has_compound
from flowbook.exec.signature.feeds import check_mapping, feedable
from flowbook.exec.signature.fetches import Flat, flatten
from flowbook.graph.model.ancestors import closing, taken_by
from flowbook.graph.model.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    without_internal_frames,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.redefinition.stale_operations import root_of
from flowbook.graph.redefinition.stale_runs import check_stale
from flowbook.graph.redefinition.wording import plain_name, what_became_of
from flowbook.graph.rewrite.prune import is_replaced

__all__ = ["PartialRun"]


class PartialRun:
    """One step under way; made by `Session.partial_run`.

    Each tensor is fed at most once and each fetch returned at most once. What the step still needs
    of a fed array it copies, so that the array is the caller's again when `run` returns. An error
    ends the step, and one that nobody holds any more is closed. Instruments rewrite its plan as
    they do that of a run: a guard that is set while the step is under way is too late for it.
    """

    def __init__(
        self,
        master: Master,
        instruments: Sequence[Instrument],
        fetches: Any,
        feeds: Sequence[Any],
    ) -> None:
        self._graph = master.graph
        flat, specs, signature = asked(self._graph, fetches, feeds, arrives_late=True)
        if not flat.tensors and not flat.targets:
            raise InvalidArgumentError(f"a partial run fetches something, not {fetches!r}")
        prepared = master.prepare(signature, instruments)
        check_stale(prepared.operations, signature.feeds)
        self._feeds = {spec.tensor: (place, spec) for place, spec in enumerate(specs)}
        self._places = {tensor: place for place, tensor in enumerate(flat.tensors)}
        self._announced: frozenset[Tensor | Operation] = frozenset([*flat.tensors, *flat.targets])
        self._left = set(self._announced)
        self._given: set[Tensor] = set()
        self._step = master.begin(prepared)
        # On another thread: this may come where garbage is collected while locks are held.
        self._drop = weakref.finalize(self, threads.begin, self._step.close, False)
        self._drop.atexit = False
        self._lock = threading.Lock()
        self._end: str | None = None
        self.site = sites.capture()
        if self.site.author is not None:
            self.site.author.succession.add(self)

    def run(self, fetches: Any, feeds: Mapping[Any, Any] | None = None) -> Any:
        """Go on with the step.

        It waits for what is fetched alone: an element of a queue that a later call needs may come
        in between.

        Args:
            fetches: some of the fetches that the step began with, in any structure.
            feeds: values for some of the feeds that it began with.

        Returns:
            The values, in the structure of `fetches`.

        Raises:
            InvalidArgumentError: if a fetch needs feeds that are still missing, or something was
                not announced, or is fed or fetched a second time; the step can go on.
            FailedPreconditionError: if the step has ended.
            OpError: what an operation raised; it ends the step.
        """
        __tracebackhide__ = True
        try:
            with self._lock:
                check_mapping(feeds)
                return self._run(fetches, feeds or {})
        except Exception as error:
            feeds = None  # The error holds this frame.
            raise without_internal_frames(error) from error.__cause__

    def _run(self, fetches: Any, feeds: Mapping[Any, Any]) -> Any:
        if self._end is not None:
            raise FailedPreconditionError(f"this partial run has ended: {self._end}")
        flat = flatten(self._graph, fetches)
        wanted: list[Tensor | Operation] = [*flat.tensors, *flat.targets]
        values = self._checked(feeds)
        self._check_reachable(wanted, {*self._given, *values})
        fed = [(self._feeds[tensor][0], np.array(value)) for tensor, value in values.items()]
        try:
            for place, value in fed:
                self._step.feed(place, value)
            self._given.update(values)
            places = [self._places[tensor] for tensor in flat.tensors]
            self._step.advance(places, flat.targets)
            found = [self._step.fetched(place) for place in places]
            held_up = self._first_held_up(flat, found)
            if held_up is None:
                self._left.difference_update(wanted)
                if not self._left:
                    self._finish("everything was fetched", is_complete=True)
                return flat.rebuild(found)
        except BaseException:
            # Fed in part, or with values that nobody got: it cannot go on as if nothing happened.
            self._finish("an error or an interrupt stopped it")
            raise
        raise FailedPreconditionError(
            f"{held_up.name!r} waits for operations with effects that come before it in this step "
            "and need feeds not given yet",
            hint="fetch it in a later call",
        )

    def _first_held_up(self, flat: Flat, results: Sequence[Any]) -> Tensor | Operation | None:
        """The first of the fetches that is not there yet."""
        for tensor, value in zip(flat.tensors, results, strict=True):
            if value is None:
                return tensor
        return next((each for each in flat.targets if not self._step.has_run(each)), None)

    def _checked(self, feeds: Mapping[Any, Any]) -> dict[Tensor, Any]:
        values: dict[Tensor, Any] = {}
        for key, value in (expanded(feeds) if has_compound(feeds) else feeds).items():
            tensor = feedable(self._graph, key)
            if tensor not in self._feeds:
                raise _not_announced(tensor, "feeds", self._feeds)
            if tensor in self._given or tensor in values:
                raise InvalidArgumentError(f"{tensor.name!r} has already been fed")
            values[tensor] = self._feeds[tensor][1].value(value)
        return values

    def _check_reachable(self, wanted: Sequence[Tensor | Operation], given: set[Tensor]) -> None:
        for item in wanted:
            if item not in self._announced:
                raise _not_announced(item, "fetches", self._announced)
            if item not in self._left:
                raise InvalidArgumentError(f"{item.name!r} has already been fetched")
            missing = [t.name for t in self._needed(item) if t not in given]
            if missing:
                raise InvalidArgumentError(
                    f"{item.name!r} needs {', '.join(map(repr, missing))}, not fed yet",
                    hint="feed it in this call, or fetch this in a later one",
                )

    def _needed(self, item: Tensor | Operation) -> list[Tensor]:
        """The step's feeds that something depends on."""
        if isinstance(item, Tensor) and item in self._feeds:
            return [item]
        needed: dict[Tensor, None] = {}
        start = _operation(item)
        stack, seen = [start], {start}
        while stack:
            operation = stack.pop()
            for tensor in taken_by(operation):
                if tensor in self._feeds:
                    needed[tensor] = None
                elif tensor.op not in seen:
                    seen.add(tensor.op)
                    stack.append(tensor.op)
            waited = [c for c in operation.control_inputs if not is_replaced(c, self._feeds)]
            for other in (*waited, *closing(operation)):
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        return list(needed)

    @property
    def closed(self) -> bool:
        """Whether the step has ended."""
        return self._end is not None

    @property
    def has_values(self) -> bool:
        """Nothing that beginning it again does not give."""
        return False

    def close(self) -> None:
        """Give the rest of the step up. May be called again."""
        self._close("it was closed")

    def give_way(self, successor: PartialRun) -> str:
        """End: the cell that began it has begun another in its place."""
        self._close(f"the one that was begun at {successor.site.place} took its place")
        return ""

    def lose_cell(self) -> None:
        """End: the cell that began it was deleted."""
        self._close(f"{self.site.place}, which began it, was deleted")

    def _close(self, reason: str) -> None:
        with self._lock:
            if self._end is None:
                self._finish(reason)

    def _finish(self, reason: str, is_complete: bool = False) -> None:
        self._end = reason
        self._step.close(is_complete)
        self._drop.detach()

    def __enter__(self) -> PartialRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _not_announced(
    item: Tensor | Operation, what: str, announced: Iterable[Tensor | Operation]
) -> InvalidArgumentError:
    """The error of what a partial run did not begin with, though perhaps with one of its name.

    Args:
        item: what is fetched or fed.
        what: what it is one of.
        announced: what it began with.
    """
    text = f"{item.name!r} was not among the {what} that the partial run began with"
    before = [_operation(each) for each in announced if _plain(each) == _plain(item)]
    redefined = [root_of(operation) for operation in before if operation.retired]
    if not redefined:
        return InvalidArgumentError(text)
    return InvalidArgumentError(
        f"{text}, but {what_became_of(redefined)}",
        hint="begin another partial run, with what there is now",
    )


def _operation(item: Tensor | Operation) -> Operation:
    return item.op if isinstance(item, Tensor) else item


def _plain(item: Tensor | Operation) -> tuple[str, int | None]:
    """The name that all generations have in common."""
    return plain_name(_operation(item)), item.index if isinstance(item, Tensor) else None
