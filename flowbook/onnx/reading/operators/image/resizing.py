"""Tensors in another size: along each axis a weighted sum of a few elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.types import Table

Array = np.ndarray[Any, Any]


def _resize(node: Node, x: Any, *_: Any) -> Any:
    rank = node.rank(x)
    axes = [node.axis(a, rank) for a in node.get("axes", range(rank))]
    given = {"roi": 1, "scales": 2} if node.opset >= 11 else {"scales": 1}
    found = {name: node.value(position) for name, position in given.items()}
    found = {k: None if v is None or not v.size else v.astype(np.float64) for k, v in found.items()}
    roi = found.get("roi")
    sizes = node.sizes(3, x, axes) if node.opset >= 11 else None
    if sizes:
        policy = node.get("keep_aspect_ratio_policy", "stretch")
        if roi is None and policy == "stretch":
            axes, sizes = _changing(axes, sizes, None)
        old = [node.size(x, a) for a in axes]
        new, scales = _from_sizes(
            [o if s is None else s for o, s in zip(old, sizes, strict=True)], old, policy
        )
    else:
        scales = [float(s) for s in found["scales"]]  # type: ignore[union-attr]
        if roi is None:
            axes, scales = _changing(axes, scales, 1)
        new = [math.floor(node.size(x, a) * s) for a, s in zip(axes, scales, strict=True)]
    return _resized(node, x, axes, new, scales, roi)


def _changing(axes: list[int], changes: list[Any], none: Any) -> tuple[list[int], list[Any]]:
    """The axes that change, and how; a dimension that stays need not be known."""
    kept = [(axis, change) for axis, change in zip(axes, changes, strict=True) if change != none]
    return [axis for axis, _ in kept], [change for _, change in kept]


def _from_sizes(new: list[int], old: list[int], policy: str) -> tuple[list[int], list[float]]:
    ratios = [n / d for n, d in zip(new, old, strict=True)]
    if policy == "stretch":
        return new, ratios
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    return [math.floor(ratio * d + 0.5) for d in old], [ratio] * len(old)


def _resized(
    node: Node, x: Any, axes: list[int], new: list[int], scales: list[float], roi: Any
) -> Any:
    mode = node.get("mode", "nearest")
    how = node.get("coordinate_transformation_mode", "half_pixel")
    if node.opset < 11:
        how = "asymmetric"
    wide = x.dtype
    if mode != "nearest" and x.dtype not in (fb.float32, fb.float64):
        wide = fb.float32
    result = fb.cast(x, wide) if wide is not x.dtype else x
    outside: list[tuple[int, Array]] = []
    for i, axis in enumerate(axes):
        size = node.size(x, axis)
        bounds = None if roi is None else (roi[i], roi[len(axes) + i])
        if scales[i] == 1.0 and new[i] == size and how != "tf_crop_and_resize":
            continue
        places = _places(node, how, size, new[i], scales[i], bounds)
        if how == "tf_crop_and_resize":
            outside.append((axis, (places < 0) | (places > size - 1)))
        index, weights = _taps(node, mode, places, size, scales[i])
        result = _along(result, axis, index, weights)
    for axis, mask in outside:
        if mask.any():
            shape = [-1 if i == axis else 1 for i in range(node.rank(x))]
            value = np.asarray(node.get("extrapolation_value", 0.0)).astype(wide.numpy)
            result = fb.where(mask.reshape(shape), fb.constant(value), result)
    return fb.identity(result) if wide is x.dtype else fb.cast(result, x.dtype)


# What is computed for each element of a side becomes a constant of the graph.
_LARGEST = 1 << 20


def _places(node: Node, how: str, old: int, new: int, scale: float, bounds: Any) -> Array:
    """Where each element of the result lies in the input."""
    if new > _LARGEST:
        raise node.refuse(f"a side of {new} elements, more than {_LARGEST},")
    i: Array = np.arange(new, dtype=np.float64)
    exact = scale * old
    match how:
        case "half_pixel":
            return (i + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (i + 0.5) / scale - 0.5 if exact != 1 else i * 0 - 0.5
        case "half_pixel_symmetric":
            offset: float = old / 2 * (1 - new / exact)
            return offset + (i + 0.5) / scale - 0.5
        case "align_corners":
            return i * (old - 1) / (exact - 1) if exact != 1 else i * 0
        case "asymmetric":
            return i / scale
        case "tf_half_pixel_for_nn":
            return (i + 0.5) / scale
        case "tf_crop_and_resize":
            if bounds is None:
                raise node.refuse("tf_crop_and_resize without a region")
            start, end = float(bounds[0]), float(bounds[1])
            if new == 1:
                return i * 0 + 0.5 * (start + end) * (old - 1)
            return start * (old - 1) + i * (end - start) * (old - 1) / (exact - 1)
    raise node.refuse(f"the coordinate_transformation_mode {how!r}")


def _taps(node: Node, mode: str, places: Array, old: int, scale: float) -> tuple[Array, Any]:
    """Which elements make up each of the result, and with which weights; None for one alone."""
    if mode == "nearest":
        rounding = node.get("nearest_mode", "round_prefer_floor") if node.opset >= 11 else "floor"
        roundings: dict[str, Any] = {
            "round_prefer_floor": lambda p: np.ceil(p - 0.5),
            "round_prefer_ceil": lambda p: np.floor(p + 0.5),
            "floor": np.floor,
            "ceil": np.ceil,
        }
        index = roundings[rounding](places)
        return np.clip(index, 0, old - 1).astype(np.int64), None
    narrow = min(scale, 1.0) if node.get("antialias", 0) else 1.0
    # The fraction is in (0, 1]: a place on an element belongs to the interval before it.
    base = np.ceil(places) - 1
    fraction = (places - base)[:, None]
    reach = 2 if mode == "cubic" else 1
    start = math.floor(-reach / narrow) + 1
    steps = np.arange(start, 2 - start)[None]
    distance = np.abs(steps - fraction) * narrow
    if mode == "cubic":
        weights = _cubic(distance, node.get("cubic_coeff_a", -0.75))
    elif mode == "linear":
        weights = np.clip(1 - distance, 0, 1)
    else:
        raise node.refuse(f"the mode {mode!r}")
    index = base[:, None] + steps
    if node.get("exclude_outside", 0):
        weights = np.where((index < 0) | (index >= old), 0, weights)
    weights = weights / weights.sum(1, keepdims=True)
    return np.clip(index, 0, old - 1).astype(np.int64), weights


def _cubic(distance: Array, a: float) -> Array:
    """Keys's weights."""
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


def _along(x: Any, axis: int, index: Array, weights: Any) -> Any:
    if weights is None:
        return fb.gather(x, index, axis)
    rank = len(x.shape.dims)
    shape = [-1 if i == axis else 1 for i in range(rank)]
    total = None
    for k in range(index.shape[1]):
        if not weights[:, k].any():
            continue
        share = fb.constant(weights[:, k].reshape(shape).astype(x.dtype.numpy))
        part = fb.gather(x, index[:, k], axis) * share
        total = part if total is None else total + part
    return total


def _upsample(node: Node, x: Any, scales: Any = None) -> Any:
    found = node.get("scales") if node.opset < 9 else [float(s) for s in node.value(1)]  # type: ignore[union-attr]
    if found is None:
        found = [1.0, 1.0, node.need("height_scale"), node.need("width_scale")]
    axes = [axis for axis, scale in enumerate(found) if scale != 1]
    kept = [found[axis] for axis in axes]
    new = [math.floor(node.size(x, a) * s) for a, s in zip(axes, kept, strict=True)]
    return _resized(node, x, axes, new, kept, None)


TABLE: Table = {
    "Resize": _resize,
    "Upsample": _upsample,
}
