"""Outputs that grow: what a notebook stores of them is as they were in the end, not at first.

A live view follows by itself, but is not stored. So an output is shown under a name of its own, and
when a cell has run that made more of it, its forms are sent anew.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from typing import Any, Protocol

from flowbook.graph.model.origin import site as sites
from flowbook.widgets.front_end import Forms


class Growing(Protocol):
    """What is shown."""

    @property
    def version(self) -> Any:
        """Another one if there is more to show."""

    def catch_up(self) -> None:
        """Look what there is now."""


class _Output:
    """One output, until its cell runs again.

    Args:
        sources: what it shows.
        make: makes its forms.
    """

    def __init__(self, sources: Growing, make: Callable[[], Forms]) -> None:
        self.closed = False
        self._sources = sources
        self._make = make
        self._version = sources.version
        self._name = secrets.token_hex(16)

    def publish(self, update: bool = False) -> None:
        """Send its forms."""
        from IPython.display import publish_display_data

        data, metadata = self._make()
        publish_display_data(data, metadata, transient={"display_id": self._name}, update=update)

    def follow(self) -> None:
        """Send its forms anew if there is more to show."""
        self._sources.catch_up()
        version = self._sources.version
        if version != self._version:
            self._version = version
            self.publish(update=True)

    def close(self) -> None:
        """End it: its cell runs again, or was deleted."""
        self.closed = True
        _followed.remove(self)


_followed: list[_Output] = []


def show(sources: Growing, make: Callable[[], Forms]) -> None:
    """Show what may grow, as an output of the running cell.

    Args:
        sources: what it shows.
        make: makes its forms: all but a live view as they are then.
    """
    output = _Output(sources, make)
    output.publish()
    author = sites.capture().author
    if author is not None and _is_stored():
        author.own(output)
        _followed.append(output)


def follow_all() -> None:
    """Have every output show what there is now: a cell has run."""
    for output in list(_followed):
        output.follow()


def _is_stored() -> bool:
    """Whether outputs are something that changes later: on a terminal they are not."""
    ipython = sys.modules["IPython"]
    return getattr(ipython.get_ipython(), "kernel", None) is not None
