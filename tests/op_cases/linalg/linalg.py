"""Products of matrices and vectors, and contractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import COMPLEX
from flowbook.graph.ops.basis.shaping import expand_dims
from flowbook.graph.ops.linalg import einsum, matrix_products, tensordot
from flowbook.graph.ops.linalg.product_sums import sum_of_products_op
from tests.op_cases.case import (
    CUBE,
    NONE,
    POSITIVE,
    Case,
    f,
)

WAVES = f([[1.0, 2.0], [0.5, -1.0]]) + 1j * f([[0.5, -1.0], [2.0, 0.25]])


def _matmul_case(transpose_a: bool, transpose_b: bool, **options: Any) -> Case:
    a, b = POSITIVE, POSITIVE.T[:, ::-1] * 2
    return Case(
        "MatMul",
        lambda x, y: matrix_products.matmul(x, y, transpose_a, transpose_b),
        [a.T if transpose_a else a, b.T if transpose_b else b],
        lambda x, y: np.matmul(x.T if transpose_a else x, y.T if transpose_b else y),
        [0, 1],
        tolerance=4,
        note=f"{transpose_a}-{transpose_b}",
        tensorflow=lambda tf, x, y: tf.matmul(x, y, transpose_a, transpose_b),
        **options,
    )


def _product(
    note: str,
    build: Callable[..., Any],
    reference: Callable[..., Any],
    a: Any,
    b: Any,
    tensorflow: Callable[..., Any],
    **options: Any,
) -> Case:
    return Case(
        "MatMul",
        build,
        [a, b],
        reference,
        [] if np.iscomplexobj(a) else [0, 1],
        tolerance=8,
        note=note,
        tensorflow=tensorflow,
        **options,
    )


def _einsum(equation: str, *inputs: Any, **options: Any) -> Case:
    return Case(
        "Einsum",
        lambda *tensors: einsum.einsum(equation, *tensors),
        inputs,
        lambda *arrays: np.einsum(equation, *arrays),
        list(range(len(inputs))),
        tolerance=8,
        note=equation,
        tensorflow=lambda tf, *arrays: tf.einsum(equation, *arrays),
        **options,
    )


def _tensordot(axes: Any, a: Any, b: Any, **options: Any) -> Case:
    return Case(
        "TensorDot",
        lambda x, y: tensordot.tensordot(x, y, axes),
        [a, b],
        lambda x, y: np.tensordot(x, y, axes),
        [0, 1],
        tolerance=8,
        note=str(axes),
        tensorflow=lambda tf, x, y: tf.tensordot(x, y, axes),
        **options,
    )


def _tensordot_gradient(axes: Any, of: str, equation: str, product: Any, other: Any) -> Case:
    return Case(
        "TensorDotGradient",
        lambda x, y: tensordot.tensordot_gradient_op(x, y, axes=axes, of=of),
        [product, other],
        lambda x, y: np.einsum(equation, x, y),
        [0, 1],
        tolerance=8,
        note=f"{of}-{axes}",
    )


def _small(*shape: int) -> Any:
    """Small values that sums of products keep exactly."""
    return (np.arange(np.prod(shape)) * 7 % 5 - 2.0).reshape(shape) / 2


def _adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


_EINSUMS: Sequence[Case] = [
    _einsum("ij,jk->ik", _small(2, 3), _small(3, 4), empty=[NONE, np.zeros((3, 2))]),
    _einsum("ij,kj->ki", _small(2, 3), _small(4, 3), empty=[np.zeros((2, 0)), np.zeros((4, 0))]),
    _einsum("ij,jk", _small(2, 3), _small(3, 4)),
    _einsum("ba", _small(2, 3)),
    _einsum("ij->", _small(2, 3), empty=[NONE]),
    _einsum("ij->j", _small(2, 3)),
    _einsum("ii", _small(3, 3)),
    _einsum("iji->ij", _small(3, 2, 3)),
    _einsum("ii,ij->j", _small(3, 3), _small(3, 2)),
    _einsum("i,j->ij", _small(3), _small(2)),
    _einsum("ij,ij->ij", _small(2, 3), _small(2, 3) + 1),
    _einsum("ij,ij->", _small(2, 3), _small(2, 3) + 1),
    _einsum("bij,bjk->bik", _small(2, 3, 2), _small(2, 2, 3)),
    _einsum("bqhd,bkhd->bhqk", _small(2, 3, 2, 2), _small(2, 2, 2, 2)),
    _einsum("...ij,...jk->...ik", _small(3, 1, 2, 3), _small(2, 3, 2)),
    _einsum("...ij,jk", _small(2, 2, 3), _small(3, 2)),
    _einsum("i...,i...->...", _small(3, 2), _small(3, 4, 1)),
    _einsum("i...j,j->...i", _small(2, 2, 3), _small(3)),
    _einsum("ij,k->k", _small(2, 3), _small(2)),
    _einsum("ij,jk,kl->il", _small(2, 3), _small(3, 2), _small(2, 2)),
    _einsum("ab,b,bc,cd->a", _small(2, 3), _small(3), _small(3, 2), _small(2, 2)),
]

CASES = [
    Case(
        "SumOfProducts",
        lambda *factors: sum_of_products_op(list(factors)),
        [POSITIVE, POSITIVE[:1] * 2, POSITIVE[:, ::-1], POSITIVE[:1, ::-1] - 1],
        lambda a, b, c, d: a.T @ c + b.T @ d,
        [0, 1, 2, 3],
        empty=[NONE, NONE, np.zeros((0, 2)), np.zeros((0, 2))],
        tolerance=4,
    ),
    _matmul_case(False, False, empty=[NONE, np.zeros((3, 2))]),
    _matmul_case(True, False, empty=[NONE, np.zeros((0, 2))]),
    _matmul_case(False, True),
    _matmul_case(True, True),
    _product(
        "batches",
        matrix_products.matmul,
        lambda a, b: np.matmul(a, b),
        CUBE[:, None] % 3,
        np.ones((2, 4, 2)),
        lambda tf, a, b: tf.matmul(a, b),
        empty=[np.zeros((0, 1, 3, 4)), np.ones((2, 4, 2))],
        special=[f([[[np.nan, 1.0], [np.inf, 2.0]]]), f([[1.0], [0.0]])],
    ),
    _product(
        "one-matrix-for-all",
        matrix_products.matmul,
        lambda a, b: np.matmul(a, b),
        CUBE % 3,
        _small(4, 2),
        lambda tf, a, b: tf.matmul(a, b),
        empty=[np.zeros((2, 0, 4)), np.ones((4, 2))],
    ),
    _product(
        "one-transposed-for-all",
        lambda a, b: matrix_products.matmul(a, b, transpose_b=True),
        lambda a, b: np.matmul(a, b.T),
        CUBE % 3,
        _small(2, 4),
        lambda tf, a, b: tf.matmul(a, b, transpose_b=True),
    ),
    _product(
        "adjoints",
        lambda a, b: matrix_products.matmul(a, b, adjoint_a=True, adjoint_b=True),
        lambda a, b: _adjoint(a) @ _adjoint(b),
        WAVES,
        WAVES * 2,
        lambda tf, a, b: tf.matmul(a, b, adjoint_a=True, adjoint_b=True),
        only=COMPLEX,
    ),
    Case(
        "MatMul",
        lambda a, b: [
            matrix_products.matvec(a, b, transpose_a=True),
            matrix_products.matmul(a, expand_dims(b, -1), transpose_a=True),
        ],
        [CUBE % 3, _small(2, 3)],
        lambda a, b: (np.einsum("bji,bj->bi", a, b), np.einsum("bji,bjk->bik", a, b[..., None])),
        [0, 1],
        tolerance=8,
        note="matvec",
        tensorflow=lambda tf, a, b: [
            tf.linalg.matvec(a, b, transpose_a=True),
            tf.matmul(a, b[..., None], transpose_a=True),
        ],
    ),
    Case(
        "Cross",
        matrix_products.cross,
        [_small(2, 3), _small(2, 3) + 1.5],
        lambda a, b: np.cross(a, b),
        [0, 1],
        empty=[NONE, NONE],
        special=[f([np.inf, 1.0, 2.0]), f([0.0, np.nan, 1.0])],
        tensorflow=lambda tf, a, b: tf.linalg.cross(a, b),
    ),
    *_EINSUMS,
    Case(
        "EinsumDiagonal",
        lambda values, like: einsum.einsum_diagonal_op(values, like, equation="ij->iji"),
        [_small(3, 2), np.zeros((3, 2, 3))],
        lambda values, like: np.einsum("ik,ij->ijk", np.eye(3), values),
        [0],
        empty=[np.zeros((0, 2)), np.zeros((0, 2, 0))],
    ),
    _tensordot(1, _small(2, 3), _small(3, 4), empty=[NONE, np.zeros((3, 2))]),
    _tensordot(0, _small(2), _small(3)),
    _tensordot(((0, 2), (1, 0)), _small(2, 3, 4), _small(4, 2, 3)),
    _tensordot((-1, 0), _small(2, 3), _small(3)),
    _tensordot_gradient(1, "a", "ik,jk->ij", _small(2, 4), _small(3, 4)),
    _tensordot_gradient(1, "b", "ik,ij->jk", _small(2, 4), _small(2, 3)),
    _tensordot_gradient(0, "a", "ij,j->i", _small(2, 3), _small(3)),
    _tensordot_gradient(((2, -3), (0, 1)), "a", "jm,kim->ijk", _small(3, 5), _small(4, 2, 5)),
    _tensordot_gradient(((2, -3), (0, 1)), "b", "jm,ijk->kim", _small(3, 5), _small(2, 3, 4)),
]
