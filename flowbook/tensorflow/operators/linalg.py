"""Products of matrices, and what else there is of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.graph.model.dtypes import int32
from flowbook.graph.ops.basis.filling import zeros
from flowbook.graph.ops.linalg.decompositions import lu, qr
from flowbook.graph.ops.linalg.diagonals import (
    matrix_diag,
    matrix_diag_part,
    matrix_set_diag,
)
from flowbook.graph.ops.linalg.einsum import einsum
from flowbook.graph.ops.linalg.matrix_products import matmul
from flowbook.graph.ops.linalg.solving import (
    matrix_inverse,
    matrix_solve,
    matrix_triangular_solve,
)
from flowbook.graph.ops.linalg.spectra import self_adjoint_eig, self_adjoint_eigvals, svd
from flowbook.tensorflow.node import Node, Rule, Rules, named


def _svd(n: Node, x: Any) -> Any:
    compute = n.flag("compute_uv", True)
    found = svd(x, n.flag("full_matrices"), compute)
    return list(found) if compute else [found]


def _eigen(n: Node, x: Any) -> Any:
    if n.flag("compute_v", True):
        return self_adjoint_eig(x, name=n.scope)
    return [self_adjoint_eigvals(x, name=n.scope), zeros([0], x.dtype)]


def _diagonals(function: Any, arrays: int = 1) -> Rule:
    """The rule of what diagonals are made of or taken from: which, and where they lie."""

    def rule(n: Node, *inputs: Any) -> Any:
        align = n.text("align", "RIGHT_LEFT") if n.type.endswith("V3") else "LEFT_LEFT"
        which, *rest = (n.known(each, "what it is").tolist() for each in inputs[arrays:])
        where = tuple(which) if isinstance(which, list) else which
        return function(*inputs[:arrays], where, *rest, align=align, name=n.scope)

    return rule


# Whether the matrices of a product are taken transposed.
TRANSPOSED: dict[str, Callable[[Node], bool]] = {
    "transpose_a": lambda n: n.flag("transpose_a"),
    "transpose_b": lambda n: n.flag("transpose_b"),
}

RULES: Rules = {
    **dict.fromkeys(
        ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"),
        named(matmul, adjoint_a=lambda n: n.flag("adj_x"), adjoint_b=lambda n: n.flag("adj_y")),
    ),
    "Einsum": lambda n, *inputs: einsum(n.text("equation"), *inputs, name=n.scope),
    "Lu": named(lu, output_idx_type=lambda n: n.dtype("output_idx_type", int32)),
    "MatMul": named(matmul, **TRANSPOSED),
    **dict.fromkeys(("MatrixDiagPartV2", "MatrixDiagPartV3"), _diagonals(matrix_diag_part)),
    **dict.fromkeys(("MatrixDiagV2", "MatrixDiagV3"), _diagonals(matrix_diag)),
    "MatrixInverse": named(matrix_inverse, adjoint=lambda n: n.flag("adjoint")),
    **dict.fromkeys(("MatrixSetDiagV2", "MatrixSetDiagV3"), _diagonals(matrix_set_diag, 2)),
    "MatrixSolve": named(matrix_solve, adjoint=lambda n: n.flag("adjoint")),
    "MatrixTriangularSolve": named(
        matrix_triangular_solve,
        lower=lambda n: n.flag("lower", True),
        adjoint=lambda n: n.flag("adjoint"),
    ),
    "Qr": named(qr, full_matrices=lambda n: n.flag("full_matrices")),
    "SelfAdjointEigV2": _eigen,
    "Svd": _svd,
}
