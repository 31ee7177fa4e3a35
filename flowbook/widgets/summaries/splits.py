"""Tags that say the same of several parts of the data, as `loss` and `held_out/loss`: one chart.

`labextension/src/core/splits.ts` does the same for live views.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

# What parts of the data are called, in the order in which their curves are drawn.
_SPLITS = (
    "train",
    "training",
    "val",
    "valid",
    "validation",
    "dev",
    "eval",
    "evaluation",
    "heldout",
    "test",
)


class Part(NamedTuple):
    """What a tag is of a chart.

    Attributes:
        tag: the tag.
        split: the part of the data; empty where the tag stands alone.
    """

    tag: str
    split: str


def charts_of(tags: Iterable[str]) -> dict[str, list[Part]]:
    """The charts, by their titles, in the order of the tags; each with the tags that are in it."""
    split = {tag: _split(tag) for tag in tags}
    shared = Counter(title for title, _ in split.values())
    charts: dict[str, list[Part]] = {}
    for tag, (title, part) in split.items():
        if shared[title] > 1:
            charts.setdefault(title, []).append(Part(tag, part))
        else:  # One alone is what it is called.
            charts.setdefault(tag, []).append(Part(tag, ""))
    for parts in charts.values():
        parts.sort(key=lambda each: _place(each.split))
    return charts


def _split(tag: str) -> tuple[str, str]:
    first, _, rest = tag.partition("/")
    return (rest, first) if rest and _plain(first) in _SPLITS else (tag, "")


def _place(split: str) -> int:
    return _SPLITS.index(_plain(split)) if split else -1


def _plain(split: str) -> str:
    return re.sub(r"[\s_-]", "", split).lower()
