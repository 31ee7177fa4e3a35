"""What the outputs of each kind of summary say: named values in the forms of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.exec.instruments.summaries.event import Histogram, Image
from flowbook.graph.model.operation import Operation
from flowbook.graph.numerics.formats.image_codecs import encode_png

_Read = list[tuple[str, str, Any]]


def _scalar(operation: Operation, tag: str, value: Any) -> _Read:
    return [(tag, "scalar", float(value))]


def _histogram(operation: Operation, tag: str, statistics: Any, buckets: Any) -> _Read:
    limits, counts = buckets.T.tolist()
    low, high, number, total, squares, lost = statistics.tolist()
    known = low, high, number, total, squares, int(lost)
    return [(tag, "histogram", Histogram(*known, tuple(limits), tuple(counts)))]


def _image(operation: Operation, tag: str, pixels: Any) -> _Read:
    names = (
        [f"{tag}/image"]
        if operation.attributes["max_outputs"] == 1
        else [f"{tag}/image/{i}" for i in range(len(pixels))]
    )
    return [
        (name, "image", Image(*_size(image), encode_png(image, -1)))
        for name, image in zip(names, pixels, strict=False)
        if image.size
    ]


def _size(image: Any) -> tuple[int, int, int]:
    height, width, channels = image.shape
    return height, width, channels


def _text(operation: Operation, tag: str, value: Any) -> _Read:
    texts = [value] if isinstance(value, bytes) else np.asarray(value, object).ravel()
    return [(tag, "text", tuple([text.decode(errors="replace") for text in texts]))]


# By `OpDef.summary`: from the operation, its tag and its outputs to names, kinds and values.
READERS: dict[str, Callable[..., _Read]] = {
    "scalar": _scalar,
    "histogram": _histogram,
    "image": _image,
    "text": _text,
}
