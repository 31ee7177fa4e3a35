"""Straight-line Python for units that need no waiting: one line per kernel call, locals for values.

A local is reused as soon as its value has been used for the last time, so that memory is freed
there and a variable's buffer is given back before it is written. Nothing but the kernels costs
time: the line that failed is found in the traceback, not by bookkeeping.

A short program is one function from feeds to fetches (`whole_step`). Of a longer one, each stretch
(`segment.py`) is a function that takes its values from a list, and leaves there what others need
(`on_values`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from flowbook.exec.devices.device import Device
from flowbook.exec.engine.units import Kernel, Unit
from flowbook.exec.plan.failure import UnitFailure, late
from flowbook.exec.plan.memory import Ownership

_serial = itertools.count()


# How a fetched value becomes the caller's own, by the name that generated code has for it.
FINISHER_OF = {
    Ownership.FRESH: "scalar",
    Ownership.VIEW: "owned",
    Ownership.FOREIGN: "copied",
}


def finishers(device: Device) -> dict[str, Callable[[Any], Any]]:
    """What makes fetched values of a device the caller's own, by those names."""
    return {"scalar": device.fetch_own, "owned": device.fetch_view, "copied": device.fetch}


class Setting(NamedTuple):
    """What all code of a program has in common.

    Attributes:
        known: constants and handles, by value.
        device: where it runs.
        is_wary: whether what kernels give is checked against what was inferred.
    """

    known: Mapping[int, Any]
    device: Device
    is_wary: bool


class Generated:
    """Units as a function.

    Attributes:
        function: the function.
        text: its text, for whoever wants to see it.
    """

    def __init__(self, name: str, parameters: Sequence[str], writer: _Writer) -> None:
        self._filename = f"<flowbook {name} {next(_serial)}>"
        self._places = writer.places
        self._scope = writer.scope
        self.text = f"def {name}({', '.join(parameters)}):\n" + "\n".join(writer.lines) + "\n"
        exec(compile(self.text, self._filename, "exec"), self._scope)
        self.function: Callable[..., Any] = self._scope.pop(name)

    def failure(self, error: BaseException) -> UnitFailure | None:
        """Which node's line raised an error, and what that was given; None if none did."""
        traceback = error.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == self._filename:
                index, names = self._places[traceback.tb_lineno - 2]
                if index < 0:
                    return None
                given = traceback.tb_frame.f_locals
                failure = UnitFailure(index, [given.get(n, self._scope.get(n)) for n in names])
                if isinstance(given, dict):
                    given.clear()  # A copy, which its frame keeps even when that is emptied.
                failure.__cause__ = error
                return failure
            traceback = traceback.tb_next
        return None


def whole_step(
    units: Sequence[Unit],
    feeds: int,
    fetches: Sequence[int],
    finish: Sequence[str],
    setting: Setting,
    with_deadline: bool,
) -> Generated:
    """A program as a function from the feeds to the fetches.

    Args:
        units: all of them, in the order in which they run.
        feeds: how many values are fed, the first ones.
        fetches: the values that it returns, as a tuple.
        finish: for each of them the expression that is returned, such as "copied({})".
        setting: what it is written with.
        with_deadline: whether the function takes a deadline first, and keeps it.
    """
    parameters = [f"f{value}" for value in range(feeds)]
    writer = _Writer(setting, with_deadline)
    writer.locals.update(enumerate(parameters))
    writer.write(units, fetches)
    found = [f.format(writer.name(value)) for f, value in zip(finish, fetches, strict=True)]
    writer.line(f"return ({', '.join(found)},)" if found else "return ()")
    if with_deadline:
        parameters.insert(0, "deadline")
    return Generated("step", parameters, writer)


def on_values(
    units: Sequence[Unit], dying: Collection[int], setting: Setting, with_deadline: bool
) -> Generated:
    """Units as a function of the values of a step, by number, and its deadline.

    Args:
        units: in the order in which they run.
        dying: those values that nothing needs after them.
        setting: what it is written with.
        with_deadline: whether the function keeps the deadline.
    """
    made = {v: None for unit in units if isinstance(unit, Kernel) for v in unit.outputs}
    taken = dict.fromkeys([v for unit in units for v in unit.inputs])
    writer = _Writer(setting, with_deadline)
    for value in taken:
        if value not in made and value not in setting.known:
            local = writer.locals[value] = f"s{value}"
            dropped = f"; values[{value}] = None" if value in dying else ""
            writer.line(f"{local} = values[{value}]{dropped}")
    lasting = [value for value in made if value not in dying]
    writer.write(units, lasting)
    for value in lasting:
        writer.line(f"values[{value}] = {writer.name(value)}")
    if not writer.lines:
        writer.line("pass")
    return Generated("stretch", ["values", "deadline"], writer)


class _Writer:
    """Writes the lines of one function, and keeps which local holds which value."""

    def __init__(self, setting: Setting, with_deadline: bool) -> None:
        self.known, self.device, self.is_wary = setting
        self.with_deadline = with_deadline
        self.scope: dict[str, Any] = {
            "xp": self.device.xp,
            **finishers(self.device),
            "clock": time.monotonic,
            "late": late,
        }
        self.lines: list[str] = []
        self.places: list[tuple[int, tuple[str, ...]]] = []
        self.locals: dict[int, str] = {}
        self.free: list[str] = []
        self.count = 0
        self.functions: dict[int, str] = {}

    def name(self, value: int) -> str:
        """How the code refers to a value."""
        local = self.locals.get(value)
        if local is None:
            local = f"c{value}"
            self.scope[local] = self.known[value]
        return local

    def line(self, text: str, node: int = -1, names: tuple[str, ...] = ()) -> None:
        """Add a line that belongs to a node."""
        self.lines.append("    " + text)
        self.places.append((node, names))

    def write(self, units: Sequence[Unit], lasting: Sequence[int]) -> None:
        """Add the calls of units, after which some values live on."""
        last_use = _last_uses(units, lasting)
        for place, kernel in enumerate(units):
            if not isinstance(kernel, Kernel):
                continue
            index = kernel.index
            inputs = tuple([self.name(v) for v in kernel.inputs])
            used = [port for port, v in enumerate(kernel.outputs) if v in last_use]
            call = self._call(kernel, inputs, used)
            dying = [
                v for v in dict.fromkeys(kernel.inputs) if v in self.locals and last_use[v] == place
            ]
            released = [self.locals.pop(v) for v in dying]
            self.free.extend(released)
            targets = [self._take() for _ in kernel.outputs]
            for value, target in zip(kernel.outputs, targets, strict=True):
                if value in last_use:
                    self.locals[value] = target
                else:
                    self.free.append(target)
            # What dies here and is not overwritten is let go at once, unused outputs included.
            written = {t for v, t in zip(kernel.outputs, targets, strict=True) if v in last_use}
            dropped = [n for n in dict.fromkeys((*released, *targets)) if n not in written]
            if self.with_deadline:
                self.line("if clock() > deadline: raise late()", index)
            if self.is_wary:
                checked = f"checked{index}"
                is_single = kernel.is_single
                self.scope[checked] = kernel.checked if is_single else kernel.checked_all
                call = f"{checked}({call})"
            if not targets:
                text = call
            elif kernel.is_single:
                text = f"{targets[0]} = {call}"
            else:
                text = f"{', '.join(targets)}, = {call}"
            if dropped:
                text += "; " + " = ".join(dropped) + " = None"
            self.line(text, index, inputs)

    def _take(self) -> str:
        if self.free:
            return self.free.pop()
        self.count += 1
        return f"v{self.count}"

    def _call(self, kernel: Kernel, inputs: tuple[str, ...], used: Sequence[int]) -> str:
        index = kernel.index
        if kernel.call.expression is not None and kernel.call.expression.is_single:
            return self._inlined(kernel, inputs)
        function = kernel.function
        if kernel.call.expression is not None and not self.is_wary:
            function = kernel.call.expression.kernel(used)
        first = [self._shared(function), "xp"]
        for resource in kernel.leading:
            self.scope[f"r{index}"] = resource
            first.append(f"r{index}")
        attributes = []
        for name, value in kernel.attributes.items():
            text = self._literal(index, name, value)
            attributes.append(text if kernel.call.is_positional else f"{name}={text}")
        return f"{first[0]}({', '.join([*first[1:], *inputs, *attributes])})"

    def _inlined(self, kernel: Kernel, inputs: tuple[str, ...]) -> str:
        expression = kernel.call.expression
        assert expression is not None
        names = dict(zip(expression.parameters, inputs, strict=False))
        for name in expression.functions:
            names[name] = f"xp_{name}"
            self.scope[f"xp_{name}"] = getattr(self.device.xp, name)
        for name, value in kernel.attributes.items():
            names[name] = self._literal(kernel.index, name, value)
        large = self._shared(kernel.function) if expression.has_steps else None
        return expression.render(names, large)

    def _shared(self, function: Callable[..., Any]) -> str:
        """One global per kernel, however many calls."""
        name = self.functions.get(id(function))
        if name is None:
            name = self.functions[id(function)] = f"k{len(self.functions)}"
            self.scope[name] = function
        return name

    def _literal(self, index: int, name: str, value: Any) -> str:
        if value is None or value is True or value is False or (type(value) is int and value >= 0):
            return repr(value)
        self.scope[f"a{index}_{name}"] = value
        return f"a{index}_{name}"


def _last_uses(units: Sequence[Unit], lasting: Sequence[int]) -> dict[int, int]:
    """For each value that is used the place of the last unit that uses it, or beyond them all."""
    last = {value: place for place, unit in enumerate(units) for value in unit.inputs}
    last.update(dict.fromkeys(lasting, len(units)))
    return last
