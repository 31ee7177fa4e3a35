"""The operations that were built from something that a notebook cell has redefined since.

All here is pure. It relies on ids: an operation's inputs have smaller ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flowbook.graph.model.origin.called import called
from flowbook.graph.redefinition.wording import named_or_counted, rerun, what_became_of

if TYPE_CHECKING:
    from flowbook.graph.model.operation import Operation
    from flowbook.graph.model.tensor import Tensor


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
        return f"it was built from {what_became_of(self.roots)}"

    def __str__(self) -> str:
        return (
            f"{called(self.operation)!r} ({self.operation.site.place}): {self.reason}; "
            f"{rerun(self.cells)}"
        )


@dataclass(frozen=True)
class StaleCell:
    """What is stale of one cell.

    Attributes:
        cell: the cell, such as "cell [7]".
        items: its stale operations.
    """

    cell: str
    items: tuple[Stale, ...]

    @property
    def operations(self) -> str:
        """Its stale operations, by name or as a count."""
        return named_or_counted(item.operation for item in self.items)

    @property
    def cause(self) -> str:
        """What they were built from, and what became of that."""
        return what_became_of(dict.fromkeys(root for item in self.items for root in item.roots))


class StaleOperations(list[Stale]):
    """The stale operations of a graph or a run, in the order of construction.

    It is a list; shown, it is a summary by the cells to re-run.
    """

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells to re-run, in this order."""
        return tuple(dict.fromkeys(cell for item in self for cell in item.cells))

    def by_cell(self) -> list[StaleCell]:
        """The items by the cells that built them, in the order in which to re-run these."""
        groups: dict[str, list[Stale]] = {cell: [] for cell in self.cells}
        for item in self:
            groups[_cell_of(item.operation)].append(item)
        return [StaleCell(cell, tuple(items)) for cell, items in groups.items() if items]

    def summary(self) -> str:
        """How many operations are stale, in one line."""
        if not self:
            return "nothing is stale"
        order = ", in this order" if len(self.cells) > 1 else ""
        return f"{len(self):,} stale operation{'s' * (len(self) > 1)}: re-run{order}"

    def __repr__(self) -> str:
        groups = self.by_cell()
        return "\n".join(
            [
                self.summary(),
                *(f"  {each.cell}: {each.operations}, built from {each.cause}" for each in groups),
            ]
        )


def stale_among(operations: Iterable[Operation], fed: Collection[Tensor] = ()) -> StaleOperations:
    """The stale operations among those given, in the order of construction.

    Args:
        operations: what a run executes, or all of a graph. Retired ones may be among them; what
            they were built from counts only as far as it is among them too. What attributes were
            read from counts always, as no run executes it.
        fed: tensors whose value is fed, so that it does not matter what they were built from. What
            takes one that was redefined itself is stale all the same.
    """
    roots: dict[Operation, dict[Operation, None]] = {}
    cells: dict[Operation, dict[str, None]] = {}
    found = StaleOperations()
    given = set(operations)
    for operation in sorted(given | _read_for(given), key=lambda op: op.id):
        own_roots = {root_of(taken.op): None for taken in operation.inputs if taken.op.retired}
        own_cells: dict[str, None] = {}
        for source in sources(operation, fed):
            if source.retired:
                own_roots[root_of(source)] = None
            else:
                own_roots.update(roots.get(source, {}))
            own_cells.update(cells.get(source, {}))
        if not own_roots:
            continue
        if not operation.retired:
            own_cells[_cell_of(operation)] = None
            if operation in given:
                found.append(Stale(operation, tuple(own_roots), tuple(own_cells)))
        roots[operation], cells[operation] = own_roots, own_cells
    return found


def _read_for(operations: Iterable[Operation]) -> set[Operation]:
    """What attributes of the operations were read from, with all that this was built from."""
    found: set[Operation] = set()
    stack = [tensor.op for operation in operations for tensor in operation.settled_by]
    while stack:
        operation = stack.pop()
        if operation not in found:
            found.add(operation)
            stack.extend(sources(operation))
    return found


def sources(operation: Operation, fed: Collection[Tensor] = ()) -> Iterable[Operation]:
    """The operations that one was built from, but those whose only tensors of use are fed."""
    for tensor in operation.inputs:
        if not fed or tensor not in fed:
            yield tensor.op
    yield from operation.control_inputs
    for tensor in operation.settled_by:
        yield tensor.op


def root_of(retired: Operation) -> Operation:
    """The definition that a person knows: for the read of a redefined variable, the variable."""
    if retired.inputs:
        first = retired.inputs[0].op
        if first.retired and first.op_def.owns is not None:
            return first
    return retired


def _cell_of(operation: Operation) -> str:
    author = operation.site.author
    return author.cell.label if author is not None else operation.site.place
