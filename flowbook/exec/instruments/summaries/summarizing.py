"""What a person holds of the summaries of a session: which it has, and what ends them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.exec.instruments.attached import Instruments
from flowbook.exec.instruments.summaries.summarizer import Rule, Summarizer
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.origin import site as sites


class Summarizing:
    """Summaries that a session gives by one rule; `Session.summarize` makes it.

    As a context manager it ends with the block. It ends with its session in any case.

    Attributes:
        history: what the session has summarised, for showing it.
    """

    def __init__(self, summarizer: Summarizer, rule: Rule, changed: Callable[[], None]) -> None:
        self.history = summarizer.history
        self.site = sites.capture()
        self._summarizer = summarizer
        self._rule = rule
        self._changed = changed

    @property
    def run(self) -> str:
        """The run's id, which is the folder in a log directory.

        A session has one, and another from each time on that its training was redefined.
        """
        return self._summarizer.run

    @property
    def left_out(self) -> dict[str, str]:
        """The tags that the runs prepared last did not give, each with what they do not compute."""
        return dict(self._rule.left_out)

    def flush(self) -> None:
        """Bring what was summarised into the logs now."""
        for sink in self._rule.sinks:
            sink.flush()

    @property
    def closed(self) -> bool:
        """Whether it was ended."""
        return self._rule not in self._summarizer.rules

    def close(self) -> None:
        """Summarise no more runs by this rule."""
        self._summarizer.remove(self._rule)
        self._changed()

    @property
    def has_values(self) -> bool:
        """Nothing: what was summarised is the session's."""
        return False

    def give_way(self, successor: Summarizing) -> str:
        """End: the cell that made it has made another in its place."""
        self.close()
        self._summarizer.close_unused_logs()
        return ""

    def lose_cell(self) -> None:
        """End: the cell that made it was deleted."""
        self.close()

    def __enter__(self) -> Summarizing:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Summarizing of run {self.run!r}: {self.history!r}>"


def summarized(instruments: Instruments, graph: Graph, rule: tuple[Any, ...]) -> Summarizing:
    """Add a rule to a session's summaries; see `Session.summarize` for what it holds."""
    known = instruments.find(Summarizer)
    summarizer = known or Summarizer(graph)
    added = summarizer.add(*rule)
    if known is not None:
        instruments.changed()
    else:
        instruments.add(summarizer)
    result = added.handle = Summarizing(summarizer, added, instruments.changed)
    author = result.site.author
    if author is not None:
        # A run is not to be summarised twice, by what the cell made before too.
        author.succession.add(result, at_once=True)
    return result
