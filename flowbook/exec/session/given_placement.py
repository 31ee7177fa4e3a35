"""What a placement means that somebody gives: which operation is to run on which device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flowbook.exec.plan.explanation import Explanation
from flowbook.exec.signature.fetches import flatten
from flowbook.exec.signature.signature import Signature
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.ancestors import ancestors
from flowbook.graph.model.context import runs_in
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.ops.state.variables import Variable


def moves_of(
    graph: Graph, devices: Sequence[str], placement: Explanation | Mapping[Any, str | None]
) -> tuple[dict[Operation, str | None], Signature]:
    """For operations the device that a placement gives them, by its full name; and what runs them.

    Args:
        graph: the session's.
        devices: those that it has, by their full names.
        placement: as `Session.replace` takes it.

    Raises:
        InvalidTypeError: if it is no placement.
        InvalidArgumentError: if it is of another graph, or names a device that is not there.
        FailedPreconditionError: if the graph has lost some of it.
    """
    if isinstance(placement, Explanation):
        return _of_plan(graph, devices, placement), placement.asked
    if not isinstance(placement, Mapping):
        raise InvalidTypeError(
            f"a placement is a plan that sess.explain gives, or a dict of devices, not "
            f"{placement!r:.80}",
            hint="sess.explain(...).better is None where nothing better is known"
            if placement is None
            else None,
        )
    moves = {_operation(graph, key): _device(devices, name) for key, name in placement.items()}
    return moves, _running(moves)


def _running(operations: Iterable[Operation]) -> Signature:
    """A step that runs operations, but those in branches and loops, which are no targets."""
    targets = tuple([each for each in operations if runs_in(each) is None])
    needed = set().union(*[ancestors(each, by_control=True) for each in targets])
    fed = [each.outputs[0] for each in needed if each.op_def.must_be_fed]
    return Signature((), targets, tuple(sorted(fed, key=lambda tensor: tensor.op.id)))


def _of_plan(
    graph: Graph, devices: Sequence[str], plan: Explanation
) -> dict[Operation, str | None]:
    if plan.graph is not None and plan.graph is not graph:
        raise InvalidArgumentError("the plan is one of another graph than the session's")
    others = sorted({each.device for each in plan.operations.values()}.difference(devices))
    if others:
        raise InvalidArgumentError(
            f"the plan is one for devices that this session does not have: {', '.join(others)}",
            hint="fb.Session(devices=[...]) has others; sess.explain without devices= is for those "
            "that it has",
        )
    gone = next((operation for operation in plan.operations if operation.retired), None)
    if gone is not None:
        raise FailedPreconditionError(
            "it was redefined after the plan was made", gone, hint="sess.explain(...) again"
        )
    return {operation: planned.device for operation, planned in plan.operations.items()}


def _operation(graph: Graph, key: Any) -> Operation:
    if isinstance(key, Variable):
        return key.op
    flat = flatten(graph, [key])
    found = [*[tensor.op for tensor in flat.tensors], *flat.targets]
    if len(found) != 1:
        raise InvalidTypeError(f"a tensor, operation or variable is put somewhere, not {key!r:.80}")
    return found[0]


def _device(devices: Sequence[str], name: Any) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str):
        raise InvalidTypeError(f"a device is named by a string, not {name!r:.80}")
    request = DeviceSpec.parse(name)
    for each in devices:
        if request.admits(DeviceSpec.parse(each)):
            return each
    raise InvalidArgumentError(
        f"this session has no device {name!r}", hint=f"it has {', '.join(devices)}"
    )
