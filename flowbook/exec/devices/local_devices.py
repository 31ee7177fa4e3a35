"""The devices of this process, by name (white paper, section 3, "Devices")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from flowbook.exec.devices import gpu, simulated  # noqa: F401  # They define their kinds.
from flowbook.exec.devices.cpu import Cpu
from flowbook.exec.devices.device import Device
from flowbook.exec.devices.imagined import Imagined
from flowbook.exec.devices.kinds import kind_named
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.registry import known_kinds
from flowbook.graph.model.whole_numbers import as_whole


def local_devices(devices: Sequence[Any] | None = None, cpus: int | None = None) -> list[Device]:
    """The devices that a session runs on; the first runs what nothing else decides.

    Args:
        devices: their names, such as "cpu:0" or "/device:simulated:1", or devices. A CPU joins
            them if they have none, for what runs nowhere else.
        cpus: how many CPU devices there are, which share the machine's cores; 1 by default.

    Raises:
        InvalidTypeError: if they are no sequence of names and devices, or no number.
        InvalidArgumentError: if this process has no such device, or one is named twice.
    """
    if devices is not None and cpus is not None:
        raise InvalidArgumentError("devices names all devices, so that cpus says nothing")
    if devices is None:
        return [Cpu(index) for index in range(_number(1 if cpus is None else cpus))]
    return _listed(devices, _named)


def imagined_devices(names: Sequence[Any]) -> list[Device]:
    """Devices by name that need not be there: plans are made for them, and nothing runs on them.

    Args:
        names: such as "gpu:3". A CPU joins them as it joins `local_devices`.

    Raises:
        InvalidTypeError: if they are no sequence of names and devices.
        InvalidArgumentError: if one is no name of a device of a kind that is known, or is named
            twice.
    """
    return _listed(names, _imagined)


def _listed(devices: Any, named: Callable[[Any], Device]) -> list[Device]:
    if not isinstance(devices, list | tuple):
        raise InvalidTypeError(f"devices is a list of names, not {devices!r}")
    found = [each if isinstance(each, Device) else named(each) for each in devices]
    names = [device.name for device in found]
    if len(set(names)) < len(names):
        raise InvalidArgumentError(f"devices names one twice: {', '.join(names)}")
    return found if any(device.kind == "cpu" for device in found) else [*found, Cpu()]


def _number(cpus: Any) -> int:
    count = as_whole(cpus)
    if count is None:
        raise InvalidTypeError(f"cpus is a number of devices, not {cpus!r}")
    if not 1 <= count <= 1024:
        raise InvalidArgumentError(f"a session has from 1 to 1024 CPU devices, not {count}")
    return count


def _imagined(name: Any) -> Device:
    spec = _parsed(name)
    if spec.kind is None:
        raise InvalidArgumentError(f"{name!r} says no kind of device", hint="for example 'gpu:0'")
    if kind_named(spec.kind) is None:
        raise InvalidArgumentError(
            f"{name!r} is of no kind of device that is known", hint=known_kinds(spec.kind)
        )
    return Imagined(
        replace(
            spec,
            job=spec.job or "localhost",
            task=spec.task or 0,
            index=spec.index or 0,
        )
    )


def _parsed(name: Any) -> DeviceSpec:
    if not isinstance(name, str):
        raise InvalidTypeError(f"a device is named by a string, not {name!r}")
    return DeviceSpec.parse(name)


def _named(name: Any) -> Device:
    spec = _parsed(name)
    kind = kind_named(spec.kind)
    if kind is None or spec.job not in (None, "localhost") or spec.task not in (None, 0):
        raise InvalidArgumentError(
            f"this process has no device {name!r}", hint=known_kinds(spec.kind)
        )
    return kind.device(spec.index or 0)
