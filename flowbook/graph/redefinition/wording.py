"""Words for definitions that a notebook cell has taken back or changed.

Pure: operations and names of cells in, words out.
"""

from __future__ import annotations

from collections.abc import Iterable

from flowbook.graph.model.operation import Operation

_MANY = 3  # Lists of names are cut after so many,
_FEW = 2  # lists in which only the count matters after so many,
_CELLS = 6  # and lists of cells after so many.


def plain_name(operation: Operation) -> str:
    """The name without the generation that a retired operation carries."""
    return operation.name.rpartition("@")[0] if operation.retired else operation.name


def what_became_of(retired: Iterable[Operation]) -> str:
    """What cells did to operations that they built before: `the 'x' of before cell [4] ...`."""
    told: dict[str, dict[str, None]] = {}
    for operation in retired:
        told.setdefault(_fate(operation), {})[plain_name(operation)] = None
    fates = [
        fate.format(
            names=listed(found),
            a="" if len(found) > 1 else "a ",
            them="it" if len(found) == 1 else "them",
        )
        for fate, found in told.items()
    ]
    return "; ".join(fates[:_FEW]) + _and_more(len(fates) - _FEW)


def _fate(operation: Operation) -> str:
    """What became of a retired operation, with places for names."""
    cell = operation.graph.members.retired_by(operation)
    by = cell.label if cell is not None else "a cell"
    if cell is not None and cell.is_deleted:
        return f"{{a}}{{names}} of {by}, which was deleted"
    if operation.graph.has_operation(plain_name(operation)):
        return f"the {{names}} of before {by} redefined {{them}}"
    return f"{{a}}{{names}} that {by} no longer builds"


def listed(names: Iterable[str]) -> str:
    """Names in quotes, the first few of them."""
    names = list(dict.fromkeys(names))
    return ", ".join(map(repr, names[:_MANY])) + _and_more(len(names) - _MANY)


def named_or_counted(operations: Iterable[Operation]) -> str:
    """One operation or two by their names, more by their count."""
    names = list(dict.fromkeys(operation.name for operation in operations))
    return listed(names) if len(names) <= _FEW else f"{len(names):,} operations"


def rerun(cells: Iterable[str]) -> str:
    """Which cells to re-run: `re-run cell [2], then cell [3]`."""
    cells = list(cells)
    return f"re-run {', then '.join(cells[:_CELLS])}{_and_more(len(cells) - _CELLS)}"


def _and_more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""
