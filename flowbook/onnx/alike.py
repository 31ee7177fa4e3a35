"""Operators of ONNX that are one operation here, of the same one or two inputs.

They are read as that, and it is written as them.
"""

# fmt: off
# The types of the operations, by those of the operators.
ALIKE = {
    **{type: type for type in (
        "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh",
        "Equal", "Erf", "Exp", "Floor", "Greater", "Less", "Log", "Mul", "Neg", "Reciprocal",
        "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Sub",
        "Tan", "Tanh",
    )},
    "Det": "MatrixDeterminant",
    "GreaterOrEqual": "GreaterEqual",
    "IsNaN": "IsNan",
    "LessOrEqual": "LessEqual",
}
# fmt: on
