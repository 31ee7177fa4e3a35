"""Products of matrices, and what else there is of them."""

from __future__ import annotations

from typing import Any

from flowbook.graph.ops.linalg.decompositions import cholesky, qr
from flowbook.graph.ops.linalg.diagonals import (
    diag,
    diag_part,
    matrix_band_part,
    matrix_diag,
    matrix_diag_part,
    matrix_set_diag,
)
from flowbook.graph.ops.linalg.einsum import einsum
from flowbook.graph.ops.linalg.matrix_products import cross, matmul
from flowbook.graph.ops.linalg.solving import (
    matrix_determinant,
    matrix_inverse,
    matrix_solve,
    matrix_triangular_solve,
)
from flowbook.graph.ops.linalg.spectra import svd
from flowbook.tensorflow.node import Node, Rules, named


def _transposed(a: str, b: str) -> Any:
    return named(matmul, transpose_a=lambda n: n.flag(a), transpose_b=lambda n: n.flag(b))


def _svd(n: Node, x: Any) -> Any:
    compute = n.flag("compute_uv", True)
    found = svd(x, n.flag("full_matrices"), compute)
    return list(found) if compute else [found]


_adjoint_products = named(
    matmul, adjoint_a=lambda n: n.flag("adj_x"), adjoint_b=lambda n: n.flag("adj_y")
)

RULES: Rules = {
    "BatchMatMul": _adjoint_products,
    "BatchMatMulV2": _adjoint_products,
    "BatchMatMulV3": _adjoint_products,
    "Cholesky": named(cholesky),
    "Cross": named(cross),
    "Diag": named(diag),
    "DiagPart": named(diag_part),
    "Einsum": lambda n, *inputs: einsum(n.text("equation"), *inputs, name=n.scope),
    "MatMul": _transposed("transpose_a", "transpose_b"),
    "MatrixBandPart": named(matrix_band_part),
    "MatrixDeterminant": named(matrix_determinant),
    "MatrixDiag": named(matrix_diag),
    "MatrixDiagPart": named(matrix_diag_part),
    "MatrixInverse": named(matrix_inverse, adjoint=lambda n: n.flag("adjoint")),
    "MatrixSetDiag": named(matrix_set_diag),
    "MatrixSolve": named(matrix_solve, adjoint=lambda n: n.flag("adjoint")),
    "MatrixTriangularSolve": named(
        matrix_triangular_solve,
        lower=lambda n: n.flag("lower", True),
        adjoint=lambda n: n.flag("adjoint"),
    ),
    "Qr": named(qr, full_matrices=lambda n: n.flag("full_matrices")),
    "Svd": _svd,
}
