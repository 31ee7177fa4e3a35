"""Updates: changes of state that belong to a loss, though nothing of the loss needs them.

Batch normalisation moves its averages when the network is trained. Which operations do so is
computed from the live operations: whoever builds one marks it, and it belongs to the
losses that are computed from what it is computed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flowbook.graph.model.ancestors import closing, taken_by
from flowbook.graph.model.mark import Mark
from flowbook.graph.model.operation import Operation


def updates_among(
    operations: Iterable[Operation], of: Iterable[Operation] | None
) -> list[Operation]:
    """The live operations that are marked as updates, and are to be run by somebody.

    What is in a loop or a branch runs with that, whether or not somebody asks for it.

    Args:
        operations: where the marks are.
        of: only those that share an ancestor with one of these, other than reads of variables and
            constants; None gives all.

    Returns:
        Each once, in the order of their construction.
    """
    marked = [op.control_inputs[-1] for op in operations if op.op_def.marks is Mark.UPDATE]
    asked = {op for op in marked if not op.retired and op.context is None}
    live = sorted(asked, key=lambda op: op.id)
    if of is None or not live:
        return live
    shared = set(_ancestors(of, set()))
    found, unshared = [], set[Operation]()
    for operation in live:
        seen = set(unshared)
        if any(ancestor in shared for ancestor in _ancestors(_sources(operation), seen)):
            found.append(operation)
        else:
            unshared = seen
    return found


def _sources(operation: Operation) -> list[Operation]:
    """What an operation comes from: its inputs; of one without, as a group, what it waits for.

    What others wait for is often everything around them, and says nothing about their data. A
    loop's variable comes also from what it was in the iteration before.
    """
    found = [tensor.op for tensor in taken_by(operation)] or list(operation.control_inputs)
    return [*found, *closing(operation)]


def _ancestors(operations: Iterable[Operation], seen: set[Operation]) -> Iterator[Operation]:
    """Operations and what they come from, without what says nothing about data.

    Everybody reads variables and makes constants: to share one of them connects nothing. What a
    read waits for is left out too: it is the business of whoever writes the variable.

    Args:
        operations: where to begin.
        seen: what to leave out with all that it comes from; what is passed is added to it.
    """
    stack = list(operations)
    while stack:
        operation = stack.pop()
        if operation in seen:
            continue
        seen.add(operation)
        definition = operation.op_def
        if definition.reads_as is not None:
            stack.extend([tensor.op for tensor in operation.inputs])
        elif not definition.is_handle and not definition.is_constant:
            yield operation
            stack.extend(_sources(operation))
