"""Parts of arrays, by places."""

from __future__ import annotations

import builtins
from typing import Any

from flowbook import nn
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.model.dtypes import int32
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.ops.arrays.dynamic_partition import dynamic_partition, dynamic_stitch
from flowbook.graph.ops.arrays.gathering import gather
from flowbook.graph.ops.arrays.indexing_nd import (
    tensor_scatter_nd_add,
    tensor_scatter_nd_sub,
)
from flowbook.graph.ops.arrays.positions import searchsorted
from flowbook.graph.ops.arrays.uniqueness import setdiff1d, unique, unique_with_counts
from flowbook.graph.ops.basis.indexing import encoded, strided_slice, strided_slice_gradient_op
from flowbook.graph.ops.basis.joining import unstack
from flowbook.tensorflow.node import Node, Rule, Rules, named


def _count(n: Node, *vectors: Any) -> int:
    """How many elements vectors have that are equally long."""
    for vector in vectors:
        known = constant_value(vector)
        if known is not None or vector.shape.is_fully_defined:
            return vector.shape.size if known is None else known.size
    raise UnimplementedError(f"{n} is read only if the number of its indices is known")


def _numbers(vector: Any, count: int) -> list[Any]:
    """The elements of a vector: ints where they are known, else scalars."""
    known = constant_value(vector)
    if known is not None:
        return [int(i) for i in known]
    parts = unstack(vector, count)
    return [p if (v := constant_value(p)) is None else int(v) for p in parts]


def key(n: Node, begin: Any, end: Any, strides: Any) -> tuple[Any, ...]:
    """What a StridedSlice or its like takes, as Python writes it."""
    masks = {
        name: n.whole(f"{name}_mask")
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    found: list[Any] = []
    count = _count(n, begin, end, strides)
    bounds = (_numbers(b, count) for b in (begin, end, strides))
    for i, (start, stop, step) in enumerate(zip(*bounds, strict=True)):
        said = {name for name, mask in masks.items() if mask >> i & 1}
        if "ellipsis" in said:
            found.append(Ellipsis)
        elif "new_axis" in said:
            found.append(None)
        elif "shrink_axis" in said:
            found.append(0 if "begin" in said else start)
        else:
            first, last = "begin" in said, "end" in said
            found.append(builtins.slice(None if first else start, None if last else stop, step))
    return tuple(found)


def _strided_slice(n: Node, x: Any, begin: Any, end: Any, strides: Any) -> Any:
    return strided_slice(x, key(n, begin, end, strides), name=n.scope)


def _strided_slice_gradient(
    n: Node, shape: Any, begin: Any, end: Any, strides: Any, dy: Any
) -> Any:
    stored, bounds = encoded(key(n, begin, end, strides))
    return strided_slice_gradient_op(dy, shape, bounds, key=stored, name=n.scope)


def _top_k(n: Node, x: Any, k: Any = None) -> Any:
    return nn.top_k(x, n.whole("k") if k is None else k, n.flag("sorted", True), name=n.scope)


def _stitched(n: Node, *inputs: Any) -> Any:
    count = len(inputs) // 2
    return dynamic_stitch(list(inputs[:count]), list(inputs[count:]), name=n.scope)


def _searched(side: str) -> Rule:
    return named(searchsorted, side=lambda n: side, out_type=lambda n: n.dtype("out_type", int32))


def _unique(n: Node, x: Any, axis: Any = None) -> Any:
    given = None if axis is None else [int(a) for a in n.known(axis, "the axis")]
    where = given[0] if given else None
    return unique(x, n.dtype("out_idx", int32), axis=where, name=n.scope)


def _unique_with_counts(n: Node, x: Any, axis: Any) -> Any:
    [*given] = n.known(axis, "the axis")
    where = int(given[0]) if given else None
    return unique_with_counts(x, n.dtype("out_idx", int32), axis=where, name=n.scope)


RULES: Rules = {
    "DynamicPartition": named(
        dynamic_partition, num_partitions=lambda n: n.whole("num_partitions")
    ),
    "DynamicStitch": _stitched,
    "GatherV2": named(gather, batch_dims=lambda n: n.whole("batch_dims")),
    "ListDiff": named(setdiff1d, index_dtype=lambda n: n.dtype("out_idx", int32)),
    "LowerBound": _searched("left"),
    "NthElement": named(nn.nth_element, reverse=lambda n: n.flag("reverse")),
    "ParallelDynamicStitch": _stitched,
    "StridedSlice": _strided_slice,
    "StridedSliceGrad": _strided_slice_gradient,
    "TensorScatterAdd": named(tensor_scatter_nd_add),
    "TensorScatterSub": named(tensor_scatter_nd_sub),
    "TopK": _top_k,
    "TopKV2": _top_k,
    "Unique": _unique,
    "UniqueV2": _unique,
    "UniqueWithCountsV2": _unique_with_counts,
    "UniqueWithCounts": named(unique_with_counts, out_idx=lambda n: n.dtype("out_idx", int32)),
    "UpperBound": _searched("right"),
}
