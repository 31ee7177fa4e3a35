"""Shapes, and the same elements in another arrangement."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.sizes import matrix_at, product, sizes
from flowbook.onnx.reading.operators.types import Table


def _reshape(node: Node, x: Any, shape: Any = None) -> Any:
    known = np.asarray(node.need("shape")) if node.opset < 5 else node.known(shape)
    copies = not node.get("allowzero", 0)
    if known is None:
        length = shape.shape.dims[0] if shape.shape.dims else None
        if not copies or length is None:
            return fb.reshape(x, shape)
        old = fb.shape(x, fb.int64)
        rank = node.rank(x)
        old = old[:length] if rank >= length else fb.concat([old, [1] * (length - rank)], 0)
        return fb.reshape(x, fb.where(fb.equal(shape, fb.constant(0, fb.int64)), old, shape))
    dims: list[Any] = [int(d) for d in known]
    if copies and 0 in dims:
        old_sizes = sizes(node, x)
        dims = [old_sizes[i] if d == 0 else d for i, d in enumerate(dims)]
    if -1 in dims and x.shape.size is not None and None not in x.shape.dims:
        rest = [d for d in dims if not (isinstance(d, int) and d == -1)]
        if all(isinstance(d, int) for d in rest) and product(rest):
            dims = [x.shape.size // product(rest) if d == -1 else d for d in dims]
    return fb.reshape(x, dims if dims else fb.zeros([0], fb.int32))


def _flatten(node: Node, x: Any) -> Any:
    axis = node.get("axis", 1)
    rank = node.rank(x)
    return matrix_at(node, x, axis + rank if axis < 0 else axis)


def _squeeze(node: Node, x: Any, *_: Any) -> Any:
    axes = node.ints("axes", 1, 13)
    if axes is None and 1 not in node.dims(x):
        return fb.identity(x)
    return fb.squeeze(x, axes) if axes != [] else fb.identity(x)


def _unsqueeze(node: Node, x: Any, *_: Any) -> Any:
    axes = node.ints("axes", 1, 13) or []
    rank = node.rank(x) + len(axes)
    for axis in sorted(node.axis(a, rank) for a in axes):
        x = fb.expand_dims(x, axis)
    return fb.identity(x) if not axes else x


def _shape(node: Node, x: Any) -> Any:
    found = fb.shape(x, fb.int64)
    start, end = node.get("start", 0), node.get("end")
    return found if start == 0 and end is None else found[start:end]


def _transpose(node: Node, x: Any) -> Any:
    rank = node.rank(x)
    return fb.transpose(x, node.get("perm", list(range(rank))[::-1]))


def _expand(node: Node, x: Any, shape: Any) -> Any:
    known = node.known(shape)
    if known is not None and x.shape.is_fully_defined:
        return fb.broadcast_to(x, np.broadcast_shapes(tuple(x.shape), tuple(known.tolist())))
    wanted = shape if known is None else fb.constant(known)
    return fb.broadcast_to(x, fb.broadcast_dynamic_shape(fb.shape(x, fb.int64), wanted))


def _concat(node: Node, *inputs: Any) -> Any:
    axis = node.get("axis", 1)
    perms: set[Any] = {
        t.op.attributes["perm"] if t.op.type == "Transpose" else None for t in inputs
    }
    if len(perms) == 1 and None not in perms:
        # What only transposes stays at the end.
        [perm] = perms
        whole = fb.concat([t.op.inputs[0] for t in inputs], perm[axis])
        return fb.transpose(whole, perm)
    return fb.concat(list(inputs), axis)


def _split(node: Node, x: Any, sizes_input: Any = None) -> Any:
    axis = node.along(x, 0)
    count = node.output_count
    given = node.get("split") if node.opset < 13 else node.known(sizes_input)
    if given is None and sizes_input is not None:
        return fb.split(x, sizes_input, axis, num=count)
    if given is None:
        # Up to operator set 17 the parts are equal, from then on the last may be smaller.
        parts = node.get("num_outputs")
        size = x.shape.dims[axis]
        if parts is None:
            return fb.split(x, count, axis)
        if parts != count:
            raise node.refuse(f"{parts} parts for {count} outputs")
        if size is None:
            whole = fb.shape(x)[axis]
            each = fb.floordiv(whole + (parts - 1), parts)
            rest = fb.maximum(whole - each * fb.range(parts), 0)
            return fb.split(x, fb.minimum(rest, each), axis, num=count)
        each = -(-size // parts)
        given = [max(0, min(each, size - i * each)) for i in range(parts)]
    return fb.split(x, [int(g) for g in given], axis)


def _tile(node: Node, x: Any, repeats: Any) -> Any:
    known = node.known(repeats)
    return fb.tile(x, repeats if known is None else known)


def _depth_to_space(node: Node, x: Any) -> Any:
    b = node.need("blocksize")
    n, c, h, w = sizes(node, x)
    depth = c // (b * b)
    if node.get("mode", "DCR") == "DCR":
        split = fb.reshape(x, [n, b, b, depth, h, w])
        order = (0, 3, 4, 1, 5, 2)
    else:
        split = fb.reshape(x, [n, depth, b, b, h, w])
        order = (0, 1, 4, 2, 5, 3)
    return fb.reshape(fb.transpose(split, order), [n, depth, h * b, w * b])


def _space_to_depth(node: Node, x: Any) -> Any:
    b = node.need("blocksize")
    n, c, h, w = sizes(node, x)
    split = fb.reshape(x, [n, c, h // b, b, w // b, b])
    order = (0, 1, 3, 5, 2, 4) if node.get("mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
    return fb.reshape(fb.transpose(split, order), [n, c * b * b, h // b, w // b])


def _range(node: Node, start: Any, limit: Any, delta: Any) -> Any:
    return fb.range(fb.reshape(start, []), fb.reshape(limit, []), fb.reshape(delta, []))


def _col2im(node: Node, x: Any, *_: Any) -> Any:
    image = [int(d) for d in node.value(1)]  # type: ignore[union-attr]
    block = [int(d) for d in node.value(2)]  # type: ignore[union-attr]
    rank = len(image)
    strides = node.get("strides", [1] * rank)
    dilations = node.get("dilations", [1] * rank)
    pads = node.get("pads", [0] * (2 * rank))
    padded = [d + pads[i] + pads[rank + i] for i, d in enumerate(image)]
    counts = [
        (padded[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)
    ]
    node.compute(product(block) * product(counts))
    places = np.zeros((1, 1), np.int64)
    for i, count in enumerate(counts):
        along = np.arange(block[i])[:, None] * dilations[i] + np.arange(count)[None] * strides[i]
        places = places[:, None, :, None] * padded[i] + along[None, :, None, :]
        places = places.reshape(places.shape[0] * block[i], -1)
    n, c, _ = sizes(node, x)
    c = c // product(block)
    flat = fb.transpose(fb.reshape(x, [n * c, places.size]), (1, 0))
    summed = fb.unsorted_segment_sum(flat, places.reshape(-1), product(padded))
    whole = fb.reshape(fb.transpose(summed, (1, 0)), [n, c, *padded])
    inner = tuple(slice(pads[i], pads[i] + d) for i, d in enumerate(image))
    return whole[(slice(None), slice(None), *inner)]


TABLE: Table = {
    "Col2Im": _col2im,
    "Concat": _concat,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "Flatten": _flatten,
    "Range": _range,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": lambda node, x: fb.size(x, fb.int64),
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
