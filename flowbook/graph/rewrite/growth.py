"""Whether what a run needs is all that an earlier run needed, and a little more.

Someone at a notebook adds a few operations to what has run, and looks at their values. What is new
is then prepared alone, at the end of what is there (`Subgraph.extended`). It may not change what
comes before it. Here it is asked what the structure alone tells; what reads and writes, and what
asks for a device, is looked at by the passes that know their rules, which raise `CannotFollow`.
What the passes have folded or joined away is as new as what nobody had asked for.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Access
from flowbook.graph.rewrite.subgraph import Subgraph


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
    stack = [*targets, *_makers(fetches, fed)]
    while stack:
        operation = stack.pop()
        if operation in met:
            continue
        met.add(operation)
        if operation in base:
            continue
        # More than there is already is not a little more.
        if new == len(base.operations) or not _may_follow(operation):
            return False
        new += 1
        stack += _makers(operation.inputs, fed)
        stack += operation.control_inputs
    return met.issuperset(ran) and met.issuperset(_makers(fetched, fed))


def _makers(tensors: Sequence[Tensor], fed: Container[Tensor]) -> Iterator[Operation]:
    """What makes those tensors that are not fed; of a call's, what it stands for."""
    for tensor in tensors:
        while tensor not in fed and tensor.op.op_def.stands_for is not None:
            tensor = tensor.op.op_def.stands_for(tensor.op).results[tensor.index]
        if tensor not in fed:
            yield tensor.op


def _may_follow(operation: Operation) -> bool:
    """Whether an operation can be added at the end, as far as it alone tells."""
    op_def = operation.op_def
    return not (
        op_def.must_be_fed
        or op_def.is_async
        or op_def.is_router
        or operation.context is not None
        or op_def.access in (Access.WAIT, Access.STEP)
    )
