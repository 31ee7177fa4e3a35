"""Summaries as the browser gets them: in frames, each of which says what has changed.

A frame says of every series that it holds from which place on its points replace what was known,
so that frames may be lost: what a later one holds is right all the same, and one made from the
beginning mends everything. `labextension/src/core/summaries.ts` reads it.

Everything is bounded: long texts are cut. The layout of the bytes is `packing.py`'s.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flowbook.exec.instruments.summaries.curve import Columns
from flowbook.exec.instruments.summaries.event import Image
from flowbook.exec.instruments.summaries.history import News
from flowbook.widgets.packing import packed
from flowbook.widgets.summaries.sources import Run, Sources

FORMAT = 1

_LONGEST_NAME = 400  # Characters of a tag or a run.
_LONGEST_TEXT = 20_000  # Of a text that is shown,
_MOST_TEXTS = 100  # of so many in one value.
_POINT_BYTES = 32

Numbered = tuple[int, News]  # The number of the run, and what is new.
_Parts = list[Sequence[Any]]  # One column of each series.


def frames(
    sequence: int,
    runs: Sequence[Run],
    said: Sequence[str],
    news: Sequence[Numbered],
    most_bytes: float,
) -> Iterator[bytes]:
    """What is new, in frames of about so many bytes before compression; at least one.

    Args:
        sequence: a number that grows by 1 with every call for one view.
        runs: all runs, by their numbers.
        said: what stands above the charts, as text.
        news: the number of its run, and what is new, for each series that has changed.
        most_bytes: about how many bytes a frame has.
    """
    head = {
        "format": FORMAT,
        "sequence": sequence,
        "runs": [[named(run.label), named(run.id)] for run in runs],
        "said": [named(each) for each in said],
    }
    part: list[Numbered] = []
    size = 0
    for number, each in news:
        part.append((number, each))
        size += _POINT_BYTES * len(each.columns.places)
        if each.kind != "scalar":
            size += sum(map(_nbytes, each.columns.values))
        if size >= most_bytes:
            yield _frame(head, part)
            part, size = [], 0
    if part or not news:
        yield _frame(head, part)


def everything(sources: Sources, said: Sequence[str], sequence: int) -> bytes:
    """All that there is now, in one frame; for the arguments see `frames`."""
    news = sources.news(sources.unseen())
    [frame] = frames(sequence, sources.runs, said, news, float("inf"))
    return frame


def named(name: str) -> str:
    """A name of bounded length; different ones stay different."""
    if len(name) <= _LONGEST_NAME:
        return name
    digest = zlib.crc32(name.encode(errors="surrogatepass"))
    return f"{name[:_LONGEST_NAME]}… ({len(name):,} characters, {digest:08x})"


def _nbytes(value: Any) -> int:
    if isinstance(value, Image):
        return len(value.png)
    return 16 * sum(map(len, value[-2:])) if isinstance(value, tuple) else 0


def _frame(head: dict[str, Any], news: Sequence[Numbered]) -> bytes:
    series = []
    kept: list[int] = []
    found: dict[str, list[Columns]] = {kind: [] for kind in _VALUES}
    for run, each in news:
        kept += each.kept or ()
        known = -1 if each.kept is None else len(each.kept)
        row = [run, named(each.tag), each.kind, each.start, known, len(each.columns.places)]
        series.append(row)
        found[each.kind].append(each.columns)
    columns = {"kept": np.asarray(kept, np.float64)}
    header = {**head, "series": series}
    for kind, parts in found.items():
        columns[f"{kind}Place"] = _numbers([part.places for part in parts])
        columns[f"{kind}Step"] = _numbers([part.steps for part in parts])
        columns[f"{kind}Time"] = _numbers([part.times for part in parts])
        columns |= _VALUES[kind]([part.values for part in parts])
    header["texts"] = [
        [_cut(text) for text in value[:_MOST_TEXTS]]
        for part in found["text"]
        for value in part.values
    ]
    return packed(header, columns)


def _numbers(parts: _Parts) -> np.ndarray[Any, Any]:
    return np.concatenate([np.empty(0), *(np.asarray(part, np.float64) for part in parts)])


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]}… ({len(text):,} characters)"


def _scalars(parts: _Parts) -> dict[str, np.ndarray[Any, Any]]:
    return {"value": _numbers(parts)}


def _histograms(parts: _Parts) -> dict[str, np.ndarray[Any, Any]]:
    values = [value for part in parts for value in part]
    return {
        "low": np.asarray([h.low for h in values], np.float64),
        "high": np.asarray([h.high for h in values], np.float64),
        "lost": np.asarray([h.lost for h in values], np.float64),
        "buckets": np.asarray([len(h.limits) for h in values], np.int32),
        "limits": np.asarray([limit for h in values for limit in h.limits], np.float64),
        "counts": np.asarray([count for h in values for count in h.counts], np.float64),
    }


def _images(parts: _Parts) -> dict[str, np.ndarray[Any, Any]]:
    values = [value for part in parts for value in part]
    return {
        "width": np.asarray([image.width for image in values], np.int32),
        "height": np.asarray([image.height for image in values], np.int32),
        "bytes": np.asarray([len(image.png) for image in values], np.int32),
        "pixels": np.frombuffer(b"".join(image.png for image in values), np.uint8),
    }


def _texts(parts: _Parts) -> dict[str, np.ndarray[Any, Any]]:
    return {}  # They stand in the header.


_VALUES = {"scalar": _scalars, "histogram": _histograms, "image": _images, "text": _texts}
