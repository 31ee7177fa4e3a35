"""Normalisation layers: with a scale and an offset that are trained, and averages that are kept."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.axes import as_axis
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.descriptions import arguments_as
from flowbook.graph.model.dtypes import DType, float32
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import ones, zeros, zeros_like
from flowbook.graph.ops.basis.permuting import transpose
from flowbook.graph.ops.math.comparison import where
from flowbook.graph.ops.nn import normalisation
from flowbook.graph.ops.state.marks import mark_as_update
from flowbook.graph.ops.state.writing import assign_sub
from flowbook.train.layers import initializers
from flowbook.train.layers.initializers import Initializer
from flowbook.train.layers.weights import (
    Constraint,
    channels_of,
    check_training,
    layer_input,
    or_default,
    weights,
)

__all__ = ["batch_normalization", "layer_normalization"]


@composed
def batch_normalization(
    inputs: Any,
    training: Any = False,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Initializer | None = None,
    gamma_initializer: Initializer | None = None,
    trainable: bool = True,
    beta: Any = None,
    gamma: Any = None,
    moving_mean: Any = None,
    moving_variance: Any = None,
    axis: int = -1,
    name: str | None = None,
    beta_constraint: Constraint | None = None,
    gamma_constraint: Constraint | None = None,
) -> Tensor:
    """Normalise each channel: over the batch while training, by moving averages otherwise.

    The moving averages change in the steps of an optimizer that minimises a loss which depends on
    the result (`graph.updates(of=loss)` lists what changes them), and only while training. That of
    the variance is of unbiased ones, for inputs of every rank (in TensorFlow, of rank 4 only).
    For smaller floats the variables are float32: an average in steps of a hundredth would stand
    still among numbers of so few digits.

    Args:
        inputs: [batch, ..., channels], of a floating-point dtype, or with the channels elsewhere.
        training: a bool, or a bool tensor that decides in the run.
        momentum: how much of the averages stays in a step.
        epsilon: what is added to the variance.
        center: whether an offset `beta` is trained.
        scale: whether a factor `gamma` is trained.
        beta_initializer: by default zeros.
        gamma_initializer: by default ones.
        trainable: whether optimizers update `beta` and `gamma` by default.
        beta: [channels], to share a variable, as the following.
        gamma: [channels].
        moving_mean: [channels].
        moving_variance: [channels].
        axis: the dimension that holds the channels; another than the last costs two
            transpositions.
        beta_constraint: a function from `beta` to what takes its place after each step of an
            optimizer, as `fb.Variable` takes it.
        gamma_constraint: likewise from `gamma`.

    Returns:
        The inputs' shape and dtype.

    Source: Ioffe, Szegedy, "Batch normalization: accelerating deep network training by reducing
    internal covariate shift", 2015.
    """
    check_training(training)
    axis = as_axis(axis)
    inputs = layer_input(inputs, "batch_normalization", axis=axis)
    rank = inputs.shape.rank
    assert rank is not None
    if rank == 1:
        raise InvalidArgumentError(f"inputs are [batch, ..., channels], not {inputs!r}")
    if not 0 <= momentum <= 1:
        raise InvalidArgumentError(f"momentum is from 0 to 1, not {momentum}")
    shape = [inputs.shape.as_list()[axis]]
    dtype = inputs.dtype if inputs.dtype.size >= 4 else float32
    order = [*(k for k in range(rank) if k != axis % rank), axis % rank]
    factor, offset = _scale_and_offset(
        shape,
        dtype,
        trainable,
        (scale, gamma_initializer, gamma, gamma_constraint),
        (center, beta_initializer, beta, beta_constraint),
    )
    mean = weights("moving_mean", shape, dtype, initializers.zeros(), moving_mean, trainable=False)
    variance = weights(
        "moving_variance", shape, dtype, initializers.ones(), moving_variance, trainable=False
    )
    factor = ones(shape, dtype) if factor is None else factor
    offset = zeros(shape, dtype) if offset is None else offset
    made = (factor, offset, mean, variance, epsilon)
    is_last = order == sorted(order)
    x = inputs if is_last else transpose(inputs, order)
    if isinstance(training, Arithmetic) or training:
        result = _by_batch(x, *made, training, 1.0 - momentum)
    else:
        result = _by_averages(x, *made)
    return result if is_last else transpose(result, [order.index(k) for k in range(rank)])


def _scale_and_offset(
    shape: list[int],
    dtype: DType,
    trainable: bool,
    gamma: tuple[bool, Initializer | None, Any, Constraint | None],
    beta: tuple[bool, Initializer | None, Any, Constraint | None],
) -> list[Any]:
    """The variables `gamma` and `beta` of a layer, None where it has none.

    Args:
        shape: of both.
        dtype: of both.
        trainable: whether optimizers update them by default.
        gamma: whether it is wanted, what it starts with, what is shared instead, its constraint.
        beta: likewise.
    """
    return [
        weights(name, shape, dtype, or_default(start, default), given, None, trainable, constraint)
        if is_wanted
        else None
        for name, (is_wanted, start, given, constraint), default in (
            ("gamma", gamma, initializers.ones()),
            ("beta", beta, initializers.zeros()),
        )
    ]


def _by_batch(
    inputs: Tensor,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    epsilon: float,
    training: Any,
    rate: float,
) -> Tensor:
    """Normalised over the batch, which moves the averages; by these where the run decides so."""
    result, *found_in_batch = normalisation.fused_batch_norm(inputs, scale, offset, epsilon=epsilon)
    step = convert_to_tensor(rate, mean.dtype)
    if isinstance(training, Arithmetic):
        chosen = convert_to_tensor(training, bool_)
        averaged = _by_averages(inputs, scale, offset, mean, variance, epsilon)
        result = where(chosen, result, averaged)
        step = where(chosen, step, 0.0)
    for average, found in zip((mean, variance), found_in_batch, strict=True):
        # A batch of one place, or one that is not finite, must not poison what is not used.
        change = where(step > 0.0, (average - found) * step, zeros_like(found))
        mark_as_update(assign_sub(average, change))
    return result


def _by_averages(
    inputs: Tensor, scale: Any, offset: Any, mean: Any, variance: Any, epsilon: float
) -> Tensor:
    return normalisation.fused_batch_norm(
        inputs, scale, offset, mean, variance, epsilon, is_training=False
    )[0]


@arguments_as(batch_normalization)
@composed
def layer_normalization(
    inputs: Any,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Initializer | None = None,
    gamma_initializer: Initializer | None = None,
    trainable: bool = True,
    beta: Any = None,
    gamma: Any = None,
    name: str | None = None,
    beta_constraint: Constraint | None = None,
    gamma_constraint: Constraint | None = None,
) -> Tensor:
    """Normalise each example over its last dimension, then scale and shift.

    Args:
        inputs: [..., features], of a floating-point dtype.
        beta: [features], to share a variable.
        gamma: [features], likewise.
        name: the name scope; by default "layer_normalization".

    Source: Ba, Kiros, Hinton, "Layer normalization", 2016.
    """
    inputs = layer_input(inputs, "layer_normalization")
    shape, dtype = [channels_of(inputs)], inputs.dtype
    factor, offset = _scale_and_offset(
        shape,
        dtype,
        trainable,
        (scale, gamma_initializer, gamma, gamma_constraint),
        (center, beta_initializer, beta, beta_constraint),
    )
    return normalisation.layer_normalization(inputs, factor, offset, epsilon=epsilon)
