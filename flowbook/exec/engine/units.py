"""What a step runs: kernels one by one, arrivals of late feeds; regions are in `regions.py`.

Every unit takes the list of values, reads its inputs there and leaves its outputs there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.expression import Expression
from flowbook.graph.definition.op_def import AsyncContext
from flowbook.graph.model.errors import InternalError, InvalidArgumentError
from flowbook.graph.model.operation import Operation


class Unit:
    """One unit of a step.

    Attributes:
        inputs: the values that it needs.
        outputs: the values that it gives.
        after: units, by index, that must end first, besides the producers of its inputs.
        is_async: whether it is started and reports later, instead of being run.
        is_external: whether it completes from outside only.
    """

    __slots__ = ("after", "inputs", "outputs")

    is_async = False
    is_external = False

    def __init__(
        self, inputs: tuple[int, ...], outputs: tuple[int, ...], after: tuple[int, ...]
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.after = after

    @property
    def waits(self) -> bool:
        """Whether what needs it may have to wait for something outside the step's thread."""
        return self.is_async or self.is_external

    def run(self, values: list[Any]) -> None:
        """Read the inputs, leave the outputs."""


class Handle(Unit):
    """Gives the handle of a resource, which is known before the step."""

    __slots__ = ()


class LateFeed(Unit):
    """The arrival of a value that is fed after the step has begun."""

    __slots__ = ()

    is_external = True


class Kernel(Unit):
    """One kernel call.

    Attributes:
        operation: where it came from.
        function: called as `function(xp, *leading, *inputs, **attributes)`.
        xp: the device's array module.
        leading: the resource that the operation owns, if it has one.
        attributes: those attributes that the function takes.
        is_positional: whether they may follow the inputs without their names.
        expression: the expression that means the same, if there is one.
        is_users: whether it is a user's, and not Flowbook's own.
        is_single: whether it returns its one output as it is, instead of a tuple.
    """

    __slots__ = (
        "attributes",
        "expression",
        "function",
        "is_positional",
        "is_single",
        "is_users",
        "leading",
        "operation",
        "xp",
    )

    def __init__(
        self,
        links: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
        operation: Operation,
        function: Callable[..., Any],
        xp: Any,
        leading: tuple[Any, ...],
        attributes: dict[str, Any],
        is_positional: bool,
        expression: Expression | None,
        is_single: bool,
        is_users: bool,
    ) -> None:
        self.inputs, self.outputs, self.after = links
        self.operation = operation
        self.function = function
        self.xp = xp
        self.leading = leading
        self.attributes = attributes
        self.is_positional = is_positional
        self.expression = expression
        self.is_single = is_single
        self.is_users = is_users

    def run(self, values: list[Any]) -> None:
        """Call the kernel, and hold what it gives against what the definition declares."""
        found = self.function(
            self.xp, *self.leading, *[values[v] for v in self.inputs], **self.attributes
        )
        if self.is_single:
            values[self.outputs[0]] = self.checked(found)
            return
        for place, output in zip(self.outputs, self.checked_all(found), strict=True):
            values[place] = output

    def checked(self, found: Any) -> Any:
        """The one output, if it is what the definition declares."""
        tensor = self.operation.outputs[0]
        if (
            getattr(found, "dtype", None) is not tensor.dtype.numpy
            or found.shape != tensor.shape.dims
        ):
            self._check(0, found)
        return found

    def checked_all(self, found: Any) -> Sequence[Any]:
        """The outputs, if they are what the definition declares; None will do for none."""
        if found is None and not self.outputs:
            return ()
        if not isinstance(found, list | tuple) or len(found) != len(self.outputs):
            raise InternalError(
                f"its kernel gave {_described(found)} where a tuple of {len(self.outputs)} "
                "outputs is wanted"
            )
        for port, output in enumerate(found):
            self._check(port, output)
        return found

    def check_value(self, value: int, found: Any) -> None:
        """Refuse what is not what the definition declares of one of the outputs."""
        self._check(self.outputs.index(value), found)

    def _check(self, port: int, output: Any) -> None:
        tensor = self.operation.outputs[port]
        if not isinstance(output, np.ndarray | np.generic):
            raise InternalError(f"its kernel gave {type(output).__name__} where an array is wanted")
        if output.dtype != tensor.dtype.numpy:
            raise InternalError(
                f"its kernel gave {output.dtype} where its definition says {tensor.dtype.name}"
            )
        if not tensor.shape.is_compatible_with(output.shape):
            kind = InvalidArgumentError if self.operation.op_def.is_builtin else InternalError
            raise kind(
                f"its result has the shape {list(output.shape)}, which was found to be "
                f"{tensor.shape} when the graph was built",
                hint="a feed replaced a constant that shapes were inferred from"
                if kind is InvalidArgumentError
                else "its kernel and its infer do not agree",
            )


def _described(found: Any) -> str:
    if isinstance(found, list | tuple):
        return f"a {type(found).__name__} of {len(found)}"
    return type(found).__name__


class AsyncKernel(Kernel):
    """A kernel that is given a context in place of `xp`, and reports to it."""

    __slots__ = ()

    is_async = True

    def start(self, values: list[Any], call: AsyncContext) -> None:
        """Begin, and report to `call`."""
        self.function(call, *self.leading, *[values[v] for v in self.inputs], **self.attributes)
