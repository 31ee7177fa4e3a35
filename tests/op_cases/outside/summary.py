"""Summaries, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import float32, uint8
from flowbook.graph.ops.outside import summary
from tests.op_cases.case import Case, Scenario, f
from tests.op_cases.text.strings import t

VALUES = f([[0.5, -1.5, 2.0], [3.0, -0.25, 0.0]])
IMAGES = np.linspace(0.0, 2.0, 2 * 4 * 3 * 1).reshape(2, 4, 3, 1)
SIGNED = np.linspace(-1.0, 0.5, 12).reshape(1, 2, 2, 3)


def _histogram(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each value looked up among the limits, one by one."""
    flat = [float(v) for v in x.ravel() if np.isfinite(v)]
    lost = x.size - len(flat)
    if not flat:
        return f([0.0, 0.0, 0.0, 0.0, 0.0, lost]), np.zeros((0, 2))
    up = 1e-12 * 1.1 ** np.arange(774)

    def number(v: float) -> int:
        k = int(np.searchsorted(up, abs(v), side="right"))
        return -k if v < 0 else k

    numbers = [number(v) for v in flat]
    buckets = []
    for k in range(min(numbers), max(numbers) + 1):
        limit = -(1e-12 * 1.1 ** (-k - 1)) if k < 0 else 1e-12 * 1.1**k
        buckets.append([limit, float(numbers.count(k))])
    buckets[-1][0] = max(flat)
    total = [min(flat), max(flat), len(flat), sum(flat), sum(v * v for v in flat), lost]
    return f(total), f(buckets)


def _image(most: int) -> Any:
    def reference(x: np.ndarray) -> np.ndarray:
        images = []
        for image in x[:most]:
            if image.min() < 0:
                images.append(image / np.abs(image).max() * 127.0 + 128.0)
            else:
                images.append(image / image.max() * 255.0)
        return np.stack(images).astype(np.uint8)

    return reference


CASES = [
    Case(
        "ScalarSummary",
        lambda x: summary.scalar_op(x, tag="loss <b>"),
        [f(2.5)],
        lambda x: np.float64(x),
        special=[f(np.nan)],
    ),
    Case(
        "HistogramSummary",
        lambda x: summary.histogram_op(x),
        [VALUES],
        _histogram,
        empty=[np.zeros((0, 3))],
        special=[f([np.nan, np.inf, 1.0, -np.inf, -2.0])],
        by_value=True,
        only=[float32],
    ),
    Case(
        "ImageSummary",
        lambda x: summary.image_op(x, max_outputs=1),
        [IMAGES],
        _image(1),
        only=[float32],
        by_value=True,
    ),
    Case(
        "ImageSummary",
        lambda x: summary.image_op(x, max_outputs=3),
        [SIGNED],
        _image(3),
        only=[float32],
        note="signed",
    ),
    Case(
        "ImageSummary",
        lambda x: summary.image_op(x, max_outputs=3),
        [np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3)],
        lambda x: x,
        only=[uint8],
        note="uint8",
    ),
    Case(
        "TextSummary",
        lambda x: summary.text_op(x),
        [t("plain", b"<script>\xff", "")],
        lambda x: x,
        empty=[np.empty((0, 3), object)],
    ),
]

SCENARIOS: list[Scenario] = []
