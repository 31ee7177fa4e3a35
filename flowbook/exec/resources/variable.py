"""The resource behind `fb.Variable`: a buffer that is never seen half written.

A step that reads gets a read-only view of the buffer. That reference is its lease: while any step
(or anything else) holds one, a write puts a new buffer in place of the old; only a buffer that
nobody holds is written in place. A write is one NumPy call or one reference store under the
variable's lock, so that neither a concurrent step nor an interrupt finds it torn.

The buffer itself is read-only except while it is written, so that nobody who holds a view can make
that writeable.

The holders of a buffer are counted by CPython's reference counts: whoever keeps a view, by
whatever way, is counted, and nobody has to remember to give a lease back.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from operator import setitem
from sys import getrefcount
from typing import Any

import numpy as np

from flowbook.exec.resources.kinds import Birth, Definition, makes
from flowbook.graph.model.dtypes import DType, float32
from flowbook.graph.model.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidIndexError,
    OutOfRangeError,
)
from flowbook.graph.model.shape import SCALAR, Shape
from flowbook.graph.model.touch import VARIABLE

Array = np.ndarray[Any, Any]


# The claims of those whose steps this code runs for, on whatever thread.
own_claims: ContextVar[tuple[threading.Event, ...]] = ContextVar("flowbook_claims", default=())


@makes(VARIABLE)
def _variable(birth: Birth) -> VariableResource:
    attributes = birth.attributes
    return VariableResource(
        birth.key.name, attributes["dtype"], attributes["shape"], birth.announce
    )


class VariableResource:
    """The value of one variable in one container.

    Attributes:
        name: the variable's name, for errors.
        dtype: the dtype of its values.
        shape: the shape that they have, which may be partial.
    """

    __slots__ = (
        "_announce",
        "_buffer",
        "_claim",
        "_lock",
        "_view",
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
    ) -> None:
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
            if self._is_free() and self._buffer is not None and self._buffer.shape == value.shape:
                self._write(np.copyto, value)
            else:
                self._swap(np.array(value, dtype=self.dtype.numpy, order="C"))
            return self._view  # type: ignore[return-value]

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
                self._swap(np.asarray(ufunc(self._buffer, value)))
            return self._view  # type: ignore[return-value]

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
                self._swap(self._buffer.copy())
            self._write(np.add, 1, self._buffer)
            return before

    def scatter(self, ufunc: Any, indices: Array, updates: Array) -> Array:
        """Combine rows with updates; `ufunc` None replaces them."""
        with self._lock:
            if self._buffer is None:
                raise self._uninitialized()
            check_indices(indices, len(self._buffer), self.name)
            if not self._is_free():
                self._swap(self._buffer.copy())
            flat = np.reshape(indices, -1)
            # One value may serve for all.
            rows = np.reshape(updates, (flat.size, *self._buffer.shape[1:]) if updates.ndim else ())
            if ufunc is None:
                self._write(setitem, flat, rows)
            else:
                self._write(_combine_rows, ufunc, flat, rows)
            return self._view  # type: ignore[return-value]

    def write(self, ufunc: Any, place: Callable[[tuple[int, ...]], Any], value: Array) -> Array:
        """Combine a part with a value; `ufunc` None replaces it.

        Args:
            ufunc: a ufunc such as `numpy.add`, or None.
            place: gives the part's NumPy key for the buffer's shape; it raises where there is no
                such part, or the value does not fit it: nothing is written then.
            value: broadcasts to the part.
        """
        with self._lock:
            if self._buffer is None:
                raise self._uninitialized()
            key = place(self._buffer.shape)
            if not self._is_free():
                self._swap(self._buffer.copy())
            if ufunc is None:
                self._write(setitem, key, value)
            else:
                self._write(ufunc.at, key, value)
            return self._view  # type: ignore[return-value]

    def gather(self, indices: Array) -> Array:
        """Copies of rows, taken under the lock: nothing of the buffer is leased."""
        with self._lock:
            if self._buffer is None:
                raise self._uninitialized()
            check_indices(indices, len(self._buffer), self.name)
            return np.take(self._buffer, indices, axis=0)

    def forget(self) -> None:
        """Drop the value: it is initialised again on the next use."""
        with self._lock:
            self._buffer = self._view = None
            self._announce(False)

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
        buffer: Any = self._buffer
        buffer.flags.writeable = True
        try:
            function(buffer, *arguments)
        finally:
            buffer.flags.writeable = False

    def _swap(self, buffer: Array) -> None:
        buffer.flags.writeable = False
        view = buffer.view()
        is_first = self._view is None
        self._buffer, self._view = buffer, view
        if is_first:
            self._announce(True)

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


def _combine_rows(buffer: Array, ufunc: Any, indices: Array, rows: Array) -> None:
    """Combine rows of a buffer with others, one after the other; `rows` may be a scalar.

    `ufunc.at` is fast along one axis only, and slower than one gather and one write.
    """
    if buffer.ndim == 1:
        ufunc.at(buffer, indices, rows)
        return
    ordered = np.sort(indices)
    if (ordered[1:] != ordered[:-1]).all():
        buffer[indices] = ufunc(buffer[indices], rows)
        return
    width = math.prod(buffer.shape[1:])
    places = np.multiply(indices[:, None], width, dtype=np.int64) + np.arange(width)
    ufunc.at(buffer.reshape(-1), places.reshape(-1), rows.reshape(-1) if rows.ndim else rows)


def check_indices(indices: Any, length: int, what: str) -> None:
    """Refuse indices outside [0, length), naming the first of them.

    Raises:
        InvalidIndexError: if there is one.
    """
    array = np.asarray(indices)
    if array.size and (array.min() < 0 or array.max() >= length):
        wrong = array[(array < 0) | (array >= length)].flat[0]
        place = np.argwhere((array < 0) | (array >= length))[0].tolist()
        at = f" (element {place})" if place else ""
        raise InvalidIndexError(f"index {wrong} is outside [0, {length}) of {what!r}{at}")
