"""What a run that uses old definitions is told: a warning, an error, or nothing.

A stale operation runs, on what it was built from; whoever runs it hears of it once in each
execution of a cell, with the cells to re-run. All functions here are pure but `check_stale`, which
warns.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from flowbook.graph.model.errors import (
    FailedPreconditionError,
    StaleDefinitionError,
    StaleDefinitionWarning,
)
from flowbook.graph.model.options import options
from flowbook.graph.model.origin import site as sites
from flowbook.graph.redefinition.stale_operations import (
    StaleOperations,
    root_of,
    sources,
    stale_among,
)
from flowbook.graph.redefinition.wording import (
    listed,
    named_or_counted,
    plain_name,
    rerun,
    what_became_of,
)

if TYPE_CHECKING:
    from flowbook.graph.building.graph import Graph
    from flowbook.graph.model.operation import Operation
    from flowbook.graph.model.tensor import Tensor

# What code that no cell runs has been told of, by graph; see `Author.warned`.
_outside_cells: weakref.WeakKeyDictionary[Graph, list[frozenset[str]]] = weakref.WeakKeyDictionary()


def stale_message(operations: Collection[Operation], fed: Collection[Tensor] = ()) -> str | None:
    """What to tell of a run that uses old definitions, or None if it does not; as `stale_among`."""
    return _message(stale_among(operations, fed), operations, fed)


def _message(
    stale: StaleOperations, operations: Collection[Operation], fed: Collection[Tensor]
) -> str | None:
    if stale:
        roots = dict.fromkeys(root for item in stale for root in item.roots)
        return (
            f"{rerun(stale.cells)}: this run uses "
            f"{named_or_counted(item.operation for item in stale)} built from "
            f"{what_became_of(roots)}"
        )
    taken = {source for operation in operations for source in sources(operation, fed)}
    given_up = [op for op in operations if op.retired and op not in taken]
    if given_up:
        cells = {operation.graph.members.retired_by(operation) for operation in given_up}
        is_gone = all(cell is not None and cell.is_deleted for cell in cells)
        other = "something else" if is_gone else "what the re-run cell built"
        return f"fetch {other}: this run uses {what_became_of(given_up)}"
    return None


def check_stale(operations: Collection[Operation], fed: Collection[Tensor] = ()) -> bool:
    """Warn, or fail, as `options.stale` says, if a run is stale.

    An execution of a cell hears of the same cells to re-run only once, whatever it runs; so does
    all code outside cells.

    Args:
        operations: what the run executes.
        fed: the tensors that it is fed.

    Returns:
        Whether the run is stale: then the next cell that runs the same is to hear of it too.

    Raises:
        StaleDefinitionError: if it is stale and `options.stale` is "error".
    """
    if options.stale == "ignore":
        return False
    for operation in operations:
        if not operation.graph.retirements:
            return False
        break
    stale = stale_among(operations, fed)
    message = _message(stale, operations, fed)
    if message is None:
        return False
    if options.stale == "error":
        raise StaleDefinitionError(message, hint="fb.options.stale = 'warn' lets it run")
    site = sites.capture()
    heard = site.author.warned if site.author is not None else _heard_outside_cells(operations)
    news = frozenset(stale.cells) or frozenset([message])
    if any(news <= told for told in heard):
        return True
    heard.append(news)
    # Explicitly, without a registry: Python would show it only the first time on each line. And
    # from "cell [7]": the file that the kernel makes up for a cell's source tells nobody anything.
    where = site.cell_label or site.filename
    warnings.warn_explicit(message, StaleDefinitionWarning, where, site.line)
    return True


def _heard_outside_cells(operations: Collection[Operation]) -> list[frozenset[str]]:
    graph = next(iter(operations)).graph
    return _outside_cells.setdefault(graph, [])


def check_feeds(
    fetches: Collection[Tensor], targets: Collection[Operation], feeds: Sequence[Tensor]
) -> None:
    """Refuse a feed that misses its aim because a cell redefined the tensor.

    That is: what a run needs takes the fed tensor only in another generation of its name.

    Args:
        fetches: the fetched tensors.
        targets: the operations that are run for their effects.
        feeds: the fed tensors.

    Raises:
        FailedPreconditionError: naming the cells to re-run, or what to feed.
    """
    if not feeds or not feeds[0].graph.retirements:
        return
    operations = _needed(fetches, targets, feeds)
    taken = {tensor for operation in operations for tensor in operation.inputs}.union(fetches)
    for tensor in feeds:
        name = plain_name(tensor.op)
        others = [t for t in taken if t.op is not tensor.op and plain_name(t.op) == name]
        if not others or tensor in taken:
            continue
        other = min(others, key=lambda t: t.op.id)
        users = [op.name for op in operations if other in op.inputs]
        if not other.op.retired:
            raise FailedPreconditionError(
                f"{tensor.name} is fed, {what_became_of([tensor.op])}, but this run takes the new "
                f"one in {listed(users)}",
                hint=f"feed {other.name!r}",
            )
        # Of a redefined variable, the read was redefined with it: who reads it is to be named.
        root = root_of(other.op)
        stale = StaleOperations(
            item for item in stale_among(operations, feeds) if root in item.roots
        )
        where = f", in {listed(item.operation.name for item in stale)}" if stale else ""
        raise FailedPreconditionError(
            f"{tensor.name} is fed, but this run goes back to {what_became_of([other.op])}{where}",
            hint=rerun(stale.cells) if stale else f"feed {other.name!r}",
        )


def _needed(
    fetches: Collection[Tensor], targets: Collection[Operation], feeds: Collection[Tensor]
) -> list[Operation]:
    """What a run executes: all ancestors, cut at the feeds, in the order of construction."""
    stack = [*targets, *[tensor.op for tensor in fetches if tensor not in feeds]]
    found = set(stack)
    while stack:
        for source in sources(stack.pop(), feeds):
            if source not in found:
                found.add(source)
                stack.append(source)
    return sorted(found, key=lambda operation: operation.id)
