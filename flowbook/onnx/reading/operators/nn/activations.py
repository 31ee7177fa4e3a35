"""Activations of neural networks."""

from __future__ import annotations

from typing import Any

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.math.arithmetic import like, unary
from flowbook.onnx.reading.operators.sizes import matrix_at
from flowbook.onnx.reading.operators.types import Table


def _elu(node: Node, x: Any) -> Any:
    alpha = node.get("alpha", 1.0)
    if alpha == 1.0:
        return fb.nn.elu(x)
    return fb.where(x > like(x, 0), x, like(x, alpha) * fb.expm1(fb.minimum(x, like(x, 0))))


def _celu(node: Node, x: Any) -> Any:
    alpha = like(x, node.get("alpha", 1.0))
    zero = like(x, 0)
    return fb.maximum(x, zero) + fb.minimum(zero, alpha * fb.expm1(x / alpha))


def _selu(node: Node, x: Any) -> Any:
    alpha = like(x, node.get("alpha", 1.67326319217681884765625))
    gamma = like(x, node.get("gamma", 1.05070102214813232421875))
    zero = like(x, 0)
    return gamma * fb.where(x > zero, x, alpha * fb.expm1(fb.minimum(x, zero)))


def _hard_sigmoid(node: Node, x: Any) -> Any:
    alpha, beta = node.get("alpha", 0.2), node.get("beta", 0.5)
    return fb.clip_by_value(x * like(x, alpha) + like(x, beta), like(x, 0), like(x, 1))


def _hard_swish(node: Node, x: Any) -> Any:
    return x * fb.clip_by_value(x * like(x, 1 / 6) + like(x, 0.5), like(x, 0), like(x, 1))


def _gelu(node: Node, x: Any) -> Any:
    return fb.nn.gelu(x, approximate=node.get("approximate", "none") == "tanh")


def _swish(node: Node, x: Any) -> Any:
    return fb.nn.swish(x, node.get("alpha", 1.0))


def _thresholded(node: Node, x: Any) -> Any:
    return fb.where(x > like(x, node.get("alpha", 1.0)), x, fb.zeros_like(x))


def _shrink(node: Node, x: Any) -> Any:
    bias, bound = node.get("bias", 0.0), node.get("lambd", 0.5)
    zeros = fb.zeros_like(x)
    if x.dtype.is_integer:
        wide = fb.cast(x, fb.float64)
        return fb.cast(_shrunk(wide, bias, bound, fb.zeros_like(wide)), x.dtype)
    return _shrunk(x, bias, bound, zeros)


def _shrunk(x: Any, bias: float, bound: float, zeros: Any) -> Any:
    over = fb.where(x > like(x, bound), x - like(x, bias), zeros)
    return fb.where(x < like(x, -bound), x + like(x, bias), over)


def _scaled_tanh(node: Node, x: Any) -> Any:
    return like(x, node.need("alpha")) * fb.tanh(x * like(x, node.need("beta")))


def flattened(node: Node, x: Any) -> tuple[Any, int | None]:
    """Before opset 13 the softmax family takes all axes from one on together."""
    if node.opset >= 13:
        return x, None
    axis = node.axis(node.get("axis", 1), node.rank(x))
    return matrix_at(node, x, axis), axis


def _softmax(function: Any) -> Any:
    def translated(node: Node, x: Any) -> Any:
        flat, axis = flattened(node, x)
        if axis is None:
            return function(x, node.get("axis", -1))
        return fb.reshape(function(flat, -1), fb.shape(x))

    return translated


def _hardmax(x: Any, axis: int) -> Any:
    depth = x.shape.dims[axis]
    depth = fb.shape(x)[axis] if depth is None else depth
    return fb.one_hot(fb.argmax(x, axis), depth, axis=axis, dtype=x.dtype)


TABLE: Table = {
    "Celu": _celu,
    "Elu": _elu,
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "Hardmax": _softmax(_hardmax),
    "LeakyRelu": lambda node, x: fb.nn.leaky_relu(x, node.get("alpha", 0.01)),
    "LogSoftmax": _softmax(fb.nn.log_softmax),
    "Mish": lambda node, x: x * fb.tanh(fb.nn.softplus(x)),
    "Relu": unary(fb.nn.relu),
    "ScaledTanh": _scaled_tanh,
    "Selu": _selu,
    "Shrink": _shrink,
    "Sigmoid": unary(fb.sigmoid),
    "Softmax": _softmax(fb.nn.softmax),
    "Softplus": unary(fb.nn.softplus),
    "Softsign": unary(fb.nn.softsign),
    "Swish": _swish,
    "ThresholdedRelu": _thresholded,
}
