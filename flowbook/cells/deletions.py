"""Cells that the notebook reports as deleted: what they built leaves its graphs.

JupyterLab lists deleted cells with the next request to execute something. Two things about the list
shape what is done. It also has cells that are still there: those cut and pasted elsewhere, and
those whose deletion was undone. So a deletion loses nothing that a re-run cannot bring back: a
session stays open, and a cell that runs again after all gets its operations back, as far as
anything refers to them. And requests sent together all carry the same list: only what the one
before did not have is news. Two notebooks on one kernel have a list each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowbook.graph.model.counted import counted
from flowbook.graph.model.origin.author import Author, Cell
from flowbook.graph.redefinition.wording import listed, plain_name


class Deletions:
    """What the latest request of each notebook listed."""

    def __init__(self) -> None:
        self._listed: dict[str | None, frozenset[str]] = {}

    def news(
        self, cell_meta: Mapping[str, Any] | None, running: str | None, client: str | None
    ) -> list[str]:
        """The ids of the cells deleted since the same notebook's request before.

        Args:
            cell_meta: the metadata of a request to execute.
            running: the id of the cell that it executes, which is not deleted.
            client: the notebook that sent it, by the id of its connection to the kernel; None
                where no kernel is between.
        """
        reported = (cell_meta or {}).get("deletedCells")
        if not isinstance(reported, list):
            return []  # No notebook sent it.
        ids = dict.fromkeys(map(str, reported))
        before = self._listed.get(client, frozenset())
        self._listed[client] = frozenset(ids)
        return [each for each in ids if each not in before and each != running]


def delete(cell: Cell, latest: Author) -> list[str]:
    """Have what a deleted cell built leave its graphs, and close what it owns.

    Args:
        cell: the cell.
        latest: its latest execution.

    Returns:
        What to say of it, a line each.
    """
    cell.is_deleted = True
    retired = [op for members in list(cell.graphs) for op in members.cells.give_up(cell)]
    notices = latest.close_owned()
    latest.succession.lose_cell()
    if retired:
        names = [plain_name(operation) for operation in retired]
        notices.insert(
            0,
            f"{cell.label} was deleted: {counted(len(names), 'operation')}, {listed(names)} left "
            "the graph (where the cell was only moved, or is back, running it brings them back)",
        )
    return notices


def bring_back(cell: Cell) -> None:
    """Undo `delete`: the cell runs again."""
    cell.is_deleted = False
    for members in list(cell.graphs):
        members.cells.take_back(cell)
