"""What a step runs: kernels one by one, arrivals of late feeds.

Those that hold several units, segments and regions, are in modules of their own.

Every unit takes the values of the iteration that it runs in, and gives its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowbook.exec.devices.device import Device
from flowbook.exec.interruptions import is_interruption
from flowbook.exec.plan.failure import UnitFailure
from flowbook.exec.plan.program import PlanNode
from flowbook.graph.definition.async_context import AsyncContext
from flowbook.graph.definition.expression import Expression
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import resource, variant
from flowbook.graph.model.errors import InternalError, InvalidArgumentError
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.retag import DEAD, Retag
from flowbook.graph.model.touch import Access

_HARMLESS = (None, Access.READ, Access.DRAW)

# What is of another type than NumPy's arrays, and computes as they do.
_ALIKE = (np.memmap, np.generic)

# The values of one iteration, by number: a list, or a dict where a frame has few of them.
Values = Any


class Unit:
    """One unit of a step.

    Attributes:
        inputs: the values that it needs.
        outputs: the values that it gives.
        after: units, by number, that must end first, besides the producers of its inputs.
        behind: units that must have ended, or be dead, first; they keep nothing from running.
        is_async: whether it is started and reports later, instead of being run.
        is_external: whether it completes from outside only.
        fires_on_any: whether the first input that is alive is enough.
        retag: into which iteration its outputs go.
        sees_dead: whether it runs, and is not passed by, where an input is dead.
        enters: the frame that its outputs go into, if it enters one.
        is_constant: whether they are there in every iteration of that.
        gives_dead: whether it gives its first input on one of two sides, as its last one says.
        takes: whether it takes elements out of a queue.
        puts: whether it puts elements into a queue.
    """

    __slots__ = ("after", "behind", "inputs", "outputs")

    is_async = False
    is_external = False
    fires_on_any = False
    retag = Retag.NONE
    sees_dead = False
    enters = ""
    is_constant = False
    gives_dead = False
    takes = False
    puts = False

    def __init__(
        self, inputs: tuple[int, ...], outputs: tuple[int, ...], after: tuple[int, ...]
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.after = after
        self.behind: tuple[int, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether what needs it may have to wait for something outside the step's thread."""
        return self.is_async or self.is_external

    @property
    def within(self) -> Sequence[Unit]:
        """The units that it runs, where it is no kernel itself."""
        return ()

    @property
    def writes(self) -> bool:
        """Whether it writes variables."""
        return any(unit.writes for unit in self.within)

    @property
    def acts(self) -> bool:
        """Whether somebody can tell that it ran; what it drew can be put back."""
        return any(unit.acts for unit in self.within)

    def run(self, values: Values) -> Sequence[Any]:
        """Read the inputs, and give the outputs.

        Raises:
            UnitFailure: if it failed: which kernel, on what.
        """
        return ()

    def show(self, value: Any) -> Any:
        """A value of its device in host memory; what lies there is given as it is."""
        return value

    def put(self, values: Values) -> None:
        """Read the inputs, and put the outputs into their places."""
        for place, output in zip(self.outputs, self.run(values), strict=True):
            values[place] = output


class Handle(Unit):
    """Gives the handle of a resource, which is known before the step."""

    __slots__ = ("resource",)

    def __init__(self, node: PlanNode, resource: Any) -> None:
        super().__init__(*node[:3])
        self.resource = resource

    def run(self, values: Values) -> Sequence[Any]:
        """Give the resource."""
        return (self.resource,)


class LateFeed(Unit):
    """The arrival of a value that is fed after the step has begun."""

    __slots__ = ()

    is_external = True


class Call(NamedTuple):
    """How a kernel is called; what all nodes of one type share.

    Attributes:
        is_positional: whether attributes may follow the inputs without their names.
        expression: the expression that means the same, if there is one.
        is_single: whether it returns its one output as it is, instead of a tuple.
        is_users: whether it is a user's, and not Flowbook's own.
        blames_graph: whether a result of another shape is the fault of a feed, not of the kernel.
        blames_attributes: whether attributes say of which dtypes the outputs are, so that others,
            or more or fewer, are their fault.
        is_identity: whether its output is its input, where both are of one dtype.
    """

    is_positional: bool
    expression: Expression | None
    is_single: bool
    is_users: bool
    blames_graph: bool
    blames_attributes: bool
    is_identity: bool


class Kernel(Unit):
    """One kernel call.

    Attributes:
        index: the number of its node.
        node: what it computes.
        function: called as `function(xp, *leading, *inputs, **attributes)`.
        device: where it runs.
        xp: the device's array module.
        array_type: that of the device's arrays, if it tells that they are its own.
        leading: the resource that the operation owns, if it has one.
        attributes: those attributes that the function takes.
        call: how the function is called.
        is_single: see `Call`.
        dtype: NumPy's, of the one output.
        dims: its dimensions, as far as they are known.
    """

    __slots__ = (
        "array_type",
        "attributes",
        "call",
        "device",
        "dims",
        "dtype",
        "function",
        "index",
        "is_single",
        "leading",
        "node",
        "xp",
    )

    def __init__(
        self,
        index: int,
        node: PlanNode,
        function: Callable[..., Any],
        device: Device,
        leading: tuple[Any, ...],
        attributes: dict[str, Any],
        call: Call,
    ) -> None:
        self.inputs, self.outputs, self.after = node[:3]
        self.behind = node.behind
        self.index = index
        self.node = node
        self.function = function
        self.device = device
        self.xp = device.xp
        self.array_type = device.array_type
        self.is_single = call.is_single
        if call.is_single:
            self.dtype, self.dims = node.dtypes[0].numpy, node.shapes[0].dims
        self.leading = leading
        self.attributes = attributes
        self.call = call

    @property
    def writes(self) -> bool:
        """See `Unit`."""
        return op_keyed(self.node.type).access is Access.WRITE

    @property
    def acts(self) -> bool:
        """See `Unit`."""
        return self.call.is_users or op_keyed(self.node.type).access not in _HARMLESS

    def show(self, value: Any) -> Any:
        """See `Unit`."""
        return self.device.show(value) if self.device.check(value) else value

    def run(self, values: Values) -> Sequence[Any]:
        """Call the kernel, and hold what it gives against what the definition declares."""
        try:
            found = self._called(values)
            return (self.checked(found),) if self.is_single else self.checked_all(found)
        except Exception as error:
            if is_interruption(error):
                raise
            raise UnitFailure(self.index, [values[v] for v in self.inputs]) from error

    def _called(self, values: Values) -> Any:
        inputs = self.inputs
        if self.leading or self.attributes or len(inputs) > 2:
            given = [values[v] for v in inputs]
            return self.function(self.xp, *self.leading, *given, **self.attributes)
        # Most kernels, without a list.
        if len(inputs) == 2:
            return self.function(self.xp, values[inputs[0]], values[inputs[1]])
        if inputs:
            return self.function(self.xp, values[inputs[0]])
        return self.function(self.xp)

    def put(self, values: Values) -> None:
        """Call the kernel, and put what it gives into its places; as `run`, without a detour.

        Raises:
            Exception: what the kernel raised, as it is.
        """
        found = self._called(values)
        if self.is_single:
            values[self.outputs[0]] = self.checked(found)
            return
        for place, output in zip(self.outputs, self.checked_all(found), strict=True):
            values[place] = output

    def checked(self, found: Any) -> Any:
        """The one output, if it is what the definition declares."""
        if (
            type(found) is not self.array_type
            or found.dtype is not self.dtype
            or found.shape != self.dims
        ):
            self._check(0, found)
        return found

    def checked_all(self, found: Any) -> Sequence[Any]:
        """The outputs, if they are what the definition declares; None will do for none."""
        if found is None and not self.outputs:
            return ()
        if not isinstance(found, list | tuple) or len(found) != len(self.outputs):
            kind = InvalidArgumentError if self.call.blames_attributes else InternalError
            raise kind(
                f"its kernel gave {_described(found)} where a tuple of "
                f"{counted(len(self.outputs), 'output')} is wanted"
            )
        for port, output in enumerate(found):
            self._check(port, output)
        return found

    def check_value(self, value: int, found: Any) -> None:
        """Refuse what is not what the definition declares of one of the outputs, or not plain."""
        self._check(self.outputs.index(value), found)
        if type(found) is not self.array_type:
            self._check_type(found)

    def _check(self, port: int, output: Any) -> None:
        dtype, shape = self.node.dtypes[port], self.node.shapes[port]
        if dtype is resource or dtype is variant:
            return
        if not self.device.check(output):
            raise InternalError(
                f"its kernel gave {type(output).__name__} where an array of "
                f"{self.device.name} is wanted"
            )
        if self.call.is_users and type(output) is not self.array_type:
            self._check_type(output)
        if output.dtype != dtype.numpy:
            kind = InvalidArgumentError if self.call.blames_attributes else InternalError
            raise kind(f"its kernel gave {output.dtype} where its definition says {dtype.name}")
        if output.shape != shape.dims and not shape.is_compatible_with(output.shape):
            kind = InvalidArgumentError if self.call.blames_graph else InternalError
            raise kind(
                f"its result has the shape {list(output.shape)}, which was found to be "
                f"{shape} when the graph was built",
                hint="a feed replaced a constant that shapes were inferred from"
                if self.call.blames_graph
                else "its kernel and its infer do not agree",
            )

    def _check_type(self, output: Any) -> None:
        """Refuse an array of a type with which later operations would compute something else.

        A matrix always has two dimensions; what is masked some leave out, and others take.
        """
        kind = self.array_type
        if kind is not None and isinstance(output, kind) and not isinstance(output, _ALIKE):
            is_masked = hasattr(output, "filled")
            raise InternalError(
                f"its kernel gave {type(output).__name__} where a plain array is wanted, as later "
                "operations would compute something else",
                hint="array.filled(0) gives elements without values one"
                if is_masked
                else "np.asarray(array) is a plain one",
            )


def _described(found: Any) -> str:
    if isinstance(found, list | tuple):
        return f"a {type(found).__name__} of {len(found)}"
    return type(found).__name__


class AsyncKernel(Kernel):
    """A kernel that is given a context in place of `xp`, and reports to it."""

    __slots__ = ("puts", "takes")

    is_async = True

    def __init__(self, index: int, node: PlanNode, *how: Any) -> None:
        super().__init__(index, node, *how)
        touch = op_keyed(node.type).touches
        self.takes = touch is not None and touch.takes
        self.puts = touch is not None and touch.puts

    @property
    def asks(self) -> bool:
        """Whether it asks a resource for something, which may not come."""
        is_asking = op_keyed(self.node.type).access is Access.WAIT
        return is_asking and not self.call.is_users

    def start(self, values: Values, call: AsyncContext) -> None:
        """Begin, and report to `call`."""
        given = [values[v] for v in self.inputs]
        try:
            self.function(call, *self.leading, *given, **self.attributes)
        except Exception as error:
            if is_interruption(error):
                raise
            raise UnitFailure(self.index, given) from error


class Router(Kernel):
    """A kernel that says where values go: into which iteration, or that there is none.

    Attributes:
        fires_on_any, retag, sees_dead, enters, is_constant, gives_dead: see `Unit`.
    """

    __slots__ = ("enters", "fires_on_any", "gives_dead", "is_constant", "retag", "sees_dead")

    def run(self, values: Values) -> Sequence[Any]:
        """Call the kernel; an input that has not come is `DEAD`, and so may outputs be."""
        given = [DEAD if values[v] is None else values[v] for v in self.inputs]
        try:
            found = self.function(self.xp, *self.leading, *given, **self.attributes)
            outputs = (found,) if self.is_single else found
            if not isinstance(outputs, list | tuple) or len(outputs) != len(self.outputs):
                return self.checked_all(outputs)
            for port, output in enumerate(outputs):
                if output is not DEAD:
                    self._check(port, output)
            return outputs
        except Exception as error:
            if is_interruption(error):
                raise
            raise UnitFailure(self.index, given) from error
