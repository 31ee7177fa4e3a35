"""ONNX lays images out channels first, Flowbook's windows move over tensors with channels last."""

from __future__ import annotations

from typing import Any

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node


def channels_last(node: Node, x: Any) -> Any:
    """A tensor [batch, channels, ...] as [batch, ..., channels]."""
    rank = node.rank(x)
    if x.op.type == "Transpose" and x.op.attributes["perm"] == _to_first(rank):
        return x.op.inputs[0]
    return x if rank < 3 else fb.transpose(x, (0, *range(2, rank), 1))


def channels_first(node: Node, x: Any) -> Any:
    """A tensor [batch, ..., channels] as [batch, channels, ...]."""
    rank = node.rank(x)
    return x if rank < 3 else fb.transpose(x, _to_first(rank))


def _to_first(rank: int) -> tuple[int, ...]:
    return (0, rank - 1, *range(1, rank - 1))


def windows_padding(
    node: Node,
    x: Any,
    sizes: list[int],
    strides: list[int],
    dilations: list[int],
    numbers: bool = False,
) -> Any:
    """The numbers of elements before and after each axis between, as pairs, or "SAME".

    Args:
        x: [batch, channels, ...].
        sizes: of the windows, along each axis between; strides and dilations likewise.
        numbers: whether "SAME" does not do.
    """
    rank = len(sizes)
    auto = node.get("auto_pad", "NOTSET")
    if auto == "VALID":
        return [(0, 0)] * rank
    if auto == "SAME_UPPER" and not numbers and not node.get("ceil_mode", 0):
        return "SAME"
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pairs = []
        for d, k, s, a in zip(node.dims(x, 2), sizes, strides, dilations, strict=True):
            total = max((-(-d // s) - 1) * s + (k - 1) * a + 1 - d, 0)
            small = total // 2
            lower = auto == "SAME_LOWER"
            pairs.append((total - small, small) if lower else (small, total - small))
        return pairs
    pads = node.get("pads", [0] * (2 * rank))
    return [(pads[i], pads[rank + i]) for i in range(rank)]


def around(pairs: Any) -> Any:
    """Padding of all axes of [batch, ..., channels]."""
    return pairs if isinstance(pairs, str) else [[0, 0], *(list(p) for p in pairs), [0, 0]]
