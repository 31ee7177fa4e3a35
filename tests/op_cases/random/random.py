"""Random operations.

What the stateful ones draw is held against the distribution, not against values. The stateless ones
have values: those of TensorFlow, and a reference in Python's integers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.ops.basis.constants import stop_gradient
from flowbook.graph.ops.math import incomplete_gamma
from flowbook.graph.ops.random import orders, stateless_distributions, stateless_numbers
from tests.op_cases.case import Case, Scenario, f, i

SCENARIOS = (
    [
        Scenario(type, "tests/graph/ops/random/test_random_numbers.py")
        for type in ("RandomUniform", "RandomNormal", "RandomUniformInt", "TruncatedNormal")
    ]
    + [
        Scenario(type, "tests/graph/ops/random/test_distributions.py")
        for type in ("RandomGamma", "RandomPoisson", "RandomCategorical", "RandomShuffle")
    ]
    + [Scenario("SampleDistortedBoundingBox", "tests/graph/ops/image/test_images_tensorflow.py")]
)

SEED = i(3, -7)


def _words(seed: Any, count: int, first: int = 0) -> list[int]:
    """The stream of two seeds, word by word from the first block."""
    top = 2**32

    def block(key: tuple[int, ...], a: int, b: int, c: int, d: int) -> tuple[int, ...]:
        k, m = key
        for _ in range(10):
            high_b, low_b = divmod(a * 0xD2511F53, top)
            high_d, low_d = divmod(c * 0xCD9E8D57, top)
            a, b, c, d = high_d ^ b ^ k, low_d, high_b ^ d ^ m, low_b
            k, m = (k + 0x9E3779B9) % top, (m + 0xBB67AE85) % top
        return a, b, c, d

    halves = [part for s in seed for part in (int(s) % top, (int(s) >> 32) % top)]
    k0, k1, c2, c3 = block((0x3EC8F720, 0x02461E29), *halves)
    blocks = [block((k0, k1), first + n, 0, c2, c3) for n in range(-(-count // 4))]
    return [word for b in blocks for word in b][:count]


def _doubles(seed: Any, count: int, first: int = 0) -> np.ndarray:
    words = _words(seed, 2 * count, first)
    pairs = zip(words[::2], words[1::2], strict=True)
    return np.array([((a % 2**20) * 2**32 + b) / 2**52 for a, b in pairs])


def _normals(seed: Any, count: int, first: int = 0) -> np.ndarray:
    u = _doubles(seed, count + count % 2, first)
    radius = np.sqrt(-2 * np.log(np.maximum(u[::2], 1e-7)))
    angle = 2 * np.pi * u[1::2]
    return np.stack([radius * np.sin(angle), radius * np.cos(angle)], 1).ravel()[:count]


def _filled(values: Any, shape: Any) -> Any:
    dims = tuple(int(d) for d in shape)
    return np.asarray(values(int(np.prod(dims)))).reshape(dims)


def _truncated(seed: Any, shape: Any) -> np.ndarray:
    """Only for draws of which the first group of normals is within the limits."""
    assert tuple(shape) in ((2,), (0, 3))
    values = _filled(lambda n: _normals(seed, n), shape)
    assert (np.abs(values) < 2).all()
    return values


def _integers(seed: Any, shape: Any, low: int, high: int) -> np.ndarray:
    words = _words(seed, 2 * int(np.prod(shape)))
    wide = [a + b * 2**32 for a, b in zip(words[::2], words[1::2], strict=True)]
    values = [int(low) + w % int(high - low) for w in wide]
    return np.array(values, np.int64).reshape([int(d) for d in shape])


def _classes(logits: np.ndarray, count: int, seed: Any) -> np.ndarray:
    u = _filled(lambda n: _doubles(seed, n), (len(logits), int(count)))
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    sums = np.cumsum(weights, axis=1)
    return np.array(
        [np.searchsorted(s, row * s[-1], side="right") for s, row in zip(sums, u, strict=True)]
    ).reshape(len(logits), int(count))


class _Pairs:
    """What one sample draws: two numbers of a block, the second first, then those of the next."""

    def __init__(self, seed: Any, sample: int) -> None:
        self._seed, self._next = seed, 256 * sample
        self._left: dict[Any, list[float]] = {_doubles: [], _normals: []}

    def take(self, kind: Any) -> float:
        if not self._left[kind]:
            self._left[kind] = kind(self._seed, 2, self._next).tolist()
            self._next += 1
        return self._left[kind].pop()


def _per_parameter(draw: Any, shape: Any, seed: Any, parameter: np.ndarray) -> np.ndarray:
    dims = tuple(int(d) for d in shape)
    each = math.prod(dims) // max(parameter.size, 1)
    found = [
        draw(_Pairs(seed, j * each + k), p.item())
        for j, p in enumerate(parameter.ravel())
        for k in range(each)
    ]
    return np.array(found).reshape(parameter.size, -1 if each else 0).T.reshape(dims)


def _gamma(pairs: _Pairs, alpha: float) -> float:
    if alpha == 1:
        return -math.log(1 - pairs.take(_doubles))
    d = alpha + (alpha < 1) - 1 / 3
    while True:
        x = pairs.take(_normals)
        v = (1 + x / math.sqrt(9 * d)) ** 3
        if v <= 0:
            continue
        if math.log(pairs.take(_doubles)) < 0.5 * x * x + d * (1 - v + math.log(v)):
            return d * v * (pairs.take(_doubles) ** (1 / alpha) if alpha < 1 else 1)


def _poisson(pairs: _Pairs, mean: float) -> int:
    if mean < 10:
        count, product = -1, 1.0
        while product > math.exp(-mean) or count < 0:
            product *= pairs.take(_doubles)
            count += 1
        return count
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = 0.02483 * b - 0.059
    while True:
        u = pairs.take(_doubles) - 0.5
        v = pairs.take(_doubles)
        rim = 0.5 - abs(u)
        k = math.floor((2 * a / rim + b) * u + mean + 0.43)
        if rim >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if k < 0 or (rim < 0.013 and v > rim):
            continue
        height = v * (1.1239 + 1.1328 / (b - 3.4)) / (a / rim**2 + b)
        if math.log(height) <= k * math.log(mean) - mean - math.lgamma(k + 1):
            return k


def _order(seed: Any, size: int) -> np.ndarray:
    words = _words(seed, 2 * size)
    return np.argsort([a + b * 2**32 for a, b in zip(words[::2], words[1::2], strict=True)])


LOGITS = f([[0.5, -1.0, 2.0, -np.inf], [0.0, 0.0, 0.0, 0.0], [-np.inf, 3.0, -np.inf, 1.0]])

# By mpmath, from the incomplete gamma function with 40 digits.
SLOPES = f(
    [
        0.80697911682531802,
        1.93791169382496105,
        0.856571422097806717,
        1.10124521217956541,
        0.945759722628632416,
    ]
)

CASES = [
    Case(
        "StatelessRandomUniform",
        lambda n, s: stateless_numbers.stateless_random_uniform(n, s, dtype=dtypes.float64),
        [i(2, 3), SEED],
        lambda n, s: _filled(lambda size: _doubles(s, size), n),
        fixed=[0],
        empty=[i(0, 3), SEED],
        tensorflow=lambda tf, n, s: tf.random.stateless_uniform(n, s, dtype=tf.float64),
    ),
    Case(
        "StatelessRandomNormal",
        lambda n, s: stateless_numbers.stateless_random_normal(n, s, dtype=dtypes.float64),
        [i(3, 3), SEED],
        lambda n, s: _filled(lambda size: _normals(s, size), n),
        fixed=[0],
        empty=[i(0, 3), SEED],
        tensorflow=lambda tf, n, s: tf.random.stateless_normal(n, s, dtype=tf.float64),
    ),
    Case(
        "StatelessTruncatedNormal",
        lambda n, s: stateless_numbers.stateless_truncated_normal(n, s, dtype=dtypes.float64),
        [i([2]), SEED],
        lambda n, s: _truncated(s, n),
        fixed=[0],
        empty=[i(0, 3), SEED],
        tensorflow=lambda tf, n, s: tf.random.stateless_truncated_normal(n, s, dtype=tf.float64),
    ),
    Case(
        "StatelessRandomUniformInt",
        lambda n, s, a, b: stateless_numbers.stateless_random_uniform(n, s, a, b, dtypes.int64),
        [i(2, 3), SEED, np.int64(-5), np.int64(2**40)],
        lambda n, s, a, b: _integers(s, n, a, b),
        fixed=[0],
        empty=[i(0, 3), SEED, np.int64(-5), np.int64(5)],
        tensorflow=lambda tf, n, s, a, b: tf.random.stateless_uniform(n, s, a, b, tf.int64),
    ),
    Case(
        "StatelessRandomCategorical",
        stateless_distributions.stateless_random_categorical,
        [LOGITS, i(6), SEED],
        _classes,
        fixed=[1],
        empty=[np.zeros((0, 4)), i(6), SEED],
        tensorflow=lambda tf, x, n, s: tf.random.stateless_categorical(x, n, s),
    ),
    Case(
        "StatelessRandomGamma",
        # Its gradient is that of the distribution function, not of single samples: see
        # tests/graph/ops/random/test_distributions.py.
        lambda n, s, a: stateless_distributions.stateless_gamma_op(n, s, stop_gradient(a)),
        [i(2, 3, 4), SEED, f([0.25, 1.0, 2.5, 40.0])],
        lambda n, s, a: _per_parameter(_gamma, n, s, a),
        fixed=[0],
        empty=[i(0, 3), SEED, f([0.25, 1.0, 2.5])],
        tolerance=4,
        tensorflow=lambda tf, n, s, a: tf.random.stateless_gamma(n, s, a, dtype=tf.float64),
    ),
    Case(
        "StatelessRandomPoisson",
        lambda n, s, m: stateless_distributions.stateless_random_poisson(n, s, m, dtypes.int64),
        [i(2, 3, 4), SEED, f([0.0, 4.0, 12.0, 1000.0])],
        lambda n, s, m: _per_parameter(_poisson, n, s, m),
        fixed=[0],
        empty=[i(0, 3), SEED, f([0.25, 1.0, 2.5])],
        tensorflow=lambda tf, n, s, m: tf.random.stateless_poisson(n, s, m, tf.int64),
    ),
    Case(
        "StatelessRandomShuffle",
        orders.stateless_random_shuffle,
        [f([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]), SEED],
        lambda x, s: x[_order(s, len(x))],
        empty=[np.zeros((0, 3)), SEED],
    ),
    Case(
        "IgammaRelativeGradA",
        incomplete_gamma.relative_grad_a,
        [f([1.0, 1.0, 3.0, 25.0, 45.0]), f([0.5, 3.0, 2.0, 30.0, 40.0])],
        lambda a, x: -SLOPES[: x.size],
        [0, 1],
        empty=[np.zeros(0), np.zeros(0)],
        tolerance=32,
        only=[dtypes.float32, dtypes.float64],
        tensorflow=lambda tf, a, x: -tf.raw_ops.RandomGammaGrad(alpha=a, sample=x),
    ),
]
