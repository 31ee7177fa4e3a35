"""Activations of neural networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.math.arithmetic import like
from flowbook.onnx.reading.operators.sizes import matrix_at
from flowbook.onnx.reading.operators.types import Table, Translation


def _affine(x: Any, alpha: float, beta: float) -> Any:
    return x * like(x, alpha) + like(x, beta)


def _elu(x: Any, alpha: float) -> Any:
    if alpha == 1.0:
        return fb.nn.elu(x)
    return fb.where(x > like(x, 0), x, like(x, alpha) * fb.expm1(fb.minimum(x, like(x, 0))))


def _hard_sigmoid(x: Any, alpha: float, beta: float) -> Any:
    return fb.clip_by_value(_affine(x, alpha, beta), like(x, 0), like(x, 1))


def _scaled_tanh(x: Any, alpha: float, beta: float) -> Any:
    return like(x, alpha) * fb.tanh(x * like(x, beta))


def _thresholded(x: Any, alpha: float) -> Any:
    return fb.where(x > like(x, alpha), x, fb.zeros_like(x))


# Activations that numbers determine, which are attributes of nodes, and lists of recurrent ones:
# a function of the tensor and the numbers, and what these are by default.
BY_NUMBERS: dict[str, tuple[Callable[..., Any], dict[str, float]]] = {
    "Affine": (_affine, {"alpha": 1.0, "beta": 0.0}),
    "Elu": (_elu, {"alpha": 1.0}),
    "HardSigmoid": (_hard_sigmoid, {"alpha": 0.2, "beta": 0.5}),
    "LeakyRelu": (fb.nn.leaky_relu, {"alpha": 0.01}),
    "ScaledTanh": (_scaled_tanh, {"alpha": 1.0, "beta": 1.0}),
    "ThresholdedRelu": (_thresholded, {"alpha": 1.0}),
}


def _by_numbers(type: str) -> Translation:
    function, defaults = BY_NUMBERS[type]
    return lambda node, x: function(x, *(node.get(k, value) for k, value in defaults.items()))


def _celu(node: Node, x: Any) -> Any:
    alpha = like(x, node.get("alpha", 1.0))
    zero = like(x, 0)
    return fb.maximum(x, zero) + fb.minimum(zero, alpha * fb.expm1(x / alpha))


def _selu(node: Node, x: Any) -> Any:
    alpha = like(x, node.get("alpha", 1.67326319217681884765625))
    gamma = like(x, node.get("gamma", 1.05070102214813232421875))
    zero = like(x, 0)
    return gamma * fb.where(x > zero, x, alpha * fb.expm1(fb.minimum(x, zero)))


def _hard_swish(node: Node, x: Any) -> Any:
    return x * _hard_sigmoid(x, 1 / 6, 0.5)


def _gelu(node: Node, x: Any) -> Any:
    return fb.nn.gelu(x, approximate=node.get("approximate", "none") == "tanh")


def _swish(node: Node, x: Any) -> Any:
    return fb.nn.swish(x, node.get("alpha", 1.0))


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


def flattened(node: Node, x: Any) -> tuple[Any, int | None]:
    """Before opset 13 the softmax family takes all axes from one on together."""
    if node.opset >= 13:
        return x, None
    axis = node.along(x, 1)
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
    "Elu": _by_numbers("Elu"),
    "Gelu": _gelu,
    "HardSigmoid": _by_numbers("HardSigmoid"),
    "HardSwish": _hard_swish,
    "Hardmax": _softmax(_hardmax),
    "LeakyRelu": _by_numbers("LeakyRelu"),
    "LogSoftmax": _softmax(fb.nn.log_softmax),
    "Mish": lambda node, x: x * fb.tanh(fb.nn.softplus(x)),
    "ScaledTanh": lambda node, x: _scaled_tanh(x, node.need("alpha"), node.need("beta")),
    "Selu": _selu,
    "Shrink": _shrink,
    "Softmax": _softmax(fb.nn.softmax),
    "Swish": _swish,
    "ThresholdedRelu": _by_numbers("ThresholdedRelu"),
}
