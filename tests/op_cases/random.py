"""Random operations.

What the stateful ones draw is held against the distribution, not against values. The stateless ones
have values: those of TensorFlow, and a reference in Python's integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph import dtypes
from flowbook.graph.ops import incomplete_gamma, stateless_random
from tests.op_cases.case import Case, Scenario, f, i

SCENARIOS = (
    [
        Scenario(type, "tests/graph/ops/test_random.py")
        for type in ("RandomUniform", "RandomNormal", "RandomUniformInt", "TruncatedNormal")
    ]
    + [
        Scenario(type, "tests/graph/ops/test_random_distributions.py")
        for type in ("RandomGamma", "RandomPoisson", "RandomCategorical", "RandomShuffle")
    ]
    + [Scenario("SampleDistortedBoundingBox", "tests/graph/ops/test_images_tensorflow.py")]
)

SEED = i(3, -7)


def _words(seed: Any, count: int) -> list[int]:
    """The stream of two seeds, word by word."""
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
    blocks = [block((k0, k1), n, 0, c2, c3) for n in range(-(-count // 4))]
    return [word for b in blocks for word in b][:count]


def _doubles(seed: Any, count: int) -> np.ndarray:
    words = _words(seed, 2 * count)
    pairs = zip(words[::2], words[1::2], strict=True)
    return np.array([((a % 2**20) * 2**32 + b) / 2**52 for a, b in pairs])


def _normals(seed: Any, count: int) -> np.ndarray:
    u = _doubles(seed, count + count % 2)
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
        lambda n, s: stateless_random.stateless_random_uniform(n, s, dtype=dtypes.float64),
        [i(2, 3), SEED],
        lambda n, s: _filled(lambda size: _doubles(s, size), n),
        fixed=[0],
        empty=[i(0, 3), SEED],
        tensorflow=lambda tf, n, s: tf.random.stateless_uniform(n, s, dtype=tf.float64),
    ),
    Case(
        "StatelessRandomNormal",
        lambda n, s: stateless_random.stateless_random_normal(n, s, dtype=dtypes.float64),
        [i(3, 3), SEED],
        lambda n, s: _filled(lambda size: _normals(s, size), n),
        fixed=[0],
        empty=[i(0, 3), SEED],
        tensorflow=lambda tf, n, s: tf.random.stateless_normal(n, s, dtype=tf.float64),
    ),
    Case(
        "StatelessTruncatedNormal",
        lambda n, s: stateless_random.stateless_truncated_normal(n, s, dtype=dtypes.float64),
        [i([2]), SEED],
        lambda n, s: _truncated(s, n),
        fixed=[0],
        empty=[i(0, 3), SEED],
        tensorflow=lambda tf, n, s: tf.random.stateless_truncated_normal(n, s, dtype=tf.float64),
    ),
    Case(
        "StatelessRandomUniformInt",
        lambda n, s, a, b: stateless_random.stateless_random_uniform(n, s, a, b, dtypes.int64),
        [i(2, 3), SEED, np.int64(-5), np.int64(2**40)],
        lambda n, s, a, b: _integers(s, n, a, b),
        fixed=[0],
        empty=[i(0, 3), SEED, np.int64(-5), np.int64(5)],
        tensorflow=lambda tf, n, s, a, b: tf.random.stateless_uniform(n, s, a, b, tf.int64),
    ),
    Case(
        "StatelessRandomCategorical",
        stateless_random.stateless_random_categorical,
        [LOGITS, i(6), SEED],
        _classes,
        fixed=[1],
        empty=[np.zeros((0, 4)), i(6), SEED],
        tensorflow=lambda tf, x, n, s: tf.random.stateless_categorical(x, n, s),
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
