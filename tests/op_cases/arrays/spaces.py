"""Blocks and patches of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.ops.arrays import spaces
from flowbook.graph.ops.windows import patches
from tests.op_cases.case import (
    Case,
    f,
    i,
)

IMAGES = np.arange(2 * 4 * 6 * 2, dtype=float).reshape(2, 4, 6, 2) % 11
DEEP = np.arange(2 * 2 * 3 * 8, dtype=float).reshape(2, 2, 3, 8) % 13


def _deep(x: Any) -> Any:
    parts = [x[:, r::2, c::2] for r in range(2) for c in range(2)]
    return np.concatenate(parts, -1)


def _flat(x: Any) -> Any:
    n, h, w, c = x.shape
    found = np.zeros((n, h * 2, w * 2, c // 4), x.dtype)
    for k, part in enumerate(np.split(x, 4, -1)):
        found[:, k // 2 :: 2, k % 2 :: 2] = part
    return found


def _first(x: Any) -> Any:
    return np.moveaxis(x, -1, 1)


def _last(x: Any) -> Any:
    return np.moveaxis(x, 1, -1)


def _batches(x: Any, b: Any, p: Any) -> Any:
    blank = b"" if x.dtype.kind == "O" else 0
    x = np.pad(x, [[0, 0], *np.asarray(p).tolist(), [0, 0]], constant_values=blank)
    return np.concatenate([x[:, r :: b[0], c :: b[1]] for r in range(b[0]) for c in range(b[1])])


def _from_batches(x: Any, b: Any, c: Any) -> Any:
    found = np.zeros((1, 2 * x.shape[1], 2 * x.shape[2], x.shape[3]), x.dtype)
    for k in range(4):
        found[0, k // 2 :: 2, k % 2 :: 2] = x[k]
    return found[:, 1:, : found.shape[2] - 2]


def _patches(x: Any, padding: str) -> Any:
    """Windows of 2 x 3 pixels, 1 x 2 apart, at every second row and third column."""
    n, h, w, _ = x.shape
    reach = (2, 5)
    if padding == "SAME":
        counts = (-(-h // 2), -(-w // 3))
        lacks = [
            max(0, (m - 1) * s + r - d)
            for m, s, r, d in zip(counts, (2, 3), reach, (h, w), strict=True)
        ]
        x = np.pad(x, [(0, 0), *((k // 2, k - k // 2) for k in lacks), (0, 0)])
    rows = range(0, x.shape[1] - reach[0] + 1, 2)
    columns = range(0, x.shape[2] - reach[1] + 1, 3)
    found = [[x[:, r : r + 2, k : k + 5 : 2].reshape(n, -1) for k in columns] for r in rows]
    return np.moveaxis(np.array(found), 2, 0)


WINDOW = ([1, 2, 3, 1], [1, 2, 3, 1], [1, 1, 2, 1])

VOLUMES = np.arange(2 * 3 * 4 * 5 * 2.0).reshape(2, 3, 4, 5, 2) % 23


def _volume_patches(x: Any, size: Any, stride: Any, padding: str) -> Any:
    counts = [
        -(-d // s) if padding == "SAME" else (d - k) // s + 1
        for d, k, s in zip(x.shape[1:-1], size, stride, strict=True)
    ]
    fill = [
        max(0, (count - 1) * s + k - d)
        for count, d, k, s in zip(counts, x.shape[1:-1], size, stride, strict=True)
    ]
    padded = np.pad(x, [(0, 0), *((f // 2, f - f // 2) for f in fill), (0, 0)])
    result = np.zeros((len(x), *counts, int(np.prod(size)) * x.shape[-1]), x.dtype)
    for place in np.ndindex(*counts):
        part = tuple(slice(i * s, i * s + k) for i, s, k in zip(place, stride, size, strict=True))
        result[(slice(None), *place)] = padded[(slice(None), *part)].reshape(len(x), -1)
    return result


CASES = [
    Case(
        "SpaceToDepth",
        lambda x: spaces.space_to_depth(x, 2),
        [IMAGES],
        _deep,
        [0],
        empty=[IMAGES[:0]],
        tensorflow=lambda tf, x: tf.nn.space_to_depth(x, 2),
    ),
    Case(
        "SpaceToDepth",
        lambda x: spaces.space_to_depth(x, 2, "NCHW"),
        [_first(IMAGES)],
        lambda x: _first(_deep(_last(x))),
        [0],
        note="channels-first",
    ),
    Case(
        "DepthToSpace",
        lambda x: spaces.depth_to_space(x, 2),
        [DEEP],
        _flat,
        [0],
        empty=[DEEP[:0]],
        tensorflow=lambda tf, x: tf.nn.depth_to_space(x, 2),
    ),
    Case(
        "DepthToSpace",
        lambda x: spaces.depth_to_space(x, 2, "NCHW"),
        [_first(DEEP)],
        lambda x: _first(_flat(_last(x))),
        [0],
        note="channels-first",
    ),
    Case(
        "SpaceToBatchND",
        spaces.space_to_batch_nd,
        [IMAGES[:, :3, :4], i([2, 3]), i([[1, 0], [0, 2]])],
        _batches,
        [0],
        fixed=[1, 2],
        empty=[IMAGES[:0, :3, :4], i([2, 3]), i([[1, 0], [0, 2]])],
        tensorflow=lambda tf, x, b, p: tf.space_to_batch_nd(x, b, p),
    ),
    Case(
        "SpaceToBatchND",
        lambda x, p: spaces.space_to_batch(x, p, 2),
        [IMAGES[:, :3, :4], i([[1, 0], [0, 2]])],
        lambda x, p: _batches(x, i([2, 2]), p),
        [0],
        fixed=[1],
        tensorflow=lambda tf, x, p: tf.compat.v1.space_to_batch(x, p, 2),
        note="square",
    ),
    Case(
        "BatchToSpaceND",
        lambda x, c: spaces.batch_to_space(x, c, 2),
        [np.concatenate([IMAGES, IMAGES + 3]), i([[1, 0], [0, 2]])],
        lambda x, c: _from_batches(x, i([2, 2]), c),
        [0],
        fixed=[1],
        tensorflow=lambda tf, x, c: tf.compat.v1.batch_to_space(x, c, 2),
        note="square",
    ),
    Case(
        "BatchToSpaceND",
        spaces.batch_to_space_nd,
        [np.concatenate([IMAGES, IMAGES + 3]), i([2, 2]), i([[1, 0], [0, 2]])],
        _from_batches,
        [0],
        fixed=[1, 2],
        empty=[IMAGES[:0], i([2, 2]), i([[1, 0], [0, 2]])],
        tensorflow=lambda tf, x, b, p: tf.batch_to_space(x, b, p),
    ),
    Case(
        "ExtractImagePatches",
        lambda x: patches.extract_image_patches(x, *WINDOW, "VALID"),
        [IMAGES],
        lambda x: _patches(x, "VALID"),
        [0],
        empty=[IMAGES[:0]],
        tensorflow=lambda tf, x: tf.image.extract_patches(x, *WINDOW, "VALID"),
        note="valid",
    ),
    Case(
        "ExtractImagePatches",
        lambda x: patches.extract_image_patches(x, *WINDOW, "SAME"),
        [IMAGES],
        lambda x: _patches(x, "SAME"),
        [0],
        tensorflow=lambda tf, x: tf.image.extract_patches(x, *WINDOW, "SAME"),
        note="same",
    ),
    *(
        Case(
            "ExtractImagePatches",
            lambda x, padding=padding: patches.extract_volume_patches(
                x, [1, 2, 2, 3, 1], [1, 1, 2, 2, 1], padding
            ),
            [VOLUMES],
            lambda x, padding=padding: _volume_patches(x, (2, 2, 3), (1, 2, 2), padding),
            [0],
            tensorflow=lambda tf, x, padding=padding: tf.extract_volume_patches(
                x, [1, 2, 2, 3, 1], [1, 1, 2, 2, 1], padding
            ),
            note=f"volumes-{padding}",
        )
        for padding in ("VALID", "SAME")
    ),
    Case(
        "ExtractImagePatchesGrad",
        lambda dy, s: patches.patches_gradient_op(
            dy, s, ksizes=(1, 2), strides=(1, 1), rates=(1, 1), padding="VALID"
        ),
        [f([[[[1.0, 2.0], [3.0, 4.0]]]]), i([1, 1, 3, 1])],
        lambda dy, s: np.array([dy[0, 0, 0, 0], dy[0, 0, 0, 1] + dy[0, 0, 1, 0], dy[0, 0, 1, 1]])[
            None, None, :, None
        ],
        [0],
        fixed=[1],
    ),
]
