"""Whether what a run needs is all that an earlier run needed, and a little more.

Someone at a notebook adds a few operations to what has run, and looks at their values. What is new
is then prepared alone, at the end of what is there (`Subgraph.extended`). It may not change what
comes before it: so it is pure, or draws, or reads what the earlier run does not write, or else what
that reads in the same way. It may write what the earlier run does not touch at all, and is read
before, if at all. What the passes have folded or joined away is as new as what nobody had asked
for.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey, key_touched, touched_by
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Access
from flowbook.graph.rewrite.cse import is_there
from flowbook.graph.rewrite.subgraph import Node, Subgraph


def grows(
    base: Subgraph,
    fetched: Sequence[Tensor],
    ran: Sequence[Operation],
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
) -> bool:
    """Whether a subgraph, through which all passes have gone, grows into another with its feeds.

    Args:
        base: the subgraph, of which a plan was made.
        fetched, ran: what it was asked for: its fetches, and the operations that it was to run.
        fetches, targets: what is asked for now.
    """
    fed = set(base.feeds)
    met: set[Operation] = set()
    new = 0
    reads: dict[ResourceKey, int] = {}
    writes: dict[ResourceKey, int] = {}
    stack = [*targets, *_makers(fetches, fed)]
    while stack:
        operation = stack.pop()
        if operation in met:
            continue
        met.add(operation)
        if operation in base:
            continue
        # More than there is already is not a little more.
        if new == len(base.operations) or not _may_follow(base, operation):
            return False
        new += 1
        if not operation.op_def.is_pure:
            _note_touch(operation, reads, writes)
        stack += _makers(operation.inputs, fed)
        stack += operation.control_inputs
    if not (met.issuperset(ran) and met.issuperset(_makers(fetched, fed))):
        return False
    # A read that was built after a write would have to go before it.
    return not any(reads.get(key, 0) > first for key, first in writes.items())


def _makers(tensors: Sequence[Tensor], fed: Container[Tensor]) -> Iterator[Operation]:
    """What makes those tensors that are not fed; of a call's, what it stands for."""
    for tensor in tensors:
        while tensor not in fed and tensor.op.op_def.stands_for is not None:
            tensor = tensor.op.op_def.stands_for(tensor.op).results[tensor.index]
        if tensor not in fed:
            yield tensor.op


def _note_touch(
    operation: Operation, reads: dict[ResourceKey, int], writes: dict[ResourceKey, int]
) -> None:
    """Note the last read, and the first write, of what an operation touches."""
    key, number = key_touched(operation), operation.id
    if key is not None and operation.op_def.access is Access.WRITE:
        writes[key] = min(number, writes.get(key, number))
    elif key is not None:
        reads[key] = max(number, reads.get(key, number))


def _may_follow(base: Subgraph, operation: Operation) -> bool:
    """Whether an operation can be added at the end without a change to what comes before it."""
    op_def = operation.op_def
    if (
        op_def.must_be_fed
        or op_def.is_async
        or op_def.is_router
        or operation.context is not None
        or operation.settled_by
    ):
        return False
    if op_def.is_pure or op_def.is_handle or op_def.access is Access.DRAW:
        return True
    owner = touched_by(operation)
    if op_def.access is Access.WRITE and owner is not None:
        return owner.key not in base.touched and owner.outputs[0] not in base.feeds
    if op_def.access is not Access.READ:
        return False
    return key_touched(operation) not in base.written or _is_read(base, operation)


def _is_read(base: Subgraph, operation: Operation) -> bool:
    """Whether what is there reads the same, so that this reads the same state."""
    if operation.control_inputs or any(t not in base.values for t in operation.inputs):
        return False
    inputs = tuple([base.value_of(t) for t in operation.inputs])
    return is_there(base, Node(operation, operation.op_def, operation.attributes, inputs, (), ()))
