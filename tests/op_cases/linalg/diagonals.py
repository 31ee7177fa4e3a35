"""Diagonals, bands and transposition of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import COMPLEX, INEXACT, NUMBERS
from flowbook.graph.ops.linalg import diagonals, matrices
from tests.op_cases.case import CUBE, NONE, SOME, Array, Case, f

WIDE = CUBE % 7 - 2.5
# Which diagonals end at the right.
RIGHT: dict[str, Callable[[int], bool]] = {
    "RIGHT_LEFT": lambda k: k > 0,
    "LEFT_RIGHT": lambda k: k < 0,
    "RIGHT_RIGHT": lambda k: True,
}
ODD_MATRIX = f([[np.nan, 1.0, np.inf], [2.0, -np.inf, 3.0]])


def _padded(
    band: tuple[int, int],
    x: Array,
    padding: float = 0.0,
    right: Callable[[int], bool] | None = None,
) -> Array:
    """The diagonals of a band, element by element; `right` says which end at the right."""
    low, high = band
    longest = max(np.diagonal(x, k, -2, -1).shape[-1] for k in range(low, high + 1))
    rows = []
    for k in range(high, low - 1, -1):
        row = np.diagonal(x, k, -2, -1)
        spare = (0, longest - row.shape[-1])
        widths = [(0, 0)] * (row.ndim - 1) + [spare[::-1] if right and right(k) else spare]
        rows.append(np.pad(row, widths, constant_values=padding))
    return np.stack(rows, -2)


def _placed(x: Array, k: int, rows: int, columns: int, padding: float = 0.0) -> Array:
    result = np.full((*x.shape[:-1], rows, columns), padding, np.result_type(x, np.float32))
    for i in range(x.shape[-1]):
        result[..., i + max(-k, 0), i + max(k, 0)] = x[..., i]
    return result


def _replaced(x: Array, diagonal: Array, k: int) -> Array:
    result = x.copy()
    for i in range(diagonal.shape[-1]):
        result[..., i + max(-k, 0), i + max(k, 0)] = diagonal[..., i]
    return result


def _all_replaced(
    x: Array, diagonals: Array, band: tuple[int, int], right: Callable[[int], bool]
) -> Array:
    for row, k in enumerate(range(band[1], band[0] - 1, -1)):
        length = np.diagonal(x, k, -2, -1).shape[-1]
        begin = diagonals.shape[-1] - length if right(k) else 0
        x = _replaced(x, diagonals[..., row, begin : begin + length], k)
    return x


def _in_band(x: Array, lower: int, upper: int) -> Array:
    result = np.zeros_like(x)
    for i, j in np.ndindex(*x.shape[-2:]):
        if (lower < 0 or i - j <= lower) and (upper < 0 or j - i <= upper):
            result[..., i, j] = x[..., i, j]
    return result


def _one(
    type: str,
    note: str,
    build: Callable[..., Any],
    reference: Callable[..., Any],
    *inputs: Any,
    **options: Any,
) -> Case:
    return Case(type, build, inputs, reference, list(range(len(inputs))), note=note, **options)


CASES = [
    _one(
        "MatrixTranspose",
        "",
        matrices.matrix_transpose,
        lambda x: np.swapaxes(x, -1, -2),
        WIDE,
        empty=[np.zeros((2, 0, 3))],
        special=[ODD_MATRIX],
        tensorflow=lambda tf, x: tf.linalg.matrix_transpose(x),
    ),
    Case(
        "MatrixTranspose",
        lambda x: [matrices.adjoint(x), matrices.matrix_transpose(x)],
        [SOME + 1j * SOME[::-1]],
        lambda x: (x.conj().T, x.T),
        only=COMPLEX,
        note="adjoint",
        tensorflow=lambda tf, x: [tf.linalg.adjoint(x), tf.linalg.matrix_transpose(x)],
    ),
    _one(
        "MatrixDiagPart",
        "",
        diagonals.matrix_diag_part,
        lambda x: np.diagonal(x, 0, -2, -1),
        WIDE,
        empty=[np.zeros((2, 0, 3))],
        special=[ODD_MATRIX],
        tensorflow=lambda tf, x: tf.linalg.diag_part(x),
    ),
    _one(
        "MatrixDiagPart",
        "below",
        lambda x: diagonals.matrix_diag_part(x, k=-1),
        lambda x: np.diagonal(x, -1, -2, -1),
        WIDE,
        tensorflow=lambda tf, x: tf.linalg.diag_part(x, k=-1),
    ),
    _one(
        "MatrixDiagPart",
        "band",
        lambda x: diagonals.matrix_diag_part(x, k=(-2, 2)),
        lambda x: _padded((-2, 2), x),
        WIDE,
        tensorflow=lambda tf, x: tf.linalg.diag_part(x, k=(-2, 2), align="LEFT_LEFT"),
    ),
    Case(
        "MatrixDiagPart",
        lambda x: diagonals.matrix_diag_part(x, k=(-2, 2), padding_value=-0.5),
        [WIDE],
        lambda x: _padded((-2, 2), x, -0.5),
        only=INEXACT,
        note="fractions-between",
        tensorflow=lambda tf, x: tf.linalg.diag_part(
            x, k=(-2, 2), padding_value=np.array(-0.5, x.dtype), align="LEFT_LEFT"
        ),
    ),
    _one(
        "MatrixDiagPart",
        "trace",
        lambda x: [diagonals.trace(x), diagonals.matrix_diag_part(x)],
        lambda x: (np.trace(x, axis1=-2, axis2=-1), np.diagonal(x, 0, -2, -1)),
        WIDE,
        only=NUMBERS,
        empty=[np.zeros((2, 0, 3))],
        tensorflow=lambda tf, x: [tf.linalg.trace(x), tf.linalg.diag_part(x)],
    ),
    *(
        _one(
            "MatrixDiagPart",
            f"band-{align}",
            lambda x, align=align: diagonals.matrix_diag_part(x, k=(-1, 2), align=align),
            lambda x, right=right: _padded((-1, 2), x[..., :3], right=right),
            WIDE[..., :3],
            tensorflow=lambda tf, x, align=align: tf.linalg.diag_part(x, k=(-1, 2), align=align),
        )
        for align, right in RIGHT.items()
    ),
    _one(
        "MatrixDiag",
        "",
        diagonals.matrix_diag,
        lambda x: _placed(x, 0, 3, 3) if x.size else np.zeros((0, 3, 3)),
        SOME,
        empty=[NONE],
        tensorflow=lambda tf, x: tf.linalg.diag(x),
    ),
    _one(
        "MatrixDiag",
        "above",
        lambda x: diagonals.matrix_diag(x, k=1, padding_value=7),
        lambda x: _placed(x, 1, 4, 4, 7),
        SOME,
        only=NUMBERS,  # 7 is no bool.
        tensorflow=lambda tf, x: tf.linalg.diag(x, k=1, padding_value=np.array(7, x.dtype)),
    ),
    Case(
        "MatrixDiag",
        lambda x: diagonals.matrix_diag(x, k=1, padding_value=np.float64(0.25)),
        [SOME],
        lambda x: _placed(x, 1, 4, 4, 0.25),
        only=INEXACT,
        note="fractions-around",
        tensorflow=lambda tf, x: tf.linalg.diag(x, k=1, padding_value=np.array(0.25, x.dtype)),
    ),
    _one(
        "MatrixDiag",
        "sides",
        lambda x: diagonals.matrix_diag(x, k=-1, num_rows=4, num_cols=5),
        lambda x: _placed(x, -1, 4, 5),
        SOME,
        tensorflow=lambda tf, x: tf.linalg.diag(x, k=-1, num_rows=4, num_cols=5),
    ),
    _one(
        "MatrixDiag",
        "band",
        lambda x: diagonals.matrix_diag(x, k=(-1, 0)),
        lambda x: _placed(x[0], 0, 3, 3) + _placed(x[1, :2], -1, 3, 3),
        SOME,
        tensorflow=lambda tf, x: tf.linalg.diag(x, k=(-1, 0), align="LEFT_LEFT"),
    ),
    *(
        _one(
            "MatrixDiag",
            f"band-{align}",
            lambda x, align=align: diagonals.matrix_diag(x, k=(-1, 0), align=align),
            lambda x, right=right: (
                _placed(x[0], 0, 3, 3) + _placed(x[1, 1:] if right(-1) else x[1, :2], -1, 3, 3)
            ),
            SOME,
            tensorflow=lambda tf, x, align=align: tf.linalg.diag(x, k=(-1, 0), align=align),
        )
        for align, right in RIGHT.items()
    ),
    *(
        _one(
            "MatrixSetDiag",
            f"band-{align}",
            lambda x, d, align=align: diagonals.matrix_set_diag(x, d, k=(-1, 1), align=align),
            lambda x, d, right=right: _all_replaced(x, d, (-1, 1), right),
            CUBE[:, :, :3] % 7,
            CUBE[:, :3, :3] + 30.0,
            tensorflow=lambda tf, x, d, align=align: tf.linalg.set_diag(
                x, d, k=(-1, 1), align=align
            ),
        )
        for align, right in RIGHT.items()
    ),
    _one(
        "MatrixSetDiag",
        "",
        diagonals.matrix_set_diag,
        lambda x, d: _replaced(x, d, 0),
        WIDE,
        SOME,
        empty=[np.zeros((0, 2, 3)), np.zeros((0, 2))],
        special=[ODD_MATRIX, f([np.nan, 0.0])],
        tensorflow=lambda tf, x, d: tf.linalg.set_diag(x, d),
    ),
    _one(
        "MatrixSetDiag",
        "above",
        lambda x, d: diagonals.matrix_set_diag(x, d, k=2),
        lambda x, d: _replaced(x, d, 2),
        WIDE,
        SOME[:, :2],
        tensorflow=lambda tf, x, d: tf.linalg.set_diag(x, d, k=2),
    ),
    _one(
        "MatrixSetDiag",
        "band",
        lambda x, d: diagonals.matrix_set_diag(x, d, k=(0, 1)),
        lambda x, d: _replaced(_replaced(x, d[:, 1], 0), d[:, 0], 1),
        WIDE,
        CUBE[:, :2, :3],
        tensorflow=lambda tf, x, d: tf.linalg.set_diag(x, d, k=(0, 1), align="LEFT_LEFT"),
    ),
    *(
        _one(
            "MatrixBandPart",
            f"{lower},{upper}",
            lambda x, n=(lower, upper): diagonals.matrix_band_part(x, *n),
            lambda x, n=(lower, upper): _in_band(x, *n),
            WIDE,
            empty=[np.zeros((2, 0, 3))] if upper <= 0 >= lower else None,
            special=[ODD_MATRIX],
            tensorflow=lambda tf, x, n=(lower, upper): tf.linalg.band_part(x, *n),
        )
        for lower, upper in ((-1, 0), (0, -1), (1, 0), (-1, -1), (0, 2))
    ),
    _one(
        "Diag",
        "",
        diagonals.diag,
        lambda x: np.diag(x.ravel()).reshape(x.shape * 2),
        SOME,
        empty=[NONE],
        tensorflow=lambda tf, x: tf.linalg.tensor_diag(x),
    ),
    _one(
        "DiagPart",
        "",
        diagonals.diag_part,
        lambda x: np.einsum("abab->ab", x),
        (np.arange(36.0) % 7).reshape(2, 3, 2, 3),
        empty=[np.zeros((0, 3, 0, 3))],
        tensorflow=lambda tf, x: tf.linalg.tensor_diag_part(x),
    ),
]
