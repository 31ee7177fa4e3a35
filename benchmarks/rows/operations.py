"""Single operations on a million elements, beside the NumPy that one would write by hand.

Flowbook's are fed and fetched through `Session.run`. NumPy's are the straightforward best: in place
where that is natural, of the same dtype throughout, and with a result of its own, as `run` gives.
What is measured with each is said once, in `_OPERATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Case, Row, Within

SECTION = "Operations on 1 M elements"
_Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class _Operation:
    """One operation: its arrays, and how each system computes it from the system's module."""

    work: str
    arrays: Callable[[], _Arrays]
    flowbook: Callable[..., Any]
    numpy: Callable[..., Any]
    rtol: float = 1e-4
    atol: float = 1e-5


def _proof(result: Any) -> Any:
    parts = result if isinstance(result, list | tuple) else [result]
    return np.concatenate([np.asarray(part, np.float64).ravel() for part in parts])


def _flowbook(operation: _Operation, fb: Any) -> Case:
    arrays = operation.arrays()
    graph = fb.Graph()
    with graph.as_default():
        tensors = [fb.placeholder(fb.as_dtype(a.dtype), a.shape) for a in arrays]
        result = operation.flowbook(fb, *tensors)
    session = fb.Session(graph=graph)
    feeds = dict(zip(tensors, arrays, strict=True))

    def step() -> Any:
        return session.run(result, feeds)

    return Case(step=step, value=_proof(step()))


def _numpy(operation: _Operation, np: Any) -> Case:
    arrays = operation.arrays()

    def step() -> Any:
        return operation.numpy(np, *arrays)

    return Case(step=step, value=_proof(step()))


# Arrays. Every call gives the same ones: each system's process makes its own.


def _random() -> Any:
    return np.random.default_rng(0)


def _normal(*shape: int) -> Any:
    return _random().standard_normal(shape, dtype=np.float32)


def _one() -> _Arrays:
    return (_normal(1000, 1000),)


def _positive() -> _Arrays:
    return (np.abs(_normal(1000, 1000)) + np.float32(0.1),)


def _two() -> _Arrays:
    both = _normal(2, 1000, 1000)
    return both[0].copy(), both[1].copy()


def _positive_two() -> _Arrays:
    return _positive()[0], _positive()[0][::-1].copy()


def _integers(high: int, *shape: int, dtype: Any = np.int32) -> Any:
    return _random().integers(0, high, shape, dtype=dtype)


def _two_of_integers() -> _Arrays:
    return _integers(1000, 1000, 1000), _integers(100, 1000, 1000) + np.int32(1)


def _two_of_bools() -> _Arrays:
    first, second = _two()
    return first > 0, second > 0


def _choice() -> _Arrays:
    first, second = _two()
    return first > second, first, second


def _with_row() -> _Arrays:
    return _normal(1000, 1000), _normal(1000)


def _labels() -> _Arrays:
    return _normal(10_000, 100), _integers(100, 10_000)


def _distributions() -> _Arrays:
    chances = _random().random((10_000, 100), dtype=np.float32)
    return _normal(10_000, 100), chances / chances.sum(1, keepdims=True)


def _rows_of(table: int, count: int, width: int) -> Callable[[], _Arrays]:
    return lambda: (_normal(table, width), _integers(table, count))


def _segments(segments: int) -> Callable[[], _Arrays]:
    return lambda: (_normal(10_000, 100), _integers(segments, 10_000))


def _sorted_segments() -> _Arrays:
    return _normal(10_000, 100), np.sort(_integers(1000, 10_000))


def _images(*shape: int) -> Callable[[], _Arrays]:
    return lambda: (_normal(*shape),)


# NumPy by hand, where it takes more than a line.


def _softmax(np: Any, x: Any) -> Any:
    z = x - x.max(-1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(-1, keepdims=True)
    return z


def _log_softmax(np: Any, x: Any) -> Any:
    z = x - x.max(-1, keepdims=True)
    z -= np.log(np.exp(z).sum(-1, keepdims=True))
    return z


def _logsumexp(np: Any, x: Any) -> Any:
    largest = x.max(-1, keepdims=True)
    z = x - largest
    np.exp(z, out=z)
    return (np.log(z.sum(-1, keepdims=True)) + largest)[:, 0]


def _softmax_loss(np: Any, x: Any, chances: Any) -> Any:
    z = x - x.max(-1, keepdims=True)
    z -= np.log(np.exp(z).sum(-1, keepdims=True))
    z *= chances
    return -z.sum(-1)


def _sparse_loss(np: Any, x: Any, labels: Any) -> Any:
    z = x - x.max(-1, keepdims=True)
    chosen = z[np.arange(len(z)), labels]
    np.exp(z, out=z)
    return np.log(z.sum(-1)) - chosen


def _sigmoid_loss(np: Any, x: Any, labels: Any) -> Any:
    z = np.abs(x)
    np.negative(z, out=z)
    np.exp(z, out=z)
    np.log1p(z, out=z)
    z += np.maximum(x, 0)
    z -= x * labels
    return z


def _sigmoid(np: Any, x: Any) -> Any:
    y = np.negative(x)
    np.exp(y, out=y)
    y += 1
    return np.reciprocal(y, out=y)


def _gelu(np: Any, x: Any) -> Any:
    y = x * x
    y *= np.float32(0.044715)
    y += 1
    y *= x
    y *= np.float32(0.7978845608)
    np.tanh(y, out=y)
    y += 1
    y *= x
    y *= np.float32(0.5)
    return y


def _elu(np: Any, x: Any) -> Any:
    y = np.minimum(x, 0)
    np.expm1(y, out=y)
    y += np.maximum(x, 0)
    return y


def _softplus(np: Any, x: Any) -> Any:
    y = np.abs(x)
    np.negative(y, out=y)
    np.exp(y, out=y)
    np.log1p(y, out=y)
    y += np.maximum(x, 0)
    return y


def _leaky_relu(np: Any, x: Any) -> Any:
    y = x * np.float32(0.2)
    return np.maximum(x, y, out=y)


def _swish(np: Any, x: Any) -> Any:
    y = _sigmoid(np, x)
    y *= x
    return y


def _top_k(np: Any, x: Any) -> Any:
    found = np.argpartition(x, -10, axis=-1)[:, -10:]
    values = np.take_along_axis(x, found, -1)
    order = np.argsort(-values, axis=-1)
    return np.take_along_axis(values, order, -1), np.take_along_axis(found, order, -1)


def _unique(np: Any, x: Any) -> Any:
    """In the order of first occurrence, with each element's place: what TensorFlow's gives."""
    values, firsts, places = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return values[order], ranks[places].astype(np.int32)


def _scatter(np: Any, indices: Any, updates: Any) -> Any:
    result = np.zeros((1000, 1000), np.float32)
    np.add.at(result, (indices[:, 0], indices[:, 1]), updates)
    return result


def _segment_sum(np: Any, x: Any, ids: Any) -> Any:
    order = np.argsort(ids.astype(np.uint16), kind="stable")
    return _sorted_sum(np, x[order], ids[order])


def _sorted_sum(np: Any, x: Any, ids: Any) -> Any:
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    result = np.zeros((1000, x.shape[1]), np.float32)
    result[ids[starts]] = np.add.reduceat(x, starts, axis=0)
    return result


def _one_hot(np: Any, indices: Any) -> Any:
    result = np.zeros((len(indices), 100), np.float32)
    result[np.arange(len(indices)), indices] = 1
    return result


def _max_pool(np: Any, x: Any) -> Any:
    top = np.maximum(x[:, ::2, ::2], x[:, ::2, 1::2])
    bottom = np.maximum(x[:, 1::2, ::2], x[:, 1::2, 1::2])
    return np.maximum(top, bottom, out=top)


def _avg_pool(np: Any, x: Any) -> Any:
    total = x[:, ::2, ::2] + x[:, ::2, 1::2]
    total += x[:, 1::2, ::2]
    total += x[:, 1::2, 1::2]
    total *= np.float32(0.25)
    return total


def _max_pool_overlapping(np: Any, x: Any) -> Any:
    """3 x 3 windows at every second place, padded behind: rows first, then columns."""
    rows = np.maximum(x[:, ::2], x[:, 1::2])
    np.maximum(rows[:, :-1], x[:, 2::2], out=rows[:, :-1])
    result = np.maximum(rows[:, :, ::2], rows[:, :, 1::2])
    np.maximum(result[:, :, :-1], rows[:, :, 2::2], out=result[:, :, :-1])
    return result


def _convolution(np: Any, x: Any, filters: Any) -> Any:
    padded = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    n, h, w, c = x.shape
    columns = np.empty((n, h, w, 3, 3, c), np.float32)
    for i in range(3):
        for j in range(3):
            columns[:, :, :, i, j] = padded[:, i : i + h, j : j + w]
    rows = columns.reshape(n * h * w, 9 * c) @ filters.reshape(9 * c, -1)
    return rows.reshape(n, h, w, -1)


def _normalised(np: Any, axis: Any, x: Any, scale: Any, offset: Any) -> Any:
    y = x - x.mean(axis, keepdims=True)
    variance = np.square(y).mean(axis, keepdims=True)
    y *= scale / np.sqrt(variance + np.float32(1e-3))
    y += offset
    return y


def _lrn(np: Any, x: Any) -> Any:
    squares = np.square(x)
    sums = squares.copy()
    for k in range(1, 5):
        sums[..., k:] += squares[..., :-k]
        sums[..., :-k] += squares[..., k:]
    sums *= np.float32(1e-3)
    sums += 1
    np.power(sums, np.float32(-0.75), out=sums)
    sums *= x
    return sums


def _plain(name: str, arrays: Callable[[], _Arrays] = _one, numpy: str | None = None) -> Any:
    """A function that has a name in both: `fb.exp` and `np.exp`."""
    return _Operation(
        name,
        arrays,
        lambda fb, *t: getattr(fb, name)(*t),
        lambda np, *a: getattr(np, numpy or name)(*a),
    )


def _reduction(name: str, axis: Any, numpy: str) -> Any:
    where = {None: "all axes", 0: "the first axis", 1: "the last axis"}[axis]
    return _Operation(
        f"reduce_{name} over {where}",
        _one if name != "prod" else _positive,
        lambda fb, x: getattr(fb, f"reduce_{name}")(x, axis),
        lambda np, x: getattr(np, numpy)(x, axis=axis),
        rtol=1e-3,
        atol=1e-2 if axis is None else 1e-3,
    )


_OPERATIONS: dict[str, _Operation] = {
    **{
        name: _plain(name)
        for name in ("exp", "expm1", "square", "sin", "cos", "tan", "tanh", "sinh", "floor")
    },
    **{name: _plain(name, _positive) for name in ("log", "log1p", "sqrt", "reciprocal")},
    **{name: _plain(name) for name in ("sign", "negative")},
    "abs": _plain("abs"),
    "round": _plain("round", numpy="rint"),
    "is_finite": _plain("is_finite", numpy="isfinite"),
    **{name: _plain(name, _two) for name in ("add", "subtract", "multiply", "maximum", "hypot")},
    "divide": _plain("divide", _positive_two),
    "pow": _plain("pow", _positive_two, "power"),
    "atan2": _plain("atan2", _two, "arctan2"),
    "floordiv": _plain("floordiv", _positive_two, "floor_divide"),
    "mod": _plain("mod", _positive_two),
    "greater": _plain("greater", _two),
    "equal": _plain("equal", _two),
    "logical_and": _plain("logical_and", _two_of_bools),
    "where": _plain("where", _choice),
    "rsqrt": _Operation(
        "rsqrt",
        _positive,
        lambda fb, x: fb.rsqrt(x),
        lambda np, x: np.reciprocal(y := np.sqrt(x), out=y),
    ),
    "squared_difference": _Operation(
        "squared_difference",
        _two,
        lambda fb, x, y: fb.squared_difference(x, y),
        lambda np, x, y: np.square(z := x - y, out=z),
    ),
    "add_row": _Operation(
        "add of a row to each of 1000", _with_row, lambda fb, x, b: x + b, lambda np, x, b: x + b
    ),
    "bias_add": _Operation(
        "bias_add", _with_row, lambda fb, x, b: fb.nn.bias_add(x, b), lambda np, x, b: x + b
    ),
    "add_n": _Operation(
        "add_n of three",
        lambda: (*_two(), *_one()),
        lambda fb, *t: fb.add_n(t),
        lambda np, x, y, z: np.add(s := x + y, z, out=s),
    ),
    "add_int32": _Operation(
        "add, int32", _two_of_integers, lambda fb, x, y: x + y, lambda np, x, y: x + y
    ),
    "floordiv_int32": _Operation(
        "floordiv, int32",
        _two_of_integers,
        lambda fb, x, y: fb.floordiv(x, y),
        lambda np, x, y: np.floor_divide(x, y),
    ),
    "mod_int32": _Operation(
        "mod, int32",
        _two_of_integers,
        lambda fb, x, y: fb.mod(x, y),
        lambda np, x, y: np.mod(x, y),
    ),
    "clip_by_value": _Operation(
        "clip_by_value",
        _one,
        lambda fb, x: fb.clip_by_value(x, -1.0, 1.0),
        lambda np, x: np.clip(x, np.float32(-1), np.float32(1)),
    ),
    "erf": _Operation("erf", _one, lambda fb, x: fb.erf(x), lambda np, x: _scipy().erf(x)),
    "lgamma": _Operation(
        "lgamma", _positive, lambda fb, x: fb.lgamma(x), lambda np, x: _scipy().gammaln(x)
    ),
    "relu": _Operation(
        "relu", _one, lambda fb, x: fb.nn.relu(x), lambda np, x: np.maximum(x, np.float32(0))
    ),
    "elu": _Operation("elu", _one, lambda fb, x: fb.nn.elu(x), _elu),
    "gelu": _Operation("gelu, tanh form", _one, lambda fb, x: fb.nn.gelu(x, True), _gelu),
    "softplus": _Operation("softplus", _one, lambda fb, x: fb.nn.softplus(x), _softplus),
    "leaky_relu": _Operation("leaky_relu", _one, lambda fb, x: fb.nn.leaky_relu(x), _leaky_relu),
    "sigmoid": _Operation("sigmoid", _one, lambda fb, x: fb.sigmoid(x), _sigmoid),
    "swish": _Operation("swish", _one, lambda fb, x: fb.nn.swish(x), _swish),
    "cast_float64": _Operation(
        "cast float32 to float64",
        _one,
        lambda fb, x: fb.cast(x, fb.float64),
        lambda np, x: x.astype(np.float64),
    ),
    "cast_int32": _Operation(
        "cast float32 to int32",
        _one,
        lambda fb, x: fb.cast(x, fb.int32),
        lambda np, x: x.astype(np.int32),
    ),
    "cast_from_bool": _Operation(
        "cast bool to float32",
        lambda: _two_of_bools()[:1],
        lambda fb, x: fb.cast(x, fb.float32),
        lambda np, x: x.astype(np.float32),
    ),
    **{
        f"reduce_{name}_{where}": _reduction(name, axis, numpy)
        for name, numpy in (("sum", "sum"), ("mean", "mean"), ("max", "max"))
        for where, axis in (("all", None), ("first", 0), ("last", 1))
    },
    "reduce_prod_last": _Operation(
        "reduce_prod over the last axis, of 10",
        lambda: (_positive()[0].reshape(100_000, 10),),
        lambda fb, x: fb.reduce_prod(x, 1),
        lambda np, x: np.prod(x, axis=1),
    ),
    "reduce_any_last": _Operation(
        "reduce_any over the last axis",
        lambda: (_two_of_bools()[0] & False,),
        lambda fb, x: fb.reduce_any(x, 1),
        lambda np, x: np.any(x, axis=1),
    ),
    "reduce_variance": _Operation(
        "reduce_variance over the last axis",
        _one,
        lambda fb, x: fb.reduce_variance(x, 1),
        lambda np, x: np.var(x, axis=1),
        rtol=1e-3,
    ),
    "moments": _Operation(
        "moments over the first axis",
        _one,
        lambda fb, x: list(fb.nn.moments(x, [0])),
        lambda np, x: (np.mean(x, axis=0), np.var(x, axis=0)),
        rtol=1e-3,
    ),
    "reduce_logsumexp": _Operation(
        "reduce_logsumexp over the last axis",
        _one,
        lambda fb, x: fb.reduce_logsumexp(x, 1),
        _logsumexp,
    ),
    "argmax": _Operation(
        "argmax over the last axis",
        _one,
        lambda fb, x: fb.argmax(x, 1),
        lambda np, x: np.argmax(x, axis=1),
    ),
    "norm": _Operation(
        "norm over the last axis",
        _one,
        lambda fb, x: fb.norm(x, axis=1),
        lambda np, x: np.linalg.norm(x, axis=1),
    ),
    "l2_loss": _Operation(
        "l2_loss",
        _one,
        lambda fb, x: fb.nn.l2_loss(x),
        lambda np, x: np.vdot(x, x) / np.float32(2),
    ),
    "softmax": _Operation(
        "softmax of 10,000 x 100",
        _wide_rows := lambda: _labels()[:1],
        lambda fb, x: fb.nn.softmax(x),
        _softmax,
    ),
    "log_softmax": _Operation(
        "log_softmax of 10,000 x 100", _wide_rows, lambda fb, x: fb.nn.log_softmax(x), _log_softmax
    ),
    "softmax_loss": _Operation(
        "softmax_cross_entropy of 10,000 x 100",
        _distributions,
        lambda fb, x, y: fb.nn.softmax_cross_entropy_with_logits(labels=y, logits=x),
        _softmax_loss,
    ),
    "sparse_softmax_loss": _Operation(
        "sparse_softmax_cross_entropy of 10,000 x 100",
        _labels,
        lambda fb, x, y: fb.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
        _sparse_loss,
    ),
    "sigmoid_loss": _Operation(
        "sigmoid_cross_entropy",
        _distributions,
        lambda fb, x, y: fb.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=x),
        _sigmoid_loss,
    ),
    "cumsum_first": _Operation(
        "cumsum along the first axis",
        _one,
        lambda fb, x: fb.cumsum(x),
        lambda np, x: np.cumsum(x, axis=0),
        atol=1e-2,
    ),
    "cumsum_last": _Operation(
        "cumsum along the last axis",
        _one,
        lambda fb, x: fb.cumsum(x, 1),
        lambda np, x: np.cumsum(x, axis=1),
        atol=1e-2,
    ),
    "sort": _Operation(
        "sort of rows", _one, lambda fb, x: fb.sort(x), lambda np, x: np.sort(x, axis=-1)
    ),
    "sort_descending": _Operation(
        "sort of rows, descending",
        _one,
        lambda fb, x: fb.sort(x, direction="DESCENDING"),
        lambda np, x: np.sort(x, axis=-1)[:, ::-1].copy(),
    ),
    "argsort": _Operation(
        "argsort of rows, stable",
        _one,
        lambda fb, x: fb.argsort(x),
        lambda np, x: np.argsort(x, axis=-1, kind="stable").astype(np.int32),
    ),
    "top_k": _Operation(
        "top_k of rows, 10 of 1000", _one, lambda fb, x: list(fb.nn.top_k(x, 10)), _top_k
    ),
    "unique": _Operation(
        "unique of 1000 different ones",
        lambda: (_integers(1000, 1_000_000),),
        lambda fb, x: list(fb.unique(x)),
        _unique,
    ),
    "gather": _Operation(
        "gather of 10,000 rows of 100",
        _rows_of(10_000, 10_000, 100),
        lambda fb, x, i: fb.gather(x, i),
        lambda np, x, i: np.take(x, i, axis=0),
    ),
    "gather_elements": _Operation(
        "gather of 1 M single elements",
        lambda: (_normal(1_000_000), _integers(1_000_000, 1_000_000)),
        lambda fb, x, i: fb.gather(x, i),
        lambda np, x, i: np.take(x, i),
    ),
    "gather_columns": _Operation(
        "gather along the last axis",
        _rows_of(1000, 1000, 1000),
        lambda fb, x, i: fb.gather(x, i, axis=1),
        lambda np, x, i: np.take(x, i, axis=1),
    ),
    "gather_nd": _Operation(
        "gather_nd of 100,000 elements",
        lambda: (_normal(1000, 1000), _integers(1000, 100_000, 2)),
        lambda fb, x, i: fb.gather_nd(x, i),
        lambda np, x, i: x[i[:, 0], i[:, 1]],
    ),
    "scatter_nd": _Operation(
        "scatter_nd of 100,000 elements into 1 M",
        lambda: (_integers(1000, 100_000, 2), _normal(100_000)),
        lambda fb, i, u: fb.scatter_nd(i, u, [1000, 1000]),
        _scatter,
    ),
    "unsorted_segment_sum": _Operation(
        "unsorted_segment_sum of 10,000 rows into 1000",
        _segments(1000),
        lambda fb, x, i: fb.unsorted_segment_sum(x, i, 1000),
        _segment_sum,
    ),
    "segment_sum": _Operation(
        "segment_sum of 10,000 rows into 1000",
        _sorted_segments,
        lambda fb, x, i: fb.segment_sum(x, i),
        _sorted_sum,
    ),
    "boolean_mask": _Operation(
        "boolean_mask of elements",
        lambda: _choice()[:2],
        lambda fb, m, x: fb.boolean_mask(x, m),
        lambda np, m, x: x[m],
    ),
    "transpose": _Operation(
        "transpose", _one, lambda fb, x: fb.transpose(x), lambda np, x: x.T.copy()
    ),
    "transpose_4d": _Operation(
        "transpose NHWC to NCHW",
        _images(16, 32, 32, 64),
        lambda fb, x: fb.transpose(x, [0, 3, 1, 2]),
        lambda np, x: x.transpose(0, 3, 1, 2).copy(),
    ),
    "concat_first": _Operation(
        "concat of two along the first axis",
        _two,
        lambda fb, *t: fb.concat(t, 0),
        lambda np, *a: np.concatenate(a, 0),
    ),
    "concat_last": _Operation(
        "concat of two along the last axis",
        _two,
        lambda fb, *t: fb.concat(t, 1),
        lambda np, *a: np.concatenate(a, 1),
    ),
    "stack": _Operation(
        "stack of two", _two, lambda fb, *t: fb.stack(t), lambda np, *a: np.stack(a)
    ),
    "split": _Operation(
        "split of columns into 4",
        _one,
        lambda fb, x: list(fb.split(x, 4, 1)),
        lambda np, x: [part.copy() for part in np.split(x, 4, 1)],
    ),
    "slice": _Operation(
        "slice x[::2, 10:]",
        _one,
        lambda fb, x: x[::2, 10:],
        lambda np, x: x[::2, 10:].copy(),
    ),
    "pad": _Operation(
        "pad of a border",
        _one,
        lambda fb, x: fb.pad(x, [[1, 1], [1, 1]]),
        lambda np, x: np.pad(x, [(1, 1), (1, 1)]),
    ),
    "tile": _Operation(
        "tile of 250,000 elements by 2 x 2",
        lambda: (_normal(500, 500),),
        lambda fb, x: fb.tile(x, [2, 2]),
        lambda np, x: np.tile(x, (2, 2)),
    ),
    "broadcast_to": _Operation(
        "broadcast_to of a row",
        lambda: (_normal(1000),),
        lambda fb, x: fb.broadcast_to(x, [1000, 1000]),
        lambda np, x: np.broadcast_to(x, (1000, 1000)).copy(),
    ),
    "reverse": _Operation(
        "reverse of the last axis",
        _one,
        lambda fb, x: fb.reverse(x, [1]),
        lambda np, x: x[:, ::-1].copy(),
    ),
    "roll": _Operation(
        "roll of the last axis",
        _one,
        lambda fb, x: fb.roll(x, 3, 1),
        lambda np, x: np.roll(x, 3, 1),
    ),
    "one_hot": _Operation(
        "one_hot of 10,000 in 100",
        lambda: (_integers(100, 10_000),),
        lambda fb, i: fb.one_hot(i, 100),
        _one_hot,
    ),
    "matmul": _Operation(
        "matmul 1000 x 1000",
        _two,
        lambda fb, x, y: fb.matmul(x, y),
        lambda np, x, y: x @ y,
        atol=1e-2,
    ),
    "matmul_transposed": _Operation(
        "matmul 1000 x 1000, transpose_b",
        _two,
        lambda fb, x, y: fb.matmul(x, y, transpose_b=True),
        lambda np, x, y: x @ y.T,
        atol=1e-2,
    ),
    "matmul_batched": _Operation(
        "matmul of 64 pairs 128 x 128",
        lambda: (_normal(64, 128, 128), _normal(64, 128, 128)),
        lambda fb, x, y: fb.matmul(x, y),
        lambda np, x, y: x @ y,
        atol=1e-2,
    ),
    "einsum": _Operation(
        "einsum bqhd,bkhd->bhqk, 8 x 128 x 4 x 64",
        lambda: (_normal(8, 128, 4, 64), _normal(8, 128, 4, 64)),
        lambda fb, x, y: fb.einsum("bqhd,bkhd->bhqk", x, y),
        lambda np, x, y: x.transpose(0, 2, 1, 3) @ y.transpose(0, 2, 3, 1),
        atol=1e-2,
    ),
    "tensordot": _Operation(
        "tensordot 10 x 100 x 1000 by 1000 x 100",
        lambda: (_normal(10, 100, 1000), _normal(1000, 100)),
        lambda fb, x, y: fb.tensordot(x, y, 1),
        lambda np, x, y: np.tensordot(x, y, 1),
        atol=1e-2,
    ),
    "conv2d": _Operation(
        "conv2d 3 x 3, 32 to 32 channels, 32 x 32 x 32 images",
        lambda: (_normal(32, 32, 32, 32), _normal(3, 3, 32, 32)),
        lambda fb, x, f: fb.nn.conv2d(x, f, 1, "SAME"),
        _convolution,
        atol=1e-2,
    ),
    "max_pool": _Operation(
        "max_pool 2 x 2 of 16 x 32 x 32 x 64",
        _images(16, 32, 32, 64),
        lambda fb, x: fb.nn.max_pool(x, 2, 2, "VALID"),
        _max_pool,
    ),
    "max_pool_overlapping": _Operation(
        "max_pool 3 x 3, stride 2, of 16 x 32 x 32 x 64",
        _images(16, 32, 32, 64),
        lambda fb, x: fb.nn.max_pool(x, 3, 2, "SAME"),
        _max_pool_overlapping,
    ),
    "avg_pool": _Operation(
        "avg_pool 2 x 2 of 16 x 32 x 32 x 64",
        _images(16, 32, 32, 64),
        lambda fb, x: fb.nn.avg_pool(x, 2, 2, "VALID"),
        _avg_pool,
    ),
    "batch_norm": _Operation(
        "fused_batch_norm of 16 x 32 x 32 x 64",
        lambda: (_normal(16, 32, 32, 64), _normal(64), _normal(64)),
        lambda fb, x, s, o: fb.nn.fused_batch_norm(x, s, o, epsilon=1e-3)[0],
        lambda np, *a: _normalised(np, (0, 1, 2), *a),
        rtol=1e-3,
        atol=1e-3,
    ),
    "layer_norm": _Operation(
        "layer_normalization of 4000 x 250",
        lambda: (_normal(4000, 250), _normal(250), _normal(250)),
        lambda fb, x, s, o: fb.nn.layer_normalization(x, s, o, epsilon=1e-3),
        lambda np, *a: _normalised(np, -1, *a),
        rtol=1e-3,
        atol=1e-3,
    ),
    "lrn": _Operation(
        "local_response_normalization of 16 x 32 x 32 x 64, radius 4",
        _images(16, 32, 32, 64),
        lambda fb, x: fb.nn.local_response_normalization(x, 4, 1.0, 1e-3, 0.75),
        _lrn,
    ),
    "rfft": _Operation(
        "rfft of rows",
        _one,
        lambda fb, x: fb.abs(fb.rfft(x)),
        lambda np, x: np.abs(np.fft.rfft(x)),
        atol=1e-2,
    ),
    "matrix_solve": _Operation(
        "matrix_solve 500 x 500, one right side",
        lambda: (_normal(500, 500) + 50 * np.eye(500, dtype=np.float32), _normal(500, 1)),
        lambda fb, a, b: fb.matrix_solve(a, b),
        lambda np, a, b: np.linalg.solve(a, b),
        atol=1e-3,
    ),
}


def _scipy() -> Any:
    import scipy.special

    return scipy.special


ROWS = tuple(
    Row(
        name=f"op_{name}",
        title=operation.work,
        cases={
            "flowbook": partial(_flowbook, operation),
            "numpy": partial(_numpy, operation),
        },
        target=Within(1.1, "numpy"),
        unit="ms",
        rtol=operation.rtol,
        atol=operation.atol,
        rounds=15,
        processes=3,
        section=SECTION,
    )
    for name, operation in _OPERATIONS.items()
)
