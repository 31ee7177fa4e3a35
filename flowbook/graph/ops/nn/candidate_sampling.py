"""Candidate samplers: a few classes drawn from very many, and how often each is expected.

A class is drawn by formula or by bisection, without a table's worth of work. Without repetition,
draws that were there before are thrown away; the expected counts then follow from the number of
draws that it took: `1 - (1 - p) ** draws`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowbook.graph.building.graph import get_default_graph
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import float32, float64, int32, int64
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.model.touch import DRAWS
from flowbook.graph.numerics.bounds import check_indices
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import ones, ones_like
from flowbook.graph.ops.basis.filling import range as range_of
from flowbook.graph.ops.random.random_numbers import as_seed

__all__ = [
    "all_candidate_sampler",
    "compute_accidental_hits",
    "fixed_unigram_candidate_sampler",
    "log_uniform_candidate_sampler",
    "uniform_candidate_sampler",
]

Candidates = tuple[Tensor, Tensor, Tensor]


def _candidate_shapes(
    true_classes: Tensor, *inputs: Tensor, num_true: int, num_sampled: int, **_: Any
) -> list[Shape]:
    classes = true_classes.shape.merge(Shape.of((None, num_true)))
    sampled = Shape.of((num_sampled,))
    return [sampled, classes, sampled]


def _sampler(
    type: str, inputs: str, draw: Callable[..., Any], probability: Callable[..., Any]
) -> OpDef[Candidates]:
    """A sampler.

    Args:
        type: the operation type.
        inputs: further inputs of the signature.
        draw: `draw(xp, state, count, range_max, *inputs)` gives so many classes.
        probability: `probability(xp, classes, range_max, *inputs)` gives how probable they are.
    """

    def kernel(
        xp: Any,
        state: Any,
        true_classes: Any,
        *inputs: Any,
        num_true: int,
        num_sampled: int,
        unique: bool,
        range_max: int,
    ) -> Any:
        _check_true(true_classes, num_true)
        check_indices(true_classes, range_max, "class")
        if unique:
            sampled, draws = _without_repetition(
                xp, lambda count: draw(xp, state, count, range_max, *inputs), num_sampled
            )
        else:
            sampled, draws = draw(xp, state, num_sampled, range_max, *inputs), num_sampled

        def expected(classes: Any) -> Any:
            p = probability(xp, classes, range_max, *inputs)
            count = -xp.expm1(draws * xp.log1p(-p)) if unique else p * draws
            return count.astype(np.float32)

        return sampled, expected(true_classes), expected(sampled)

    return OpDef(
        type,
        f"true_classes: int64{inputs} -> sampled_candidates: int64, "
        "true_expected_count: float32, sampled_expected_count: float32",
        attributes={
            "num_true": REQUIRED,
            "num_sampled": REQUIRED,
            "unique": REQUIRED,
            "range_max": REQUIRED,
            "seed": None,
            "graph_seed": None,
        },
        infer=_candidate_shapes,
        kernel=kernel,
        kinds=HOST,
        grad=NO_GRADIENT,
        touches=DRAWS,
        owns="random_state",
        cost=_flops,
    )


def _check_true(true_classes: Any, num_true: int) -> None:
    if true_classes.ndim != 2 or true_classes.shape[1] != num_true:
        raise InvalidArgumentError(
            f"true_classes of shape {list(true_classes.shape)} are not [batch, {num_true}]"
        )


def _flops(op: Operation) -> int:
    return 60 * sum(output.shape.size or 0 for output in op.outputs)


def _without_repetition(xp: Any, draw: Callable[[int], Any], wanted: int) -> tuple[Any, int]:
    """The first so many different classes that are drawn, and how many draws that took."""
    # Some will be there before. A draw costs by its calls more than by its length.
    drawn = draw(2 * wanted)
    while True:
        _, firsts = xp.unique(drawn, return_index=True)
        if len(firsts) >= wanted:
            break
        # As many again, so that the work is proportional to the draws.
        drawn = xp.concatenate([drawn, draw(len(drawn))])
    firsts = xp.sort(firsts)[:wanted]
    return drawn[firsts], int(firsts[-1]) + 1 if wanted else 0


uniform_op = _sampler(
    "UniformCandidateSampler",
    "",
    lambda xp, state, count, range_max: state.integers((count,), 0, range_max, int64),
    lambda xp, classes, range_max: xp.full(classes.shape, 1.0 / range_max),
)


def _draw_log_uniform(xp: Any, state: Any, count: int, range_max: int) -> Any:
    uniform = state.uniform((count,), float64)
    found = xp.exp(uniform * math.log1p(range_max)).astype(np.int64) - 1
    return xp.clip(found, 0, range_max - 1)


log_uniform_op = _sampler(
    "LogUniformCandidateSampler",
    "",
    _draw_log_uniform,
    lambda xp, classes, range_max: xp.log1p(1.0 / (classes + 1.0)) / math.log1p(range_max),
)


def _draw_by_bisection(xp: Any, state: Any, count: int, range_max: int, cumulative: Any) -> Any:
    uniform = state.uniform((count,), float64) * cumulative[-1]
    found = xp.searchsorted(cumulative, uniform, side="right")
    # Rounded up to the sum of all, it would lie past the last class with a weight.
    return xp.minimum(found, xp.searchsorted(cumulative, cumulative[-1])).astype(np.int64)


fixed_unigram_op = _sampler(
    "FixedUnigramCandidateSampler",
    ", cumulative_weights: float64",
    _draw_by_bisection,
    lambda xp, classes, range_max, cumulative: (
        (cumulative[classes] - xp.where(classes > 0, cumulative[classes - 1], 0.0)) / cumulative[-1]
    ),
)


def _positive(**numbers: Any) -> dict[str, int]:
    for name, number in numbers.items():
        if isinstance(number, Arithmetic) or not hasattr(number, "__index__"):
            raise InvalidTypeError(f"{name!r} is an int, not {number!r}")
        if number < 1:
            raise InvalidArgumentError(f"{name!r} is at least 1, not {number}")
    return {name: int(number) for name, number in numbers.items()}


def _sample(
    op_def: OpDef[Candidates],
    true_classes: Any,
    *inputs: Any,
    num_true: Any,
    num_sampled: Any,
    unique: Any,
    range_max: Any,
    available: int | None = None,
    seed: Any,
    name: str | None,
) -> Candidates:
    numbers = _positive(num_true=num_true, num_sampled=num_sampled, range_max=range_max)
    available = numbers["range_max"] if available is None else available
    if unique and numbers["num_sampled"] > available:
        raise InvalidArgumentError(
            f"{num_sampled} different classes cannot be drawn of {available}",
            hint="unique=False draws with repetition",
        )
    seeds = {"seed": as_seed(seed), "graph_seed": get_default_graph().seed}
    classes = as_classes(true_classes)
    return op_def(classes, *inputs, unique=bool(unique), **numbers, **seeds, name=name)


def as_classes(value: Any) -> Tensor:
    """Classes as an int64 tensor; int32 ones are converted."""
    tensor = convert_to_tensor(value, None if isinstance(value, Arithmetic) else int64)
    return cast(tensor, int64) if tensor.dtype is int32 else tensor


@uniform_op.front
def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Draw classes for a batch of examples, each of [0, range_max) equally probable.

    Args:
        true_classes: int64 [batch, num_true], the right classes of each example.
        num_true: how many right classes an example has.
        num_sampled: how many classes to draw, which all examples share.
        unique: draw no class twice.
        range_max: the number of classes.
        seed: an int that makes the draws reproducible, see `set_random_seed`.

    Returns:
        `(sampled_candidates, true_expected_count, sampled_expected_count)`: int64 [num_sampled],
        the drawn classes, and float32 [batch, num_true] and [num_sampled], how often the right and
        the drawn ones are expected among them.

    Raises:
        InvalidArgumentError: if more different classes are wanted than there are.
        InvalidIndexError: in the run, if a right class is none of them.
    """
    return _sample(
        uniform_op,
        true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        seed=seed,
        name=name,
    )


@log_uniform_op.front
def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Draw classes of probability `log((k + 2) / (k + 1)) / log(range_max + 1)`.

    That is Zipf's law: it fits words numbered from the most frequent to the rarest. Arguments,
    results and errors as for `uniform_candidate_sampler`.
    """
    return _sample(
        log_uniform_op,
        true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        seed=seed,
        name=name,
    )


@fixed_unigram_op.front
def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Draw classes by given counts. Results and errors as for `uniform_candidate_sampler`.

    Args:
        true_classes: int64 [batch, num_true], the right classes of each example.
        num_true: how many right classes an example has.
        num_sampled: how many classes to draw, which all examples share.
        unique: draw no class twice.
        range_max: the number of classes.
        distortion: the power that counts are raised to: 1 keeps them, 0 makes all alike.
        num_reserved_ids: how many classes before the counted ones are never drawn.
        num_shards: of how many parts this is one; part i has the classes i, i + num_shards, ...,
            numbered from 0 themselves.
        shard: which part.
        unigrams: the counts, in the order of classes. The graph holds their sums as a constant.
        seed: an int that makes the draws reproducible, see `set_random_seed`.
    """
    weights = _weights(unigrams, distortion, num_reserved_ids, num_shards, shard)
    if len(weights) != range_max:
        raise InvalidArgumentError(
            f"range_max is {range_max}, but there are "
            f"{counted(len(weights), 'class', 'classes')}: {len(unigrams)} "
            f"counts and {num_reserved_ids} reserved, in {num_shards} shards"
        )
    return _sample(
        fixed_unigram_op,
        true_classes,
        np.cumsum(weights),
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        available=int(np.count_nonzero(weights)),
        seed=seed,
        name=name,
    )


def _weights(unigrams: Any, distortion: Any, reserved: Any, shards: Any, shard: Any) -> Any:
    counts = np.asarray(unigrams, np.float64)
    if counts.ndim != 1 or not np.isfinite(counts).all() or (counts < 0).any():
        raise InvalidArgumentError("unigrams are a sequence of finite counts, none negative")
    if not 0 <= shard < shards or reserved < 0:
        raise InvalidArgumentError(
            f"shard {shard} of {shards} with {reserved} reserved classes: none is negative, and "
            "shards count from 0"
        )
    weights = np.concatenate([np.zeros(reserved), counts ** float(distortion)])[shard::shards]
    if not weights.sum() > 0:
        raise InvalidArgumentError("no class has a count above 0")
    return weights


@composed
def all_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Give all classes [0, num_sampled), for trying out what is meant for samples.

    Arguments and results as for `uniform_candidate_sampler`; all expected counts are 1.
    """
    count = _positive(num_true=num_true, num_sampled=num_sampled)["num_sampled"]
    classes = as_classes(true_classes)
    classes.shape.merge(Shape.of((None, num_true)))
    return range_of(0, count, dtype=int64), ones_like(classes, float32), ones([count])


def _hit_shapes(true_classes: Tensor, sampled_candidates: Tensor, num_true: int) -> list[Shape]:
    true_classes.shape.merge(Shape.of((None, num_true)))
    sampled_candidates.shape.with_rank(1)
    return [Shape.of((None,))] * 3


def _accidental_hits(xp: Any, true_classes: Any, sampled: Any, num_true: int) -> Any:
    _check_true(true_classes, num_true)
    if sampled.ndim != 1:
        raise InvalidArgumentError(
            f"the drawn classes are a vector, not of the shape {list(sampled.shape)}"
        )
    classes = xp.reshape(true_classes, (-1,))
    order = xp.argsort(sampled, kind="stable")
    ordered = sampled[order]
    first = xp.searchsorted(ordered, classes, side="left")
    counts = xp.searchsorted(ordered, classes, side="right") - first
    which = xp.repeat(xp.arange(classes.size), counts)
    place = xp.arange(which.size) - xp.repeat(xp.cumsum(counts) - counts, counts)
    ids = order[xp.repeat(first, counts) + place].astype(np.int64)
    indices = (which // num_true).astype(np.int32)
    return indices, ids, xp.full(ids.shape, np.finfo(np.float32).min, np.float32)


compute_accidental_hits: OpDef[tuple[Tensor, Tensor, Tensor]] = OpDef(
    "ComputeAccidentalHits",
    "true_classes: int64, sampled_candidates: int64 "
    "-> indices: int32, ids: int64, weights: float32",
    attributes={"num_true": REQUIRED},
    infer=_hit_shapes,
    kernel=_accidental_hits,
    grad=NO_GRADIENT,
    cost=lambda op: 20 * sum(t.shape.size or 0 for t in op.inputs),
    doc="""Where a drawn class is a right one of an example.

    Args:
        true_classes: int64 [batch, num_true], the right classes of each example.
        sampled_candidates: int64 [num_sampled], the drawn classes.
        num_true: how many right classes an example has.

    Returns:
        `(indices, ids, weights)` of the n hits: int32 [n], the example; int64 [n], the place among
        the drawn ones; and float32 [n], the lowest number: added to its logit it rules it out.
    """,
)
