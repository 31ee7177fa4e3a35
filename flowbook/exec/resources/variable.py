"""The resource behind `fb.Variable`: a buffer that is never seen half written.

A step that reads gets a read-only view of the buffer. That reference is its lease: while any step
(or anything else) holds one, a write puts a new buffer in place of the old; only a buffer that
nobody holds is written in place. A write is one NumPy call or one reference store under the
variable's lock, so that neither a concurrent step nor an interrupt finds it torn.

The buffer itself is read-only except while it is written, where its device's arrays can be, so that
nobody who holds a view can make that writeable.

The holders of a buffer are counted by CPython's reference counts: whoever keeps a view, by
whatever way, is counted, and nobody has to remember to give a lease back. A view refers to the
array that it is a view of, on every device.

The buffer is an array of the device where the variable lives. What comes from elsewhere, or goes
there, goes through the device: `put` and `fetch` take and give values in host memory.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from operator import setitem
from sys import getrefcount
from typing import Any

import numpy as np

from flowbook.exec.devices.cpu import Cpu
from flowbook.exec.devices.device import Device
from flowbook.exec.resources.kinds import Birth, Definition, makes
from flowbook.graph.model.dtypes import DType, float32
from flowbook.graph.model.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
)
from flowbook.graph.model.shape import SCALAR, Shape
from flowbook.graph.model.touch import VARIABLE
from flowbook.graph.numerics.bounds import check_indices
from flowbook.graph.numerics.row_writes import write_rows

# An array of the device where the variable lives.
Array = Any

_HOST = Cpu()


# The claims of those whose steps this code runs for, on whatever thread.
own_claims: ContextVar[tuple[threading.Event, ...]] = ContextVar("flowbook_claims", default=())


@makes(VARIABLE)
def _variable(birth: Birth) -> VariableResource:
    attributes = birth.attributes
    typed = attributes["dtype"], attributes["shape"]
    return VariableResource(birth.key.name, *typed, birth.announce, birth.device)


class VariableResource:
    """The value of one variable in one container.

    Attributes:
        name: the variable's name, for errors.
        dtype: the dtype of its values.
        shape: the shape that they have, which may be partial.
        device: where it lives.
    """

    __slots__ = (
        "_announce",
        "_buffer",
        "_claim",
        "_lock",
        "_view",
        "_xp",
        "device",
        "dtype",
        "name",
        "shape",
    )

    def __init__(
        self,
        name: str,
        dtype: DType,
        shape: Shape,
        announce: Callable[[bool], None] = lambda has_value: None,
        device: Device = _HOST,
    ) -> None:
        self.device = device
        self._xp = device.xp
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self._announce = announce
        self._claim: weakref.ref[threading.Event] | None = None
        self._lock = threading.Lock()
        self._buffer: Array | None = None
        self._view: Array | None = None

    @property
    def is_initialized(self) -> bool:
        """Whether it has a value."""
        return self._view is not None

    @property
    def bytes(self) -> int:
        """How much memory its value takes."""
        view = self._view
        return 0 if view is None else int(view.nbytes)

    def read(self) -> Array:
        """The current value, as a read-only view that stays as it is."""
        with self._lock:
            if self._view is None:
                raise self._uninitialized()
            return self._view

    def assign(self, value: Array) -> Array:
        """Give it a new value; the value is copied."""
        self._check(value.shape)
        with self._lock:
            return self._assigned(value)

    def _assigned(self, value: Array) -> Array:
        """As `assign`; the lock is held."""
        if self._is_free() and self._buffer is not None and self._buffer.shape == value.shape:
            self._write(self._xp.copyto, value)
        else:
            self._swap(self._copy(value))
        return self._view

    def fetch(self) -> Array:
        """The current value in host memory, which stays as it is: there a view, else a copy."""
        with self._lock:
            device, view = self.device, self._view
        if view is None:
            raise self._uninitialized()
        return device.show(view)

    def put(self, value: Array) -> None:
        """Give it a new value, from host memory; the value is copied."""
        is_there = False
        while not is_there:
            device = self.device
            is_there = device.run(self._put_from, (device, device.put(value)))

    def _put_from(self, device: Device, value: Array) -> bool:
        """Give it a value from a device's memory; whether it still lives there."""
        self._check(value.shape)
        with self._lock:
            if device is not self.device:
                return False
            self._assigned(value)
            return True

    def move(self, device: Device) -> None:
        """Have it live on another device, with its value, if it has one."""
        with self._lock:
            if self._buffer is not None and device is not self.device:
                # First, since there may be no room for it.
                buffer = device.take(self.device.send(self._buffer))
                self.device, self._xp = device, device.xp
                self._swap(buffer)
            self.device, self._xp = device, device.xp

    def update(self, ufunc: Any, value: Array) -> Array:
        """Combine it with a value by a ufunc, such as `numpy.add`."""
        with self._lock:
            buffer = self._buffer
            if buffer is None:
                raise self._uninitialized()
            shape = buffer.shape
            # `broadcast_shapes` alone takes as long as a small update.
            if value.shape != shape and shape != np.broadcast_shapes(shape, value.shape):
                raise InvalidArgumentError(
                    f"a value of shape {list(value.shape)} does not fit variable {self.name!r} "
                    f"of shape {list(shape)}"
                )
            buffer = None
            if self._is_free():
                self._write(ufunc, value, self._buffer)
            else:
                updated = self.device.room(shape, self.dtype.numpy)
                ufunc(self._buffer, value, updated)
                self._swap(updated)
            return self._view

    def count_up_to(self, limit: int) -> Array:
        """Add one, unless that makes it more than a limit; give what it was before.

        Raises:
            OutOfRangeError: if it has reached the limit.
        """
        with self._lock:
            if self._buffer is None:
                raise self._uninitialized()
            before: Array = self._buffer[()]
            if before >= limit:
                raise OutOfRangeError(f"variable {self.name!r} has reached {limit}")
            if not self._is_free():
                self._swap(self._copy(self._buffer))
            self._write(np.add, 1, self._buffer)
            return before

    def scatter(self, ufunc: Any, indices: Array, updates: Array) -> Array:
        """Combine rows with updates; `ufunc` None replaces them."""
        xp = self._xp
        with self._lock:
            if self._buffer is None:
                raise self._uninitialized()
            self._check_rows(indices, len(self._buffer))
            if not self._is_free():
                self._swap(self._copy(self._buffer))
            flat = xp.reshape(indices, -1)
            # One value may serve for all.
            rows = xp.reshape(updates, (flat.size, *self._buffer.shape[1:]) if updates.ndim else ())
            self._write(write_rows, xp, ufunc, flat, rows)
            return self._view

    def scatter_parts(
        self,
        ufunc: Any,
        place: Callable[[tuple[int, ...]], tuple[Array, Array, tuple[int, ...]]],
    ) -> Array:
        """Combine parts with updates; `ufunc` None replaces them.

        Args:
            ufunc: a ufunc of the device's, such as `numpy.add`, or None.
            place: for the buffer's shape the numbers of rows, the updates, one row for each or a
                scalar, and the shape in which the buffer has these rows. It raises where there are
                no such parts: nothing is written then.
        """
        with self._lock:
            if self._buffer is None:
                raise self._uninitialized()
            flat, rows, dims = place(self._buffer.shape)
            if not self._is_free():
                self._swap(self._copy(self._buffer))
            self._write(_write_rows, dims, self._xp, ufunc, flat, rows)
            return self._view

    def write(self, place: Callable[[tuple[int, ...]], Any], value: Array) -> Array:
        """Replace a part by a value.

        Args:
            place: gives the part's key for the buffer's shape, of slices and integers; it raises
                where there is no such part, or the value does not fit it: nothing is written then.
            value: broadcasts to the part.
        """
        with self._lock:
            if self._buffer is None:
                raise self._uninitialized()
            key = place(self._buffer.shape)
            if not self._is_free():
                self._swap(self._copy(self._buffer))
            self._write(setitem, key, value)
            return self._view

    def gather(self, indices: Array) -> Array:
        """Copies of rows, taken under the lock: nothing of the buffer is leased."""
        with self._lock:
            if self._buffer is None:
                raise self._uninitialized()
            self._check_rows(indices, len(self._buffer))
            return self._xp.take(self._buffer, indices, axis=0)

    def forget(self) -> None:
        """Drop the value: it is initialised again on the next use."""
        with self._lock:
            self._buffer = self._view = None
            self._announce(False)

    def announce_to(self, announce: Callable[[bool], None]) -> None:
        """Announce whether it has a value to one more, while that cannot change."""
        with self._lock:
            announce(self._view is not None)

    # Initialising

    def claim(self, claim: threading.Event) -> bool:
        """Take it upon oneself to initialise it; whether nobody else has, and it has no value.

        Args:
            claim: set by whoever claims when he is done. It is held weakly: where an interrupt
                prevents that, it ends with the frame that held it.
        """
        with self._lock:
            if self._view is not None or self._claimed() is not None:
                return False
            self._claim = weakref.ref(claim)
            return True

    def wait_for_claim(self, seconds: float) -> bool:
        """Wait until nobody is initialising it; whether that is so.

        Raises:
            FailedPreconditionError: if it is the very step that asks which initialises it.
        """
        claim = self._claimed()
        if claim is not None and claim in own_claims.get():
            raise FailedPreconditionError(
                f"the initial value of variable {self.name!r} is computed by a function that runs "
                "something which needs the variable itself"
            )
        return claim is None or claim.wait(seconds)

    def _claimed(self) -> threading.Event | None:
        claim = self._claim() if self._claim is not None else None
        return None if claim is None or claim.is_set() else claim

    def adopt(self, definition: Definition) -> str | None:
        """Be what another operation owns, if that is possible; else what it is instead."""
        if definition.kind != VARIABLE.name:
            return f"a {VARIABLE.name}, not a {definition.kind}"
        dtype, shape = definition.attributes["dtype"], definition.attributes["shape"]
        with self._lock:
            if self.dtype is dtype and self.shape.is_compatible_with(shape):
                return None
            if self._view is None:
                self.dtype, self.shape = dtype, shape
                return None
        return f"{self.dtype.name} {self.shape}, not {dtype.name} {shape}"

    def _is_free(self) -> bool:
        """Whether nobody but this resource holds the buffer. Called under the lock."""
        return self._references() == _UNHELD

    def _references(self) -> tuple[int, int]:
        return getrefcount(self._view), getrefcount(self._buffer)

    def _write(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function that writes to the buffer, which it takes first."""
        buffer = self._buffer
        self.device.lock(buffer, False)
        try:
            function(buffer, *arguments)
        finally:
            self.device.lock(buffer, True)

    def _copy(self, value: Array) -> Array:
        buffer = self.device.room(value.shape, self.dtype.numpy)
        self._xp.copyto(buffer, value)
        return buffer

    def _swap(self, buffer: Array) -> None:
        self.device.lock(buffer, True)
        view = buffer.view()
        is_first = self._view is None
        self._buffer, self._view = buffer, view
        if is_first:
            self._announce(True)

    def _check_rows(self, indices: Array, count: int) -> None:
        check_indices(indices, count, f"variable {self.name!r}: row")

    def _check(self, shape: tuple[int, ...]) -> None:
        if self.shape.dims != shape and not self.shape.is_compatible_with(shape):
            raise InvalidArgumentError(
                f"a value of shape {list(shape)} does not fit variable {self.name!r} "
                f"of shape {self.shape}"
            )

    def _uninitialized(self) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"Attempting to use uninitialized value {self.name!r}",
            hint="run its initializer, or fb.global_variables_initializer(), first; "
            "sessions with auto_initialize=True (the default) do it by themselves",
        )


def _unheld_references() -> tuple[int, int]:
    """What `_references` gives for a buffer that only its resource holds, on this interpreter."""
    resource = VariableResource("", float32, SCALAR)
    resource._swap(np.zeros((), np.float32))
    return resource._references()


_UNHELD = _unheld_references()


def _write_rows(
    buffer: Array, dims: tuple[int, ...], xp: Any, ufunc: Any, indices: Array, rows: Array
) -> None:
    """Write to the rows that a buffer has in a shape."""
    write_rows(xp.reshape(buffer, dims), xp, ufunc, indices, rows)
