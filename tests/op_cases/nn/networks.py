"""Building blocks composed of other operations: their rows go under the type of a last stack."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import float32, float64
from flowbook.graph.ops.basis.constants import constant
from flowbook.graph.ops.basis.joining import stack
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.nn import attention, embedding, recurrent, sampled_losses
from tests.op_cases.case import Array, Case

RANDOM = np.random.default_rng(11)


def _row(
    note: str,
    build: Callable[..., Any],
    inputs: list[Array],
    reference: Callable[..., Any],
    tensorflow: Callable[..., Any] | None = None,
    **options: Any,
) -> Case:
    """A row of a function of several tensors of one dtype."""
    return Case(
        "Stack",
        lambda *tensors: stack([build(*tensors)]),
        inputs,
        lambda *arrays: np.stack([reference(*arrays)]),
        tensorflow=None if tensorflow is None else lambda tf, *xs: tf.stack([tensorflow(tf, *xs)]),
        note=note,
        tolerance=16,
        **{"differentiable": range(len(inputs)), "only": [float32, float64], **options},
    )


def _like(value: Array, tensor: Any) -> Any:
    return constant(value.astype(tensor.dtype.numpy))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


# Sampled losses: 3 examples with 2 right classes each, 4 drawn of 10, two of them right ones.

WEIGHTS, BIASES = RANDOM.normal(size=(10, 5)), RANDOM.normal(size=10)
FEATURES = RANDOM.normal(size=(3, 5))
RIGHT = np.array([[1, 2], [0, 3], [9, 4]])
DRAWN = np.array([2, 7, 9, 5])
TRUE_COUNT = RANDOM.uniform(0.1, 1, (3, 2)).astype(np.float32)
DRAWN_COUNT = RANDOM.uniform(0.1, 1, 4).astype(np.float32)
CANDIDATES = (DRAWN, TRUE_COUNT, DRAWN_COUNT)


def _sampled_logits(weights: Array, biases: Array, inputs: Array, remove: bool) -> Array:
    right = np.einsum("bd,btd->bt", inputs, weights[RIGHT]) + biases[RIGHT]
    drawn = inputs @ weights[DRAWN].T + biases[DRAWN]
    if remove:
        drawn[(RIGHT[:, :, None] == DRAWN).any(1)] = -np.inf
    logs = [np.log(c.astype(np.float64)) for c in (TRUE_COUNT, DRAWN_COUNT)]
    return np.concatenate([right - logs[0], drawn - logs[1]], 1)


def _sampled_softmax(weights: Array, biases: Array, inputs: Array) -> Array:
    logits = _sampled_logits(weights, biases, inputs, True)
    logs = logits - np.logaddexp.reduce(logits, 1, keepdims=True)
    return -logs[:, :2].mean(1)


def _nce(weights: Array, biases: Array, inputs: Array, remove: bool = False) -> Array:
    logits = _sampled_logits(weights, biases, inputs, remove)
    losses = np.logaddexp(0, logits)
    return losses.sum(1) - logits[:, :2].sum(1) / 2


def _loss(function: Any, **options: Any) -> Callable[..., Any]:
    def build(weights: Any, biases: Any, inputs: Any) -> Any:
        drawn, *counts = CANDIDATES
        candidates = (constant(drawn), *map(constant, counts))
        return function(
            weights,
            biases,
            constant(RIGHT),
            inputs,
            4,
            10,
            num_true=2,
            sampled_values=candidates,
            **options,
        )

    return build


def _loss_in_tensorflow(name: str, **options: Any) -> Callable[..., Any]:
    def run(tf: Any, weights: Any, biases: Any, inputs: Any) -> Any:
        counts = [tf.constant(c.astype(inputs.dtype)) for c in CANDIDATES[1:]]
        return getattr(tf.compat.v1.nn, name)(
            tf.constant(weights),
            tf.constant(biases),
            tf.constant(RIGHT),
            tf.constant(inputs),
            4,
            10,
            num_true=2,
            sampled_values=(tf.constant(DRAWN), *counts),
            **options,
        )

    return run


# Cells: 2 examples, inputs of width 3, 4 units.

X, C, H = (RANDOM.normal(size=(2, n)) for n in (3, 4, 4))
KERNEL, BIAS = RANDOM.normal(size=(7, 16)), RANDOM.normal(size=16)
PEEPHOLES = RANDOM.normal(size=(3, 4))
PROJECTION = RANDOM.normal(size=(4, 2))
NARROW_H, NARROW_KERNEL = RANDOM.normal(size=(2, 2)), RANDOM.normal(size=(5, 16))


def _lstm(x: Any, c: Any, h: Any) -> Any:
    output, (c, _) = recurrent.lstm_cell(x, (c, h), _like(KERNEL, x), _like(BIAS, x), 0.5)
    return stack([output, c])


def _lstm_reference(x: Array, c: Array, h: Array) -> Array:
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ KERNEL + BIAS, 4, 1)
    c = _sigmoid(f + 0.5) * c + _sigmoid(i) * np.tanh(j)
    return np.stack([_sigmoid(o) * np.tanh(c), c])


def _peephole_lstm(x: Any, c: Any, h: Any) -> Any:
    output, (c, _) = recurrent.lstm_cell(
        x,
        (c, h),
        _like(KERNEL, x),
        _like(BIAS, x),
        peepholes=tuple(_like(w, x) for w in PEEPHOLES),
        cell_clip=0.8,
    )
    return stack([output, c])


def _peephole_lstm_reference(x: Array, c: Array, h: Array) -> Array:
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ KERNEL + BIAS, 4, 1)
    f, i = f + 1 + PEEPHOLES[0] * c, i + PEEPHOLES[1] * c
    c = np.clip(_sigmoid(f) * c + _sigmoid(i) * np.tanh(j), -0.8, 0.8)
    return np.stack([_sigmoid(o + PEEPHOLES[2] * c) * np.tanh(c), c])


def _lstm_in_tensorflow(tf: Any, x: Any, c: Any, h: Any) -> Any:
    wcf, wci, wco = PEEPHOLES.astype(np.float32)
    found = tf.raw_ops.LSTMBlockCell(
        x=x,
        cs_prev=c,
        h_prev=h,
        w=KERNEL.astype(np.float32),
        b=BIAS.astype(np.float32),
        wci=wci,
        wcf=wcf,
        wco=wco,
        forget_bias=1,
        cell_clip=0.8,
        use_peephole=True,
    )
    return tf.stack([found.h, found.cs])


def _full_lstm(x: Any, c: Any, h: Any) -> Any:
    output, (c, _) = recurrent.lstm_cell(
        x,
        (c, h),
        _like(NARROW_KERNEL, x),
        _like(BIAS, x),
        peepholes=tuple(_like(w, x) for w in PEEPHOLES),
        cell_clip=0.8,
        projection=_like(PROJECTION, x),
        projection_clip=0.3,
    )
    return stack([output, c[:, :2]])


def _full_lstm_reference(x: Array, c: Array, h: Array) -> Array:
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ NARROW_KERNEL + BIAS, 4, 1)
    f, i = f + 1 + PEEPHOLES[0] * c, i + PEEPHOLES[1] * c
    c = np.clip(_sigmoid(f) * c + _sigmoid(i) * np.tanh(j), -0.8, 0.8)
    h = _sigmoid(o + PEEPHOLES[2] * c) * np.tanh(c)
    return np.stack([np.clip(h @ PROJECTION, -0.3, 0.3), c[:, :2]])


def _gru(x: Any, h: Any) -> Any:
    weights = (KERNEL[:, :8], BIAS[:8], KERNEL[:, 8:12], BIAS[8:12])
    return recurrent.gru_cell(x, h, *(_like(w, x) for w in weights))[0]


def _gru_reference(x: Array, h: Array) -> Array:
    r, u = np.split(_sigmoid(np.concatenate([x, h], 1) @ KERNEL[:, :8] + BIAS[:8]), 2, 1)
    candidate = np.tanh(np.concatenate([x, r * h], 1) @ KERNEL[:, 8:12] + BIAS[8:12])
    return u * h + (1 - u) * candidate


def _gru_in_tensorflow(tf: Any, x: Any, h: Any) -> Any:
    kernel, bias = KERNEL.astype(np.float32), BIAS.astype(np.float32)
    return tf.raw_ops.GRUBlockCell(
        x=x, h_prev=h, w_ru=kernel[:, :8], w_c=kernel[:, 8:12], b_ru=bias[:8], b_c=bias[8:12]
    ).h


def _rnn(x: Any, h: Any) -> Any:
    return recurrent.rnn_cell(x, h, _like(KERNEL[:, :4], x), _like(BIAS[:4], x))[0]


# Attention: 2 examples, 3 queries and 4 keys.

QUERY, KEY, VALUE = (RANDOM.normal(size=(2, n, d)) for n, d in ((3, 5), (4, 5), (4, 2)))
MASK = np.array([[[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]]] * 2, bool)
CAUSAL = np.tri(3, 4, 1, dtype=bool)


def _attention(q: Array, k: Array, v: Array, mask: Any = True) -> Array:
    scores = np.where(mask, np.exp(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])), 0)
    total = scores.sum(-1, keepdims=True)
    return np.where(total > 0, scores / np.where(total > 0, total, 1), 0) @ v


# Embeddings: 3 examples with 2, 1 and 3 ids.

IDS = SimpleNamespace(
    indices=np.array([[0, 0], [0, 2], [1, 0], [2, 0], [2, 1], [2, 2]]),
    values=np.array([1, 7, 9, 0, 1, 1]),
    dense_shape=np.array([3, 3]),
)


def _embedding(combiner: str, max_norm: float | None) -> tuple[Any, Any, Any]:
    """The function, its reference and TensorFlow's, of a table and of weights."""

    def build(table: Any, weights: Any) -> Any:
        given = SimpleNamespace(**vars(IDS) | {"values": weights})
        return embedding.embedding_lookup_sparse(
            table, IDS, given, combiner=combiner, max_norm=max_norm
        )

    def reference(table: Array, weights: Array) -> Array:
        found = []
        for example in range(3):
            own = IDS.indices[:, 0] == example
            rows, w = table[IDS.values[own]], weights[own]
            if max_norm is not None:
                norms = np.linalg.norm(rows, axis=1, keepdims=True)
                rows = rows * np.minimum(1, max_norm / norms)
            by = {"sum": 1, "mean": w.sum(), "sqrtn": np.sqrt((w * w).sum())}[combiner]
            found.append(w @ rows / by)
        return np.array(found)

    def run(tf: Any, table: Any, weights: Any) -> Any:
        ids = tf.SparseTensor(IDS.indices, IDS.values, IDS.dense_shape)
        given = tf.SparseTensor(IDS.indices, weights, IDS.dense_shape)
        return tf.compat.v1.nn.embedding_lookup_sparse(
            tf.constant(table), ids, given, combiner=combiner, max_norm=max_norm
        )

    return build, reference, run


# Ids of 2 x 2 examples, some of them invalid; the third example has none that is valid.
UNSAFE = SimpleNamespace(
    indices=np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 2], [1, 0, 1], [1, 1, 0], [1, 1, 2]]),
    values=np.array([4, -1, 2, 2, -3, 9, 1]),
    dense_shape=np.array([2, 2, 3]),
)
UNSAFE_WEIGHTS = np.array([0.5, 2.0, 1.0, 1.5, 0.25, 1.0, 2.0])


def _safe_embedding(combiner: str, weights: Array | None, **options: Any) -> tuple[Any, ...]:
    """The function, its reference and TensorFlow's, of a table."""
    both = {"combiner": combiner, **options}

    def sparse(make: Any, values: Array) -> Any:
        return make(UNSAFE.indices, values, UNSAFE.dense_shape)

    def build(table: Any) -> Any:
        given = None if weights is None else sparse(SparseTensor, _like(weights, table))
        return embedding.safe_embedding_lookup_sparse(
            table, sparse(SparseTensor, UNSAFE.values), given, **both
        )

    def reference(table: Array) -> Array:
        found = np.zeros((2, 2, table.shape[1]))
        for place in np.ndindex(2, 2):
            w = np.ones(7) if weights is None else weights
            kept = (UNSAFE.indices[:, :2] == place).all(1) & (UNSAFE.values >= 0)
            if combiner != "sum":
                kept &= w > 0
            rows, w = table[UNSAFE.values[kept]], w[kept]
            if not len(w):
                found[place] = table[options["default_id"]] if "default_id" in options else 0
                continue
            by = {"sum": 1, "mean": w.sum(), "sqrtn": np.sqrt((w * w).sum())}[combiner]
            found[place] = w @ rows / by
        return found

    def run(tf: Any, table: Any) -> Any:
        given = None
        if weights is not None:
            given = sparse(tf.SparseTensor, weights.astype(table.dtype))
        ids = sparse(tf.SparseTensor, UNSAFE.values)
        return tf.compat.v1.nn.safe_embedding_lookup_sparse(
            tf.constant(table), ids, given, allow_fast_lookup=False, **both
        )

    return build, reference, run


CASES = [
    *(
        _row(f"safe_embedding_lookup_sparse-{note}", build, [WEIGHTS], reference, run)
        for note, made in {
            "mean": _safe_embedding("mean", None),
            "weights": _safe_embedding("mean", UNSAFE_WEIGHTS),
            "weak": _safe_embedding("sqrtn", UNSAFE_WEIGHTS * [1, 1, -1, 1, 1, 0, 1]),
            "sum": _safe_embedding("sum", UNSAFE_WEIGHTS * [1, 1, -1, 1, 1, 0, 1]),
            "default": _safe_embedding("mean", UNSAFE_WEIGHTS, default_id=3),
            "default-sum": _safe_embedding("sum", None, default_id=0),
        }.items()
        for build, reference, run in [made]
    ),
    *(
        _row(
            f"embedding_lookup_sparse-{combiner}",
            build,
            [WEIGHTS, np.array([0.5, 2.0, -1.0, 1.5, 0.25, 1.0])],
            reference,
            run,
        )
        for combiner, max_norm in (("sum", None), ("mean", 2.0), ("sqrtn", None))
        for build, reference, run in [_embedding(combiner, max_norm)]
    ),
    _row(
        "sampled_softmax_loss",
        _loss(sampled_losses.sampled_softmax_loss),
        [WEIGHTS, BIASES, FEATURES],
        _sampled_softmax,
        _loss_in_tensorflow("sampled_softmax_loss"),
    ),
    _row(
        "nce_loss",
        _loss(sampled_losses.nce_loss),
        [WEIGHTS, BIASES, FEATURES],
        _nce,
        _loss_in_tensorflow("nce_loss"),
    ),
    _row(
        "nce_loss-hits",
        _loss(sampled_losses.nce_loss, remove_accidental_hits=True),
        [WEIGHTS, BIASES, FEATURES],
        lambda *arrays: _nce(*arrays, remove=True),
        _loss_in_tensorflow("nce_loss", remove_accidental_hits=True),
    ),
    _row("lstm_cell", _lstm, [X, C, H], _lstm_reference),
    _row("lstm_cell-full", _full_lstm, [X, C, NARROW_H], _full_lstm_reference),
    _row("gru_cell", _gru, [X, H], _gru_reference),
    # TensorFlow's fused cells know float32 only.
    _row(
        "lstm_cell-float32",
        _peephole_lstm,
        [X, C, H],
        _peephole_lstm_reference,
        _lstm_in_tensorflow,
        only=[float32],
        differentiable=(),
    ),
    _row(
        "gru_cell-float32",
        _gru,
        [X, H],
        _gru_reference,
        _gru_in_tensorflow,
        only=[float32],
        differentiable=(),
    ),
    _row(
        "rnn_cell",
        _rnn,
        [X, H],
        lambda x, h: np.tanh(np.concatenate([x, h], 1) @ KERNEL[:, :4] + BIAS[:4]),
    ),
    _row(
        "attention",
        attention.scaled_dot_product_attention,
        [QUERY, KEY, VALUE],
        _attention,
    ),
    _row(
        "attention-mask",
        lambda q, k, v: attention.scaled_dot_product_attention(q, k, v, constant(MASK)),
        [QUERY, KEY, VALUE],
        lambda q, k, v: _attention(q, k, v, MASK),
    ),
    _row(
        "attention-added-mask",
        lambda q, k, v: attention.scaled_dot_product_attention(
            q, k, v, _like(np.where(MASK, 0.0, -np.inf), q)
        ),
        [QUERY, KEY, VALUE],
        lambda q, k, v: _attention(q, k, v, MASK),
    ),
    _row(
        "attention-causal",
        lambda q, k, v: attention.scaled_dot_product_attention(q, k, v, is_causal=True),
        [QUERY, KEY, VALUE],
        lambda q, k, v: _attention(q, k, v, CAUSAL),
    ),
]
