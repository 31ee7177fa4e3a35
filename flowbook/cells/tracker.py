"""Follows the executions of a notebook's cells through IPython's events.

While a cell runs, a context variable holds the `Author` on whose behalf its code builds: so the
cell's own code, functions defined in other cells, coroutines and tasks that the cell started are
all its own, whatever else runs between two of their steps. Threads have contexts of their own;
`thread_starters.py` says whose they are.
"""

from __future__ import annotations

import threading
import weakref
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from flowbook.cells.deletions import Deletions, bring_back, delete
from flowbook.cells.notices import notices_of
from flowbook.cells.thread_starters import ThreadStarters
from flowbook.graph.building.blocks import Entered, entered, return_to
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.origin.author import Author, Cell

_current: ContextVar[Author | None] = ContextVar("flowbook_author", default=None)
_trackers: weakref.WeakKeyDictionary[Any, Tracker] = weakref.WeakKeyDictionary()


def install(shell: Any) -> Tracker:
    """Follow the cells that an IPython shell runs, the one that is running now included.

    Args:
        shell: the `InteractiveShell`. Installing twice changes nothing.
    """
    tracker = _trackers.get(shell)
    if tracker is None:
        tracker = _trackers[shell] = Tracker(shell)
        shell.events.register("pre_run_cell", tracker.begin)
        shell.events.register("post_run_cell", tracker.end)
        tracker.begin_running_cell()
    sites.track(tracker.find_author, tracker.cell_label)
    return tracker


@dataclass(frozen=True)
class _Request:
    """What `pre_run_cell` would have said of the cell that imports flowbook."""

    cell_id: str | None
    raw_cell: str
    store_history: bool
    cell_meta: dict[str, Any]
    transformed_cell: str | None = None


@dataclass(frozen=True, eq=False)
class _Execution:
    """A run of `shell.run_cell`: an execution of a cell, or a part of the one that called it.

    Attributes:
        info: what IPython says of it, when it begins and when it ends.
        author: on whose behalf it builds; None if its source does not compile.
        outer: on whose behalf what called it builds, such as a cell or a task.
        is_part: whether it runs inside the execution of the same author.
        notices: what the cell's output says when it ends.
        surroundings: the blocks around code that builds that its thread was in when it began.
    """

    info: Any
    author: Author | None
    outer: Author | None
    is_part: bool = False
    notices: list[str] = field(default_factory=list)
    surroundings: Entered = field(default_factory=entered)


class _Running(threading.local):
    """The executions that this thread is in, the latest last.

    Those that await one another end in any order: each is known by its `info`.
    """

    def __init__(self) -> None:
        self.executions: list[_Execution] = []

    def has(self, author: Author) -> bool:
        """Whether an execution of an author is under way."""
        return any(execution.author is author for execution in self.executions)

    def ended(self, result: Any) -> _Execution | None:
        """Take out the execution that a result is of; the latest if it was cancelled."""
        known = reversed(self.executions)
        if result is None:
            found = next(known, None)
        else:
            # IPython makes the `info` of an interrupted execution anew.
            said = result.info.cell_id, result.info.raw_cell
            alike = [each for each in known if (each.info.cell_id, each.info.raw_cell) == said]
            found = next((each for each in alike if each.info is result.info), None)
            found = found or next(iter(alike), None)
        if found is not None:
            self.executions.remove(found)
        return found


@dataclass(frozen=True)
class _Source:
    """Who runs the source of a file name: the latest execution, and since which serial."""

    author: Author
    since: int


class Tracker:
    """Knows the cells of one shell and which of them is executing."""

    def __init__(self, shell: Any) -> None:
        self._shell = weakref.ref(shell)
        self._cells: dict[str, Cell] = {}
        self._latest: dict[Cell, Author] = {}
        self._sources: dict[str, _Source] = {}
        self._running = _Running()
        self._threads = ThreadStarters()
        self._deletions = Deletions()

    # What IPython calls

    def begin(self, info: Any) -> None:
        """A cell is about to run (`pre_run_cell`)."""
        running = self._running
        outer = _current.get()
        if info.cell_id is None and outer is not None and running.has(outer):
            # Code that calls `run_cell` is helped by it; the front end knows only the outer cell.
            running.executions.append(_Execution(info, outer, outer, is_part=True))
            return
        notices = self._delete(info)
        if not self._compiles(info):
            # No code will run: what the cell built before stays as it is.
            running.executions.append(_Execution(info, None, outer, notices=notices))
            return
        cell = self._cells.get(info.cell_id) if info.cell_id is not None else None
        if cell is None:
            cell = Cell()
            if info.cell_id is not None:
                self._cells[info.cell_id] = cell
        if cell.is_deleted:
            bring_back(cell)
        earlier = self._latest.pop(cell, None)
        author = self._author(cell, earlier, info)
        for members in list(cell.graphs):
            members.cells.begin(author)
        if earlier is not None:
            notices += earlier.close_owned()
            author.succession.follow(earlier.succession)
        if info.cell_id is not None:
            self._latest[cell] = author
        running.executions.append(_Execution(info, author, outer, notices=notices))
        self._threads.begin(author)
        _current.set(author)

    def begin_running_cell(self) -> None:
        """Begin the cell that imports flowbook: its `pre_run_cell` was before anyone listened."""
        # Without a front end every execution is a cell of its own: it redefines nothing.
        request = self._request()
        content = request.get("content", {})
        if request.get("msg_type") != "execute_request" or content.get("silent"):
            return
        metadata = request.get("metadata", {})
        history = content.get("store_history", True)
        self.begin(_Request(metadata.get("cellId"), content["code"], history, metadata))

    def end(self, result: Any) -> None:
        """A cell has run (`post_run_cell`).

        Args:
            result: IPython's result; None if the execution was cancelled.
        """
        execution = self._running.ended(result)
        if execution is None:
            return  # An empty cell does not begin, but it ends.
        _current.set(execution.outer)
        completed = result is not None and result.success
        if not completed and not self._running.executions:
            # Blocks that an interrupt made their statements forget end with the cell at the latest;
            # those that a cell enters and does not leave, and ends well, are meant for the next.
            return_to(execution.surroundings)
        author = execution.author
        notices = execution.notices
        if author is not None and not execution.is_part:
            self._threads.end(author)
            author.call_endings()
            notices = [*notices, *author.succession.end(completed)]
            for members in list(author.cell.graphs):
                members.cells.end(author, completed)
            notices += notices_of(author, completed)
            author.let_go()
        for notice in notices:
            print(f"flowbook: {notice}")

    def _request(self) -> Any:
        """The message that has the kernel execute something now; empty where there is none."""
        kernel = getattr(self._shell(), "kernel", None)
        if kernel is None or threading.current_thread() is not threading.main_thread():
            return {}
        try:
            return kernel.get_parent("shell")
        except LookupError:
            return {}

    def _delete(self, info: Any) -> list[str]:
        """Delete the cells that the notebook has no longer; return the notices."""
        notices = []
        client = self._request().get("header", {}).get("session")
        for cell_id in self._deletions.news(info.cell_meta, info.cell_id, client):
            cell = self._cells.get(cell_id)
            latest = self._latest.get(cell) if cell is not None else None
            if latest is not None and not self._running.has(latest):
                notices += delete(latest.cell, latest)
        return notices

    # What sites ask

    def find_author(self, frame: FrameType) -> Author | None:
        """On whose behalf the frame builds; None for a module that is being imported.

        Python runs a module once, however often the cell that imports it runs: what it builds is
        not to be retired when it is not built again.
        """
        if self._is_imported(frame):
            return None
        author = _current.get()
        return author if author is not None else self._author_by_stack(frame)

    def cell_label(self, filename: str) -> str | None:
        """How the cell of a source file is shown, such as "cell [7]"; None if it is no cell's."""
        shell = self._shell()
        if shell is None:
            return None
        named = shell.compile.format_code_name(filename)
        return f"cell {named[1].removeprefix('In')}" if named else None

    def _is_imported(self, frame: FrameType) -> bool:
        """Whether a frame runs for the import of a module, rather than for a cell or a script."""
        outward: FrameType | None = frame
        while outward is not None:
            filename = outward.f_code.co_filename
            if filename in self._sources:
                return False
            if filename.startswith("<frozen importlib"):
                return True
            outward = outward.f_back
        return False

    def _author_by_stack(self, frame: FrameType) -> Author | None:
        """The author for a thread, or for a callback that outlived its cell.

        It is the execution that started the thread, unless the outermost function of a cell on
        the stack was written later: then the thread works for several, as a pool's threads do.
        """
        source: _Source | None = None
        outward: FrameType | None = frame
        while outward is not None:
            source = self._sources.get(outward.f_code.co_filename, source)
            outward = outward.f_back
        starter = self._threads.starter()
        if source is None or (starter is not None and source.since <= starter.serial):
            return starter
        return source.author

    # How executions come about

    def _compiles(self, info: Any) -> bool:
        shell = self._shell()
        if shell is None or info.transformed_cell is None:
            return True
        try:
            shell.compile.ast_parse(info.transformed_cell)
        except (SyntaxError, OverflowError, ValueError, TypeError, MemoryError):
            return False
        return True

    def _author(self, cell: Cell, earlier: Author | None, info: Any) -> Author:
        shell = self._shell()
        assert shell is not None
        count = shell.execution_count - bool(info.store_history)  # It counts on before the event.
        source = info.transformed_cell or info.raw_cell
        filename = shell.compile.get_code_name(info.raw_cell, source, count)
        author = Author(cell, f"cell [{count}]", filename)
        since = author.serial
        if earlier is not None:
            known = self._sources.get(earlier.filename)
            if known is not None and known.author is earlier:
                if earlier.filename == filename:
                    since = known.since
                else:
                    del self._sources[earlier.filename]
        self._sources[filename] = _Source(author, since)
        return author
