"""Factors of matrices. Rows look at what does not depend on signs and phases of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import COMPLEX
from flowbook.graph.model.registry import op_named
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.basis.shaping import expand_dims
from flowbook.graph.ops.linalg import decompositions, spectra
from flowbook.graph.ops.linalg.matrices import adjoint
from flowbook.graph.ops.linalg.matrix_products import matmul
from flowbook.graph.ops.linalg.spectra import _as
from tests.op_cases.case import Array, Case, f
from tests.op_cases.linalg.solving import NO_MATRICES, NO_SIDES, ROWS, SQUARES, TALL, TURN

DEFINITE = f([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 2.0]])
HERMITIAN = TURN + TURN.conj().T + 8 * np.eye(2)
BATCH = np.stack([TALL, TALL[::-1] * 2 + 0.5])


def _symmetric(x: Tensor) -> Tensor:
    return (x + adjoint(x)) * 0.5


def _symmetric_value(x: Array) -> Array:
    return (x + x.conj().swapaxes(-1, -2)) * 0.5


def _squared(x: Any) -> Any:
    return x * (conjugate(x) if isinstance(x, Tensor) else np.conj(x))


def _qr_reference(x: Array) -> tuple[Array, ...]:
    """Reflections of column after column, with Householder's signs."""
    rows, columns = x.shape[-2:]
    n = min(rows, columns)
    found = []
    for matrix in x.reshape(-1, rows, columns):
        r, qh = matrix.copy(), np.eye(rows, dtype=x.dtype)
        for i in range(n):
            column = r[i:, i].copy()
            if not column[1:].any() and not column[0].imag:
                continue
            v = column.copy()
            v[0] += np.copysign(np.linalg.norm(column), column[0].real)
            for target in (r, qh):
                target[i:] -= np.outer(v, v.conj() @ target[i:]) / (v.conj() @ column)
        found.append((qh.conj().T[:, :n], np.triu(r)[:n]))
    q, r = (np.stack(parts) for parts in zip(*found, strict=True))
    return q.reshape(*x.shape[:-2], rows, n), r.reshape(*x.shape[:-2], n, columns)


def _svd(x: Tensor) -> list[Tensor]:
    s, u, v = spectra.svd(x)
    whole = matmul(u * expand_dims(_as(s, x), -2), v, adjoint_b=True)
    return [s, _squared(u), _squared(v), whole]


def _svd_reference(x: Array) -> tuple[Array, ...]:
    """By the eigenvectors of the two Gram matrices."""
    n = min(x.shape[-2:])
    xh = x.conj().swapaxes(-1, -2)
    e, u = np.linalg.eigh(x @ xh)
    _, v = np.linalg.eigh(xh @ x)
    s = np.sqrt(np.abs(e[..., ::-1][..., :n]))
    return s, _squared(u[..., ::-1][..., :n]), _squared(v[..., ::-1][..., :n]), x


def _values(x: Array) -> Array:
    return np.full(min(x.shape), np.nan) if np.isnan(x).any() else _svd_reference(x)[0]


def _eigh(x: Tensor) -> list[Tensor]:
    e, v = spectra.self_adjoint_eig(x)
    return [e, _squared(v), matmul(v * expand_dims(e, -2), v, adjoint_b=True)]


def _eigh_reference(x: Array) -> tuple[Array, ...]:
    lower = np.tril(x, -1)
    whole = lower + lower.conj().swapaxes(-1, -2) + np.tril(np.triu(x))
    _, s, vh = np.linalg.svd(whole + 100 * np.eye(x.shape[-1]))
    v = vh.conj().swapaxes(-1, -2)[..., ::-1]
    return s[..., ::-1] - 100, _squared(v), whole


def _parts(lu: Tensor) -> tuple[Tensor, Tensor]:
    band, part = op_named("MatrixBandPart").public, op_named("MatrixDiagPart").public
    set_diag = op_named("MatrixSetDiag").public
    ones = op_named("OnesLike").public
    return set_diag(band(lu, -1, 0), ones(part(lu))), band(lu, 0, -1)


def _lu(x: Tensor) -> list[Tensor]:
    lu, p = decompositions.lu(x)
    lower, upper = _parts(lu)
    return [lu, p, matmul(lower, upper)]


def _lu_reference(x: Array) -> tuple[Array, ...]:
    """Elimination, element by element."""
    a, n = x.copy(), x.shape[-1]
    order = np.broadcast_to(np.arange(n), x.shape[:-1]).copy()
    for m, rows in zip(a.reshape(-1, n, n), order.reshape(-1, n), strict=True):
        for i in range(n):
            best = i + int(np.argmax(np.abs(m[i:, i])))
            m[[i, best]], rows[[i, best]] = m[[best, i]], rows[[best, i]]
            for j in range(i + 1, n):
                m[j, i] /= m[i, i]
                m[j, i + 1 :] -= m[j, i] * m[i, i + 1 :]
    return a, order, np.take_along_axis(x, order[..., None], -2)


def _tf_parts(tf: Any, lu: Any) -> Any:
    lower = tf.linalg.band_part(lu, -1, 0)
    lower = tf.linalg.set_diag(lower, tf.ones_like(tf.linalg.diag_part(lu)))
    return tf.linalg.matmul(lower, tf.linalg.band_part(lu, 0, -1))


def _tf_lu(tf: Any, x: Any) -> list[Any]:
    lu, p = tf.linalg.lu(x)
    return [lu, p, _tf_parts(tf, lu)]


def _tf_svd(tf: Any, x: Any) -> list[Any]:
    s, u, v = tf.linalg.svd(x)
    return [s, u * tf.math.conj(u), v * tf.math.conj(v), tf.constant(x)]


def _tf_eigh(tf: Any, x: Any) -> list[Any]:
    e, v = tf.linalg.eigh(x)
    return [e, v * tf.math.conj(v), tf.matmul(v * e[..., None, :], v, adjoint_b=True)]


CASES = [
    Case(
        "Cholesky",
        lambda x: decompositions.cholesky(_symmetric(x)),
        [np.stack([DEFINITE, DEFINITE * 2])],
        lambda x: np.linalg.cholesky(_symmetric_value(x)),
        [0],
        empty=[NO_SIDES],
        tolerance=16,
        tensorflow=lambda tf, x: tf.linalg.cholesky(x),
    ),
    Case(
        "Cholesky",
        decompositions.cholesky,
        [HERMITIAN],
        np.linalg.cholesky,
        only=COMPLEX,
        tolerance=16,
        note="complex",
        tensorflow=lambda tf, x: tf.linalg.cholesky(x),
    ),
    Case(
        "Cholesky",
        lambda x: [decompositions.logdet(_symmetric(x)), decompositions.cholesky(_symmetric(x))],
        [DEFINITE],
        lambda x: (np.linalg.slogdet(x)[1], np.linalg.cholesky(x)),
        [0],
        tolerance=16,
        note="logdet",
        tensorflow=lambda tf, x: [tf.linalg.logdet(x), tf.linalg.cholesky(x)],
    ),
    *(
        Case(
            "Qr",
            lambda x: [*decompositions.qr(x)],
            [x],
            _qr_reference,
            [] if np.iscomplexobj(x) else [0],
            only=COMPLEX if np.iscomplexobj(x) else None,
            tolerance=16,
            note=note,
            tensorflow=lambda tf, x: tf.linalg.qr(x),
        )
        for note, x in (("tall", BATCH), ("wide", ROWS), ("square", SQUARES), ("complex", TURN))
    ),
    Case(
        "Qr",
        lambda x: decompositions.qr(x, full_matrices=True)[1],
        [TALL],
        lambda x: np.concatenate([_qr_reference(x)[1], np.zeros((1, 2))]),
        [0],
        tolerance=16,
        note="full",
        tensorflow=lambda tf, x: tf.linalg.qr(x, full_matrices=True)[1],
    ),
    *(
        Case(
            "Lu",
            _lu,
            [x],
            _lu_reference,
            [] if np.iscomplexobj(x) else [0],
            only=COMPLEX if np.iscomplexobj(x) else None,
            empty=[NO_MATRICES],
            tolerance=16,
            note=note,
            tensorflow=_tf_lu,
        )
        for note, x in (
            ("real", np.stack([DEFINITE[::-1], DEFINITE[[1, 0, 2]] + 0.5])),
            ("complex", TURN),
        )
    ),
    *(
        Case(
            "Svd",
            _svd,
            [x],
            _svd_reference,
            [] if np.iscomplexobj(x) else [0],
            only=COMPLEX if np.iscomplexobj(x) else None,
            tolerance=256,
            note=note,
            tensorflow=_tf_svd,
        )
        for note, x in (("tall", BATCH), ("wide", ROWS), ("square", SQUARES), ("complex", TURN))
    ),
    Case(
        "Svd",
        lambda x: spectra.svd(x, compute_uv=False),
        [BATCH],
        lambda x: np.stack([_values(m) for m in x]),
        [0],
        empty=[np.zeros((2, 0, 3))],
        special=[np.stack([TALL, f([[1.0, np.nan], [0.0, 1.0], [2.0, 3.0]])])],
        tolerance=256,
        note="values",
        tensorflow=lambda tf, x: tf.linalg.svd(x, compute_uv=False),
    ),
    Case(
        "Svd",
        lambda x: spectra.svd(x, full_matrices=True)[0],
        [TALL],
        lambda x: _svd_reference(x)[0],
        [0],
        tolerance=256,
        note="full",
        tensorflow=lambda tf, x: tf.linalg.svd(x, full_matrices=True)[0],
    ),
    *(
        Case(
            "SelfAdjointEig",
            _eigh,
            [x],
            _eigh_reference,
            [] if np.iscomplexobj(x) else [0],
            only=COMPLEX if np.iscomplexobj(x) else None,
            tolerance=1024,
            note=note,
            tensorflow=_tf_eigh,
        )
        for note, x in (
            ("real", np.stack([DEFINITE, DEFINITE - 5 * np.diag([1.0, 0.5, 0.0])])),
            ("complex", HERMITIAN),
        )
    ),
    Case(
        "SelfAdjointEig",
        spectra.self_adjoint_eigvals,
        [DEFINITE],
        lambda x: _eigh_reference(x)[0],
        [0],
        empty=[NO_SIDES],
        tolerance=1024,
        note="values",
        tensorflow=lambda tf, x: tf.linalg.eigvalsh(x),
    ),
]
