"""Building a function's body: what it is given, and what it takes from outside by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from flowbook.graph.building.graph import Graph
from flowbook.graph.building.names import name_from
from flowbook.graph.building.scopes import control_dependencies, within
from flowbook.graph.building.surroundings import Scope
from flowbook.graph.control_flow.flows import ACTING, Inside
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.functions.definition import Definition, definition_of, is_parameter
from flowbook.graph.model.context import Frame, is_everywhere
from flowbook.graph.model.dtypes import MOVABLE, DType
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.registry import own_definitions
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.shape import SCALAR, UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity

with own_definitions():
    parameter_op = OpDef(
        "Parameter",
        "-> value: dtype",
        attributes={
            "dtype": REQUIRED,
            "shape": UNKNOWN,
            "label": REQUIRED,
            "frame_name": REQUIRED,
            "parallel_iterations": 1,
        },
        infer=lambda dtype, shape, **_: shape,
        retag=Retag.PUSH,
        only_moves=True,
    )
    function_op = OpDef(
        "Function",
        "values: *Tin -> function: variant",
        attributes={"Tin": REQUIRED, "results": REQUIRED, "label": REQUIRED},
        infer=lambda values, **_: SCALAR,
        retag=Retag.POP,
        only_moves=True,
    )


class Argument(NamedTuple):
    """What a function is given."""

    label: str
    dtype: DType
    shape: Shape


def add_told(
    graph: Graph,
    op_def: OpDef[Any],
    inputs: Sequence[Tensor],
    attributes: Mapping[str, Any],
    told_by: Tensor | None,
    name: str,
) -> Operation:
    """Build an operation that is what it is because of a tensor which it does not take."""
    site = graph.scope.site or sites.capture()
    complete = op_def.complete(attributes)
    inferred = op_def.infer_outputs(graph, inputs, complete)
    operation = Operation(graph, op_def, tuple(inputs), complete, *inferred, site)
    operation.settled_by = () if told_by is None else (told_by,)
    return graph.add(operation, name)


class BodyInside(Inside):
    """The inside of a function's body while it is built.

    Attributes:
        parameters: the operations that give what calls are given.
        summaries: those that summarise, which no result depends on.
    """

    def __init__(self, graph: Graph, frame: Frame) -> None:
        start = _parameter(graph, frame, Argument("", bool_, SCALAR)).op
        super().__init__(graph, frame, start)
        self._frame = frame
        self.parameters = [start]
        self.summaries: list[Operation] = []

    def joined(self, operation: Operation) -> None:
        """Note what has joined the graph inside."""
        super().joined(operation)
        if operation.op_def.summary:
            self.summaries.append(operation)

    def argument(self, argument: Argument) -> Tensor:
        """A tensor that each call gives."""
        return self._noted(_parameter(self._graph, self._frame, argument))

    def _taken_in(self, tensor: Tensor) -> Tensor:
        with self.outside():
            argument = Argument("captured", tensor.dtype, tensor.shape)
            return self._noted(_parameter(self._graph, self._frame, argument, tensor))

    def _noted(self, parameter: Tensor) -> Tensor:
        self.parameters.append(parameter.op)
        return parameter


def _parameter(
    graph: Graph, frame: Frame, argument: Argument, stands_for: Tensor | None = None
) -> Tensor:
    attributes = {**argument._asdict(), "frame_name": frame.name}
    name = re.sub(r"[^\w.]+", "_", argument.label).strip("_") or "start"
    return add_told(graph, parameter_op, (), attributes, stands_for, name).outputs[0]


def built(
    graph: Graph,
    name: str,
    arguments: Sequence[Argument],
    body: Callable[[list[Tensor]], Sequence[Any]],
) -> Definition:
    """Build a function's body, outside of all loops, branches and scopes.

    Args:
        graph: where.
        name: the function's name, which its name scope is made from.
        arguments: what calls give.
        body: called with a tensor for each of these, gives the results: tensors, and operations,
            in whose place is a bool that waits for them.
    """
    with within(graph, lambda scope: Scope()):
        plain = name_from(name)
        prefix = graph.enter_name(f"functions/{plain}")
        frame = Frame(prefix.rstrip("/"), None, is_function=True)
        graph.members.loops.open(frame)
        try:
            with within(graph, lambda scope: scope._replace(prefix=prefix)):
                return _built(graph, name, frame, arguments, body)
        except BaseException:
            graph.members.loops.abandon(frame)
            raise


def _built(
    graph: Graph,
    name: str,
    frame: Frame,
    arguments: Sequence[Argument],
    body: Callable[[list[Tensor]], Sequence[Any]],
) -> Definition:
    inside = BodyInside(graph, frame)
    given = [inside.argument(argument) for argument in arguments]
    with inside.entered():
        found = [_held(inside.captured(_result(leaf))) for leaf in body(given)]
        if inside.acting:
            with control_dependencies(inside.acting):
                found = [identity(tensor) for tensor in found]
    happened = [
        tensor
        for op in inside.acting
        for tensor in op.outputs
        if op.op_def.access in ACTING and op.context is frame and tensor.dtype in MOVABLE
    ]
    values = [*found, *happened]
    waited = [*inside.parameters, *inside.stateful, *inside.summaries]
    with within(graph, lambda scope: scope._replace(control_inputs=tuple(dict.fromkeys(waited)))):
        function = function_op(
            values,
            Tin=tuple([t.dtype for t in values]),
            results=len(found),
            label=name,
            name=f"{frame.name}/",
        ).op
    before = graph.members.loops.complete(frame)
    return definition_of(before.get(function, function))


def _held(tensor: Tensor) -> Tensor:
    """A tensor that a call has a value of where it runs, whatever it is given, and from where."""
    if tensor.dtype in MOVABLE and (is_everywhere(tensor.op) or is_parameter(tensor.op)):
        return identity(tensor)
    return tensor


def _result(leaf: Any) -> Tensor:
    if isinstance(leaf, Operation):
        with control_dependencies([leaf]):
            return convert_to_tensor(True)
    return convert_to_tensor(leaf)
