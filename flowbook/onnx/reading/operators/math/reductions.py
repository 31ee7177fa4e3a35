"""Reductions, and what goes along one axis: arguments of extremes, running sums, sorting."""

from __future__ import annotations

from typing import Any

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.types import Table

# Since which opset the axes are an input.
_SINCE = {"ReduceSum": 13}


def _reduction(function: Any) -> Any:
    def translated(node: Node, x: Any, *_: Any) -> Any:
        since = _SINCE.get(node.type, 18)
        axes = node.ints("axes", 1, since)
        if not axes:
            if node.get("noop_with_empty_axes", 0):
                return _elementwise_part(node, x)
            axes = None
        return function(x, axes, bool(node.get("keepdims", 1)))

    return translated


def _elementwise_part(node: Node, x: Any) -> Any:
    """What a reduction over no axes does to each element."""
    match node.type:
        case "ReduceL1" | "ReduceL2":
            return fb.abs(x)
        case "ReduceSumSquare":
            return fb.square(x)
        case "ReduceLogSum":
            return fb.log(x)
    return fb.identity(x)


def _extreme(numbers: Any, truths: Any) -> Any:
    def reduced(x: Any, axes: Any, keepdims: bool) -> Any:
        return (truths if x.dtype is fb.bool else numbers)(x, axes, keepdims)

    return reduced


def _floating(function: Any) -> Any:
    """A reduction that needs floats; of integers the result is cut off."""

    def reduced(x: Any, axes: Any, keepdims: bool) -> Any:
        if not x.dtype.is_integer:
            return function(x, axes, keepdims)
        return fb.cast(function(fb.cast(x, fb.float64), axes, keepdims), x.dtype)

    return reduced


def _argument(function: Any) -> Any:
    def translated(node: Node, x: Any) -> Any:
        axis = node.along(x, 0)
        if node.get("select_last_index", 0):
            size = x.shape.dims[axis]
            size = fb.shape(x, fb.int64)[axis] if size is None else size
            last = fb.constant(1, fb.int64) if isinstance(size, int) else 1
            found = (size - last) - function(fb.reverse(x, [axis]), axis)
        else:
            found = function(x, axis)
        return fb.expand_dims(found, axis) if node.get("keepdims", 1) else found

    return translated


def _running(function: Any) -> Any:
    def translated(node: Node, x: Any, axis: Any) -> Any:
        exclusive, reverse = bool(node.get("exclusive", 0)), bool(node.get("reverse", 0))
        along = node.axis(node.number(1), node.rank(x))
        return function(x, along, exclusive, reverse)

    return translated


def _top_k(node: Node, x: Any, k: Any = None) -> Any:
    rank = node.rank(x)
    axis = node.along(x, -1)
    count: Any = fb.constant(node.get("k")) if node.opset < 10 else fb.reshape(k, [])
    known = node.known(count)
    count = fb.cast(count, fb.int32) if known is None else int(known)
    swapped = [i for i in range(rank) if i != axis] + [axis]
    back = [swapped.index(i) for i in range(rank)]
    if axis != rank - 1:
        x = fb.transpose(x, swapped)
    if node.get("largest", 1):
        values, indices = fb.nn.top_k(x, count)
    else:
        order = fb.argsort(x, stable=True)
        indices = order[..., :count]
        values = fb.gather(x, indices, batch_dims=rank - 1) if rank > 1 else fb.gather(x, indices)
    indices = fb.cast(indices, fb.int64)
    if axis != rank - 1:
        values, indices = fb.transpose(values, back), fb.transpose(indices, back)
    return values, indices


def _log_sum(x: Any, axes: Any, keepdims: bool) -> Any:
    return fb.log(fb.reduce_sum(x, axes, keepdims))


TABLE: Table = {
    "ArgMax": _argument(fb.argmax),
    "ArgMin": _argument(fb.argmin),
    "CumProd": _running(fb.cumprod),
    "CumSum": _running(fb.cumsum),
    "ReduceL1": _reduction(lambda x, axes, keep: fb.reduce_sum(fb.abs(x), axes, keep)),
    "ReduceL2": _reduction(_floating(fb.reduce_euclidean_norm)),
    "ReduceLogSum": _reduction(_floating(_log_sum)),
    "ReduceLogSumExp": _reduction(_floating(fb.reduce_logsumexp)),
    "ReduceMax": _reduction(_extreme(fb.reduce_max, fb.reduce_any)),
    "ReduceMean": _reduction(_floating(fb.reduce_mean)),
    "ReduceMin": _reduction(_extreme(fb.reduce_min, fb.reduce_all)),
    "ReduceProd": _reduction(fb.reduce_prod),
    "ReduceSum": _reduction(fb.reduce_sum),
    "ReduceSumSquare": _reduction(lambda x, axes, keep: fb.reduce_sum(fb.square(x), axes, keep)),
    "TopK": _top_k,
}
