"""Values between pixels: grids of places in images, regions of interest."""

from __future__ import annotations

from itertools import product as combinations
from typing import Any

import numpy as np

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.math.arithmetic import like
from flowbook.onnx.reading.operators.types import Table


def sampled(node: Node, x: Any, places: Any, mode: str, border: str, align_corners: bool) -> Any:
    """The values of images at places, interpolated.

    Args:
        x: [batch, channels, ...], all sizes between known.
        places: [batch, n, k], in pixels, one coordinate for each axis between.
        mode: "nearest", "linear" or "cubic".
        border: what lies outside: "zeros", "border" or "reflection".
        align_corners: whether reflection is at the outer pixels' centres, not at their edges.

    Returns:
        [batch, channels, n].
    """
    dims = node.dims(x)
    batch, channels, inner = dims[0], dims[1], dims[2:]
    rank = len(inner)
    flat = fb.transpose(fb.reshape(x, [batch, channels, -1]), (0, 2, 1))
    coordinates = [places[..., i] for i in range(rank)]
    if mode != "cubic":
        coordinates = [
            _bordered(c, d, border, align_corners) for c, d in zip(coordinates, inner, strict=True)
        ]
    taps = [_taps(c, mode) for c in coordinates]
    total = None
    for chosen in combinations(*taps):
        index, weight, inside = None, None, None
        for (place, share), d in zip(chosen, inner, strict=True):
            if mode == "cubic":
                place = _bordered(place, d, border, align_corners)
            if border == "zeros":
                fits = fb.logical_and(place >= like(place, 0), place <= like(place, d - 1))
                inside = fits if inside is None else fb.logical_and(inside, fits)
            whole = fb.cast(fb.clip_by_value(place, like(place, 0), like(place, d - 1)), fb.int64)
            index = whole if index is None else index * d + whole
            if share is not None:
                weight = share if weight is None else weight * share
        values = fb.gather(flat, index, axis=1, batch_dims=1)
        if weight is not None:
            values = values * fb.cast(fb.expand_dims(weight, -1), x.dtype)
        if inside is not None:
            values = fb.where(fb.expand_dims(inside, -1), values, fb.zeros_like(values))
        total = values if total is None else total + values
    return fb.transpose(total, (0, 2, 1))


def _taps(place: Any, mode: str) -> list[tuple[Any, Any]]:
    """The pixels along one axis that make up a value, with their weights."""
    if mode == "nearest":
        return [(fb.round(place), None)]
    low = fb.floor(place)
    share = place - low
    one = like(place, 1)
    if mode == "linear":
        return [(low, one - share), (low + one, share)]
    return [(low + like(place, k), _cubic(fb.abs(share - like(place, k)))) for k in (-1, 0, 1, 2)]


def _cubic(distance: Any, a: float = -0.75) -> Any:
    """Keys's weight of a pixel at a distance."""
    near = (like(distance, a + 2) * distance - like(distance, a + 3)) * distance * distance
    near = near + like(distance, 1)
    far = (like(distance, a) * distance - like(distance, 5 * a)) * distance
    far = (far + like(distance, 8 * a)) * distance - like(distance, 4 * a)
    return fb.where(distance <= like(distance, 1), near, far)


def _bordered(place: Any, size: int, border: str, align_corners: bool) -> Any:
    """A coordinate brought inside as the border asks."""
    last = like(place, size - 1)
    if border == "border":
        return fb.clip_by_value(place, like(place, 0), last)
    if border != "reflection":
        return place
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    if high <= low:
        return fb.zeros_like(place)
    period = like(place, 2 * (high - low))
    beyond = fb.mod(place - like(place, low), period)
    folded = fb.minimum(beyond, period - beyond) + like(place, low)
    return folded


def _grid_sample(node: Node, x: Any, grid: Any) -> Any:
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(
        node.get("mode", "linear"), node.get("mode", "linear")
    )
    align = bool(node.get("align_corners", 0))
    inner = node.dims(x)[2:]
    rank = len(inner)
    out = node.dims(grid)
    coordinates = []
    # The last coordinate is that of the first axis.
    for i, d in enumerate(inner):
        c = fb.cast(grid[..., rank - 1 - i], x.dtype)
        one = like(c, 1)
        if align:
            coordinates.append((c + one) * like(c, (d - 1) / 2))
        else:
            coordinates.append(((c + one) * like(c, d) - one) * like(c, 0.5))
    places = fb.reshape(fb.stack(coordinates, -1), [out[0], -1, rank])
    found = sampled(node, x, places, mode, node.get("padding_mode", "zeros"), align)
    return fb.reshape(found, [*node.dims(x)[:2], *out[1:-1]])


def _roi_align(node: Node, x: Any, rois: Any, batch: Any) -> Any:
    height, width = node.get("output_height", 1), node.get("output_width", 1)
    ratio = node.get("sampling_ratio", 0)
    if ratio <= 0:
        raise node.refuse("a number of samples that depends on the regions (sampling_ratio=0)")
    modern = node.opset >= 16 and node.get("coordinate_transformation_mode", "half_pixel") == (
        "half_pixel"
    )
    half = like(x, 0.5 if modern else 0.0)
    corners = rois * like(x, node.get("spatial_scale", 1.0)) - half
    _, channels, *inner = node.dims(x)
    axes = []
    for i, (count, size) in enumerate(zip((height, width), inner, strict=True)):
        start, stop = corners[:, 1 - i], corners[:, 3 - i]
        extent = stop - start
        if not modern:
            extent = fb.maximum(extent, like(x, 1))
        share = (np.arange(count * ratio) + 0.5) / (count * ratio)
        shares = fb.constant(share.astype(x.dtype.numpy))
        place = fb.expand_dims(start, 1) + fb.expand_dims(extent, 1) * shares
        outside = fb.logical_or(place < like(x, -1), place > like(x, size))
        inside = fb.clip_by_value(place, like(x, 0), like(x, size - 1))
        # What lies more than a pixel outside counts as zero.
        axes.append(fb.where(outside, fb.zeros_like(place) - like(x, 1e4), inside))
    rows, columns = fb.expand_dims(axes[0], 2), fb.expand_dims(axes[1], 1)
    spread = [rows + fb.zeros_like(columns), columns + fb.zeros_like(rows)]
    count = node.dims(rois)[0]
    places = fb.reshape(fb.stack(spread, -1), [count, -1, 2])
    images = fb.gather(x, fb.cast(batch, fb.int64))
    if node.get("mode", "avg") == "max":
        return _largest_parts(node, images, places, [height, ratio, width, ratio], inner)
    found = sampled(node, images, places, "linear", "zeros", False)
    split = fb.reshape(found, [count, channels, height, ratio, width, ratio])
    return fb.reduce_mean(split, [3, 5])


def _largest_parts(node: Node, images: Any, places: Any, split: list[int], inner: list[int]) -> Any:
    """The largest weighted pixel of those that the samples of a bin are interpolated from."""
    count, channels = node.dims(images)[:2]
    flat = fb.transpose(fb.reshape(images, [count, channels, -1]), (0, 2, 1))
    best = None
    for chosen in combinations(*(_taps(places[..., i], "linear") for i in (0, 1))):
        index, weight = None, None
        for (place, share), d in zip(chosen, inner, strict=True):
            bounded = fb.clip_by_value(place, like(place, 0), like(place, d - 1))
            whole = fb.cast(bounded, fb.int64)
            index = whole if index is None else index * d + whole
            share = fb.where(place < like(place, -1), fb.zeros_like(share), share)
            weight = share if weight is None else weight * share
        part = fb.gather(flat, index, axis=1, batch_dims=1) * fb.expand_dims(weight, -1)
        best = part if best is None else fb.maximum(best, part)
    found = fb.reshape(fb.transpose(best, (0, 2, 1)), [count, channels, *split])
    return fb.reduce_max(found, [3, 5])


def _affine_grid(node: Node, theta: Any, _: Any) -> Any:
    size = [int(d) for d in node.value(1)]  # type: ignore[union-attr]
    inner = size[2:]
    align = bool(node.get("align_corners", 0))
    axes = []
    for d in inner:
        if align:
            axes.append(np.linspace(-1, 1, d) if d > 1 else np.zeros(1))
        else:
            axes.append((np.arange(d) * 2 + 1) / d - 1)
    # The last axis is the first coordinate.
    grid = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(inner)], -1)
    flat = fb.constant(grid.reshape(-1, len(inner) + 1).astype(theta.dtype.numpy))
    found = fb.matmul(flat, fb.transpose(theta, (0, 2, 1)))
    return fb.reshape(found, [size[0], *inner, len(inner)])


_MOST_SELECTIONS = 2000


def _suppress(
    node: Node, boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least: Any = None
) -> Any:
    """Boxes by their scores, without those that overlap one kept before: a step for each kept."""
    count = boxes.shape.dims[1]
    wanted = 0 if most is None else int(node.number(2))
    steps = wanted if count is None else min(wanted, count)
    if steps > _MOST_SELECTIONS:
        raise node.refuse(f"keeping {steps} boxes, one by one,")
    node.spend(steps)
    if not steps:
        return fb.zeros([0, 3], fb.int64)
    overlaps = _overlaps(boxes, bool(node.get("center_point_box", 0)))
    bound = fb.zeros([], boxes.dtype) if overlap is None else fb.reshape(overlap, [])
    alive = fb.ones_like(scores, fb.bool) if least is None else scores > fb.reshape(least, [])
    lowest = fb.constant(scores.dtype.min, scores.dtype)
    places, kept = [], []
    for _ in range(steps):
        best = fb.argmax(fb.where(alive, scores, lowest), -1)
        # Where all are suppressed, the first maximum stands for none.
        kept.append(fb.reduce_any(alive, -1))
        places.append(best)
        apart = fb.gather(overlaps, best, axis=1, batch_dims=1) <= bound
        others = fb.logical_not(fb.one_hot(best, fb.shape(scores)[2], True, False))
        alive = fb.logical_and(alive, fb.logical_and(apart, others))
    found = fb.where(fb.stack(kept, -1))
    chosen = fb.gather_nd(fb.stack(places, -1), found)
    return fb.concat([found[:, :2], fb.expand_dims(chosen, 1)], 1)


def _overlaps(boxes: Any, by_centre: bool) -> Any:
    """For each two boxes of an image the share of their union in which they overlap."""
    if by_centre:
        half = boxes[..., 2:] * like(boxes, 0.5)
        low, high = boxes[..., :2] - half, boxes[..., :2] + half
    else:
        low = fb.minimum(boxes[..., :2], boxes[..., 2:])
        high = fb.maximum(boxes[..., :2], boxes[..., 2:])
    area = fb.reduce_prod(high - low, -1)
    first, second = (fb.expand_dims(high, i) for i in (1, 2))
    shared = fb.minimum(first, second)
    first, second = (fb.expand_dims(low, i) for i in (1, 2))
    shared = fb.maximum(shared - fb.maximum(first, second), like(boxes, 0))
    common = fb.reduce_prod(shared, -1)
    return fb.div_no_nan(common, fb.expand_dims(area, 1) + fb.expand_dims(area, 2) - common)


TABLE: Table = {
    "AffineGrid": _affine_grid,
    "GridSample": _grid_sample,
    "NonMaxSuppression": _suppress,
    "RoiAlign": _roi_align,
}
