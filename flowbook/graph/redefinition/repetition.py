"""Whether a graph grows by repetition: a loop that builds, runs, builds the same again, and so on.

Such a program gets slower with every step, as each run is of something new. The criterion: a line
added operations between each two of so many runs, and both it and the run stand in one loop of the
user's code. (Without that condition, a function that many tests or cells call would count too.)

Counting happens when a session takes what the graph gained; a stack is looked at only for lines
that have been counted often enough. So neither building nor running pays for it.
"""

from __future__ import annotations

import dis
import warnings
import weakref
from collections.abc import Iterable
from types import CodeType
from typing import TYPE_CHECKING

from flowbook.graph.model.errors import GraphGrowthWarning
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.origin.site import Position, Site

if TYPE_CHECKING:
    from flowbook.graph.building.graph import Graph
    from flowbook.graph.model.operation import Operation

# When a line has built before each of so many runs, its stack is looked at for one more.
_RUNS = 16


class _Line:
    """How often an instruction built, and where from.

    Attributes:
        site: the instruction.
        runs: how many runs came each after it had built anew.
        latest: the number of the latest of them.
        operations: how many operations it has added.
        stack: the user's frames when it built last, if it is suspected; the outermost first.
    """

    __slots__ = ("latest", "operations", "runs", "site", "stack")

    def __init__(self, site: Site) -> None:
        self.site = site
        self.runs = 0
        self.latest = -1
        self.operations = 0
        self.stack: list[Position] = []


class Repetition:
    """What is known of how one graph grows.

    Attributes:
        suspects: the instructions that are to be noted when they build; see `note`. It is always
            the same object.
    """

    def __init__(self) -> None:
        self.suspects: dict[tuple[int, int], _Line] = {}
        # The lines hold their code objects, so that an id is not used again.
        self._lines: dict[tuple[int, int], _Line] = {}
        self._seen = 0
        self._runs = 0
        self._told: weakref.WeakKeyDictionary[CodeType, set[int]] = weakref.WeakKeyDictionary()

    def note(self, operation: Operation) -> None:
        """Note where a suspect instruction builds; to be called while there are suspects."""
        line = self.suspects.get(_key(operation.site))
        if line is not None:
            line.stack = sites.users_stack()

    def repeated(self, graph: Graph) -> list[tuple[str, Site]]:
        """What to tell when a run is about to begin, with the line that each is about.

        Args:
            graph: the graph, whose lock is held.
        """
        gained = graph.members.operations_from(self._seen)
        if not gained:
            return []
        self._seen = gained[0].id + 1
        convicted = self._convicted()
        self._count(gained)
        return [
            (_message(site, caller, lines), site)
            for site, caller, lines in convicted
            if self._is_news(site)
        ]

    def forget(self) -> None:
        """Count anew: a notebook cell has ended, and its loops with it."""
        self._lines.clear()
        self.suspects.clear()

    def _count(self, gained: Iterable[Operation]) -> None:
        self._runs = now = self._runs + 1
        for operation in gained:
            key = _key(operation.site)
            line = self._lines.get(key)
            if line is None:
                line = self._lines[key] = _Line(operation.site)
            line.operations += 1
            if line.latest != now:
                line.latest = now
                line.runs += 1
                if line.runs == _RUNS:
                    self.suspects[key] = line
        if now % _RUNS == 0:
            for key, line in list(self._lines.items()):
                if line.latest <= now - _RUNS:
                    del self._lines[key]
                    self.suspects.pop(key, None)

    def _convicted(self) -> list[tuple[Site, Site, list[_Line]]]:
        """The lines that build in a loop which also runs: each with where in it, and its parts."""
        if not self.suspects:
            return []
        running = sites.users_stack()
        found: dict[tuple[CodeType, int], tuple[Site, Site, list[_Line]]] = {}
        for key, line in list(self.suspects.items()):
            if not line.stack:
                continue  # It has not built since: another line of the loop has.
            del self.suspects[key]
            line.runs = 0
            loop = _loop_of(line.stack, running)
            if loop is not None:
                author = line.site.author
                site, caller = Site(*line.stack[-1], author), Site(*loop, author)
                known = found.setdefault((site.code, site.line), (site, caller, []))  # type: ignore[arg-type]
                known[2].append(line)
            line.stack = []
        return list(found.values())

    def _is_news(self, site: Site) -> bool:
        assert isinstance(site.code, CodeType)
        told = self._told.setdefault(site.code, set())
        is_news = site.line not in told
        told.add(site.line)
        return is_news


def check_repetition(graph: Graph) -> None:
    """Warn of lines that make the graph grow by repetition; each is told of once.

    Args:
        graph: the graph that a session is about to run with what it gained.
    """
    with graph.lock:
        found = graph.members.repetition.repeated(graph)
    for message, site in found:
        # As in `check_stale`: from "cell [7]", and whatever was said of the line before.
        where = site.cell_label or site.filename
        warnings.warn_explicit(message, GraphGrowthWarning, where, site.line)


def _key(site: Site) -> tuple[int, int]:
    return id(site.code), site.offset


def _loop_of(building: Iterable[Position], running: Iterable[Position]) -> Position | None:
    """Where the first stack is in the outermost loop that both are in, if there is one."""
    for (code, built), (other, ran) in zip(building, running, strict=False):
        if code is not other:
            return None
        if any(start <= built <= end and start <= ran <= end for start, end in _loops(code)):
            return code, built
        if built != ran:
            return None
    return None


def _loops(code: CodeType) -> list[tuple[int, int]]:
    """From where to where the loops of a code object reach, in offsets.

    The compiled code tells it where there is no source any more, as of an edited file, and exactly:
    a frame that is seen at the same call again may have come round a loop of its own, or be waiting
    for a `map` all the while.
    """
    return [
        (instruction.argval, instruction.offset)
        for instruction in dis.get_instructions(code)
        # Those without interrupt await: they are no loops of the source.
        if "JUMP_BACKWARD" in instruction.opname and "NO_INTERRUPT" not in instruction.opname
    ]


def _message(site: Site, caller: Site, lines: list[_Line]) -> str:
    count = sum(line.operations for line in lines)
    place = f"{site.place}:  {site.source}" if site.source else site.place
    if (caller.code, caller.line) != (site.code, site.line):
        place += f"\n  in the loop at {caller}"
    return (
        f"a loop builds and runs: in {_RUNS + 1} runs so far one line has added {count:,} "
        f"operations to the graph, and each of these runs had to be prepared anew\n  at {place}\n"
        "  hint: build once, before the loop, and feed what changes: sess.run(y, {x: value})"
    )
