"""Convolutions: with groups, transposed, of quantised numbers, with offsets."""

from __future__ import annotations

from typing import Any

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.channels import (
    around,
    channels_first,
    channels_last,
    windows_padding,
)
from flowbook.onnx.reading.operators.image.sampling import sampled
from flowbook.onnx.reading.operators.sizes import product, sizes
from flowbook.onnx.reading.operators.types import Table


def _windows(node: Node, w: Any) -> tuple[list[int], list[int], list[int]]:
    """Sizes, strides and dilations along each axis between."""
    kernel = node.get("kernel_shape") or node.dims(w)[2:]
    rank = len(kernel)
    return (
        [int(k) for k in kernel],
        node.get("strides", [1] * rank),
        node.get("dilations", [1] * rank),
    )


def convolved(node: Node, x: Any, w: Any, bias: Any = None) -> Any:
    """The convolution that a node describes."""
    group = node.get("group", 1)
    kernel, strides, dilations = _windows(node, w)
    rank = len(kernel)
    padding = around(windows_padding(node, x, kernel, strides, dilations))
    image = channels_last(node, x)
    outputs, each = node.dims(w)[:2]
    if group > 1 and each == 1 and rank == 2:
        filters = fb.reshape(w, [group, outputs // group, *kernel])
        filters = fb.transpose(filters, (2, 3, 0, 1))
        found = fb.nn.depthwise_conv2d(
            image, filters, [1, *strides, 1], padding, dilations=dilations
        )
    else:
        filters = fb.transpose(w, (*range(2, rank + 2), 1, 0))
        images = fb.split(image, group, rank + 1) if group > 1 else [image]
        parts = fb.split(filters, group, rank + 1) if group > 1 else [filters]
        results = [
            fb.nn.convolution(i, f, padding, strides, dilations)
            for i, f in zip(images, parts, strict=True)
        ]
        found = fb.concat(results, rank + 1) if group > 1 else results[0]
    if bias is not None:
        found = found + bias
    return channels_first(node, found)


def _transposed(node: Node, x: Any, w: Any, bias: Any = None) -> Any:
    group = node.get("group", 1)
    kernel, strides, dilations = _windows(node, w)
    rank = len(kernel)
    extra = node.get("output_padding", [0] * rank)
    dims = sizes(node, x)
    extents = [(k - 1) * a + 1 for k, a in zip(kernel, dilations, strict=True)]
    auto = node.get("auto_pad", "NOTSET")
    given = node.get("output_shape")
    pads = node.get("pads", [0] * (2 * rank))
    shape, pairs = [], []
    for i in range(rank):
        whole = (dims[2 + i] - 1) * strides[i] + extra[i] + extents[i]
        if given is None and auto not in ("SAME_UPPER", "SAME_LOWER"):
            pair = (0, 0) if auto == "VALID" else (pads[i], pads[rank + i])
            shape.append(whole - sum(pair))
            pairs.append(pair)
            continue
        size = given[-rank:][i] if given is not None else dims[2 + i] * strides[i]
        if not isinstance(whole, int):
            whole = (node.dims(x, 2)[i] - 1) * strides[i] + extra[i] + extents[i]
            size = given[-rank:][i] if given is not None else node.dims(x, 2)[i] * strides[i]
        total = max(whole - size, 0)
        small = total // 2
        pairs.append((total - small, small) if auto == "SAME_LOWER" else (small, total - small))
        shape.append(size)
    image = channels_last(node, x)
    images = fb.split(image, group, rank + 1) if group > 1 else [image]
    weights = fb.split(w, group, 0) if group > 1 else [w]
    each = node.dims(w)[1]
    parts = []
    for part, v in zip(images, weights, strict=True):
        filters = fb.transpose(v, (*range(2, rank + 2), 1, 0))
        parts.append(
            _spread(node, part, filters, [dims[0], *shape, each], strides, pairs, dilations)
        )
    found = fb.concat(parts, rank + 1) if group > 1 else parts[0]
    if bias is not None:
        found = found + bias
    return channels_first(node, found)


def _spread(
    node: Node, image: Any, filters: Any, shape: Any, strides: Any, pairs: Any, dilations: Any
) -> Any:
    rank = len(strides)
    transposed = {
        1: fb.nn.conv1d_transpose,
        2: fb.nn.conv2d_transpose,
        3: fb.nn.conv3d_transpose,
    }.get(rank)
    if transposed is None:
        raise node.refuse(f"a convolution over {rank} dimensions")
    step, apart = (strides[0], dilations[0]) if rank == 1 else (strides, dilations)
    return transposed(image, filters, shape, step, around(pairs), dilations=apart)


def _convolved_integers(node: Node, x: Any, w: Any, x_zero: Any = None, w_zero: Any = None) -> Any:
    # Products of bytes are exact in float64.
    x, w = fb.cast(x, fb.float64), fb.cast(w, fb.float64)
    if x_zero is not None:
        x = x - fb.cast(fb.reshape(x_zero, []), fb.float64)
    if w_zero is not None:
        zero = fb.cast(w_zero, fb.float64)
        w = w - fb.reshape(zero, [-1] + [1] * (node.rank(w) - 1))
    return fb.cast(convolved(node, x, w), fb.int32)


def _deformed(node: Node, x: Any, w: Any, offset: Any, bias: Any = None, mask: Any = None) -> Any:
    """Each element of a window lies where its offset says; between pixels it is interpolated."""
    kernel, strides, dilations = _windows(node, w)
    if len(kernel) != 2:
        raise node.refuse(f"a deformable convolution over {len(kernel)} dimensions")
    pads = node.get("pads", [0] * 4)
    groups, group = node.get("offset_group", 1), node.get("group", 1)
    n, channels, _, _ = node.dims(x)
    _, _, height, width = node.dims(offset)
    count = product(kernel)
    offsets = fb.reshape(offset, [n, groups, count, 2, height, width])
    places = []
    for i, size in enumerate((height, width)):
        start = fb.cast(fb.range(size), x.dtype) * fb.constant(strides[i], x.dtype)
        start = start - fb.constant(pads[i], x.dtype)
        inside = fb.cast(fb.range(kernel[i]), x.dtype) * fb.constant(dilations[i], x.dtype)
        inside = fb.reshape(inside, [-1, 1] if i == 0 else [1, -1])
        inside = fb.reshape(inside + fb.zeros(kernel, x.dtype), [1, 1, count, 1, 1])
        start = fb.reshape(start, [1, 1, 1, -1, 1] if i == 0 else [1, 1, 1, 1, -1])
        places.append(offsets[:, :, :, i] + start + inside)
    grid = fb.reshape(fb.stack(places, -1), [n * groups, -1, 2])
    images = fb.reshape(x, [n * groups, channels // groups, *node.dims(x)[2:]])
    # [n * groups, channels of a group, count * height * width]
    found = sampled(node, images, grid, "linear", "zeros", False)
    found = fb.reshape(found, [n, groups, channels // groups, count, height * width])
    if mask is not None:
        found = found * fb.reshape(mask, [n, groups, 1, count, height * width])
    outputs = node.dims(w)[0]
    found = fb.reshape(found, [n, group, channels // group * count, height * width])
    filters = fb.reshape(w, [1, group, outputs // group, channels // group * count])
    result = fb.reshape(fb.matmul(filters, found), [n, outputs, height, width])
    return result if bias is None else result + fb.reshape(bias, [1, -1, 1, 1])


TABLE: Table = {
    "Conv": convolved,
    "ConvInteger": _convolved_integers,
    "ConvTranspose": _transposed,
    "DeformConv": _deformed,
}
