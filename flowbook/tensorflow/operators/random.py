"""Random numbers: a seed of TensorFlow's gives a sequence here too, though another one."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model.dtypes import int64
from flowbook.graph.ops.random.distributions import random_categorical, random_gamma
from flowbook.graph.ops.random.orders import random_shuffle
from flowbook.graph.ops.random.random_numbers import random_normal, random_uniform, truncated_normal
from flowbook.tensorflow.node import Node, Rules


def _seed(n: Node) -> int | None:
    """The operation's seed, with the graph's; None if it has none."""
    first, second = n.whole("seed"), n.whole("seed2")
    return (first << 32 ^ second) % (1 << 63) if first or second else None


def _drawn(function: Any) -> Any:
    return lambda n, shape: function(shape, dtype=n.dtype("dtype"), seed=_seed(n), name=n.scope)


def _whole(n: Node, shape: Any, low: Any, high: Any) -> Any:
    return random_uniform(shape, low, high, low.dtype, seed=_seed(n), name=n.scope)


def _gamma(n: Node, shape: Any, alpha: Any) -> Any:
    return random_gamma(shape, alpha, dtype=alpha.dtype, seed=_seed(n), name=n.scope)


def _categorical(n: Node, logits: Any, count: Any) -> Any:
    dtype = n.dtype("output_dtype", int64)
    return random_categorical(logits, count, dtype, seed=_seed(n), name=n.scope)


RULES: Rules = {
    "Multinomial": _categorical,
    "RandomGamma": _gamma,
    "RandomShuffle": lambda n, x: random_shuffle(x, seed=_seed(n), name=n.scope),
    "RandomStandardNormal": _drawn(random_normal),
    "RandomUniform": _drawn(random_uniform),
    "RandomUniformInt": _whole,
    "TruncatedNormal": _drawn(truncated_normal),
}
