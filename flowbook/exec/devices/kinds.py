"""Kinds of devices: what makes their devices, and what placement predicts with (white paper, 3).

Flowbook's own are defined by the modules of their devices; users register theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import cache
from numbers import Real
from typing import Any

from flowbook.exec.devices.device import Device
from flowbook.exec.devices.figures import ACCELERATOR, OVER_BUS, Figures, Link
from flowbook.graph.model import dtypes
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    InvalidTypeError,
)
from flowbook.graph.model.registry import define_device_kind

__all__ = ["register_device_kind"]


class DeviceKind:
    """A kind of device.

    Args:
        name: such as "cpu".
        make: gives the device of a number.
        figures: what its devices do in a second.
        link: what lies between one of them and the host; None if the host's memory is theirs.
        is_users: whether a user registered it, and may register it again.

    Attributes:
        name: likewise.
        figures: likewise.
        link: likewise.
        is_users: likewise.
        device: the device of a number, made once: what named containers hold lies there.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[int], Device],
        figures: Figures = ACCELERATOR,
        link: Link | None = OVER_BUS,
        is_users: bool = False,
    ) -> None:
        self.name = name
        self._make = make
        self.figures = figures
        self.link = link
        self.is_users = is_users
        self.device = cache(self._made)

    def _made(self, index: int) -> Device:
        made: Any = self._make(index)
        if not isinstance(made, Device):
            raise InvalidTypeError(
                f"what makes devices of kind {self.name!r} gave {made!r:.80} for number {index}",
                hint="it has to give an fb.Device",
            )
        if getattr(made, "spec", None) != DeviceSpec("localhost", 0, self.name, index):
            named = getattr(made, "name", "one without a name")
            raise InvalidArgumentError(
                f"what makes devices of kind {self.name!r} gave {named} for number {index}",
                hint=f"its __init__ calls super().__init__('{self.name}:{index}', xp)",
            )
        return made


_kinds: dict[str, DeviceKind] = {}


def define_kind(kind: DeviceKind, holds: Callable[[DType], bool] | None = None) -> None:
    """Have there be a kind of device, in the place of one of that name.

    Args:
        kind: what it is.
        holds: whether its arrays can be of a dtype; None if they can be of any.
    """
    define_device_kind(kind.name, holds)
    _kinds[kind.name] = kind


def kind_named(name: str | None) -> DeviceKind | None:
    """The kind of a name; None if there is none."""
    return _kinds.get(name or "")


def figures_of(kind: str) -> Figures:
    """What devices of a kind do in a second; what nobody defined is taken for an accelerator."""
    found = _kinds.get(kind)
    return ACCELERATOR if found is None else found.figures


def link_of(kind: str) -> Link | None:
    """What lies between a device of a kind and the host; None if the host's memory is its own."""
    found = _kinds.get(kind)
    return OVER_BUS if found is None else found.link


def register_device_kind(
    kind: str,
    make: Callable[[int], Device],
    *,
    dtypes: Collection[Any] | None = None,
    in_host_memory: bool = False,
    flops: float = ACCELERATOR.flops,
    memory_bandwidth: float = ACCELERATOR.bytes,
    launch_overhead: float = ACCELERATOR.overhead,
    link_bandwidth: float = OVER_BUS.bytes,
    link_latency: float = OVER_BUS.latency,
) -> None:
    """Add a kind of device, which sessions, `fb.device` and `fb.register_kernel` then know.

    The figures are what placement predicts with. Registered again, as by running its cell again,
    the kind is what was said last: sessions that are open keep the devices that they have, and
    kernels that are registered for the kind stay.

    Args:
        kind: its name, a word in lower case.
        make: gives the `fb.Device` of a number; a subclass that takes the number, for example. It
            is called when a session first names the device.
        dtypes: those that its arrays can have; any by default. What is about others runs elsewhere.
        in_host_memory: whether its arrays are NumPy's. Shapes and axes are then arrays of the
            device like all else, and transfers cost what they cost between CPUs.
        flops: floating-point operations in a second.
        memory_bandwidth: the bytes of its memory that it reads or writes in a second.
        launch_overhead: the seconds that it takes to call a kernel.
        link_bandwidth: the bytes that go in a second from the host to the device, or back.
        link_latency: the seconds of the smallest transfer.

    Raises:
        AlreadyExistsError: if one of Flowbook's own kinds has this name.
        InvalidArgumentError: if the name is no such word, a class lacks methods of a device, or a
            figure is not a positive number.
        InvalidTypeError: if an argument is of another type.

    Source: white paper, section 3, "Devices".
    """
    _check_name(kind)
    if not callable(make):
        raise InvalidTypeError(f"make gives the device of a number, and is not {make!r:.80}")
    missing = sorted(getattr(make, "__abstractmethods__", ()))
    if missing:
        raise InvalidArgumentError(f"{make!r:.80} does not define {', '.join(missing)}")
    figures = Figures(
        _positive("flops", flops),
        _positive("memory_bandwidth", memory_bandwidth),
        _positive("launch_overhead", launch_overhead),
    )
    link = Link(
        _positive("link_latency", link_latency), _positive("link_bandwidth", link_bandwidth)
    )
    made = DeviceKind(kind, make, figures, None if in_host_memory else link, is_users=True)
    define_kind(made, None if dtypes is None else _holding(dtypes))


def _check_name(kind: Any) -> None:
    if not isinstance(kind, str):
        raise InvalidTypeError(f"a kind of device is named by a string, not {kind!r:.80}")
    # As names of devices are read: they have kinds in lower case.
    if not kind.isidentifier() or DeviceSpec.parse(f"{kind}:0") != DeviceSpec(kind=kind, index=0):
        raise InvalidArgumentError(
            f"{kind!r:.80} is no name for a kind of device", hint="a word in lower case, as 'npu'"
        )
    existing = _kinds.get(kind)
    if existing is not None and not existing.is_users:
        raise AlreadyExistsError(f"{kind!r} is one of Flowbook's own kinds of devices")


def _positive(name: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise InvalidTypeError(f"{name} is a number, not {value!r:.80}")
    number = float(value)
    if not 0 < number < math.inf:
        raise InvalidArgumentError(f"{name} is a positive number, not {number}")
    return number


def _holding(given: Collection[Any]) -> Callable[[DType], bool]:
    """Whether a dtype is among those given; what is no array can be anywhere."""
    held = {dtypes.as_dtype(each) for each in given}
    return {*held, dtypes.resource, dtypes.variant}.__contains__
