"""Normalisation: of batches, instances, groups, layers, channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.onnx.elements import dtype_of
from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.channels import channels_first, channels_last
from flowbook.onnx.reading.operators.math.arithmetic import like
from flowbook.onnx.reading.operators.sizes import shape_vector, sizes
from flowbook.onnx.reading.operators.types import Table


def _batch(node: Node, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    is_training = (
        node.get("training_mode", 0)
        if node.opset >= 14
        else node.opset < 7 and (not node.get("is_test", 0))
    )
    image = channels_last(node, x)
    epsilon = node.get("epsilon", 1e-5)
    running = ()
    if is_training:
        momentum = node.get("momentum", 0.9)
        axes = [0, *range(1, node.rank(x) - 1)] if node.rank(x) > 2 else [0]
        now_mean, now_variance = fb.nn.moments(fb.cast(image, mean.dtype), axes)
        running = tuple(
            old * like(old, momentum) + new * like(old, 1 - momentum)
            for old, new in ((mean, now_mean), (variance, now_variance))
        )
        mean, variance = now_mean, now_variance
    wide = mean.dtype
    # One product and one sum for each element; folded before the run where all are constants.
    factor = fb.cast(scale, wide) * fb.rsqrt(variance + like(variance, epsilon))
    shift = fb.cast(offset, wide) - mean * factor
    found = fb.cast(fb.cast(image, wide) * factor + shift, x.dtype)
    return (channels_first(node, found), *running)


def _standardised(x: Any, axes: list[int], epsilon: float) -> tuple[Any, Any, Any]:
    mean, variance = fb.nn.moments(x, axes, keepdims=True)
    inverse = fb.rsqrt(variance + like(x, epsilon))
    return (x - mean) * inverse, mean, inverse


def _instance(node: Node, x: Any, scale: Any, offset: Any) -> Any:
    image = channels_last(node, x)
    axes = list(range(1, node.rank(x) - 1))
    found, _, _ = _standardised(image, axes, node.get("epsilon", 1e-5))
    return channels_first(node, found * scale + offset)


def _group(node: Node, x: Any, scale: Any, offset: Any) -> Any:
    groups = node.need("num_groups")
    dims = sizes(node, x)
    wide = dtype_of(node.get("stash_type", 1)) if node.opset >= 21 else x.dtype
    split = fb.reshape(fb.cast(x, wide), [dims[0], groups, -1])
    found, _, _ = _standardised(split, [2], node.get("epsilon", 1e-5))
    ones = [1] * (len(dims) - 2)
    if node.opset < 21:
        # One scale for a group.
        found = found * fb.reshape(scale, [1, groups, 1]) + fb.reshape(offset, [1, groups, 1])
        return fb.reshape(found, shape_vector(dims))
    found = fb.cast(fb.reshape(found, shape_vector(dims)), x.dtype)
    return found * fb.reshape(scale, [1, -1, *ones]) + fb.reshape(offset, [1, -1, *ones])


def _wide_and_axes(node: Node, x: Any) -> tuple[Any, list[int]]:
    """A tensor in the dtype that its moments are of, and the axes that these go over."""
    wide = fb.float64 if x.dtype is fb.float64 else dtype_of(node.get("stash_type", 1))
    return fb.cast(x, wide), list(range(node.along(x, -1), node.rank(x)))


def _layer(node: Node, x: Any, scale: Any, offset: Any = None) -> Any:
    data, axes = _wide_and_axes(node, x)
    found, mean, inverse = _standardised(data, axes, node.get("epsilon", 1e-5))
    result = fb.cast(found, x.dtype) * scale
    if offset is not None:
        result = result + offset
    return result, mean, inverse


def _root_mean_square(node: Node, x: Any, scale: Any) -> Any:
    data, axes = _wide_and_axes(node, x)
    mean = fb.reduce_mean(fb.square(data), axes, True)
    found = data * fb.rsqrt(mean + like(data, node.get("epsilon", 1e-5)))
    return fb.cast(fb.cast(found, x.dtype) * fb.cast(scale, x.dtype), scale.dtype)


def _local_response(node: Node, x: Any) -> Any:
    size = node.need("size")
    node.spend(size)
    before = (size - 1) // 2
    image = channels_last(node, x)
    rank = node.rank(x)
    channels = sizes(node, x)[1]
    widths = [[0, 0]] * (rank - 1) + [[before, size - 1 - before]]
    squares = fb.pad(fb.square(image), np.array(widths))
    total = fb.add_n([squares[..., i : i + channels] for i in range(size)])
    scale = like(x, node.get("bias", 1.0)) + total * like(x, node.get("alpha", 1e-4) / size)
    return channels_first(node, image / fb.pow(scale, like(x, node.get("beta", 0.75))))


def _to_unit_norm(node: Node, x: Any) -> Any:
    axis = node.along(x, -1)
    if node.get("p", 2) == 1:
        norm = fb.reduce_sum(fb.abs(x), [axis], True)
    else:
        norm = fb.sqrt(fb.reduce_sum(fb.square(x), [axis], True))
    return fb.div_no_nan(x, norm)


def _mean_variance(node: Node, x: Any) -> Any:
    axes = node.get("axes", [0, 2, 3])
    mean = fb.reduce_mean(x, axes, True)
    deviation = fb.sqrt(fb.reduce_mean(fb.square(x), axes, True) - fb.square(mean))
    return (x - mean) / (deviation + like(x, 1e-9))


TABLE: Table = {
    "BatchNormalization": _batch,
    "GroupNormalization": _group,
    "InstanceNormalization": _instance,
    "LRN": _local_response,
    "LayerNormalization": _layer,
    "LpNormalization": _to_unit_norm,
    "MeanVarianceNormalization": _mean_variance,
    "RMSNormalization": _root_mean_square,
}
