"""Stale operations: those built from something that a notebook cell has redefined since (DESIGN 8).

A stale operation runs, on what it was built from; whoever runs it hears of it once, with the cells
to re-run. All functions here are pure but `check_stale`, which warns. They rely on ids: an
operation's inputs have smaller ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flowbook.graph import site as sites
from flowbook.graph.errors import (
    FailedPreconditionError,
    StaleDefinitionError,
    StaleDefinitionWarning,
)
from flowbook.graph.options import options

if TYPE_CHECKING:
    from flowbook.graph.operation import Operation
    from flowbook.graph.tensor import Tensor

_MANY = 3  # Lists of names in a message are cut after so many.


@dataclass(frozen=True)
class Stale:
    """An operation that refers, directly or not, to an old definition.

    Attributes:
        operation: the operation.
        roots: the redefined operations that it, or what it was built from, takes; for the read
            of a variable the variable's own.
        cells: the cells to re-run, in this order, for it to be built from what is there now.
    """

    operation: Operation
    roots: tuple[Operation, ...]
    cells: tuple[str, ...]

    @property
    def reason(self) -> str:
        """What it was built from, and what became of that."""
        told = "; ".join(_what_became_of(root) for root in self.roots[:_MANY])
        return f"it was built from {told}{_and_more(len(self.roots) - _MANY)}"

    def __str__(self) -> str:
        return (
            f"{self.operation.name!r} ({self.operation.site.place}): {self.reason}; "
            f"re-run {', then '.join(self.cells)}"
        )


def stale_among(operations: Iterable[Operation], fed: Collection[Tensor] = ()) -> list[Stale]:
    """The stale operations among those given, in the order of construction.

    Args:
        operations: what a run executes, or all of a graph. Retired ones may be among them; what
            they were built from counts only as far as it is among them too.
        fed: tensors whose value is fed, so that it does not matter what they were built from.
    """
    roots: dict[Operation, dict[Operation, None]] = {}
    cells: dict[Operation, dict[str, None]] = {}
    found = []
    for operation in sorted(operations, key=lambda op: op.id):
        own_roots: dict[Operation, None] = {}
        own_cells: dict[str, None] = {}
        for source in _sources(operation, fed):
            if source.retired:
                own_roots[_root(source)] = None
            else:
                own_roots.update(roots.get(source, {}))
            own_cells.update(cells.get(source, {}))
        if not own_roots:
            continue
        if not operation.retired:
            own_cells[_cell_of(operation)] = None
            found.append(Stale(operation, tuple(own_roots), tuple(own_cells)))
        roots[operation], cells[operation] = own_roots, own_cells
    return found


def stale_message(operations: Collection[Operation], fed: Collection[Tensor] = ()) -> str | None:
    """What to tell of a run that uses old definitions, or None if it does not; as `stale_among`."""
    stale = stale_among(operations, fed)
    if stale:
        roots = dict.fromkeys(root for item in stale for root in item.roots)
        cells = dict.fromkeys(cell for item in stale for cell in item.cells)
        return (
            f"this run uses {_listed(_names(item.operation for item in stale))}, built from "
            f"{'; '.join(_what_became_of(root) for root in list(roots)[:_MANY])}"
            f"{_and_more(len(roots) - _MANY)}: re-run {', then '.join(cells)}"
        )
    taken = {source for operation in operations for source in _sources(operation, fed)}
    given_up = [op for op in operations if op.retired and op not in taken]
    if given_up:
        return (
            f"this run uses {'; '.join(_what_became_of(op) for op in given_up[:_MANY])}"
            f"{_and_more(len(given_up) - _MANY)}: fetch what the re-run cell built instead"
        )
    return None


def check_stale(operations: Collection[Operation], fed: Collection[Tensor] = ()) -> None:
    """Warn once, or fail, as `options.stale` says, if a run about to be prepared is stale.

    Args:
        operations: what the run executes.
        fed: the tensors that it is fed.

    Raises:
        StaleDefinitionError: if it is stale and `options.stale` is "error".
    """
    if options.stale == "ignore":
        return
    for operation in operations:
        if not operation.graph.retirements:
            return
        break
    message = stale_message(operations, fed)
    if message is None:
        return
    if options.stale == "error":
        raise StaleDefinitionError(message, hint="fb.options.stale = 'warn' lets it run")
    site = sites.capture()
    # Explicitly, without a registry: Python would show it only the first time on each line. And
    # from "cell [7]": the file that the kernel makes up for a cell's source tells nobody anything.
    where = site.cell_label or site.filename
    warnings.warn_explicit(message, StaleDefinitionWarning, where, site.line)


def old_feed_error(
    fetches: Collection[Tensor], targets: Collection[Operation], feeds: Collection[Tensor]
) -> FailedPreconditionError | None:
    """The error for a feed that misses its aim because a cell redefined the tensor.

    That is: what a run needs takes the fed tensor only in another generation of its name.

    Args:
        fetches: the fetched tensors.
        targets: the operations that are run for their effects.
        feeds: the fed tensors.
    """
    if not any(tensor.graph.retirements for tensor in feeds):
        return None
    operations = _needed(fetches, targets, feeds)
    taken = {tensor for operation in operations for tensor in operation.inputs}.union(fetches)
    for tensor in feeds:
        name = _plain_name(tensor.op)
        others = [t for t in taken if t.op is not tensor.op and _plain_name(t.op) == name]
        if not others or tensor in taken:
            continue
        other = min(others, key=lambda t: t.op.id)
        users = [op for op in operations if other in op.inputs]
        if not other.op.retired:
            return FailedPreconditionError(
                f"{tensor.name} is fed, {_what_became_of(tensor.op)}, but this run takes the new "
                f"one in {_listed(_names(users))}",
                hint=f"feed {other.name!r}",
            )
        # Of a redefined variable, the read was redefined with it: who reads it is to be named.
        root = _root(other.op)
        stale = [item for item in stale_among(operations, feeds) if root in item.roots]
        cells = dict.fromkeys(cell for item in stale for cell in item.cells)
        where = f", in {_listed(_names(item.operation for item in stale))}" if stale else ""
        return FailedPreconditionError(
            f"{tensor.name} is fed, but this run goes back to {_what_became_of(other.op)}{where}",
            hint=f"re-run {', then '.join(cells)}" if cells else f"feed {other.name!r}",
        )
    return None


def _needed(
    fetches: Collection[Tensor], targets: Collection[Operation], feeds: Collection[Tensor]
) -> list[Operation]:
    """What a run executes: all ancestors, cut at the feeds, in the order of construction."""
    stack = [*targets, *[tensor.op for tensor in fetches if tensor not in feeds]]
    found = set(stack)
    while stack:
        for source in _sources(stack.pop(), feeds):
            if source not in found:
                found.add(source)
                stack.append(source)
    return sorted(found, key=lambda operation: operation.id)


def _names(operations: Iterable[Operation]) -> list[str]:
    return [operation.name for operation in operations]


def _sources(operation: Operation, fed: Collection[Tensor] = ()) -> Iterable[Operation]:
    for tensor in operation.inputs:
        if not fed or tensor not in fed:
            yield tensor.op
    yield from operation.control_inputs


def _root(retired: Operation) -> Operation:
    """The definition that a person knows: for the read of a redefined variable, the variable."""
    if retired.inputs:
        first = retired.inputs[0].op
        if first.retired and first.op_def.resource is not None:
            return first
    return retired


def _plain_name(operation: Operation) -> str:
    """The name without the generation that a retired operation carries."""
    return operation.name.rpartition("@")[0] if operation.retired else operation.name


def _cell_of(operation: Operation) -> str:
    author = operation.site.author
    return author.cell.label if author is not None else operation.site.place


def _what_became_of(retired: Operation) -> str:
    name = _plain_name(retired)
    cell = retired.graph.retired_by(retired)
    by = cell.label if cell is not None else "a cell"
    if retired.graph.has_operation(name):
        return f"the {name!r} of before {by} redefined it"
    return f"a {name!r} that {by} no longer builds"


def _listed(names: list[str]) -> str:
    names = list(dict.fromkeys(names))
    return ", ".join(map(repr, names[:_MANY])) + _and_more(len(names) - _MANY)


def _and_more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""
