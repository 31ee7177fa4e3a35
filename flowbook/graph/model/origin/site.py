"""Where an operation was defined: the user's line, and the notebook cell that ran it.

Capturing must cost next to nothing, as it happens for every operation: a site keeps the code
object and the bytecode offset, and renders its line and source text only when it is shown.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from types import CodeType, FrameType
from typing import TYPE_CHECKING, TypeVar

from flowbook.graph.model.origin.assigned import Targets, assigned

if TYPE_CHECKING:
    from flowbook.graph.model.origin.author import Author

Built = TypeVar("Built")

_PACKAGE = os.path.abspath(os.path.join(__file__, "../../../..")) + os.sep

# Python's own modules and installed packages are nobody's to edit.
_STANDARD = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

# A call that goes on, and the offset of the instruction that it has come to.
Position = tuple[FrameType, int]

# What runs Flowbook's `with` statements on the way from a user's line: not the user's own either.
_PASSED_THROUGH = contextlib.__file__

# Whether a file belongs to Flowbook; strings cache their hash, so a look-up is a few nanoseconds.
_internal: dict[str, bool] = {}

# Set by `track`, for flowbook.cells.
_find_author: Callable[[FrameType], Author | None] | None = None
_cell_label: Callable[[str], str | None] | None = None


def track(
    find_author: Callable[[FrameType], Author | None] | None,
    cell_label: Callable[[str], str | None] | None,
) -> None:
    """Let notebook cells be recognised.

    Args:
        find_author: says on behalf of which cell's execution a frame builds, if any.
        cell_label: gives, for the file name of a cell's source, a label such as "cell [7]".
    """
    global _find_author, _cell_label
    _find_author, _cell_label = find_author, cell_label


def is_internal(filename: str) -> bool:
    """Whether a file belongs to Flowbook, whose frames are not where users look."""
    known = _internal.get(filename)
    if known is None:
        known = _internal[filename] = filename.startswith((_PACKAGE, "<flowbook", _PASSED_THROUGH))
    return known


@dataclass(frozen=True, slots=True)
class StoredLine:
    """A line of code as text: what a graph that was loaded has in place of code objects.

    Attributes:
        label: the file's name without folders, or the cell, such as "cell [7]".
        line: the line number, from 1.
        source: the text of the line, or an empty string.
        run_by: the cell that ran it, where it stands elsewhere; otherwise empty.
        imported_by: the place that imported the graph which the line built; otherwise empty.
        called_at: the place that called the function whose line it is; otherwise empty.
        targets: the names that the line gives to what it evaluates there; otherwise empty.
    """

    label: str
    line: int
    source: str
    run_by: str
    imported_by: str = ""
    called_at: str = ""
    targets: Targets = ()


class Site:
    """A line of a user's code.

    Attributes:
        code: the code object that ran, or the text of the line; None if unknown.
        offset: the offset of the instruction in a code object.
        author: the notebook cell's execution that built here, or None outside notebooks.
        caller: where the function was called whose line it is, or None.
    """

    __slots__ = ("author", "caller", "code", "offset")

    def __init__(
        self,
        code: CodeType | StoredLine | None,
        offset: int,
        author: Author | None,
        caller: Site | None = None,
    ) -> None:
        self.code = code
        self.offset = offset
        self.author = author
        self.caller = caller

    @property
    def filename(self) -> str:
        """The file, or IPython's name for the cell's source."""
        if isinstance(self.code, StoredLine):
            return self.code.label
        return self.code.co_filename if self.code is not None else "<unknown>"

    @property
    def line(self) -> int:
        """The line number, from 1; 0 if unknown."""
        if self.code is None:
            return 0
        if isinstance(self.code, StoredLine):
            return self.code.line
        for start, end, line in self.code.co_lines():
            if start <= self.offset < end and line is not None:
                return line
        return self.code.co_firstlineno

    @property
    def source(self) -> str:
        """The source text of the line, or an empty string."""
        if isinstance(self.code, StoredLine):
            return self.code.source
        return linecache.getline(self.filename, self.line).strip()

    @property
    def targets(self) -> Targets:
        """The Python names that the line gives to what it evaluates there, such as `loss`."""
        if isinstance(self.code, StoredLine):
            return self.code.targets
        return assigned(self.code, self.offset) if self.code is not None else ()

    def is_same_as(self, other: Site) -> bool:
        """Whether both are one expression, evaluated in one execution of a cell."""
        return self is other or (
            self.code is other.code
            and self.offset == other.offset
            and self.author is other.author
            and (
                self.caller is other.caller
                or (
                    self.caller is not None
                    and other.caller is not None
                    and self.caller.is_same_as(other.caller)
                )
            )
        )

    @property
    def place(self) -> str:
        """`cell [7], line 3` in a notebook, `train.py, line 3` elsewhere.

        A function defined elsewhere names the cell that called it too; an imported graph's, the
        place that imported it.
        """
        if self.code is None:
            return "an unknown place"
        stored = self.as_text()
        place = f"{stored.label}, line {stored.line}" if stored.label else "an unknown place"
        place = f"{place}, run by {stored.run_by}" if stored.run_by else place
        place = f"{place}, called at {stored.called_at}" if stored.called_at else place
        return f"imported by {stored.imported_by}, from {place}" if stored.imported_by else place

    def as_text(self) -> StoredLine:
        """The line as text, which needs neither the code object nor its source file."""
        called_at = self.caller.place if self.caller is not None else ""
        if isinstance(self.code, StoredLine):
            if self.code.imported_by or self.code.called_at:
                called_at = called_at or self.code.called_at
                return replace(self.code, called_at=called_at, targets=self.targets)
            label, run_by = self.code.label, self.code.run_by
        else:
            label, run_by = self.cell_label or os.path.basename(self.filename), ""
        if not called_at and self.author is not None and self.author.label != label:
            run_by = self.author.label
        return StoredLine(
            label, self.line, self.source, run_by, called_at=called_at, targets=self.targets
        )

    @property
    def cell_label(self) -> str | None:
        """The cell whose source the line is in, such as "cell [7]", or None."""
        # Two cells of the same source may share a file name: the one that ran decides.
        if self.author is not None and self.author.filename == self.filename:
            return self.author.label
        return _cell_label(self.filename) if _cell_label is not None else None

    def imported_by(self, importer: Site) -> Site:
        """The site of what this one's line built, in a graph that another line imports it into."""
        text = self.as_text() if self.code is not None else StoredLine("", 0, "", "")
        by = importer.place if importer.code is not None else "an unknown place"
        return type(self)(replace(text, imported_by=by), 0, importer.author)

    def called_at(self, caller: Site) -> Site:
        """The site of a copy of what this one's line built, made for another line's call."""
        inner = self.caller.called_at(caller) if self.caller is not None else caller
        return type(self)(self.code, self.offset, caller.author, inner)

    def __str__(self) -> str:
        return f"{self.place}:  {self.source}" if self.source else self.place

    def __repr__(self) -> str:
        return f"<Site {self.place}>"


class DerivedSite(Site):
    """The line that asked for what was derived from: a gradient cites its forward operation's."""

    __slots__ = ()

    @property
    def targets(self) -> Targets:
        """None: what the line names is not what was derived."""
        return ()


UNKNOWN_SITE = Site(None, 0, None)


# On whose behalf code builds, where that is not the cell that runs.
_behalf: ContextVar[Author | None] = ContextVar("_behalf", default=None)


def on_behalf_of(author: Author | None, function: Callable[[], Built]) -> Built:
    """Call a function; what it builds belongs to an execution of a cell that may have ended."""

    def call() -> Built:
        _behalf.set(author)
        return function()

    return copy_context().run(call)


def capture() -> Site:
    """The site of the innermost frame that is not Flowbook's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        internal = _internal.get(code.co_filename)
        if internal is None:
            internal = is_internal(code.co_filename)
        if not internal:
            author = None
            if _find_author is not None:
                author = _behalf.get() or _find_author(frame)
            return Site(code, frame.f_lasti, author)
        frame = frame.f_back
    return UNKNOWN_SITE


def running_call() -> FrameType:
    """The call of one of Flowbook's functions that the innermost other code waits for."""
    frame = sys._getframe(1)
    while (caller := frame.f_back) is not None and is_internal(caller.f_code.co_filename):
        frame = caller
    return frame


def running_calls() -> list[Position]:
    """The calls that led here, and where each is, the outermost first; Flowbook's are left out."""
    positions = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_internal(frame.f_code.co_filename):
            positions.append((frame, frame.f_lasti))
        frame = frame.f_back
    return positions[::-1]


def is_users(filename: str) -> bool:
    """Whether code of a file is the user's own: neither Flowbook's nor an installed package's."""
    return not is_internal(filename) and not _is_installed(filename)


def warn(message: str, category: type[Warning]) -> None:
    """Warn of what the user's own line does that has led here, or else of what called this."""
    frame, level = sys._getframe(1), 2
    caller: FrameType | None = frame
    while caller is not None and not is_users(caller.f_code.co_filename):
        caller, level = caller.f_back, level + 1
    warnings.warn(message, category, stacklevel=level if caller is not None else 2)


def _is_installed(filename: str) -> bool:
    return (
        filename.startswith((_STANDARD, "<frozen "))
        or _INSTALLED[0] in filename
        or _INSTALLED[1] in filename
    )
