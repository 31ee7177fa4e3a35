"""Images in another size, against plain loops over their pixels."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.ops.image import resizing
from tests.op_cases.case import Case, i

IMAGES = np.sin(np.arange(2 * 3 * 4 * 2.0) ** 2).reshape(2, 3, 4, 2)
WHOLE = np.arange(2 * 3 * 4 * 2.0).reshape(2, 3, 4, 2) % 7


def _weights(method: str, old: int, new: int, align: bool, half: bool) -> np.ndarray:
    """[new, old]: how much of each old pixel a new one has."""
    found = np.zeros((new, old))
    scale = (old - 1) / (new - 1) if align and new > 1 else old / new
    for k in range(new):
        at = (k + 0.5) * scale - 0.5 if half else k * scale

        def add(place: float, weight: float, k: int = k) -> None:
            found[k, min(max(int(place), 0), old - 1)] += weight

        if method == "nearest":
            add(math.floor(at + 0.5) if align or half else math.floor(at), 1)
        elif method == "bilinear":
            low = math.floor(at)
            add(low, 1 - (at - low))
            add(low + 1, at - low)
        elif method == "area":
            for j in range(old + 1):
                add(j, max(0.0, min(j + 1, (k + 1) * scale) - max(j, k * scale)) / scale)
        else:
            low = math.floor(at)
            at = low + round((at - low) * 1024) / 1024
            for j in range(low - 1, low + 3):
                if not half or 0 <= j < old:
                    add(j, _cubic(abs(at - j), -0.5 if half else -0.75))
            found[k] /= found[k].sum()
    return found


def _cubic(x: float, a: float) -> float:
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4)


def _reference(x: np.ndarray, size: Any, **how: Any) -> np.ndarray:
    rows = _weights(old=x.shape[1], new=int(size[0]), **how)
    columns = _weights(old=x.shape[2], new=int(size[1]), **how)
    return np.einsum("bhwc,yh,xw->byxc", x, rows, columns)


def _recorded(method: str, size: Any, align: bool = False, half: bool = False) -> Case:
    """A row of float32 only, as which TensorFlow resizes whatever it is given."""
    how = {"align_corners": align} | ({"half_pixel_centers": half} if method != "area" else {})
    name = f"resize_{'nearest_neighbor' if method == 'nearest' else method}"
    row = _case(method, size, align, half)
    return dataclasses.replace(
        row,
        differentiable=[],
        only=[dtypes.float32],
        tensorflow=lambda tf, x, n: getattr(tf.compat.v1.image, name)(x, n, **how),
        note=f"{row.note}-recorded",
    )


def _case(method: str, size: Any, align: bool = False, half: bool = False) -> Case:
    how = {"method": method, "align_corners": align, "half_pixel_centers": half}
    note = "-".join([method, *map(str, size), *["aligned"] * align, *["half"] * half])
    return Case(
        "Resize",
        lambda x, n: resizing.resize_op(x, n, **how),
        [WHOLE if method == "nearest" else IMAGES, i(*size)],
        lambda x, n: _reference(x, n, method=method, align=align, half=half),
        [0],
        fixed=[1],
        only=None if method == "nearest" else dtypes.FLOATS,
        empty=[np.zeros((0, 3, 4, 2)), i(*size)],
        tolerance=4,
        note=note,
    )


ALIGNED_AREA = {"method": "area", "align": True, "half": False}

# Sizes that grow and shrink, and whose borders between pixels no rounding moves.
CASES = [
    *(_case("nearest", size, *flags) for size in [(5, 2), (2, 9)] for flags in
      [(False, False), (True, False), (False, True)]),
    *(_case("bilinear", size, *flags) for size in [(5, 2), (2, 9)] for flags in
      [(False, False), (True, False), (False, True)]),
    *(_case("bicubic", size, *flags) for size in [(6, 2), (2, 9)] for flags in
      [(False, False), (True, False), (False, True)]),
    _case("area", (5, 3)),
    _case("area", (2, 1)),
    _case("bilinear", (3, 4)),
    _case("bilinear", (1, 1), True),
    *(_recorded(method, (7, 5), *flags) for method in ("nearest", "bilinear", "bicubic")
      for flags in [(False, False), (True, False), (False, True)]),
    _recorded("area", (5, 3)),
    _recorded("area", (2, 3), True),
    dataclasses.replace(
        _recorded("area", (5, 4), True),
        inputs=[IMAGES[:, :, :1], i(5, 4)],
        reference=lambda x, n: np.repeat(_reference(x, [5, 1], **ALIGNED_AREA), 4, axis=2),
        empty=None,
        note="area-of-one-column",
    ),
    Case(
        "ResizeGrad",
        lambda dy, s: resizing.resize_gradient_op(dy, s, method="bilinear"),
        [IMAGES, i(2, 5, 3, 2)],
        lambda dy, s: np.einsum(
            "byxc,yh,xw->bhwc",
            dy,
            _weights("bilinear", 5, 3, False, False),
            _weights("bilinear", 3, 4, False, False),
        ),
        [0],
        fixed=[1],
        empty=[np.zeros((0, 3, 4, 2)), i(0, 5, 3, 2)],
    ),
]  # fmt: skip
