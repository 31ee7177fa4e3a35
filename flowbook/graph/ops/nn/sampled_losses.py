"""Losses over very many classes, by the right ones and a sample of the others.

Each step touches the rows of these classes only, in the tables as in their gradients.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.model.dtypes import float16
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, stop_gradient
from flowbook.graph.ops.basis.filling import ones_like, zeros_like
from flowbook.graph.ops.basis.joining import concat
from flowbook.graph.ops.basis.shaping import expand_dims, reshape, shape_of, size
from flowbook.graph.ops.linalg.matrix_products import matmul
from flowbook.graph.ops.math.comparison import equal, where
from flowbook.graph.ops.math.elementwise import log
from flowbook.graph.ops.nn.candidate_sampling import (
    Candidates,
    as_classes,
    log_uniform_candidate_sampler,
)
from flowbook.graph.ops.nn.embedding import embedding_lookup
from flowbook.graph.ops.nn.losses import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
)
from flowbook.graph.ops.reduction.reductions import reduce_any

__all__ = ["nce_loss", "sampled_softmax_loss"]


@composed
def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Candidates | None = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """An estimate of the softmax cross entropy over all classes, for training.

    Args:
        weights: [classes, width], a variable or tensor, or a list of shards as for
            `embedding_lookup`.
        biases: [classes].
        labels: int64 [batch, num_true], the right classes.
        inputs: [batch, width], of the weights' dtype.
        num_sampled: how many classes to draw.
        num_classes: how many there are.
        num_true: how many right classes an example has; they share the probability equally.
        sampled_values: what a candidate sampler gave; by default `log_uniform_candidate_sampler`,
            without repetition.
        remove_accidental_hits: leave out drawn classes that are right ones of an example.
        partition_strategy: "mod" or "div", for lists of shards.
        seed: an int that makes the default draws reproducible.

    Returns:
        [batch], the loss of each example.

    Source: Jean et al., "On Using Very Large Target Vocabulary for Neural Machine Translation",
    2014.
    """
    true_logits, sampled_logits = _logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        seed,
    )
    wanted = concat([ones_like(true_logits) / num_true, zeros_like(sampled_logits)], 1)
    logits = concat([true_logits, sampled_logits], 1)
    return softmax_cross_entropy_with_logits(labels=stop_gradient(wanted), logits=logits)


@composed
def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Candidates | None = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str | None = None,
) -> Tensor:
    """The loss of telling right classes from drawn ones: noise-contrastive estimation.

    Arguments as for `sampled_softmax_loss`.

    Returns:
        [batch], for each example the sum of the losses of `num_true` + `num_sampled` decisions.

    Source: Gutmann and Hyvärinen, "Noise-contrastive estimation", 2010.
    """
    true_logits, sampled_logits = _logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        None,
    )
    right = sigmoid_cross_entropy_with_logits(
        labels=ones_like(true_logits) / num_true, logits=true_logits
    )
    drawn = sigmoid_cross_entropy_with_logits(
        labels=zeros_like(sampled_logits), logits=sampled_logits
    )
    return reduce_sum(right, 1) + reduce_sum(drawn, 1)


def _logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Candidates | None,
    remove_accidental_hits: bool,
    partition_strategy: str,
    seed: int | None,
) -> tuple[Tensor, Tensor]:
    """Logits [batch, num_true] of the right and [batch, num_sampled] of the drawn classes.

    From each the logarithm of how often it is expected among the candidates is subtracted.
    """
    labels, inputs = as_classes(labels), convert_to_tensor(inputs)
    if not labels.dtype.is_integer:
        raise InvalidTypeError(
            f"labels are whole numbers, the classes, not {labels.dtype.name}",
            hint="labels come before inputs",
        )
    if labels.shape.rank == 1 and num_true == 1:
        raise InvalidArgumentError(
            f"labels are [batch, {num_true}], not of the shape {labels.shape}",
            hint="fb.expand_dims(labels, 1) makes a column of them",
        )
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(
            labels, num_true, num_sampled, True, num_classes, seed
        )
    sampled, true_expected, sampled_expected = (stop_gradient(v) for v in sampled_values)
    sampled = as_classes(sampled)
    flat = reshape(labels, [-1])
    # One gather for both, so that the table gets one gradient.
    classes, known = concat([flat, sampled], 0), labels.shape.size
    count = size(flat) if known is None else known
    rows = embedding_lookup(weights, classes, partition_strategy)
    offsets = embedding_lookup(biases, classes, partition_strategy)
    width = shape_of(inputs)[1]
    true_rows = reshape(rows[:count], [-1, num_true, width])
    true_logits = reduce_sum(expand_dims(inputs, 1) * true_rows, 2)
    true_logits += reshape(offsets[:count], [-1, num_true])
    sampled_logits = matmul(inputs, rows[count:], transpose_b=True) + offsets[count:]
    if remove_accidental_hits:
        hits = reduce_any(equal(expand_dims(labels, 2), sampled), 1)
        lowest = -6e4 if inputs.dtype is float16 else -3e38
        sampled_logits = where(hits, lowest, sampled_logits)
    return (
        true_logits - log(cast(true_expected, inputs.dtype)),
        sampled_logits - log(cast(sampled_expected, inputs.dtype)),
    )
