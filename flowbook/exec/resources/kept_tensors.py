"""The resource behind session handles: values that a session keeps between runs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from flowbook.exec.devices.device import Device
from flowbook.exec.resources.kinds import Birth, Definition, Lasting, makes
from flowbook.graph.model.dtypes import DType, as_dtype
from flowbook.graph.model.errors import FailedPreconditionError, InvalidArgumentError
from flowbook.graph.model.touch import SESSION_TENSORS
from flowbook.graph.ops.state.session_tensors import KEPT, keepers

# Of all sessions: a handle is never that of another value.
_numbers = itertools.count(1)


class SessionTensors(Lasting):
    """Values by their handles, which are of one session; safe to use from several threads.

    Args:
        asked: the device that was asked for, or an empty string.
        device: where the values live.
    """

    is_initialized = False

    def __init__(self, asked: str, device: Device) -> None:
        self.asked = asked
        self._device = device
        self._values: dict[int, Any] = {}

    def keep(self, value: Any) -> int:
        """Keep an array that is nobody else's; its handle."""
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        handle = next(_numbers)
        self._values[handle] = value
        keepers[handle] = self
        return handle

    def value(self, handle: int) -> Any:
        """The value of a handle.

        Raises:
            InvalidArgumentError: if it is kept by another session, or elsewhere in this one.
            FailedPreconditionError: if it was let go of.
        """
        found = self._values.get(handle)
        if found is not None:
            return found
        if handle in keepers:
            raise InvalidArgumentError(
                "the value of the handle is kept by another session, or for another device",
                hint="fb.get_session_tensor(handle), and a run of the session that gave it",
            )
        raise FailedPreconditionError(
            f"there is no value of the handle {handle}: it was deleted, its TensorHandle is gone, "
            "or its session closed",
            hint="keep what sess.run(fb.get_session_handle(x)) gave",
        )

    def host_value(self, handle: int) -> Any:
        """The value of a handle in host memory, read-only; not copied where it is there."""
        value = self.value(handle)
        return value if isinstance(value, np.ndarray) else self._device.fetch(value)

    def typed(self, handle: int, dtype: DType) -> Any:
        """The value of a handle, of a certain dtype; InvalidArgumentError if it has another."""
        found = self.value(handle)
        if as_dtype(found.dtype) is not dtype:
            raise InvalidArgumentError(
                f"the value that stays in the session is {as_dtype(found.dtype).name}, not "
                f"{dtype.name}",
                hint="fb.get_session_tensor(handle, dtype)",
            )
        return found

    def delete(self, handle: int) -> None:
        """Let go of a value, which has to be there."""
        self.value(handle)
        keepers.pop(handle, None)
        self.drop(handle)

    def drop(self, handle: int) -> None:
        """Let go of a value, if it is there; called from garbage collections too."""
        self._values.pop(handle, None)

    def let_go(self) -> None:
        """Let go of all of them, at the session's end."""
        self.forget()

    def adopt(self, definition: Definition) -> str | None:
        """Be what another operation owns, if that is the same."""
        is_same = definition.kind == SESSION_TENSORS.name
        return None if is_same else f"session tensors, not a {definition.kind}"

    def forget(self) -> None:
        """Let go of all of them."""
        for handle in list(self._values):
            keepers.pop(handle, None)
        self._values.clear()


@makes(SESSION_TENSORS)
def _session_tensors(birth: Birth) -> SessionTensors:
    return SessionTensors(birth.key.name.removeprefix(KEPT), birth.device)
