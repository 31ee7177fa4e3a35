"""Has IPython show errors without Flowbook's own frames.

What a cell's traceback keeps are the frames of its author's code: the cell's own, those of other
libraries, and those of functions and kernels that Flowbook called. The error itself stays whole, so
that `fb.options.full_tracebacks = True` and `%tb` show the rest.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from flowbook.cells.slips import hint_for
from flowbook.graph.model.errors import HIDDEN_FRAMES
from flowbook.graph.model.options import options
from flowbook.graph.model.origin.site import is_internal

_formatters: weakref.WeakSet[Any] = weakref.WeakSet()


def install(shell: Any) -> None:
    """Filter the frames that an IPython shell's own formatter gets to show.

    All errors go through it, whatever their class: Python's TypeError for a misspelt argument has
    frames of Flowbook too. (An exception's own `_render_traceback_` would reach only classes of
    ours.)

    Args:
        shell: the `InteractiveShell`. Installing twice changes nothing.
    """
    formatter = shell.InteractiveTB
    if formatter in _formatters:
        return
    _formatters.add(formatter)
    original = formatter.structured_traceback

    @functools.wraps(original)
    def structured_traceback(
        kind: Any, error: Any, traceback: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if not isinstance(traceback, TracebackType):
            return original(kind, error, traceback, *args, **kwargs)
        if options.full_tracebacks:
            with _nothing_skipped(formatter):
                return original(kind, error, traceback, *args, **kwargs)
        with _shortened(error):
            return original(kind, error, users_part(traceback), *args, **kwargs)

    formatter.structured_traceback = structured_traceback


def users_part(traceback: TracebackType | None) -> TracebackType | None:
    """The frames that are not Flowbook's own, in order; the same object if nothing goes."""
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    kept = [entry for entry in entries if not is_internal(_filename(entry))]
    if not kept or not any(_is_own(entry) for entry in entries):
        return entries[0] if entries else None
    result = None
    for entry in reversed(kept):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


@contextmanager
def _nothing_skipped(formatter: Any) -> Iterator[None]:
    """In this block IPython shows frames with `__tracebackhide__` too."""
    before = formatter.skip_hidden
    formatter.skip_hidden = False
    try:
        yield
    finally:
        formatter.skip_hidden = before


@contextmanager
def _shortened(error: BaseException) -> Iterator[None]:
    """In this block an error, and what caused it, has only the user's frames; a note says so.

    Another note helps where the error's own words do not.
    """
    chain = list(_chain(error))
    whole = [(each, each.__traceback__) for each in chain]
    parts = [users_part(traceback) for _, traceback in whole]
    notes = getattr(error, "__notes__", None)
    try:
        hint = hint_for(error, error.__traceback__)
        if hint is not None:
            _say(error, hint)
        for (each, traceback), part in zip(whole, parts, strict=True):
            if part is not traceback:
                each.__traceback__ = part
                _say(error, HIDDEN_FRAMES)
        yield
    finally:
        for each, traceback in whole:
            each.__traceback__ = traceback
        if notes is not None:
            error.__notes__ = notes
        else:
            with contextlib.suppress(AttributeError):
                del error.__notes__


def _say(error: BaseException, what: str) -> None:
    said = getattr(error, "__notes__", [])
    if what not in said:
        error.__notes__ = [*said, what]


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that a traceback shows above it."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)


def _is_own(entry: TracebackType) -> bool:
    """Whether it is Flowbook's; contextlib's is hidden only beside those."""
    filename = _filename(entry)
    return is_internal(filename) and filename != contextlib.__file__


def _filename(entry: TracebackType) -> str:
    return entry.tb_frame.f_code.co_filename
