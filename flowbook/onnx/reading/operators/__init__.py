"""Translations of ONNX's operators: tables by (domain, type), one file for each family."""

from __future__ import annotations

from flowbook.onnx.reading.operators import learning, trees
from flowbook.onnx.reading.operators.arrays import casting, indexing, sequences, shaping, text
from flowbook.onnx.reading.operators.image import decoding, resizing, sampling
from flowbook.onnx.reading.operators.math import (
    arithmetic,
    drawing,
    matrices,
    reductions,
    signals,
)
from flowbook.onnx.reading.operators.nn import (
    activations,
    convolution,
    normalisation,
    pooling,
    quantising,
    recurrent,
)
from flowbook.onnx.reading.operators.types import Translation
from flowbook.onnx.reading.operators.unsupported import UNSUPPORTED

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
