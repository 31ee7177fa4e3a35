"""Bounding boxes: plain loops over pairs of boxes and over the pixels of edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import float32
from flowbook.graph.ops.image import boxes, detections, suppression
from tests.op_cases.case import Case, f, i

RANDOM = np.random.default_rng(6)
# With a box upside down, one without an area, and equal scores; no overlap is near a threshold.
BOXES = f(
    [
        [0, 0, 4, 4],
        [0, 1, 4, 5],
        [4, 4, 0, 0],
        [7, 7, 7, 7],
        [0, 10, 4, 14],
        [1, 10, 5, 14],
        [7] * 4,
    ]
)
SCORES = f([0.5, 0.875, 0.5, 0.25, 0.5, 0.75, 0.25])


def _overlap(a: np.ndarray, b: np.ndarray) -> float:
    shared = 1.0
    areas = [1.0, 1.0]
    for axis in (0, 1):
        ends = [sorted((box[axis], box[axis + 2])) for box in (a, b)]
        shared *= max(0.0, min(ends[0][1], ends[1][1]) - max(ends[0][0], ends[1][0]))
        areas = [area * (high - low) for area, (low, high) in zip(areas, ends, strict=True)]
    total = sum(areas) - shared
    return shared / total if shared > 0 else 0.0


def _chosen(
    found: np.ndarray, scores: np.ndarray, most: Any, overlap: Any, least: Any
) -> np.ndarray:
    order = sorted(np.flatnonzero(scores > least), key=lambda k: (-scores[k], k))
    taken: list[int] = []
    for k in order:
        free = all(not _overlap(found[k], found[j]) > overlap for j in taken)
        if len(taken) < most and free:
            taken.append(k)
    return np.array(taken, np.int32)


def _suppression(most: int, overlap: float, least: float, note: str, **values: Any) -> Case:
    return Case(
        "NonMaxSuppression",
        suppression.non_max_suppression,
        [BOXES, SCORES, i(most), f(overlap), f(least)],
        _chosen,
        by_value=True,
        empty=[BOXES[:0], SCORES[:0], i(most), f(overlap), f(least)],
        tensorflow=lambda tf, b, s, n, t, m: tf.image.non_max_suppression(
            np.float32(b), np.float32(s), n, np.float32(t), np.float32(m)
        ),
        note=note,
        **values,
    )


def _softly(
    found: np.ndarray, scores: np.ndarray, most: Any, overlap: Any, least: Any, sigma: Any
) -> tuple[np.ndarray, np.ndarray]:
    left = {k: float(s) for k, s in enumerate(scores) if s > least}
    taken: list[tuple[int, float]] = []
    while left and len(taken) < most:
        best = max(left, key=lambda k: (left[k], -k))
        taken.append((best, left.pop(best)))
        for k in [*left]:
            shared = _overlap(found[best], found[k])
            if sigma:
                left[k] *= math.exp(-0.5 * shared**2 / sigma)
            if shared > overlap or not left[k] > least:
                del left[k]
    return np.array([k for k, _ in taken], np.int32), np.array([s for _, s in taken])


def _soft_suppression(
    overlap: float, least: float, sigma: float, note: str, **options: Any
) -> Case:
    return Case(
        "NonMaxSuppressionWithScores",
        suppression.non_max_suppression_with_scores,
        [BOXES, SCORES, i(10), f(overlap), f(least), f(sigma)],
        _softly,
        by_value=True,
        empty=[BOXES[:0], SCORES[:0], i(10), f(overlap), f(least), f(sigma)],
        # In single precision, which is all that TensorFlow has here.
        tensorflow=(lambda tf, *values: tf.image.non_max_suppression_with_scores(*values))
        if options
        else None,
        **options,
        note=note,
    )


OVERLAPS = np.array([[_overlap(a, b) for b in BOXES] for a in BOXES])

# Of two images, with two classes; no box is of the same score as another.
DETECTED = np.stack([BOXES, BOXES[::-1]])[:, :, None] / 16
CLASSES = RANDOM.permutation(28).reshape(2, 7, 2) / 32


def _detections(
    found: np.ndarray, scores: np.ndarray, each: Any, total: Any, overlap: Any, least: Any
) -> tuple[np.ndarray, ...]:
    left = np.zeros((len(found), int(total), 4))
    rated, kinds = np.zeros((2, len(found), int(total)))
    counts = []
    for n, (image, of_image) in enumerate(zip(found, scores, strict=True)):
        taken = []
        for c in range(scores.shape[2]):
            own = image[:, c % image.shape[1]]
            best = _chosen(own, of_image[:, c], each, overlap, least)
            taken += [(-of_image[k, c], c, own[k]) for k in best]
        taken = sorted(taken, key=lambda one: one[0])[: int(total)]
        counts.append(len(taken))
        for place, (score, c, box) in enumerate(taken):
            left[n, place], rated[n, place], kinds[n, place] = box.clip(0, 1), -score, c
    return left, rated, kinds, np.array(counts, np.int32)


def _detecting(note: str, found: np.ndarray, most: int, total: int, least: float) -> Case:
    limits = [i(most), i(total), f(0.5), f(least)]
    return Case(
        "CombinedNonMaxSuppression",
        detections.combined_non_max_suppression,
        [found, CLASSES, *limits],
        _detections,
        fixed=[2, 3],
        empty=[found[:0], CLASSES[:0], *limits],
        tensorflow=lambda tf, b, s, n, m, *limits: [
            x if x.dtype == tf.int32 else np.float64(x)
            for x in tf.image.combined_non_max_suppression(
                np.float32(b), np.float32(s), n, m, *map(np.float32, limits)
            )
        ],
        note=note,
    )


IMAGES = np.zeros((2, 4, 5, 3))
# Two boxes for each image: a whole one, and one of which two edges are seen.
EDGES = np.array([[[0, 0, 1, 1], [-1, 0.5, 0.5, 2]], [[0.4] * 4, [0, 0.25, 0.5, 0.75]]], np.float32)
COLOURS = np.array([[0.25, 0.5, 0.75, 1], [1, 0, 0.5, 0], [0.5, 1, 0, 0]], np.float32)


def _with_edges(images: np.ndarray, edges: np.ndarray, colours: np.ndarray) -> np.ndarray:
    result = np.array(images)
    height, width, channels = images.shape[1:]
    for image, of_image in zip(result, edges, strict=True):
        for turn, box in enumerate(of_image):
            y1, x1, y2, x2 = (
                int(n * s) for n, s in zip(box, [height - 1, width - 1] * 2, strict=True)
            )
            for y in range(height):
                for x in range(width):
                    inside = y1 <= y <= y2 and x1 <= x <= x2
                    if inside and (y in (y1, y2) or x in (x1, x2)):
                        image[y, x] = colours[turn % len(colours)][:channels]
    return result


CASES = [
    _suppression(10, 0.5, -math.inf, "some"),
    _suppression(10, 0.125, -math.inf, "stricter"),
    _suppression(2, 1.0, -math.inf, "two"),
    _suppression(10, 0.5, 0.25, "good-ones"),
    _suppression(0, 0.5, -math.inf, "none"),
    Case(
        "NonMaxSuppression",
        suppression.non_max_suppression,
        [BOXES, f([0.5, np.nan, 0.25, np.inf, -np.inf, 0.75, 0.125]), i(9), f(0.5), f(-np.inf)],
        _chosen,
        by_value=True,
        tensorflow=lambda tf, b, s, n, t, m: tf.image.non_max_suppression(
            np.float32(b), np.float32(s), n, np.float32(t), np.float32(m)
        ),
        note="special-scores",
    ),
    _soft_suppression(0.5, -math.inf, 0.0, "hard"),
    _soft_suppression(1.0, -math.inf, 0.5, "soft"),
    _soft_suppression(1.0, -math.inf, 0.5, "single", only=[float32], tolerance=4),
    _soft_suppression(0.75, 0.3, 0.25, "both"),
    Case(
        "NonMaxSuppressionWithOverlaps",
        suppression.non_max_suppression_overlaps,
        [OVERLAPS, SCORES, i(3), f(0.5), f(0.25)],
        lambda o, s, n, t, m: _chosen(BOXES, s, n, t, m),
        by_value=True,
        empty=[OVERLAPS[:0, :0], SCORES[:0], i(3), f(0.5), f(0.25)],
        tensorflow=lambda tf, o, s, n, t, m: tf.image.non_max_suppression_overlaps(
            np.float32(o), np.float32(s), n, np.float32(t), np.float32(m)
        ),
    ),
    # By how much of each box lies in another: the halves are in the wholes, not the other way.
    Case(
        "NonMaxSuppressionWithOverlaps",
        suppression.non_max_suppression_overlaps,
        [np.array([[1, 0.5, 0], [1, 1, 0.75], [0, 0.25, 1]]), f([3, 2, 1]), i(3), f(0.6), f(0)],
        lambda o, s, n, t, m: np.array([0, 2], np.int32),
        by_value=True,
        tensorflow=lambda tf, o, s, n, t, m: tf.image.non_max_suppression_overlaps(
            np.float32(o), np.float32(s), n, np.float32(t), np.float32(m)
        ),
        note="one-sided",
    ),
    _detecting("one", DETECTED, 2, 9, -math.inf),
    _detecting("few", DETECTED, 5, 3, 0.25),
    _detecting("own", np.concatenate([DETECTED, DETECTED[::-1]], 2), 3, 5, 0.25),
    Case(
        "DrawBoundingBoxes",
        lambda x, b, c: boxes.draw_bounding_boxes(x, b, colors=c),
        [IMAGES, EDGES, COLOURS],
        _with_edges,
        empty=[IMAGES[:0], EDGES[:0], COLOURS],
        tensorflow=lambda tf, x, b, c: np.float64(
            tf.image.draw_bounding_boxes(np.float32(x), b, c)
        ),
    ),
]  # fmt: skip
