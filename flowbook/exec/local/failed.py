"""The error of a step that failed: what a person is told of it, by whoever has the graph."""

from __future__ import annotations

from flowbook.exec.plan.failure import Failure
from flowbook.exec.plan.pipeline import Prepared
from flowbook.graph.model.errors import OpError
from flowbook.graph.model.operation import Operation
from flowbook.graph.redefinition.stale_runs import stale_message
from flowbook.graph.redefinition.wording import plain_name


def located(failure: Failure, prepared: Prepared) -> OpError:
    """The error of a failed step, which names the operation, its line and what it was given."""
    error = failure.error
    if failure.node < 0 or error.is_of_step:
        return error
    part = prepared.program.parts[failure.part]
    node = part.nodes[failure.node]
    if not node.sources:
        return error
    operation = prepared.sources[node.sources[0]]
    given = [summary.text if summary is not None else None for summary in failure.inputs]
    error.about(operation, given)
    if operation.retired:
        _tell_what_is_new(error, operation, prepared)
    fed = set(range(len(part.feeds) - prepared.program.is_parted))
    for tensor, value, summary in zip(operation.inputs, node.inputs, failure.inputs, strict=False):
        if summary is not None and summary.note:
            was_fed = ", as it was fed" if value in fed else ""
            error.details.append(f"{tensor.name}{was_fed}: {summary.note}")
    if failure.loops:
        error.details.append(failure.where)
    error.details += failure.details
    return error


def _tell_what_is_new(error: OpError, retired: Operation, prepared: Prepared) -> None:
    """Say where what failed has been redefined, and what the run was built from."""
    graph, name = retired.graph, plain_name(retired)
    if graph.has_operation(name):
        error.details.append(f"redefined at {graph.get_operation_by_name(name).site}")
    error.hint = stale_message(prepared.operations, prepared.signature.feeds) or error.hint
