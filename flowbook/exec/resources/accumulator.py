"""The resources behind conditional accumulators: gradients of several steps, until one takes them.

A gradient that was computed from an older state of the model than what has been taken since is
stale, and is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from flowbook.exec.devices.device import Device
from flowbook.exec.resources.kinds import Birth, Definition, makes
from flowbook.exec.resources.waiting import Attempt, WaitingResource
from flowbook.graph.definition.async_context import AsyncContext
from flowbook.graph.model.attributes import same_attributes
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.touch import ACCUMULATOR, SPARSE_ACCUMULATOR

Sums = tuple[Any, ...]


class Accumulator(WaitingResource):
    """Gradients added up, and those who wait for enough of them.

    Args:
        kind: the name of its kind of resource.
        name: what errors call it.
        attributes: those of the operation that owns it.
        device: where it lives.

    Attributes:
        device: likewise.
        size: how many gradients there are.
        step: the step that gradients have to be of, or of a later one.
    """

    is_initialized = False

    def __init__(self, kind: str, name: str, attributes: Mapping[str, Any], device: Device) -> None:
        super().__init__(lines=2)
        self.device = device
        self.kind = kind
        self.name = name
        self.size = 0
        self.step = 0
        self.takes_mean = attributes["reduction_type"] == "MEAN"
        self._attributes = attributes
        self._sums: Sums | None = None
        self._changing, self._taking = self._lines

    def apply(self, call: AsyncContext, local_step: Any, *gradient: Any) -> None:
        """Add a gradient, unless it is stale."""
        self._check(*gradient)
        self._join(_Apply(call, self, int(local_step), gradient), self._changing)

    def take(self, call: AsyncContext, required: Any) -> None:
        """Take what has been added up, when it is of enough gradients; a step ends with it."""
        if required < 1:
            raise InvalidArgumentError(f"at least one gradient is taken, not {required}")
        self._join(_Take(call, self, int(required)), self._taking)

    def set_step(self, call: AsyncContext, step: Any) -> None:
        """Have older gradients be stale from now on."""
        self._join(_SetStep(call, self, int(step)), self._changing)

    def adopt(self, definition: Definition) -> str | None:
        """Be what another operation owns, if it says the same; else what it is instead."""
        if definition.kind == self.kind and same_attributes(
            definition.attributes, self._attributes
        ):
            return None
        return f"another {self.kind}, not a {definition.kind}"

    @property
    def bytes(self) -> int:
        """How much memory what has been added up takes."""
        return sum(part.nbytes for part in self._sums or ())

    def move(self, device: Device) -> None:
        """Have it live on another device, with what has been added up."""
        with self._lock:
            if self._sums is not None and device is not self.device:
                self._sums = tuple([device.take(self.device.send(part)) for part in self._sums])
            self.device = device

    def forget(self) -> None:
        """Drop what has been added up, and have gradients of any step count again."""
        with self._lock:
            self.drop()
            self.step = 0

    # What attempts ask, under the lock

    def add(self, gradient: Sums) -> None:
        """Add a gradient to the others."""
        function = self._own if self._sums is None else self._added
        self._sums = self.device.run(function, (gradient,))
        self.size += 1

    def drop(self) -> tuple[Sums | None, int]:
        """What has been added up, and of how many; begins anew."""
        found = self._sums, self.size
        self._sums, self.size = None, 0
        return found

    def restore(self, sums: Sums | None, size: int, step: int) -> None:
        """Be as before something was taken, of which nobody will hear."""
        self.step = step
        newer, more = self.drop()
        self._sums, self.size = sums, size
        if newer is not None:
            self.add(newer)
            self.size += more - 1

    def result(self, sums: Sums, size: int) -> Sums:
        """What is given of gradients that were added up."""
        return self.device.run(self._result, (sums, size))

    # What kinds differ in

    def _result(self, sums: Sums, size: int) -> Sums:
        [total] = sums
        mean = total / total.dtype.type(size) if self.takes_mean else total
        return (self.device.xp.asarray(mean),)

    def _check(self, *gradient: Any) -> None:
        [value] = gradient
        shape = self._attributes["shape"]
        first = self._sums[0].shape if self._sums is not None else value.shape
        if not shape.is_compatible_with(value.shape) or value.shape != first:
            raise InvalidArgumentError(
                f"a gradient of shape {list(value.shape)} does not fit accumulator {self.name!r} "
                f"of shape {shape if self._sums is None else list(first)}"
            )

    def _own(self, gradient: Sums) -> Sums:
        return tuple([part.copy() for part in gradient])

    def _added(self, gradient: Sums) -> Sums:
        # A new array: an interrupt leaves the old one or has the new one.
        assert self._sums is not None
        return (self._sums[0] + gradient[0],)


class SparseAccumulator(Accumulator):
    """The same of rows, in host memory: each row's mean is of those gradients that have it."""

    def _result(self, sums: Sums, size: int) -> Sums:
        indices, rows, shape = sums
        found, places, counts = np.unique(indices, return_inverse=True, return_counts=True)
        total = np.zeros((len(found), *rows.shape[1:]), rows.dtype)
        np.add.at(total, places.reshape(-1), rows)
        if self.takes_mean:
            total /= counts.reshape(-1, *[1] * (rows.ndim - 1)).astype(rows.dtype)
        return found, total, shape

    def _check(self, *gradient: Any) -> None:
        indices, rows, shape = gradient
        wanted = self._attributes["shape"]
        dims = [None, *rows.shape[1:]]
        if indices.ndim != 1 or not rows.ndim or len(indices) != len(rows):
            raise InvalidArgumentError(
                f"{list(indices.shape)} indices do not fit rows of shape {list(rows.shape)}"
            )
        whole = shape.tolist() if shape.size else dims
        if not wanted.is_compatible_with(dims) or not wanted.is_compatible_with(whole):
            raise InvalidArgumentError(
                f"a gradient of rows {list(rows.shape)} of {whole} does not fit accumulator "
                f"{self.name!r} of shape {wanted}"
            )
        sizes = [
            size for size in (whole[0], wanted[0] if wanted.rank else None) if size is not None
        ]
        outside = indices < 0
        if sizes:
            outside |= indices >= sizes[0]
        if outside.any():
            of = counted(sizes[0], "row") if sizes else "rows"
            raise InvalidArgumentError(
                f"index {indices[outside][0]} lies outside of the {of} of accumulator {self.name!r}"
            )

    def _added(self, gradient: Sums) -> Sums:
        assert self._sums is not None
        indices, rows, shape = self._sums
        if rows.shape[1:] != gradient[1].shape[1:]:
            raise InvalidArgumentError(
                f"rows of shape {list(gradient[1].shape[1:])} cannot be added to rows of shape "
                f"{list(rows.shape[1:])}"
            )
        more = shape if shape.size else gradient[2]
        return np.concatenate([indices, gradient[0]]), np.concatenate([rows, gradient[1]]), more


class _Apply(Attempt):
    """Adds a gradient."""

    __slots__ = ("_accumulator", "_gradient", "_local_step")

    def __init__(
        self, call: AsyncContext, accumulator: Accumulator, local_step: int, gradient: Sums
    ) -> None:
        super().__init__(call)
        self._accumulator = accumulator
        self._local_step = local_step
        self._gradient = gradient

    def advance(self) -> bool:
        if self._local_step >= self._accumulator.step:
            try:
                self._accumulator.add(self._gradient)
            except InvalidArgumentError as error:
                return self.end(error)
        # It may lie in a device's memory, and whoever called lasts until the next collection.
        self._gradient = ()
        return self.end()

    def wish(self) -> str:
        return f"adds to accumulator {self._accumulator.name!r}"


class _Take(Attempt):
    """Takes what has been added up of enough gradients."""

    __slots__ = ("_accumulator", "_required", "_taken")

    def __init__(self, call: AsyncContext, accumulator: Accumulator, required: int) -> None:
        super().__init__(call)
        self._accumulator = accumulator
        self._required = required
        self._taken: tuple[Sums | None, int, int] | None = None

    def advance(self) -> bool:
        accumulator = self._accumulator
        if accumulator.size < self._required:
            return False
        self._taken = (*accumulator.drop(), accumulator.step)
        accumulator.step += 1
        return self.end()

    def undo(self) -> None:
        if self._taken is not None:
            self._accumulator.restore(*self._taken)

    def outputs(self) -> Sums:
        assert self._taken is not None
        sums, size, _ = self._taken
        assert sums is not None
        return self._accumulator.result(sums, size)

    def wish(self) -> str:
        accumulator = self._accumulator
        return (
            f"waits for {self._required} gradients in accumulator {accumulator.name!r}, "
            f"which has {accumulator.size}"
        )


class _SetStep(Attempt):
    """Says which gradients are stale."""

    __slots__ = ("_accumulator", "_step")

    def __init__(self, call: AsyncContext, accumulator: Accumulator, step: int) -> None:
        super().__init__(call)
        self._accumulator = accumulator
        self._step = step

    def advance(self) -> bool:
        self._accumulator.step = self._step
        return self.end()

    def wish(self) -> str:
        return f"sets the step of accumulator {self._accumulator.name!r}"


@makes(ACCUMULATOR)
def _accumulator(birth: Birth) -> Accumulator:
    return Accumulator(ACCUMULATOR.name, birth.key.name, birth.attributes, birth.device)


@makes(SPARSE_ACCUMULATOR)
def _sparse_accumulator(birth: Birth) -> SparseAccumulator:
    how = birth.key.name, birth.attributes, birth.device
    return SparseAccumulator(SPARSE_ACCUMULATOR.name, *how)
