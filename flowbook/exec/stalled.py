"""What becomes of a step that waits: queues get filled, people are told, and cycles are found.

A step that waits at a queue has the queue's runners started. If nothing happens for a while, who
runs it is told once what it waits for and what would wake it. Only where it is certain that nothing
ever will, as what would has to run after what waits, the step fails by itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flowbook.exec.engine.overseer import Wait
from flowbook.exec.queue_threads import Feeding
from flowbook.graph.model.ancestors import ancestors
from flowbook.graph.model.dtypes import resource
from flowbook.graph.model.errors import FailedPreconditionError, OpError, WaitingWarning
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.origin.called import described
from flowbook.graph.model.touch import Touch

if TYPE_CHECKING:
    from flowbook.exec.plan.pipeline import Prepared

_MANY = 3  # Longer lists are cut.

_NOBODY: frozenset[int] = frozenset()


def check_seconds(value: object) -> None:
    """Refuse what `options.report_waits` cannot be.

    Raises:
        ValueError: if it is neither None nor a number from 0 on.
    """
    if value is not None and not (isinstance(value, int | float | np.number) and value >= 0):
        raise ValueError(f"report_waits is None or a number of seconds from 0 on, not {value!r}")


class Waiter(NamedTuple):
    """An operation that waits.

    Attributes:
        operation: the operation.
        wish: what for, such as "waits for an element of queue 'q'".
        since: when that began, on the clock of `time.monotonic`.
        queues: the operations that own what it may wait at.
    """

    operation: Operation
    wish: str
    since: float
    queues: Sequence[Operation]


class Waits:
    """Sees to the steps of one prepared signature that wait.

    Args:
        prepared: what they run.
        feeding: what fills queues.
        part: the number of the part that waits, of several.
    """

    # Each signature has one, and a notebook many signatures.
    __slots__ = ("_feeding", "_heard", "_part", "_prepared")

    def __init__(self, prepared: Prepared, feeding: Feeding, part: int = 0) -> None:
        self._prepared = prepared
        self._part = prepared.program.parts[part]
        self._feeding = feeding
        self._heard = _NOBODY

    def begin(self, nodes: Sequence[int]) -> None:
        """Have what runs in some nodes, which wait, get what it waits for.

        What waits for room is itself what fills a queue: a runner that has been stopped meanwhile,
        and finds it full, must not start it again.
        """
        hungry = [node for node in nodes if not self._waits_for_room(node)]
        for queue in dict.fromkeys(q for node in hungry for q in self._waited_at(node)):
            self._feeding.wanted(queue)

    def endless(
        self, waits: Sequence[Wait], others: Sequence[Waiter]
    ) -> tuple[int, OpError] | None:
        """The node and the error that a step fails with which can never go on.

        Args:
            waits: what waits in it, while no other step of the session is under way.
            others: what waits in its other parts, all of which wait.

        Returns:
            None if something may wake it, or what fails is in another part.
        """
        endless = _in_cycles([*self.waiters(waits), *others])
        for wait in waits:
            operation = self._operation(wait.node)
            if operation in endless:
                return wait.node, _cycle(wait, endless[operation])
        return None

    def long(self, waits: Sequence[Wait]) -> None:
        """Tell whoever runs a step what it has waited for long, once."""
        site = sites.capture()
        heard = site.author.serial if site.author is not None else 0
        if heard not in self._heard:
            self._heard |= {heard}
            where = site.cell_label or site.filename
            message = f"this run waits: {self.described(waits)}"
            warnings.warn_explicit(message, WaitingWarning, where, site.line)

    def waiters(self, waits: Sequence[Wait]) -> list[Waiter]:
        """The operations that wait."""
        found = [(self._operation(wait.node), wait) for wait in waits]
        return [
            Waiter(operation, wait.wish, wait.since, self._waited_at(wait.node))
            for operation, wait in found
            if operation is not None
        ]

    def described(self, waits: Sequence[Wait]) -> str:
        """What waits for what, where it was defined, and what would wake it."""
        texts = [self._described(wait) for wait in waits[:_MANY]]
        if len(waits) > _MANY:
            texts.append(f"and {len(waits) - _MANY} others wait")
        return "; ".join(texts)

    def _described(self, wait: Wait) -> str:
        operation = self._operation(wait.node)
        if operation is None:
            return wait.wish
        wakers = self._wakers(wait.node)
        would = f"it goes on after {_listed(wakers)}" if wakers else "nothing in the graph wakes it"
        runners = [self._became_of(queue) for queue in self._waited_at(wait.node)]
        told = "".join(f"; {text}" for text in runners if text)
        return f"{_named(operation)} {wait.wish}; {would}{told}"

    def _became_of(self, queue: Operation) -> str:
        """What became of the runners of a queue, of those that run no longer."""
        texts = []
        for feeder in self._feeding.of(queue):
            if feeder.error is not None:
                texts.append(f"its runner {feeder.runner.name!r} failed: {feeder.error.message}")
            elif not feeder.is_running:
                texts.append(f"its runner {feeder.runner.name!r} has come to its end")
        return "; ".join(texts)

    def _operation(self, node: int) -> Operation | None:
        """The operation that a node stands for."""
        sources_of = self._part.nodes[node].sources
        return self._prepared.sources[sources_of[0]] if sources_of else None

    def _waited_at(self, node: int) -> list[Operation]:
        """The operations that own what a node may wait at."""
        operation, touch = self._operation(node), self._touch(node)
        if operation is None or touch is None or touch.argument is None:
            return []
        return list(_owners(operation.inputs[touch.argument].op))

    def _touch(self, node: int) -> Touch | None:
        operation = self._operation(node)
        return operation.op_def.touches if operation is not None else None

    def _waits_for_room(self, node: int) -> bool:
        touch = self._touch(node)
        return touch is not None and touch.puts

    def _wakers(self, node: int) -> list[Operation]:
        """The live operations that would let a node go on which waits."""
        touch = self._touch(node)
        return _wakers(self._waited_at(node), touch) if touch is not None else []


def _in_cycles(waiters: Iterable[Waiter]) -> dict[Operation, list[Operation]]:
    """Those that wait for what has to run after some that wait, and what would wake each."""
    alike: dict[tuple[Any, ...], list[Operation]] = {}
    for operation, _, _, owners in waiters:
        is_own = all(o.key is not None and not o.key.is_shared for o in owners)
        if operation.op_def.touches is not None and is_own:
            key = tuple(owners), operation.op_def.touches
            alike.setdefault(key, []).append(operation)
    wakers = {key: _wakers(*key) for key in alike}
    before = {
        waker: ancestors(waker, by_control=True) for found in wakers.values() for waker in found
    }
    endless = {key for key in alike if wakers[key]}
    while True:
        waiting = {operation for key in endless for operation in alike[key]}
        free = [k for k in endless if any(waiting.isdisjoint(before[w]) for w in wakers[k])]
        if not free:
            return {operation: wakers[key] for key in endless for operation in alike[key]}
        endless.difference_update(free)


def _wakers(owners: Sequence[Operation], touch: Touch) -> list[Operation]:
    """The live operations that would let one go on which waits at what others own."""
    handles = [owner.outputs[0] for owner in owners]
    handles += [op.outputs[0] for handle in handles for op in handle.consumers() if _chooses(op)]
    found = [op for handle in handles for op in handle.consumers()]
    touching = [(op, op.op_def.touches) for op in found if not op.retired]
    return [op for op, other in touching if other is not None and touch.is_woken_by(other)]


def _cycle(wait: Wait, wakers: Sequence[Operation]) -> OpError:
    return FailedPreconditionError(
        f"it {wait.wish}, and would do so for ever: {_listed(wakers)} would wake it, and runs only "
        "after it",
        hint="wake it in a step of its own, or before it",
    )


def _owners(handle: Operation) -> Iterable[Operation]:
    """The operations that own what a handle may stand for."""
    if handle.op_def.owns is not None:
        return [handle]
    given = [tensor.op for tensor in handle.inputs if tensor.dtype is resource]
    return [owner for op in given for owner in _owners(op)]


def _chooses(operation: Operation) -> bool:
    """Whether it gives one of the handles that it takes."""
    return any(tensor.dtype is resource for tensor in operation.outputs)


def _named(operation: Operation) -> str:
    return f"{described(operation)} ({operation.site.place})"


def _listed(operations: Sequence[Operation]) -> str:
    texts = [f"{described(op)} ({op.site.place})" for op in operations[:_MANY]]
    more = f" or {len(operations) - _MANY} others" if len(operations) > _MANY else ""
    return " or ".join(texts) + more
