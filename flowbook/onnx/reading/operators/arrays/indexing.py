"""Parts of tensors: slices, rows by their indices, borders, and where values are."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.sizes import (
    coordinates,
    non_negative,
    product,
    shape_vector,
    sizes,
)
from flowbook.onnx.reading.operators.types import Table


def _slice(node: Node, x: Any, *bounds: Any) -> Any:
    rank = node.rank(x)
    if node.opset < 10:
        starts, ends = node.need("starts"), node.need("ends")
        axes, steps = node.get("axes", list(range(len(starts)))), [1] * len(starts)
    else:
        starts, ends = (_numbers(node, bounds[i]) for i in (0, 1))
        axes = node.ints("", 3, 1)
        axes = list(range(len(starts))) if axes is None else axes
        steps = node.ints("", 4, 1) or [1] * len(starts)
    key = [slice(None)] * rank
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        key[node.axis(axis, rank)] = slice(start, end, step)
    return x[tuple(key)]


def _numbers(node: Node, tensor: Any) -> list[Any]:
    """The elements of a vector: ints where they are known, else scalars of the run."""
    known = node.known(tensor)
    if known is not None:
        return [int(i) for i in known]
    length = tensor.shape.dims[0] if tensor.shape.dims else None
    if length is None:
        raise node.refuse(f"a vector of unknown length, {tensor.name},")
    node.spend(length)
    return [tensor[i] for i in range(length)]


def _gather(node: Node, x: Any, indices: Any) -> Any:
    axis = node.along(x, 0)
    return fb.gather(x, non_negative(node, indices, sizes(node, x)[axis]), axis)


def _gather_elements(node: Node, x: Any, indices: Any) -> Any:
    axis = node.along(x, 0)
    along = non_negative(node, indices, sizes(node, x)[axis])
    return fb.gather_nd(x, coordinates(node, indices, axis, along))


def _gather_nd(node: Node, x: Any, indices: Any) -> Any:
    batch = node.get("batch_dims", 0)
    return fb.gather_nd(x, _places(node, x, indices, batch), batch)


def _places(node: Node, x: Any, indices: Any, batch: int = 0) -> Any:
    """Vectors of indices, counted from the front."""
    length = indices.shape.dims[-1]
    if length is None:
        raise node.refuse("index vectors of unknown length")
    return non_negative(node, indices, shape_vector(sizes(node, x)[batch : batch + length]))


def _scatter_elements(node: Node, x: Any, indices: Any, updates: Any) -> Any:
    axis = node.along(x, 0)
    along = non_negative(node, indices, sizes(node, x)[axis])
    return _scattered(node, x, coordinates(node, indices, axis, along), updates)


def _scatter_nd(node: Node, x: Any, indices: Any, updates: Any) -> Any:
    return _scattered(node, x, _places(node, x, indices), updates)


def _scattered(node: Node, x: Any, places: Any, updates: Any) -> Any:
    """A tensor with updates at places, combined as the node says."""
    reduction = node.get("reduction", "none")
    if reduction == "none":
        return fb.tensor_scatter_nd_update(x, places, updates)
    if reduction == "add":
        return fb.tensor_scatter_nd_add(x, places, updates)
    combine, segments = {
        "mul": (fb.multiply, fb.unsorted_segment_prod),
        "max": (fb.maximum, fb.unsorted_segment_max),
        "min": (fb.minimum, fb.unsorted_segment_min),
    }[reduction]
    dims = sizes(node, x)
    length = places.shape.dims[-1]
    rows = fb.constant(0, places.dtype)
    node.spend(length)
    for i in range(length):
        size = fb.cast(fb.convert_to_tensor(dims[i]), places.dtype)
        rows = rows * size + places[..., i]
    count, width = product(dims[:length]), product(dims[length:])
    found = segments(fb.reshape(updates, [-1, width]), fb.reshape(rows, [-1]), count)
    return combine(x, fb.reshape(found, shape_vector(dims)))


def _tensor_scatter(node: Node, cache: Any, update: Any, indices: Any = None) -> Any:
    rank = node.rank(cache)
    axis = node.along(cache, -2)
    dims = sizes(node, update)
    place = fb.reshape(
        fb.range(fb.cast(fb.convert_to_tensor(dims[axis]), fb.int64)),
        [-1 if i == axis else 1 for i in range(rank)],
    )
    if indices is not None:
        place = place + fb.reshape(indices, [-1] + [1] * (rank - 1))
    if node.get("mode", "linear") == "circular":
        place = fb.mod(place, fb.shape(cache, fb.int64)[axis])
    along = fb.broadcast_to(place, shape_vector(dims))
    return fb.tensor_scatter_nd_update(cache, coordinates(node, update, axis, along), update)


def _one_hot(node: Node, indices: Any, depth: Any, values: Any) -> Any:
    depth = fb.cast(fb.reshape(depth, []), fb.int64)
    known = node.known(depth)
    indices = non_negative(node, fb.cast(indices, fb.int64), depth)
    depth = fb.cast(depth, fb.int32) if known is None else int(known)
    return fb.one_hot(indices, depth, values[1], values[0], node.get("axis", -1))


def _trilu(node: Node, x: Any, k: Any = None) -> Any:
    dims = sizes(node, x)
    k = fb.constant(0, fb.int64) if k is None else fb.reshape(k, [])
    rows, columns = (
        fb.range(fb.cast(fb.convert_to_tensor(d), fb.int64)) for d in (dims[-2], dims[-1])
    )
    low, high = fb.expand_dims(rows, 1) + k, fb.expand_dims(columns, 0)
    kept = low <= high if node.get("upper", 1) else low >= high
    return fb.where(kept, x, fb.zeros_like(x))


def _compress(node: Node, x: Any, condition: Any) -> Any:
    axis = node.get("axis")
    if axis is None:
        x, axis = fb.reshape(x, [-1]), 0
    return fb.gather(x, fb.where(condition)[:, 0], node.axis(axis, node.rank(x)))


def _non_zero(node: Node, x: Any) -> Any:
    truth = x if x.dtype is fb.bool else fb.not_equal(x, fb.zeros_like(x))
    return fb.transpose(fb.cast(fb.where(truth), fb.int64), (1, 0))


def _pad(node: Node, x: Any, pads: Any = None, value: Any = None, axes: Any = None) -> Any:
    rank = node.rank(x)
    mode = node.get("mode", "constant")
    if node.opset < 11:
        widths = list(node.get("pads", node.get("paddings")))
        value = fb.constant(np.asarray(node.get("value", 0.0)).astype(x.dtype.numpy))
    else:
        widths = _numbers(node, pads)
    chosen = list(range(rank)) if axes is None else [node.axis(int(a), rank) for a in node.value(3)]  # type: ignore[union-attr]
    before: list[Any] = [0] * rank
    after: list[Any] = [0] * rank
    for i, axis in enumerate(chosen):
        before[axis], after[axis] = widths[i], widths[len(chosen) + i]
    if all(isinstance(w, int) for w in widths):
        crop = [slice(max(0, -b), -max(0, -a) or None) for b, a in zip(before, after, strict=True)]
        if any(c != slice(0, None) for c in crop):
            x = x[tuple(crop)]
        before, after = [max(0, b) for b in before], [max(0, a) for a in after]
    if mode == "constant":
        paddings = fb.stack([shape_vector(before, fb.int64), shape_vector(after, fb.int64)], axis=1)
        known = node.known(paddings)
        fill = fb.zeros([], x.dtype) if value is None else fb.reshape(value, [])
        if x.dtype in (fb.bool, fb.string):
            return _around(node, x, before, after, fill)
        return fb.pad(x, paddings if known is None else known, constant_values=fill)
    for axis in range(rank):
        if (
            isinstance(before[axis], int)
            and isinstance(after[axis], int)
            and not (before[axis] or after[axis])
        ):
            continue
        x = fb.gather(x, _beyond(node, x, axis, before[axis], after[axis], mode), axis)
    return x


def _around(node: Node, x: Any, before: Any, after: Any, fill: Any) -> Any:
    """A constant border, by pieces, for dtypes that `pad` does not take."""
    for axis in range(node.rank(x)):
        dims = sizes(node, x)
        pieces = []
        for width in (before[axis], after[axis]):
            shape = shape_vector([*dims[:axis], width, *dims[axis + 1 :]])
            pieces.append(fb.fill(shape, fill))
        x = fb.concat([pieces[0], x, pieces[1]], axis)
    return x


def _beyond(node: Node, x: Any, axis: int, before: Any, after: Any, mode: str) -> Any:
    """Which element of an axis each element of the padded one repeats."""
    size = sizes(node, x)[axis]
    size, before, after = (
        fb.cast(fb.convert_to_tensor(t), fb.int64) for t in (size, before, after)
    )
    place = fb.range(-before, size + after)
    zero, one = fb.constant(0, fb.int64), fb.constant(1, fb.int64)
    if mode == "edge":
        return fb.minimum(fb.maximum(place, zero), size - one)
    if mode == "wrap":
        return fb.mod(place, size)
    if mode != "reflect":
        raise node.refuse(f"the mode {mode!r}")
    period = fb.maximum(size * 2 - 2, one)
    place = fb.mod(place, period)
    return fb.minimum(place, period - place)


def _unique(node: Node, x: Any) -> Any:
    axis = node.get("axis")
    is_sorted = bool(node.get("sorted", 1))
    if axis is None:
        rows = fb.reshape(x, [-1])
        ids, axis = rows, 0
    else:
        axis = node.axis(axis, node.rank(x))
        order = [axis, *(i for i in range(node.rank(x)) if i != axis)]
        rows = x if axis == 0 else fb.transpose(x, order)
        ids = _row_ranks(node, rows)
    distinct, inverse, counts = fb.unique_with_counts(ids, fb.int64)
    if is_sorted:
        by_value = fb.argsort(distinct)
        inverse = fb.gather(fb.cast(fb.invert_permutation(by_value), fb.int64), inverse)
        counts = fb.gather(counts, by_value)
    places = fb.range(fb.size(inverse, fb.int64))
    first = fb.unsorted_segment_min(places, inverse, fb.size(counts))
    found = fb.gather(rows, first)
    if axis:
        found = fb.transpose(found, [*range(1, axis + 1), 0, *range(axis + 1, node.rank(x))])
    return found, first, inverse, counts


def _row_ranks(node: Node, rows: Any) -> Any:
    """For each row of a tensor its place among the distinct rows in lexicographic order."""
    dims = node.dims(rows)
    width = product(dims[1:])
    if width > 1024:
        raise node.refuse(f"rows of {width} elements, more than 1024,")
    table = fb.reshape(rows, [-1, width])
    ranks = fb.zeros([dims[0]], fb.int64)
    for i in range(width):
        column, _ = _ranked(table[:, i])
        _, count = _ranked(column)
        ranks, _ = _ranked(ranks * count + column)
    return ranks


def _ranked(x: Any) -> tuple[Any, Any]:
    """For each element its place among the distinct ones, and how many distinct ones there are."""
    distinct, inverse = fb.unique(x, fb.int64)
    order = fb.cast(fb.invert_permutation(fb.argsort(distinct)), fb.int64)
    return fb.gather(order, inverse), fb.size(distinct, fb.int64)


def _reverse_sequence(node: Node, x: Any, lengths: Any) -> Any:
    return fb.reverse_sequence(x, lengths, node.get("time_axis", 0), node.get("batch_axis", 1))


TABLE: Table = {
    "Compress": _compress,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "NonZero": _non_zero,
    "OneHot": _one_hot,
    "Pad": _pad,
    "ReverseSequence": _reverse_sequence,
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Slice": _slice,
    "TensorScatter": _tensor_scatter,
    "Trilu": _trilu,
    "Unique": _unique,
}
