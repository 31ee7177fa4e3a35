"""Types of operations that TensorFlow and Flowbook call the same, of the same inputs.

A type of `ALIKE` is read as Flowbook's operation and written as TensorFlow's, whose one attribute
is the dtype of its first input. One of `READ_ALIKE` is read so; where it is written too, a rule
says which attributes it has.
"""

ALIKE = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "BroadcastArgs", "Ceil",
    "Cholesky", "Conj", "Cos", "Cosh", "Cross", "Digamma", "DivNoNan", "Elu", "Equal", "Erf",
    "Erfc", "Exp", "Expm1", "Floor", "FloorDiv", "Greater", "GreaterEqual", "Igamma", "Igammac",
    "InvertPermutation", "IsFinite", "IsInf", "IsNan", "L2Loss", "LeftShift", "Less", "LessEqual",
    "Lgamma", "Log", "Log1p", "MatrixDeterminant", "Maximum", "Minimum", "Mul", "MulNoNan", "Neg",
    "NotEqual", "OnesLike", "Polygamma", "PopulationCount", "Pow", "Rank", "Reciprocal", "Relu",
    "Relu6", "Relu6Grad", "ReluGrad", "RightShift", "Round", "Rsqrt", "Selu", "Sigmoid", "Sign",
    "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Square", "SquaredDifference", "StopGradient",
    "Sub", "Tan", "Tanh", "TruncateDiv", "TruncateMod", "Xdivy", "Xlog1py", "Xlogy", "ZerosLike",
    "Zeta",
)  # fmt: skip

READ_ALIKE = (
    "Add", "Angle", "BatchToSpaceND", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "Betainc",
    "BroadcastTo", "ClipByValue", "Complex", "DecodeBase64", "DecodeGif", "Diag", "DiagPart",
    "DrawBoundingBoxes", "Erfinv", "ExpandDims", "FFT", "FFT2D", "FFT3D", "Fill", "Gather",
    "GatherNd", "IFFT", "IFFT2D", "IFFT3D", "Imag", "LinSpace", "LogMatrixDeterminant",
    "LogSoftmax", "MatchingFiles", "MatrixBandPart", "MatrixDiag", "MatrixDiagPart",
    "MatrixExponential", "MatrixLogarithm", "MatrixSetDiag", "MatrixSquareRoot", "Ndtri", "Range",
    "ReadFile", "Real", "Reshape", "Roll", "ScatterNd", "SegmentMax", "SegmentMean", "SegmentMin",
    "SegmentProd", "SegmentSum", "Slice", "Softmax", "SpaceToBatchND", "StringStrip",
    "TensorScatterUpdate", "Tile", "Transpose", "UnravelIndex", "UnsortedSegmentMax",
    "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum", "Where", "WriteFile",
)  # fmt: skip
