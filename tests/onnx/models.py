"""Small models to read."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def value(name: str, shape: Any, dtype: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: Any,
    inputs: Any,
    outputs: Any,
    stored: dict[str, Any] | None = None,
    opset: int = 21,
    **rest: Any,
) -> Any:
    """A model of nodes, inputs and outputs, with arrays that it stores."""
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in (stored or {}).items()]
    graph = helper.make_graph(nodes, "net", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", opset), *rest.pop("opsets", [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, **rest)


def dense(weights: Any = None) -> Any:
    """Y = relu(x @ w + b), with an open batch."""
    weights = np.arange(6, dtype=np.float32).reshape(3, 2) if weights is None else weights
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"], "layer/mul"),
        helper.make_node("Add", ["xw", "b"], ["sum"], "layer/add"),
        helper.make_node("Relu", ["sum"], ["y"], "layer/relu"),
    ]
    stored = {"w": weights, "b": np.array([1, -20], np.float32)}
    return model(nodes, [value("x", ["batch", 3])], [value("y", ["batch", 2])], stored)
