"""Devices: their names and kinds, the array modules of their kernels, their memory."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from flowbook.exec.devices.quiet import quietly
from flowbook.graph.definition.op_def import HOST
from flowbook.graph.model.device_spec import DeviceSpec

__all__ = ["Device"]

Result = TypeVar("Result")


class DeviceDescription(NamedTuple):
    """What a device is to users.

    Attributes:
        name: in full.
        kind: such as "cpu".
        memory: how many bytes its arrays may take together; None if that is not known. CPU devices
            share the machine's.
        used: how many they take now; None of a device whose memory is the host's, where that is not
            counted.
        peak: the most that they have taken at once; None as before.
    """

    name: str
    kind: str
    memory: int | None
    used: int | None = None
    peak: int | None = None


class Moment(Protocol):
    """When a device came as far as it had been told to go."""

    def ns(self) -> int:
        """In nanoseconds on the clock of `time.perf_counter_ns`; waits until it is there."""


class Caller(Protocol):
    """Calls a function with its arguments."""

    def __call__(self, function: Callable[..., Result], arguments: Sequence[Any] = ()) -> Result:
        """What it returns."""


class Device(ABC):
    """One device of this process, on which operations run.

    A subclass is a kind of device, with `fb.register_device_kind`. It says where arrays lie: `own`
    and `fetch` copy between its memory and the host's, and `check` knows its arrays.

    Args:
        name: such as "cpu:0", or in full.
        xp: NumPy, or a module like it, whose functions take this device's arrays.

    Attributes:
        name: in full, such as "/job:localhost/task:0/device:cpu:0".
        spec: the name, taken apart.
        incarnation: 64 bits by chance, others with each start of a device of this name.
        xp: NumPy, or a module like it, whose functions take this device's arrays.
        array_type: what is of exactly this type is an array of the device; None if the type alone
            does not tell.
        memory_limit: how many bytes its arrays may take together; None for any.
        fetches_together: whether what a step fetches comes to the host when the step has ended, by
            `fetch_all`, and not value by value.
    """

    array_type: type[Any] | None = None
    memory_limit: int | None = None
    fetches_together: bool = False
    # Gives the moment when the device has done all that it was told until now; None where that is
    # done when a kernel has been called.
    moment: Callable[[], Moment] | None = None
    # Calls a function that calls the device's kernels, with its arguments.
    run: Caller = staticmethod(quietly)

    def __init__(self, name: str, xp: ModuleType | Any) -> None:
        self.spec = DeviceSpec(job="localhost", task=0).merge(DeviceSpec.parse(name))
        self.name = str(self.spec)
        self.incarnation = secrets.randbits(64)
        self.xp = xp

    @property
    def kind(self) -> str:
        """Such as "cpu"."""
        return self.spec.kind or ""

    @property
    def is_host(self) -> bool:
        """Whether its memory is the host's."""
        return self.kind in HOST

    def shares_memory(self, other: Device) -> bool:
        """Whether what lies on another device is at hand here: all CPUs have the host's memory."""
        return self is other or (self.is_host and other.is_host)

    def described(self) -> DeviceDescription:
        """What it is to users."""
        return DeviceDescription(self.name, self.kind, self.memory_limit, *self.taken())

    def taken(self) -> tuple[int | None, int | None]:
        """How many bytes its arrays take, now and at most so far; None if that is not counted."""
        return None, None

    @abstractmethod
    def own(self, array: Any) -> Any:
        """An array of this device, and nobody else's, with the values of a host array or scalar."""

    @abstractmethod
    def fetch(self, array: Any) -> Any:
        """The values of an array of this device, as a host array or scalar of the caller's own."""

    def room(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array without values, for what stays in memory and is written to again and again."""
        return self.xp.empty(shape, dtype)

    def put(self, array: Any) -> Any:
        """An array of this device with the values of a host array, which nobody writes to."""
        return self.own(array)

    def show(self, array: Any) -> Any:
        """The values of an array that nobody writes to, in host memory; itself if it lies there."""
        return np.asarray(self.fetch(array))

    def send(self, value: Any) -> Any:
        """A value as it goes to another device: an array in host memory that nobody else has.

        What is no array, such as a stack of a loop, goes as it is.
        """
        return np.asarray(self.fetch(value)) if self.check(value) else value

    def take(self, value: Any) -> Any:
        """A value that came from another device: an array as an array of this one."""
        return self.own(value) if isinstance(value, np.ndarray) else value

    def fetch_own(self, array: Any) -> Any:
        """As `fetch`, of an array that nobody else has: its memory may be handed over."""
        return self.fetch(array)

    def fetch_view(self, array: Any) -> Any:
        """As `fetch`, of a view of such an array, which may overlap itself and be read-only."""
        return self.fetch(array)

    def fetch_all(self, values: Sequence[Any]) -> Sequence[Any]:
        """As `fetch`, of all of several values that are arrays of this device."""
        return [self.fetch(value) if self.check(value) else value for value in values]

    def lock(self, array: Any, is_locked: bool) -> None:  # noqa: B027 - most can not.
        """Have an array refuse to be written to, or take it again, where arrays can."""

    @abstractmethod
    def check(self, value: Any) -> bool:
        """Whether a value is an array, or a scalar, of this device."""

    def __repr__(self) -> str:
        return f"<Device {self.name}>"
