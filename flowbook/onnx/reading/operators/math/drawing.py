"""Random numbers. ONNX leaves open how they are drawn: a seed makes Flowbook's own repeatable."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.types import Table


def _seed(node: Node) -> int | None:
    seed = node.get("seed")
    return None if seed is None else int(np.float32(seed).view(np.int32))


def _uniform(node: Node, shape: Any, dtype: Any) -> Any:
    low, high = node.get("low", 0.0), node.get("high", 1.0)
    return fb.random_uniform(shape, low, high, dtype, seed=_seed(node))


def _normal(node: Node, shape: Any, dtype: Any) -> Any:
    return fb.random_normal(
        shape, node.get("mean", 0.0), node.get("scale", 1.0), dtype, seed=_seed(node)
    )


def _of_shape(draw: Any) -> Any:
    return lambda node: draw(node, node.need("shape"), node.dtype("dtype"))


def _like(draw: Any) -> Any:
    def translated(node: Node, x: Any) -> Any:
        dtype = x.dtype if node.get("dtype") is None else node.dtype("dtype")
        return draw(node, fb.shape(x), dtype)

    return translated


def _bernoulli(node: Node, x: Any) -> Any:
    dtype = x.dtype if node.get("dtype") is None else node.dtype("dtype")
    drawn = fb.random_uniform(fb.shape(x), dtype=x.dtype, seed=_seed(node))
    return fb.cast(drawn < x, dtype)


def _multinomial(node: Node, x: Any) -> Any:
    dtype = node.dtype("dtype", 6)
    drawn = fb.random_categorical(x, node.get("sample_size", 1), seed=_seed(node))
    return fb.cast(drawn, dtype)


TABLE: Table = {
    "Bernoulli": _bernoulli,
    "Multinomial": _multinomial,
    "RandomNormal": _of_shape(_normal),
    "RandomNormalLike": _like(_normal),
    "RandomUniform": _of_shape(_uniform),
    "RandomUniformLike": _like(_uniform),
}
