"""The resource behind session handles: values that a session keeps between runs."""

from __future__ import annotations

import itertools
import secrets
import threading
from typing import Any

import numpy as np

from flowbook.exec.resources.kinds import Birth, Definition, Lasting, makes
from flowbook.graph.model.dtypes import DType, as_dtype
from flowbook.graph.model.errors import FailedPreconditionError, InvalidArgumentError
from flowbook.graph.model.touch import SESSION_TENSORS
from flowbook.graph.ops.state.session_tensors import KEPT, keepers

Array = np.ndarray[Any, Any]


class SessionTensors(Lasting):
    """Values by their handles, which are of one session; safe to use from several threads.

    Args:
        device: the device that was asked for, or an empty string.
    """

    is_initialized = False

    def __init__(self, device: str) -> None:
        self._device = device.encode()
        self._label = secrets.token_hex(6).encode()
        self._numbers = itertools.count()
        self._values: dict[bytes, Array] = {}
        self._lock = threading.Lock()
        keepers[self._label] = self

    def keep(self, value: Array) -> bytes:
        """Keep an array that is nobody else's; its handle."""
        value.flags.writeable = False
        with self._lock:
            handle = b"%s;%d;%s" % (self._label, next(self._numbers), self._device)
            self._values[handle] = value
        return handle

    def value(self, handle: bytes) -> Array:
        """The value of a handle.

        Raises:
            InvalidArgumentError: if it is another session's.
            FailedPreconditionError: if it was let go of.
        """
        found = self._values.get(handle)
        if found is None:
            raise self._missing(handle)
        return found

    def typed(self, handle: bytes, dtype: DType) -> Array:
        """The value of a handle, of a certain dtype; InvalidArgumentError if it has another."""
        found = self.value(handle)
        if as_dtype(found.dtype) is not dtype:
            raise InvalidArgumentError(
                f"the value that stays in the session is {as_dtype(found.dtype).name}, not "
                f"{dtype.name}",
                hint="fb.get_session_tensor(handle, dtype)",
            )
        return found

    def delete(self, handle: bytes) -> None:
        """Let go of a value, which has to be there."""
        self.value(handle)
        self.drop(handle)

    def drop(self, handle: bytes) -> None:
        """Let go of a value, if it is there; called from garbage collections too."""
        self._values.pop(handle, None)

    def _missing(self, handle: bytes) -> Exception:
        label, *_ = handle.split(b";")
        if label == self._label:
            return FailedPreconditionError(
                "the value was let go of: it was deleted, or its TensorHandle is gone",
                hint="keep what sess.run(fb.get_session_handle(x)) gave",
            )
        if label in keepers:
            return InvalidArgumentError(
                "the handle is of another session, and its value is there",
                hint="fetch the value there, and feed it here",
            )
        return InvalidArgumentError(
            f"{handle[:40]!r} is no handle of a value in this session; "
            "the session that it was given by may be closed"
        )

    def let_go(self) -> None:
        """Let go of all of them, at the session's end."""
        keepers.pop(self._label, None)
        self._values.clear()

    def adopt(self, definition: Definition) -> str | None:
        """Be what another operation owns, if that is the same."""
        is_same = definition.kind == SESSION_TENSORS.name
        return None if is_same else f"session tensors, not a {definition.kind}"

    def forget(self) -> None:
        """Let go of all of them."""
        self._values.clear()


@makes(SESSION_TENSORS)
def _session_tensors(birth: Birth) -> SessionTensors:
    return SessionTensors(birth.key.name.removeprefix(KEPT))
