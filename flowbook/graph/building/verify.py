"""Whether a graph, or what a pass made of it, keeps the rules that everything else relies on.

Tests run `check` between passes. It changes nothing, and takes about as long as building.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowbook.graph.building.graph import Graph
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.errors import InternalError, NotFoundError, OpError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor


def check(what: Graph | Iterable[Operation]) -> None:
    """Check a graph with all that it refers to, or just the given operations.

    Raises:
        InternalError: if a rule is broken; it shows the operation among its neighbours.

    >>> import flowbook as fb
    >>> check(fb.constant(1.0).graph)
    """
    graph = what if isinstance(what, Graph) else None
    operations = what.operations if isinstance(what, Graph) else list(what)
    listed, names = set(operations), dict[str, Operation]()
    for operation in operations:
        try:
            other = names.setdefault(operation.name, operation)
            _require(other is operation, f"operation {other.id} has this name too")
            _check_operation(operation)
            if graph is not None:
                _check_registered(graph, operation)
        except OpError as error:
            raise _located(error.message, operation, operations) from None
        if graph is not None:  # Retired operations too, found from what was checked already.
            found = [other for other in _references(operation) if other not in listed]
            listed.update(found)
            operations += found


def _references(operation: Operation) -> Iterable[Operation]:
    inputs = [tensor.op for tensor in (*operation.inputs, *operation.settled_by)]
    loop = [other for other in (operation.closes, operation.closed_by) if other is not None]
    return dict.fromkeys([*inputs, *operation.control_inputs, *operation.colocation, *loop])


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InternalError(otherwise)


def _check_operation(operation: Operation) -> None:
    _require(operation.id >= 0 and bool(operation.name), "it has not joined its graph")
    DeviceSpec.parse(operation.device)
    for i, tensor in enumerate(operation.inputs):
        _require(isinstance(tensor, Tensor), f"input {i} is {tensor!r}, not a tensor")
        _check_earlier(operation, tensor.op, f"input {i}, {tensor.name},")
        outputs = tensor.op.outputs
        _require(
            tensor.index < len(outputs) and outputs[tensor.index] is tensor,
            f"input {i}, {tensor.name}, is not among the {len(outputs)} outputs of its operation",
        )
    for tensor in operation.settled_by:
        _check_earlier(operation, tensor.op, f"{tensor.name}, which an attribute was read from,")
    for other in operation.control_inputs:
        _require(isinstance(other, Operation), f"control input {other!r} is not an operation")
        _check_earlier(operation, other, f"control input {other.name!r}")
    for other in operation.colocation:
        _require(isinstance(other, Operation), f"it is colocated with {other!r}, no operation")
        _check_earlier(operation, other, f"{other.name!r}, which it is colocated with,")
    if operation.closes is not None:
        _check_earlier(operation, operation.closes, "the Merge that it closes")
    _check_outputs(operation)


def _check_earlier(operation: Operation, other: Operation, what: str) -> None:
    _require(other.graph is operation.graph, f"{what} is in another graph")
    _require(
        0 <= other.id < operation.id,
        f"{what} is operation {other.id}, which does not come before operation {operation.id}",
    )


def _check_outputs(operation: Operation) -> None:
    """Attributes are complete, and inference agrees with the outputs."""
    op_def, attributes = operation.op_def, operation.attributes
    _require(
        attributes.keys() == op_def.attributes.keys(),
        f"it has the attributes {', '.join(attributes) or 'none'}, "
        f"but its type {', '.join(op_def.attributes) or 'none'}",
    )
    found, shapes = op_def.infer_outputs(operation.graph, operation.inputs, attributes)
    outputs, known = operation.outputs, operation.graph.known_shapes
    _require(
        len(outputs) == len(found),
        f"it has {len(outputs)} outputs, but its type gives it {len(found)}",
    )
    for i, output in enumerate(outputs):
        _require(output.op is operation and output.index == i, f"output {i} is {output!r}")
        _require(
            output.dtype is found[i]
            and operation.shapes[i].admits(shapes[i])
            and output.shape == known.shape_of(output),
            f"output {i} is {output.dtype.name} {output.shape}, "
            f"but inference gives {found[i].name} {shapes[i]}",
        )


def _check_registered(graph: Graph, operation: Operation) -> None:
    """The graph finds the operation by its name, unless it is retired."""
    try:
        found = graph.get_operation_by_name(operation.name)
    except NotFoundError:
        found = None
    if operation.retired:
        _require(found is None, "it is retired, but in the graph")
    else:
        _require(found is operation, "its graph does not have it by this name")


def _located(message: str, operation: Operation, all_of_them: Iterable[Operation]) -> InternalError:
    """The error, with the operation, its inputs and its consumers, one line each."""
    before: dict[Operation, None] = dict.fromkeys(
        tensor.op for tensor in operation.inputs if isinstance(tensor, Tensor)
    )
    before.update(dict.fromkeys(operation.control_inputs))
    after = [
        other
        for other in all_of_them
        if operation in other.control_inputs
        or any(isinstance(t, Tensor) and t.op is operation for t in other.inputs)
    ]
    error = InternalError(f"{operation.type} {operation.name!r}: {message}")
    error.operation = operation
    error.details += [
        f"defined at {operation.site}",
        *(f"  {describe(other)}" for other in before),
        f"> {describe(operation)}",
        *(f"  {describe(other)}" for other in after),
    ]
    return error


def describe(operation: Any) -> str:
    """An operation in one line, such as `Mul:0 float32 [2] = Mul(x:0, Mul/y:0)`.

    >>> import flowbook as fb
    >>> describe(fb.placeholder(fb.float32, [2], name="x").op)
    'x:0 float32 [2] = Placeholder()'
    """
    if not isinstance(operation, Operation):
        return repr(operation)
    outputs = [f"{t.name} {t.dtype.name} {t.shape}" for t in operation.outputs]
    inputs = [t.name if isinstance(t, Tensor) else repr(t) for t in operation.inputs]
    inputs += [f"^{getattr(other, 'name', other)}" for other in operation.control_inputs]
    return f"{', '.join(outputs) or operation.name} = {operation.type}({', '.join(inputs)})"
