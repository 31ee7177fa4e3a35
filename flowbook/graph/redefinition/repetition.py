"""Whether a graph grows by repetition: a loop that builds, runs, builds the same again, and so on.

Such a program gets slower with every step, as each run is of something new. The criterion: a line
added operations between each two of so many runs, and one call of the user's code built, ran, and
came to the same place to build again. (Without that condition, a function that many tests or cells
call would count too: there the innermost call that goes on all the while is the test runner's.)

Counting happens when a session takes what the graph gained; the calls that go on are looked at only
for lines that have been counted often enough. So neither building nor running pays for it.
"""

from __future__ import annotations

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

# When a line has built before each of so many runs, it is told of with the next. The calls that led
# to it are looked at in the last two.
_RUNS = 16


class _Line:
    """How often an instruction built, and where from.

    Attributes:
        site: the instruction.
        runs: how many runs came each after it had built anew.
        latest: the number of the latest of them.
        operations: how many operations it has added.
        building: the calls that led to it when it built last, if it is suspected and no run has
            come since.
        before: those that led to it one run earlier, and to that run too.
    """

    __slots__ = ("before", "building", "latest", "operations", "runs", "site")

    def __init__(self, site: Site) -> None:
        self.site = site
        self.runs = 0
        self.latest = -1
        self.operations = 0
        self.building: list[Position] = []
        self.before: list[Position] | None = None


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
            line.building = sites.running_calls()

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
                if line.runs == _RUNS - 1:
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
        running = {call for call, _ in sites.running_calls()}
        found: dict[tuple[CodeType, int], tuple[Site, Site, list[_Line]]] = {}
        for key, line in list(self.suspects.items()):
            if not line.building:
                continue  # It has not built since: another line of the loop has.
            building, line.building = line.building, []
            # Calls hold what is in their variables: no more of them are kept than go on.
            shared = [position for position in building if position[0] in running]
            if line.before is None:
                line.before = shared
                continue
            before, line.before = line.before, None
            del self.suspects[key]
            line.runs = 0
            loop = _where_it_came_round(before, shared)
            if loop is not None:
                innermost = next(p for p in reversed(building) if _is_users(p))
                site, caller = _site(innermost, line.site), _site(loop, line.site)
                known = found.setdefault((site.code, site.line), (site, caller, []))  # type: ignore[arg-type]
                known[2].append(line)
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


def _where_it_came_round(before: list[Position], now: list[Position]) -> Position | None:
    """Where the innermost call that goes on is for the second time, if it is the user's own."""
    earlier = dict(before)
    for call, offset in reversed(now):
        if call in earlier:
            came_round = earlier[call] == offset and _is_users((call, offset))
            return (call, offset) if came_round else None
    return None


def _is_users(position: Position) -> bool:
    return sites.is_users(position[0].f_code.co_filename)


def _site(position: Position, within: Site) -> Site:
    return Site(position[0].f_code, position[1], within.author)


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
