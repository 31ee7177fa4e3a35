"""Straight-line Python for a region: one line per kernel call, locals for values.

A local is reused as soon as its value has been used for the last time, so that memory is freed
there and a variable's buffer is given back before it is written. Nothing but the kernels costs
time: the line that failed is found in the traceback, not by bookkeeping.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

from flowbook.exec.devices.device import Device
from flowbook.exec.engine.units import Kernel, Unit, Values
from flowbook.exec.plan.failure import UnitFailure, late
from flowbook.exec.plan.memory import Ownership

# Beyond so many calls a function is split: compiling a function costs memory by its length.
LONGEST = 4000

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


class Generated:
    """A region as a function.

    Args:
        units: the units of the plan.
        known: constants and handles, by value.
        nodes: the indices of the region's units, in the order in which they run.
        inputs: the values that it takes.
        outputs: the values that it returns.
        finish: for each output the expression that is returned, such as "copied({})".
        device: where it runs.
        with_deadline: whether the function takes a deadline first, and keeps it.
        is_wary: whether what kernels give is checked against what was inferred.

    Attributes:
        inputs: the values that `function` takes, in the order of its parameters.
        outputs: the values that it returns, as a tuple.
        function: the generated function. The variant with a deadline takes it first.
        sources: the generated text of each part, for whoever wants to see it.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        known: dict[int, Any],
        nodes: Sequence[int],
        inputs: Sequence[int],
        outputs: Sequence[int],
        finish: Sequence[str],
        device: Device,
        with_deadline: bool,
        is_wary: bool = False,
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.sources: list[str] = []
        self._places: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
        self._scope: dict[str, Any] = {
            "xp": device.xp,
            **finishers(device),
            "clock": time.monotonic,
            "late": late,
        }
        self._with_deadline = with_deadline
        parts = [nodes[i : i + LONGEST] for i in range(0, len(nodes), LONGEST)] or [nodes]
        writer = _Writer(units, known, device.xp, self._scope, with_deadline, is_wary)
        last_use = _last_uses(units, nodes, outputs)
        if len(parts) == 1:
            self.function = self._single(writer, parts[0], last_use, finish)
        else:
            self.function = self._split(writer, parts, last_use, finish)

    def _single(
        self, writer: _Writer, nodes: Sequence[int], last_use: dict[int, int], finish: Sequence[str]
    ) -> Callable[..., Any]:
        writer.begin({v: f"f{i}" for i, v in enumerate(self.inputs)})
        writer.write(nodes, last_use)
        results = ", ".join(
            f.format(writer.name(v)) for f, v in zip(finish, self.outputs, strict=True)
        )
        writer.line(f"return ({results},)" if self.outputs else "return ()")
        parameters = [f"f{i}" for i in range(len(self.inputs))]
        if self._with_deadline:
            parameters.insert(0, "deadline")
        return self._compile("step", parameters, writer)

    def _split(
        self,
        writer: _Writer,
        parts: Sequence[Sequence[int]],
        last_use: dict[int, int],
        finish: Sequence[str],
    ) -> Callable[..., Any]:
        """Functions that hand values on through a list, emptying it as they use them up."""
        live = list(self.inputs)
        functions = []
        for part in parts:
            used = writer.used(part)
            taken = [v for v in live if v in used]
            writer.begin({v: f"s{v}" for v in taken})
            for value in taken:
                writer.line(f"s{value} = values[{value}]; values[{value}] = None")
            writer.write(part, last_use)
            kept = writer.live()
            for value in kept:
                writer.line(f"values[{value}] = {writer.name(value)}")
            if not writer.lines:
                writer.line("pass")
            live = [v for v in live if v not in used] + kept
            functions.append(self._compile("part", ["values", "deadline"], writer))
        size = 1 + max(max(last_use, default=0), max(self.inputs, default=0))
        known = writer.known
        finishers = [eval(f"lambda v: {f.format('v')}", self._scope) for f in finish]

        def step(*feeds: Any) -> tuple[Any, ...]:
            deadline = None
            if self._with_deadline:
                deadline, *feeds = feeds  # type: ignore[assignment]
            values: list[Any] = [None] * size
            for value, feed in zip(self.inputs, feeds, strict=True):
                values[value] = feed
            for function in functions:
                function(values, deadline)
            return tuple(
                finisher(known[v] if v in known else values[v])
                for finisher, v in zip(finishers, self.outputs, strict=True)
            )

        return step

    def _compile(self, name: str, parameters: Sequence[str], writer: _Writer) -> Callable[..., Any]:
        filename = f"<flowbook {name} {next(_serial)}>"
        text = f"def {name}({', '.join(parameters)}):\n" + "\n".join(writer.lines) + "\n"
        self.sources.append(text)
        self._places[filename] = writer.places
        exec(compile(text, filename, "exec"), self._scope)
        function: Callable[..., Any] = self._scope.pop(name)
        return function

    def failure(self, error: BaseException) -> UnitFailure | None:
        """Which node's line raised an error, and what that was given; None if none did."""
        traceback = error.__traceback__
        while traceback is not None:
            code = traceback.tb_frame.f_code
            places = self._places.get(code.co_filename)
            if places is not None:
                index, names = places[traceback.tb_lineno - 2]
                if index < 0:
                    return None
                given = traceback.tb_frame.f_locals
                failure = UnitFailure(index, [given.get(n, self._scope.get(n)) for n in names])
                failure.__cause__ = error
                return failure
            traceback = traceback.tb_next
        return None


class Region(Unit):
    """Units that run together as one generated function.

    Attributes:
        generated: the function.
        takes: the values that it is called with: the inputs, and before them the deadline's
            place where it keeps one.
    """

    __slots__ = ("generated", "takes")

    def __init__(
        self,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        after: tuple[int, ...],
        generated: Generated,
        deadline: int | None,
    ) -> None:
        super().__init__(inputs, outputs, after)
        self.generated = generated
        self.takes = inputs if deadline is None else (deadline, *inputs)

    def run(self, values: Values) -> Sequence[Any]:
        """Call the function on the inputs."""
        try:
            return self.generated.function(*[values[v] for v in self.takes])  # type: ignore[no-any-return]
        except Exception as error:
            failure = self.generated.failure(error)
            if failure is None:
                raise
            try:
                raise failure from error
            finally:
                del failure  # It holds this frame.


class _Writer:
    """Writes the lines of one function, and keeps which local holds which value."""

    def __init__(
        self,
        units: Sequence[Unit],
        known: dict[int, Any],
        xp: Any,
        scope: dict[str, Any],
        with_deadline: bool,
        is_wary: bool,
    ) -> None:
        self.units = units
        self.known = known
        self.xp = xp
        self.scope = scope
        self.with_deadline = with_deadline
        self.is_wary = is_wary
        self.lines: list[str] = []
        self.places: list[tuple[int, tuple[str, ...]]] = []
        self.locals: dict[int, str] = {}
        self.free: list[str] = []
        self.count = 0
        self.functions: dict[int, str] = {}

    def begin(self, given: dict[int, str]) -> None:
        """Start a function in whose locals the given values lie."""
        self.lines, self.places = [], []
        self.locals, self.free, self.count = dict(given), [], 0

    def used(self, nodes: Sequence[int]) -> set[int]:
        """The values that these nodes take."""
        return {value for index in nodes for value in self.units[index].inputs}

    def live(self) -> list[int]:
        """The values that locals hold."""
        return list(self.locals)

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

    def write(self, nodes: Sequence[int], last_use: dict[int, int]) -> None:
        """Add the calls of these nodes."""
        for index in nodes:
            kernel = self.units[index]
            if not isinstance(kernel, Kernel):
                continue
            inputs = tuple([self.name(v) for v in kernel.inputs])
            used = [port for port, v in enumerate(kernel.outputs) if v in last_use]
            call = self._call(index, kernel, inputs, used)
            dying = [
                v for v in dict.fromkeys(kernel.inputs) if v in self.locals and last_use[v] == index
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

    def _call(
        self, index: int, kernel: Kernel, inputs: tuple[str, ...], used: Sequence[int]
    ) -> str:
        if kernel.call.expression is not None and kernel.call.expression.is_single:
            return self._inlined(index, kernel, inputs)
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

    def _inlined(self, index: int, kernel: Kernel, inputs: tuple[str, ...]) -> str:
        expression = kernel.call.expression
        assert expression is not None
        names = dict(zip(expression.parameters, inputs, strict=False))
        for name in expression.functions:
            names[name] = f"xp_{name}"
            self.scope[f"xp_{name}"] = getattr(self.xp, name)
        for name, value in kernel.attributes.items():
            names[name] = self._literal(index, name, value)
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


def _last_uses(
    units: Sequence[Unit], nodes: Sequence[int], outputs: Sequence[int]
) -> dict[int, int]:
    """For each value that is used the last node that uses it; what is returned lives on."""
    last = {value: index for index in nodes for value in units[index].inputs}
    beyond = max(nodes, default=0) + 1
    for value in outputs:
        last[value] = beyond
    return last
