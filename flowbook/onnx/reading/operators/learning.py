"""The domain ai.onnx.ml, as far as it is about tensors, and the steps of optimizers."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.math.arithmetic import like
from flowbook.onnx.reading.operators.types import Table


def _binarizer(node: Node, x: Any) -> Any:
    return fb.cast(x > like(x, node.get("threshold", 0.0)), x.dtype)


def _features(node: Node, x: Any, indices: Any) -> Any:
    found = fb.gather(x, fb.reshape(indices, [-1]), node.rank(x) - 1)
    return fb.reshape(found, [1, -1]) if node.rank(x) == 1 else found


def _labels(node: Node, prefix: str) -> tuple[Any, str]:
    for kind in ("int64s", "floats", "strings", "tensor"):
        found = node.get(f"{prefix}_{kind}")
        if found is not None:
            if kind == "tensor":
                return found.reshape(-1), kind
            if kind == "strings":
                array = np.empty(len(found), object)
                array[:] = [s.encode() for s in found]
                return array, kind
            return np.array(found, np.int64 if kind == "int64s" else np.float32), kind
    raise node.refuse("labels of no known kind")


def _label_encoder(node: Node, x: Any) -> Any:
    keys, _ = _labels(node, "keys")
    values, kind = _labels(node, "values")
    if kind == "tensor":
        default = node.get("default_tensor")
        default = np.zeros(1, values.dtype) if default is None else default.reshape(-1)[:1]
    else:
        name = {"int64s": "default_int64", "floats": "default_float", "strings": "default_string"}
        fallback = {"int64s": -1, "floats": -0.0, "strings": "_Unused"}[kind]
        value = node.get(name[kind], fallback)
        default = np.array([value.encode() if kind == "strings" else value], values.dtype)
    table = np.concatenate([default.astype(values.dtype), values])
    found = fb.equal(fb.expand_dims(x, -1), fb.constant(keys.astype(x.dtype.numpy)))
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        both = fb.logical_and(fb.expand_dims(fb.is_nan(x), -1), np.isnan(keys))
        found = fb.logical_or(found, both)
    place = fb.argmax(fb.cast(found, fb.int32), -1) + 1
    return fb.gather(table, fb.where(fb.reduce_any(found, -1), place, fb.zeros_like(place)))


def _groups(inputs: Any, parts: int) -> list[tuple[Any, ...]]:
    """Inputs that come as all tensors of one role after all of another, by tensor."""
    count = len(inputs) // parts
    return [tuple(inputs[p * count + i] for p in range(parts)) for i in range(count)]


def _listed(results: list[tuple[Any, ...]]) -> list[Any]:
    return [part for role in zip(*results, strict=True) for part in role]


def _momentum(node: Node, rate: Any, step: Any, *inputs: Any) -> Any:
    alpha, beta, norm = (node.need(n) for n in ("alpha", "beta", "norm_coefficient"))
    results = []
    for x, g, v in _groups(inputs, 3):
        g = g + like(x, norm) * x
        share = fb.where(step > fb.constant(0, step.dtype), like(x, beta), like(x, 1.0))
        new = like(x, alpha) * v + share * g
        moved = g + like(x, alpha) * new if node.need("mode") == "nesterov" else new
        results.append((x - rate * moved, new))
    return _listed(results)


def _adagrad(node: Node, rate: Any, step: Any, *inputs: Any) -> Any:
    decay, epsilon = node.get("decay_factor", 0.0), node.get("epsilon", 1e-6)
    norm = node.get("norm_coefficient", 0.0)
    results = []
    for x, g, h in _groups(inputs, 3):
        now = rate / (like(x, 1) + fb.cast(step, x.dtype) * like(x, decay))
        g = g + like(x, norm) * x
        total = h + fb.square(g)
        results.append((x - now * g / (fb.sqrt(total) + like(x, epsilon)), total))
    return _listed(results)


def _adam(node: Node, rate: Any, step: Any, *inputs: Any) -> Any:
    alpha, beta = node.get("alpha", 0.9), node.get("beta", 0.999)
    norm, after = node.get("norm_coefficient", 0.0), node.get("norm_coefficient_post", 0.0)
    results = []
    for x, g, v, h in _groups(inputs, 4):
        g = g + like(x, norm) * x
        v = like(x, alpha) * v + like(x, 1 - alpha) * g
        h = like(x, beta) * h + like(x, 1 - beta) * fb.square(g)
        time = fb.cast(step, x.dtype)
        corrected = rate * fb.sqrt(like(x, 1) - fb.pow(like(x, beta), time))
        corrected = corrected / (like(x, 1) - fb.pow(like(x, alpha), time))
        now = fb.where(step > fb.constant(0, step.dtype), corrected, rate)
        new = x - now * v / (fb.sqrt(h) + like(x, node.get("epsilon", 1e-6)))
        results.append((like(x, 1 - after) * new, v, h))
    return _listed(results)


ML: Table = {
    "ArrayFeatureExtractor": _features,
    "Binarizer": _binarizer,
    "LabelEncoder": _label_encoder,
}
TRAINING: Table = {"Adagrad": _adagrad, "Adam": _adam, "Momentum": _momentum}
