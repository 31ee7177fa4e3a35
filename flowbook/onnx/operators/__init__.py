"""Translations of ONNX's operators: tables by (domain, type), one file for each family."""

from __future__ import annotations

from flowbook.onnx.operators import (
    activations,
    arithmetic,
    casting,
    indexing,
    reductions,
    shaping,
)
from flowbook.onnx.operators.types import Translation

OPERATORS: dict[tuple[str, str], Translation] = {
    ("", type): function
    for family in (activations, arithmetic, casting, indexing, reductions, shaping)
    for type, function in family.TABLE.items()
}

# fmt: off
# What only looks at elements in the same place of all inputs, whatever their layout.
ELEMENTWISE = frozenset(
    (
        "Abs", "Add", "Cast", "Ceil", "Celu", "Div", "Elu", "Erf", "Exp", "Floor", "Gelu",
        "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log", "Max", "Min", "Mish", "Mul",
        "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Softplus", "Softsign", "Sqrt",
        "Sub", "Sum", "Swish", "Tanh",
    )
)
# fmt: on

_CONTROL = "control flow does not exist yet"
UNSUPPORTED: dict[tuple[str, str], str] = {
    ("", "Loop"): _CONTROL,
    ("", "Scan"): _CONTROL,
}
