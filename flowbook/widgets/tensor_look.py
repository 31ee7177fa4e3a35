"""What a person sees of a value: statistics, a histogram, pictures, or the value itself as text.

Everything is computed here and bounded, so that a page gets little, whatever the value is. Numbers
that are shown are text: JSON knows neither NaN nor infinities.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import widened
from flowbook.graph.numerics.formats.image_codecs import encode_png
from flowbook.graph.numerics.tensor_text import text_of

MOST_BINS = 40
MOST_PICTURES = 4
LARGEST_SIDE = 256  # Of a picture, in pixels.
MOST_ELEMENTS = 64  # That are shown as they are.
MOST_STRINGS = 20
LONGEST = 200  # Characters of one string.

_SMALLEST_SIDE = 6
_MOST_UNEQUAL = 16  # Width over height of what looks like a picture, or height over width.
_NOT_FINITE = (214, 51, 132)

Array = np.ndarray[Any, Any]


def look(value: Any) -> tuple[dict[str, Any], list[bytes]]:
    """What is shown of a value.

    Args:
        value: what a fetch gave: an array of any dtype, or a scalar.

    Returns:
        Plain data: "dtype", "shape", "bytes"; "statistics", pairs of words and numbers; "histogram"
        with "edges", "counts" and "of"; "pictures", a list of what each is, with "scale" to say
        what black and white are; "text"; each where it fits the value. And the PNG files of the
        pictures.
    """
    array = np.asarray(value, object) if isinstance(value, bytes) else np.asarray(value)
    strings = array.dtype.kind == "O"
    found: dict[str, Any] = {
        "dtype": "string" if strings else array.dtype.name,
        "shape": list(array.shape),
        "bytes": sum(map(len, array.ravel())) if strings else int(array.nbytes),
    }
    if strings:
        found["text"] = _strings(array)
        return found, []
    if array.size <= MOST_ELEMENTS:
        found["text"] = text_of(array, MOST_ELEMENTS)
    if array.size < 2:
        return found, []
    numbers, of = _numbers(array)
    finite = _Finite(numbers)
    found["statistics"] = _statistics(numbers, finite)
    if finite.count:
        found["histogram"] = {**_histogram(numbers, finite), "of": of}
    pictures, scale = _pictures(numbers)
    if pictures:
        found["pictures"] = [[p.shape[1], p.shape[0]] for p in pictures]
        found["scale"] = scale
    return found, [encode_png(picture, -1) for picture in pictures]


def _strings(array: Array) -> str:
    flat = array.ravel()
    lines = []
    for each in flat[:MOST_STRINGS]:
        text = each[: 4 * LONGEST].decode(errors="backslashreplace")
        cut = len(text) > LONGEST or len(each) > 4 * LONGEST
        lines.append(f"{text[:LONGEST]}… ({len(each):,} bytes)" if cut else text)
    rest = flat.size - len(lines)
    return "\n".join([*lines, f"and {rest:,} more"] if rest else lines)


def _numbers(array: Array) -> tuple[Array, str]:
    """The value as numbers that NumPy computes with, and what they are of it."""
    if array.dtype.kind == "c":
        with np.errstate(all="ignore"):
            return np.abs(array), "magnitudes"
    if array.dtype.kind == "b":
        return array.astype(np.uint8), "values"
    wide = widened(array)
    is_short = wide.dtype.kind not in "iu" and wide.dtype.itemsize == 2
    return (wide.astype(np.float32) if is_short else wide), "values"


class _Finite:
    """The finite ones among numbers, divided by the largest: no sum or square of them overflows."""

    def __init__(self, numbers: Array) -> None:
        found = numbers[np.isfinite(numbers)] if numbers.dtype.kind == "f" else numbers.ravel()
        self.count = found.size
        self.low: Any = found.min() if found.size else 0
        self.high: Any = found.max() if found.size else 0
        self.unit = max(abs(float(self.low)), abs(float(self.high))) or 1.0
        self.scaled = found.astype(np.float64)
        self.scaled /= self.unit


def _statistics(numbers: Array, finite: _Finite) -> list[list[str]]:
    rows = []
    if finite.count:
        rows = [
            ["min", _number(finite.low)],
            ["max", _number(finite.high)],
            ["mean", _number(float(finite.scaled.mean()) * finite.unit)],
            ["std", _number(float(finite.scaled.std()) * finite.unit)],
        ]
    rows.append(["zeros", _share(int(np.count_nonzero(numbers == 0)), numbers.size)])
    if numbers.dtype.kind == "f":
        rows.append(["NaN", _share(int(np.count_nonzero(np.isnan(numbers))), numbers.size)])
        rows.append(["Inf", _share(int(np.count_nonzero(np.isinf(numbers))), numbers.size)])
    return rows


def _number(value: Any) -> str:
    return str(int(value)) if isinstance(value, np.integer) else f"{float(value):.5g}"


def _share(count: int, size: int) -> str:
    return f"{count:,} ({100 * count / size:.3g} %)" if count else "0"


def _histogram(numbers: Array, finite: _Finite) -> dict[str, Any]:
    """Counts between edges; those of one value have no width."""
    low, high = finite.low, finite.high
    if numbers.dtype.kind in "iu" and int(high) - int(low) < MOST_BINS:
        # One bin for each integer, which stands in its middle.
        counts = np.bincount((numbers - low).astype(np.int64).ravel())
        edges = np.arange(len(counts) + 1) - 0.5 + int(low)
    elif low == high:
        counts, edges = np.asarray([finite.count]), np.asarray([low, low], np.float64)
    else:
        counts, edges = np.histogram(finite.scaled, MOST_BINS)
        edges = edges * finite.unit
    return {"edges": edges.tolist(), "counts": counts.tolist()}


def _pictures(numbers: Array) -> tuple[list[Array], list[str]]:
    """The first pictures of what looks like some, as uint8 [h, w, 1 or 3 or 4], and their scale."""
    batch = _batch(numbers)
    if batch is None:
        return [], []
    shown = np.stack([_smaller(picture) for picture in batch[:MOST_PICTURES]])
    if numbers.dtype == np.uint8 and (shown.shape[-1] > 1 or shown.max() > 1):
        low, high = 0.0, 255.0
    else:
        finite = shown[np.isfinite(shown)]
        if not finite.size:
            return [], []
        low, high = float(finite.min()), float(finite.max())
        if shown.shape[-1] > 1 and low >= 0.0 and high <= 1.0:
            low, high = 0.0, 1.0
    return [_painted(picture, low, high) for picture in shown], [_number(low), _number(high)]


def _batch(numbers: Array) -> Array | None:
    """As [n, height, width, channels]; None where it looks like no pictures."""
    shape = numbers.shape
    if len(shape) == 4 and shape[-1] in (1, 3, 4):
        batch = numbers
    elif len(shape) == 3 and shape[-1] in (1, 3, 4):
        batch = numbers[None]
    elif len(shape) == 3:
        batch = numbers[..., None]
    elif len(shape) == 2:
        batch = numbers[None, ..., None]
    else:
        return None
    count, height, width, _ = batch.shape
    sides = sorted((height, width))
    if not count or sides[0] < _SMALLEST_SIDE or sides[1] > _MOST_UNEQUAL * sides[0]:
        return None
    return batch


def _smaller(picture: Array) -> Array:
    """A picture whose sides are not too long: the means of blocks, as float64."""
    height, width, channels = picture.shape
    step = math.ceil(max(height, width) / LARGEST_SIDE)
    if step == 1:
        return picture.astype(np.float64)
    rows, columns = height // step, width // step
    blocks = picture[: rows * step, : columns * step].astype(np.float64)
    with np.errstate(all="ignore"):
        means: Array = blocks.reshape(rows, step, columns, step, channels).mean((1, 3))
    return means


def _painted(picture: Array, low: float, high: float) -> Array:
    """Numbers as colours: `low` is black; what is not finite stands out."""
    with np.errstate(all="ignore"):
        scaled = (picture / 2 - low / 2) / ((high / 2 - low / 2) or 1.0)
    finite = np.isfinite(scaled)
    levels = (np.clip(np.where(finite, scaled, 0.0), 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)
    if finite.all():
        return levels
    broken = ~finite.all(axis=-1)
    painted = np.repeat(levels, 3, axis=-1) if levels.shape[-1] == 1 else levels[..., :3].copy()
    painted[broken] = _NOT_FINITE
    return painted
