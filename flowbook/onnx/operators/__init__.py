"""Translations of ONNX's operators: tables by (domain, type), one file for each family."""

from __future__ import annotations

from flowbook.onnx.operators import (
    activations,
    arithmetic,
    casting,
    convolution,
    decoding,
    drawing,
    indexing,
    learning,
    matrices,
    normalisation,
    pooling,
    quantising,
    recurrent,
    reductions,
    resizing,
    sampling,
    sequences,
    shaping,
    signals,
    text,
    trees,
)
from flowbook.onnx.operators.types import Translation
from flowbook.onnx.operators.unsupported import UNSUPPORTED

_FAMILIES = (
    activations,
    arithmetic,
    casting,
    convolution,
    decoding,
    drawing,
    indexing,
    matrices,
    normalisation,
    pooling,
    quantising,
    recurrent,
    reductions,
    resizing,
    sampling,
    sequences,
    shaping,
    signals,
    text,
)
__all__ = ["ELEMENTWISE", "OPERATORS", "UNSUPPORTED"]

OPERATORS: dict[tuple[str, str], Translation] = {
    **{("", type): f for family in _FAMILIES for type, f in family.TABLE.items()},
    **{("ai.onnx.ml", type): f for type, f in (learning.ML | trees.TABLE).items()},
    **{("ai.onnx.preview.training", type): f for type, f in learning.TRAINING.items()},
}

# fmt: off
# What only looks at elements in the same place of all inputs, whatever their layout.
ELEMENTWISE = frozenset(
    (
        "Abs", "Add", "Cast", "Ceil", "Celu", "Clip", "Div", "Elu", "Erf", "Exp", "Floor", "Gelu",
        "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log", "Max", "Min", "Mish", "Mul",
        "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Softplus", "Softsign", "Sqrt",
        "Sub", "Sum", "Swish", "Tanh",
    )
)
# fmt: on
