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

from flowbook.cells.notices import notices_of
from flowbook.cells.thread_starters import ThreadStarters
from flowbook.graph import site as sites
from flowbook.graph.author import Author, Cell

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
    transformed_cell: str | None = None


@dataclass(frozen=True)
class _Execution:
    """A run of `shell.run_cell`: an execution of a cell, or a part of the one that called it.

    Attributes:
        author: on whose behalf it builds; None if its source does not compile.
        is_part: whether it runs inside the execution of the same author.
        notices: what the cell's output says when it ends.
    """

    author: Author | None
    is_part: bool = False
    notices: list[str] = field(default_factory=list)


class _Running(threading.local):
    """The executions that this thread is in, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[_Execution] = []


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

    # What IPython calls

    def begin(self, info: Any) -> None:
        """A cell is about to run (`pre_run_cell`).

        The front end lists cells deleted since in `info.cell_meta["deletedCells"]`: here is the
        place to retire what they built.
        """
        stack = self._running.stack
        if info.cell_id is None and stack and stack[-1].author is not None:
            # Code that calls `run_cell` is helped by it; the front end knows only the outer cell.
            stack.append(_Execution(stack[-1].author, is_part=True))
            return
        if not self._compiles(info):
            # No code will run: what the cell built before stays as it is.
            stack.append(_Execution(None))
            return
        cell = self._cells.get(info.cell_id) if info.cell_id is not None else None
        if cell is None:
            cell = Cell()
            if info.cell_id is not None:
                self._cells[info.cell_id] = cell
        earlier = self._latest.pop(cell, None)
        notices = earlier.close_owned() if earlier is not None else []
        author = self._author(cell, earlier, info)
        if info.cell_id is not None:
            self._latest[cell] = author
        stack.append(_Execution(author, notices=notices))
        self._threads.begin(author)
        _current.set(author)

    def begin_running_cell(self) -> None:
        """Begin the cell that imports flowbook: its `pre_run_cell` was before anyone listened."""
        kernel = getattr(self._shell(), "kernel", None)
        if kernel is None or threading.current_thread() is not threading.main_thread():
            # Without a front end every execution is a cell of its own: it redefines nothing.
            return
        try:
            request = kernel.get_parent("shell")
        except LookupError:
            return
        content = request.get("content", {})
        if request.get("msg_type") != "execute_request" or content.get("silent"):
            return
        cell_id = request.get("metadata", {}).get("cellId")
        self.begin(_Request(cell_id, content["code"], content.get("store_history", True)))

    def end(self, result: Any) -> None:
        """A cell has run (`post_run_cell`).

        Args:
            result: IPython's result; None if the execution was cancelled.
        """
        stack = self._running.stack
        if not stack or (result is not None and not result.info.raw_cell.strip()):
            return  # An empty cell does not begin, but it ends.
        execution = stack.pop()
        _current.set(stack[-1].author if stack else None)
        author = execution.author
        if author is None or execution.is_part:
            return
        self._threads.end(author)
        completed = result is not None and result.success
        for graph in list(author.cell.graphs):
            graph.end_execution(author, completed)
        for notice in (*execution.notices, *notices_of(author, completed)):
            print(f"flowbook: {notice}")
        author.let_go()

    # What sites ask

    def find_author(self, frame: FrameType) -> Author | None:
        """On whose behalf the frame builds."""
        author = _current.get()
        return author if author is not None else self._author_by_stack(frame)

    def cell_label(self, filename: str) -> str | None:
        """How the cell of a source file is shown, such as "cell [7]"; None if it is no cell's."""
        shell = self._shell()
        if shell is None:
            return None
        named = shell.compile.format_code_name(filename)
        return f"cell {named[1].removeprefix('In')}" if named else None

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
