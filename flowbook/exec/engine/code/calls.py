"""How generated code calls kernels: the expressions, and the globals that they name."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowbook.exec.engine.code.finishing import finishers
from flowbook.exec.engine.code.overwriting import fits
from flowbook.exec.engine.code.setting import Setting
from flowbook.exec.engine.under_way import session_closed
from flowbook.exec.engine.units import Kernel
from flowbook.exec.plan.failure import late


class Calls:
    """The calls of kernels in one function.

    Args:
        setting: what code is written with.

    Attributes:
        scope: the globals of the function, by name.
    """

    def __init__(self, setting: Setting) -> None:
        self._known, self._specs, self._device, self._is_wary = setting[:4]
        self._names: dict[tuple[str, Any], str] = {}
        self.scope: dict[str, Any] = {
            "xp": self._device.xp,
            **finishers(self._device),
            "clock": time.monotonic,
            "late": late,
            "may_stop": setting.may_stop,
            "executions": setting.executions,
            "session_closed": session_closed,
            "count": itertools.count,
        }

    def constant(self, value: int) -> str:
        """How the code refers to a value that is known before the step."""
        return self.shared("c", value, self._known[value])

    def shared(self, kind: str, key: Any, value: Any) -> str:
        """A global, the same for each key of a kind however often it is asked for."""
        name = self._names.get((kind, key))
        if name is None:
            name = self._names[kind, key] = f"{kind}{len(self._names)}"
            self.scope[name] = value
        return name

    def literal(self, value: Any) -> str:
        """A global of its own for a value that is known when the code is written."""
        return self.shared("d", len(self._names), value)

    def text(
        self, kernel: Kernel, inputs: tuple[str, ...], used: Sequence[int], out: str | None
    ) -> str:
        """The expression that calls a kernel.

        Args:
            kernel: the kernel.
            inputs: how the code refers to what it takes.
            used: those of its outputs, by port, that something needs.
            out: the local in whose place the result is put, if it can be.
        """
        index = kernel.index
        if kernel.call.expression is not None and kernel.call.expression.is_single:
            return self._inlined(kernel, inputs, out)
        function = kernel.function
        if kernel.call.expression is not None and not self._is_wary:
            function = kernel.call.expression.kernel(used)
        first = [self._kernel(function), "xp"]
        first += [self.shared("r", index, resource) for resource in kernel.leading]
        attributes = []
        for name, value in kernel.attributes.items():
            text = self._literal(index, name, value)
            attributes.append(text if kernel.call.is_positional else f"{name}={text}")
        return f"{first[0]}({', '.join([*first[1:], *inputs, *attributes])})"

    def overwrites(self, kernel: Kernel, value: int) -> bool:
        """Whether the result of a kernel can be put where a value lay that it takes."""
        expression = kernel.call.expression
        if expression is None or not expression.is_call or self._is_wary:
            return False
        return self._device.xp is np and fits(kernel, value, self._specs)

    def _inlined(self, kernel: Kernel, inputs: tuple[str, ...], out: str | None) -> str:
        expression = kernel.call.expression
        assert expression is not None
        is_scalar = self._takes_scalars(kernel)
        if is_scalar:
            inputs = tuple(map(self._scalar, kernel.inputs, inputs))
        names = dict(zip(expression.parameters, inputs, strict=False))
        for name in expression.functions:
            names[name] = f"xp_{name}"
            self.scope[f"xp_{name}"] = getattr(self._device.xp, name)
        for name, value in kernel.attributes.items():
            names[name] = self._literal(kernel.index, name, value)
        if is_scalar:
            return expression.render_for_scalars(names)
        if out is not None:
            # In another order of elements the bits of what is computed from them might differ.
            return expression.render_into(names, f"{out} if {out}.flags.c_contiguous else None")
        large = self._kernel(kernel.function) if expression.has_steps else None
        return expression.render(names, large)

    def _takes_scalars(self, kernel: Kernel) -> bool:
        """Whether a kernel surely takes numbers without dimensions, as NumPy has them."""
        return all(map(self.is_number, kernel.inputs))

    def is_number(self, value: int) -> bool:
        """Whether a value surely is a number without dimensions, as NumPy has it."""
        if self._is_wary or self._device.xp is not np:
            return False
        dtype, shape = self._specs.of(value)
        return shape.rank == 0 and dtype.numpy.kind in "biuf"

    def _scalar(self, value: int, name: str) -> str:
        """How the code refers to a number without dimensions: a constant as NumPy's scalar."""
        known = self._known
        return self.shared("n", value, known[value][()]) if value in known else name

    def _kernel(self, function: Callable[..., Any]) -> str:
        """One global per kernel, however many calls."""
        return self.shared("k", id(function), function)

    def _literal(self, index: int, name: str, value: Any) -> str:
        if value is None or value is True or value is False or (type(value) is int and value >= 0):
            return repr(value)
        return self.shared("a", (index, name), value)
