"""On whose behalf operations are built: one execution of a notebook cell.

The graph asks little of an author: a name that an earlier execution of the same cell took is free
for this one: re-running a cell redefines. Which cell is executing, and when it ends, is
the business of `flowbook.cells`.

Invariant: an author is cited by the site of everything it built, so it holds no operation once its
execution has ended, and no graph but weakly.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from flowbook.graph.model.origin.succession import Succession

if TYPE_CHECKING:
    from flowbook.graph.building.members import Members
    from flowbook.graph.model.operation import Operation

_serials = itertools.count(1)


class Closeable(Protocol):
    """What has a life of its own, as a live view has."""

    @property
    def closed(self) -> bool:
        """Whether it has ended already."""

    def close(self) -> Any:
        """End it; doing so twice is harmless."""


class Cell:
    """A notebook cell: what all its executions have in common. Equal only to itself.

    Attributes:
        label: how its latest execution is shown, such as "cell [7]".
        executions: how often it has been run.
        is_deleted: whether the notebook says that it has it no longer.
        graphs: the members of the graphs that any of its executions built in.
    """

    __slots__ = ("__weakref__", "executions", "graphs", "is_deleted", "label")

    def __init__(self) -> None:
        self.label = ""
        self.executions = 0
        self.is_deleted = False
        self.graphs: weakref.WeakSet[Members] = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"<Cell {self.label}>"


class _Owned(NamedTuple):
    """What closes with an execution; see `Author.own`."""

    ref: weakref.ref[Closeable]
    notice: str


class Author:
    """One execution of a notebook cell.

    Args:
        cell: the cell.
        label: how errors name the execution, such as "cell [7]".
        filename: the file name that the cell's source was compiled under.

    Attributes:
        serial: grows from each execution to the next, whatever the cell.
        kept: operations with a resource, and runners of queues, that it built as an earlier
            execution had.
        replaced: those that it built differently, as (new operation, old operation).
        dropped: variables that it did not build, and earlier executions had.
        together: what it built or found, in lists of what means something only together, such as
            the moments and powers of Adam's, or a runner and the queues that it fills and empties.
        renewed: variables whose values it gave up, as others of such a list start afresh.
        restarted: unnamed variables whose values it gave up (see `redefinition/unnamed.py`).
        succession: what it made that outlives it until its cell makes another in its place.
        warned: the sets of cells to re-run that its runs have been told of (`stale_runs.py`).
    """

    __slots__ = (
        "__weakref__",
        "_endings",
        "_owned",
        "cell",
        "dropped",
        "filename",
        "kept",
        "label",
        "renewed",
        "replaced",
        "restarted",
        "serial",
        "succession",
        "together",
        "warned",
    )

    def __init__(self, cell: Cell, label: str, filename: str = "") -> None:
        self.cell = cell
        cell.label = label
        cell.executions += 1
        self.label = label
        self.filename = filename
        self.serial = next(_serials)
        self.kept: list[Operation] = []
        self.replaced: list[tuple[Operation, Operation]] = []
        self.dropped: list[Operation] = []
        self.together: list[list[Operation]] = []
        self.renewed: list[Operation] = []
        self.restarted: list[Operation] = []
        self.succession = Succession()
        self.warned: list[frozenset[str]] = []
        self._owned: list[_Owned] = []
        self._endings: list[Callable[[], None]] = []

    def may_take(self, owner: Author | None) -> bool:
        """Whether a name that `owner` took is free for this execution."""
        return owner is not None and owner.cell is self.cell and owner.serial < self.serial

    def own(self, closeable: Closeable, notice: str = "") -> None:
        """Have something closed when this execution's cell runs again, or is deleted.

        That is for what is seen in the cell's output, which goes then. What is used from other
        cells is added to the `succession` instead.

        Args:
            closeable: what to close. It is held weakly.
            notice: what the cell's output then says, if it was still open.
        """
        self._owned = [each for each in self._owned if each.ref() is not None]
        self._owned.append(_Owned(weakref.ref(closeable), notice))

    def close_owned(self) -> list[str]:
        """Close what this execution owns; return the notices for what was still open."""
        owned, self._owned = self._owned, []
        notices = []
        for each in owned:
            closeable = each.ref()
            if closeable is None or closeable.closed:
                continue
            try:
                closeable.close()
            except Exception as error:
                # The cell runs all the same; what could not be closed is not worth less to know.
                notices.append(f"closing {closeable!r} failed: {type(error).__name__}: {error}")
            else:
                notices.append(each.notice)
        return [notice for notice in dict.fromkeys(notices) if notice]

    def at_end(self, call: Callable[[], None]) -> None:
        """Have something called when the cell's source has run, well or not."""
        self._endings.append(call)

    def call_endings(self) -> None:
        """Call what is to be called at the end."""
        endings, self._endings = self._endings, []
        for call in endings:
            call()

    def let_go(self) -> None:
        """Hold no operation any longer: the execution has ended."""
        self.kept, self.replaced, self.dropped, self.restarted = [], [], [], []
        self.together, self.renewed = [], []

    def __repr__(self) -> str:
        return f"<Author {self.label}>"
