"""Where the parts of one step exchange values (white paper, section 3.2.2).

Each step has a rendezvous of its own. A value is sent under a key that names the two devices and
the tensor, and within a loop the iteration; it is received once, before or after it was sent. What
is on its way lies in host memory and belongs to nobody else.

A key also holds the incarnation of the device that sends. A device that was started anew has lost
what it held for the step, so that what it sends, or would receive, is refused.

When a part fails, the rendezvous is aborted: whoever waits, or comes later, fails too, at whatever
it waits.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from flowbook.exec.devices.device import Device
from flowbook.exec.engine.atomic.giving_back import GivingBack
from flowbook.exec.engine.under_way import Parts
from flowbook.exec.interruptions import is_interruption
from flowbook.exec.plan.failure import LoopPlace
from flowbook.exec.resources.gate import Share
from flowbook.graph.definition.async_context import AsyncContext
from flowbook.graph.model.errors import AbortedError, CancelledError, InternalError
from flowbook.graph.model.retag import DEAD


class Key(NamedTuple):
    """What a value is sent and received under.

    Attributes:
        source: the name of the device that sends.
        incarnation: of that device.
        edge: the two devices and the tensor, as the partition names them.
        loops: which iteration of which loops, the innermost first.
    """

    source: str
    incarnation: int
    edge: str
    loops: tuple[LoopPlace, ...] = ()


class Rendezvous:
    """What is on its way between the parts of one step, and who waits for what.

    Args:
        parts: how many there are.
        incarnations: of each device, by its name, the one that the step was prepared for.
        giving: what the step has taken, if it takes something.

    Attributes:
        aborted: why the step has failed, if it has.
        giving, incarnations: as given.
        parts: those that are under way.
    """

    def __init__(
        self, parts: int, incarnations: Mapping[str, int], giving: GivingBack | None = None
    ) -> None:
        self.parts = Parts(parts)
        self.incarnations = incarnations
        self.giving = giving
        self._lock = threading.Lock()
        self._sent: dict[Key, Any] = {}
        self._waiting: dict[Key, Receiver] = {}
        self.aborted: BaseException | None = None

    def send(self, key: Key, value: Any) -> None:
        """Deliver a value, at once if somebody waits for it.

        Raises:
            AbortedError: if the device that sends was started anew.
            InternalError: if another one was sent under this key.
            CancelledError: if the step was aborted; its cause is why.
        """
        self._check(key.source, key.incarnation)
        with self._lock:
            receiver = self._waiting.pop(key, None)
            if self.aborted is not None:
                raise self._cancelled()
            if receiver is None:
                if key in self._sent:
                    raise InternalError(f"{key.edge!r} was sent twice")
                self._sent[key] = value
        if receiver is not None:
            receiver.take(value)

    def receive(self, key: Key, receiver: Receiver) -> None:
        """Have a receiver take what is sent under a key.

        Raises:
            AbortedError: if the device that sends, or the receiver's, was started anew.
            InternalError: if another one waits for it.
            CancelledError: if the step was aborted; its cause is why.
        """
        self._check(key.source, key.incarnation)
        self._check(receiver.device.name, receiver.device.incarnation)
        with self._lock:
            if self.aborted is not None:
                raise self._cancelled()
            if key not in self._sent:
                if key in self._waiting:
                    raise InternalError(f"{key.edge!r} is received twice")
                self._waiting[key] = receiver
                return
            value = self._sent.pop(key)
        receiver.take(value)

    def give_up(self, key: Key, receiver: Receiver) -> None:
        """Have a receiver wait no longer."""
        with self._lock:
            if self._waiting.get(key) is receiver:
                del self._waiting[key]

    def abort(self, error: BaseException) -> None:
        """Fail all who wait, and all who come later. Only the first error counts."""
        with self._lock:
            if self.aborted is not None:
                return
            self.aborted = error
            waiting, self._waiting = list(self._waiting.values()), {}
            self._sent.clear()
        for receiver in waiting:
            receiver.context.fail(self._cancelled())
        self.parts.cancel()

    def _check(self, device: str, incarnation: int) -> None:
        """Refuse what is of another incarnation of a device."""
        prepared = self.incarnations[device]
        if incarnation != prepared:
            raise AbortedError(
                f"{device} is in incarnation {incarnation:#018x}, and the step was prepared for "
                f"{prepared:#018x}: it was started anew, and what it held is lost",
                hint="make a new session, and restore its variables from a checkpoint",
            )

    def _cancelled(self) -> CancelledError:
        error = CancelledError("another part of the step failed")
        error.__cause__ = self.aborted
        return error


class Receiver:
    """Who waits for a value.

    Args:
        device: where it is wanted.
        context: what is completed with it.
        on_host: whether it is wanted in host memory.
    """

    def __init__(self, device: Device, context: AsyncContext, on_host: bool = False) -> None:
        self.device = device
        self.context = context
        self.on_host = on_host

    def take(self, value: Any) -> None:
        """Complete the call with a value, which nobody else has."""
        try:
            stays = value is DEAD or self.on_host
            found = value if stays else self.device.take(value)
        except Exception as error:
            if is_interruption(error):
                raise
            self.context.fail(error)
        else:
            self.context.complete((found,))


class Port:
    """A device's door to the rendezvous of a step, in one iteration.

    Args:
        rendezvous: the step's.
        device: the device.
        passage: the part's share in the step's way through the gates of what it writes.
        loops: which iteration of which loops, the innermost first.

    Attributes:
        passage, rendezvous: see above.
    """

    def __init__(
        self,
        rendezvous: Rendezvous,
        device: Device,
        passage: Share,
        loops: tuple[LoopPlace, ...] = (),
    ) -> None:
        self.passage = passage
        self.rendezvous = rendezvous
        self._device = device
        self._loops = loops

    def within(self, loops: tuple[LoopPlace, ...]) -> Port:
        """The door in another iteration."""
        return Port(self.rendezvous, self._device, self.passage, loops)

    def send(self, key: str, value: Any) -> None:
        """Have a value delivered to whoever receives under a key."""
        sent = value if value is DEAD else self._device.send(value)
        own = self._device
        self.rendezvous.send(Key(own.name, own.incarnation, key, self._loops), sent)

    def fetch(self, value: Any) -> Any:
        """A value of the device in host memory."""
        return np.asarray(self._device.fetch(value))

    def receive(self, key: str, source: str, context: AsyncContext, on_host: bool) -> None:
        """Complete a call with what a device sends, in host memory or this device's."""
        incarnation = self.rendezvous.incarnations[source]
        found = Key(source, incarnation, key, self._loops)
        receiver = Receiver(self._device, context, on_host)
        context.on_cancel(lambda: self.rendezvous.give_up(found, receiver))
        self.rendezvous.receive(found, receiver)
