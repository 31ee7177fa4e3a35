"""Pools: maxima, means and norms of windows or of whole images."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.ops.windows.pooling import max_pool_with_argmax_op
from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.channels import (
    around,
    channels_first,
    channels_last,
    windows_padding,
)
from flowbook.onnx.reading.operators.sizes import product, sizes
from flowbook.onnx.reading.operators.types import Table


class _Windows:
    """The windows that a node describes.

    Attributes:
        sizes: along each axis between; strides and dilations likewise.
        padding: "SAME", or pairs.
        beyond: how many elements more the last window needs after each axis, where `ceil_mode`
            asks for windows that do not fit wholly.
    """

    def __init__(self, node: Node, x: Any, numbers: bool = False) -> None:
        self.sizes = node.need("kernel_shape")
        rank = len(self.sizes)
        self.strides = node.get("strides", [1] * rank)
        self.dilations = node.get("dilations", [1] * rank)
        self.padding = windows_padding(node, x, self.sizes, self.strides, self.dilations, numbers)
        self.beyond = [0] * rank
        if node.get("ceil_mode", 0) and self.padding != "SAME":
            for i, d in enumerate(node.dims(x, 2)):
                extent = (self.sizes[i] - 1) * self.dilations[i] + 1
                before, after = self.padding[i]
                step = self.strides[i]
                count = -(-(d + before + after - extent) // step) + 1
                if (count - 1) * step >= d + before:
                    count -= 1
                self.beyond[i] = max(0, (count - 1) * step + extent - d - before - after)

    def pool(self, image: Any, kind: str, padding: Any) -> Any:
        """The pool of [batch, ..., channels]."""
        return fb.nn.pool(
            image, self.sizes, kind, around(padding), dilations=self.dilations, strides=self.strides
        )

    def whole_padding(self) -> Any:
        """Padding with what `ceil_mode` adds."""
        if self.padding == "SAME":
            return "SAME"
        return [(a, b + e) for (a, b), e in zip(self.padding, self.beyond, strict=True)]


def _max_pool(node: Node, x: Any) -> Any:
    windows = _Windows(node, x)
    image = channels_last(node, x)
    if not node.wants(1):
        return channels_first(node, windows.pool(image, "MAX", windows.whole_padding()))
    padding = windows.whole_padding()
    if padding != "SAME":
        padding = ((0, 0), *padding, (0, 0))
    values, places = max_pool_with_argmax_op(
        image,
        ksize=(1, *windows.sizes, 1),
        strides=(1, *windows.strides, 1),
        dilations=(1, *windows.dilations, 1),
        padding=padding,
        include_batch_in_index=True,
    )
    places = _channels_first_places(
        node, places, node.dims(x, 1), bool(node.get("storage_order", 0))
    )
    return channels_first(node, values), channels_first(node, places)


def _channels_first_places(node: Node, places: Any, dims: list[int], by_column: bool) -> Any:
    """Places in a tensor laid out channels last, as places in one channels first."""
    channels, *inner = dims
    channel = fb.mod(places, channels)
    rest = fb.floordiv(places, channels)
    coordinates: list[Any] = []
    for d in reversed(inner):
        coordinates.insert(0, fb.mod(rest, d))
        rest = fb.floordiv(rest, d)
    found = rest * channels + channel
    pairs = list(zip(coordinates, inner, strict=True))
    if by_column:
        # The first axis varies fastest.
        pairs.reverse()
    for place, d in pairs:
        found = found * d + place
    return found


def _average_pool(node: Node, x: Any) -> Any:
    counts = bool(node.get("count_include_pad", 0))
    windows = _Windows(node, x, numbers=counts)
    image = channels_last(node, x)
    padding = windows.whole_padding()
    if counts:
        # Zeros that count are elements; what only `ceil_mode` adds is none.
        image = fb.pad(image, np.array(around(windows.padding)))
        padding = [(0, e) for e in windows.beyond]
    return channels_first(node, windows.pool(image, "AVG", padding))


def _lp_pool(node: Node, x: Any) -> Any:
    windows = _Windows(node, x, numbers=True)
    p = node.get("p", 2)
    padding = windows.whole_padding()
    image = channels_last(node, x)
    power = fb.constant(p, x.dtype)
    powers = fb.pad(fb.pow(fb.abs(image), power), np.array(around(padding)))
    total = windows.pool(powers, "AVG", "VALID") * fb.constant(product(windows.sizes), x.dtype)
    root = fb.constant(np.asarray(1 / p).astype(x.dtype.numpy))
    return channels_first(node, fb.pow(total, root))


def _global(function: Any) -> Any:
    def translated(node: Node, x: Any) -> Any:
        rank = node.rank(x)
        image = channels_last(node, x)
        return channels_first(node, function(node, image, list(range(1, rank - 1))))

    return translated


def _global_norm(node: Node, image: Any, axes: list[int]) -> Any:
    p = node.get("p", 2)
    total = fb.reduce_sum(fb.pow(fb.abs(image), fb.constant(p, image.dtype)), axes, True)
    return fb.pow(total, fb.constant(np.asarray(1 / p).astype(image.dtype.numpy)))


def _max_unpool(node: Node, x: Any, places: Any, shape: Any = None) -> Any:
    kernel = node.need("kernel_shape")
    rank = len(kernel)
    strides = node.get("strides", [1] * rank)
    pads = node.get("pads", [0] * (2 * rank))
    n, c, *inner = sizes(node, x)
    grown = [
        (d - 1) * s + k - pads[i] - pads[rank + i]
        for i, (d, s, k) in enumerate(zip(inner, strides, kernel, strict=True))
    ]
    whole = fb.zeros([product([n, c, *grown])], x.dtype)
    flat = fb.tensor_scatter_nd_update(whole, fb.reshape(places, [-1, 1]), fb.reshape(x, [-1]))
    found = fb.reshape(flat, [n, c, *grown])
    if shape is None:
        return found
    wanted = [int(d) for d in node.value(2)]  # type: ignore[union-attr]
    known = node.dims(found)
    return fb.pad(found, [[0, w - d] for w, d in zip(wanted, known, strict=True)])


TABLE: Table = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global(lambda node, x, axes: fb.reduce_mean(x, axes, True)),
    "GlobalLpPool": _global(_global_norm),
    "GlobalMaxPool": _global(lambda node, x, axes: fb.reduce_max(x, axes, True)),
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
    "MaxUnpool": _max_unpool,
}
