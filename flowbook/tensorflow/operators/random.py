"""Random numbers: a seed of TensorFlow's gives a sequence here too, though another one."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model.dtypes import int64
from flowbook.graph.ops.nn.candidate_sampling import (
    all_candidate_sampler,
    compute_accidental_hits,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from flowbook.graph.ops.random.distributions import random_categorical, random_gamma, random_poisson
from flowbook.graph.ops.random.orders import random_shuffle
from flowbook.graph.ops.random.random_numbers import random_normal, random_uniform, truncated_normal
from flowbook.tensorflow.node import Node, Rules, named


def seed_of(n: Node) -> int | None:
    """The operation's seed, with the graph's; None if it has none."""
    first, second = n.whole("seed"), n.whole("seed2")
    return (first << 32 ^ second) % (1 << 63) if first or second else None


def _drawn(function: Any) -> Any:
    return named(function, dtype=lambda n: n.dtype("dtype"), seed=seed_of)


def _whole(n: Node, shape: Any, low: Any, high: Any) -> Any:
    return random_uniform(shape, low, high, low.dtype, seed=seed_of(n), name=n.scope)


def _gamma(n: Node, shape: Any, alpha: Any) -> Any:
    return random_gamma(shape, alpha, dtype=alpha.dtype, seed=seed_of(n), name=n.scope)


def _categorical(n: Node, logits: Any, count: Any) -> Any:
    dtype = n.dtype("output_dtype", int64)
    return random_categorical(logits, count, dtype, seed=seed_of(n), name=n.scope)


def _poisson(n: Node, shape: Any, rate: Any) -> Any:
    drawn = n.dtype("dtype", int64)
    return random_poisson(rate, shape, drawn, seed_of(n), name=n.scope)


def _candidates(function: Any, *attributes: str) -> Any:
    """The rule of what draws candidates among classes, by some whole numbers more."""

    def rule(n: Node, classes: Any) -> Any:
        found = function(
            classes,
            n.whole("num_true"),
            n.whole("num_sampled"),
            n.flag("unique"),
            *map(n.whole, attributes),
            seed=seed_of(n),
            name=n.scope,
        )
        return list(found)

    return rule


RULES: Rules = {
    "AllCandidateSampler": _candidates(all_candidate_sampler),
    "ComputeAccidentalHits": named(compute_accidental_hits, num_true=lambda n: n.whole("num_true")),
    "LogUniformCandidateSampler": _candidates(log_uniform_candidate_sampler, "range_max"),
    "Multinomial": _categorical,
    "RandomGamma": _gamma,
    "RandomPoissonV2": _poisson,
    "RandomShuffle": named(random_shuffle, seed=seed_of),
    "RandomStandardNormal": _drawn(random_normal),
    "RandomUniform": _drawn(random_uniform),
    "RandomUniformInt": _whole,
    "UniformCandidateSampler": _candidates(uniform_candidate_sampler, "range_max"),
    "TruncatedNormal": _drawn(truncated_normal),
}
