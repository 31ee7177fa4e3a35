"""What variables start with: functions that make a tensor of a shape and dtype.

Each function here returns an initializer, `initializer(shape, dtype=fb.float32) -> Tensor`; any
function of a shape and a dtype serves. The fans of a kernel are those of its last two dimensions,
times the size of the window that lies before them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from flowbook.graph.model.dtypes import DType, float32
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis import filling
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import constant as constant_tensor
from flowbook.graph.ops.basis.shaping import reshape
from flowbook.graph.ops.linalg.decompositions import qr
from flowbook.graph.ops.linalg.diagonals import matrix_diag_part
from flowbook.graph.ops.linalg.matrices import matrix_transpose
from flowbook.graph.ops.math.complex import sign
from flowbook.graph.ops.random import random_numbers

__all__ = [
    "constant",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "lecun_normal",
    "lecun_uniform",
    "ones",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "truncated_normal",
    "variance_scaling",
    "zeros",
]

Initializer = Callable[[Sequence[int], DType], Tensor]

# The standard deviation of a normal distribution cut off at two of its own.
_CUT_DEVIATION = 0.87962566103423978


def _drawing(draw: Initializer) -> Initializer:
    """An initializer that can be called with a shape alone."""

    def initialize(shape: Sequence[int], dtype: DType = float32) -> Tensor:
        return draw(shape, dtype)

    return initialize


def zeros() -> Initializer:
    """All zeros."""
    return _drawing(lambda shape, dtype: filling.zeros(shape, dtype))


def ones() -> Initializer:
    """All ones."""
    return _drawing(lambda shape, dtype: filling.ones(shape, dtype))


def constant(value: Any = 0) -> Initializer:
    """One number everywhere, or an array of the wanted shape."""
    return _drawing(lambda shape, dtype: constant_tensor(value, dtype, shape))


def identity(gain: float = 1.0) -> Initializer:
    """`gain` on the diagonal of a matrix, zeros elsewhere."""

    def initialize(shape: Sequence[int], dtype: DType) -> Tensor:
        if len(shape) != 2:
            raise InvalidArgumentError(f"an identity matrix has two dimensions, not {shape}")
        return filling.eye(shape[0], shape[1], dtype=dtype) * gain

    return _drawing(initialize)


def random_uniform(
    minval: float = 0.0, maxval: float | None = None, seed: int | None = None
) -> Initializer:
    """Uniform in [minval, maxval); `maxval` is 1 by default."""
    return _drawing(
        lambda shape, dtype: random_numbers.random_uniform(shape, minval, maxval, dtype, seed)
    )


def random_normal(mean: float = 0.0, stddev: float = 1.0, seed: int | None = None) -> Initializer:
    """Normal."""
    return _drawing(
        lambda shape, dtype: random_numbers.random_normal(shape, mean, stddev, dtype, seed)
    )


def truncated_normal(
    mean: float = 0.0, stddev: float = 1.0, seed: int | None = None
) -> Initializer:
    """Normal, but never farther than two standard deviations from the mean."""
    return _drawing(
        lambda shape, dtype: random_numbers.truncated_normal(shape, mean, stddev, dtype, seed)
    )


def variance_scaling(
    scale: float = 1.0,
    mode: str = "fan_in",
    distribution: str = "truncated_normal",
    seed: int | None = None,
) -> Initializer:
    """Values of mean 0 and variance `scale / n`.

    Args:
        scale: a positive number.
        mode: what n is: "fan_in", the inputs of a unit; "fan_out", the units that an input goes
            to; "fan_avg", their mean.
        distribution: "truncated_normal", "untruncated_normal" or "uniform".
        seed: the operation's seed.

    Raises:
        InvalidArgumentError: if an argument is none of these.
    """
    if not scale > 0:
        raise InvalidArgumentError(f"scale is a positive number, not {scale}")
    if mode not in ("fan_in", "fan_out", "fan_avg"):
        raise InvalidArgumentError(f"mode is fan_in, fan_out or fan_avg, not {mode!r}")
    if distribution not in ("truncated_normal", "untruncated_normal", "uniform"):
        # In TensorFlow 1 this is the truncated one, which the name does not tell.
        hint = "say truncated_normal or untruncated_normal" if distribution == "normal" else None
        raise InvalidArgumentError(
            "distribution is truncated_normal, untruncated_normal or uniform, not "
            f"{distribution!r}",
            hint=hint,
        )

    def initialize(shape: Sequence[int], dtype: DType) -> Tensor:
        fan_in, fan_out = fans(shape)
        n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[mode]
        variance = scale / max(1.0, n)
        if distribution == "uniform":
            limit = math.sqrt(3 * variance)
            return random_numbers.random_uniform(shape, -limit, limit, dtype, seed)
        if distribution == "untruncated_normal":
            return random_numbers.random_normal(shape, 0.0, math.sqrt(variance), dtype, seed)
        stddev = math.sqrt(variance) / _CUT_DEVIATION
        return random_numbers.truncated_normal(shape, 0.0, stddev, dtype, seed)

    return _drawing(initialize)


def fans(shape: Sequence[int]) -> tuple[float, float]:
    """The number of inputs and of outputs of a unit with a kernel of this shape."""
    if not shape:
        return 1.0, 1.0
    if len(shape) == 1:
        return float(shape[0]), float(shape[0])
    window = math.prod(shape[:-2])
    return float(window * shape[-2]), float(window * shape[-1])


def glorot_uniform(seed: int | None = None) -> Initializer:
    """Uniform of variance `2 / (fan_in + fan_out)`; what layers use by default.

    Source: Glorot, Bengio, "Understanding the difficulty of training deep feedforward neural
    networks", 2010.
    """
    return variance_scaling(1.0, "fan_avg", "uniform", seed)


def glorot_normal(seed: int | None = None) -> Initializer:
    """Truncated normal of variance `2 / (fan_in + fan_out)`. Source: as `glorot_uniform`."""
    return variance_scaling(1.0, "fan_avg", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> Initializer:
    """Uniform of variance `2 / fan_in`, for layers before a relu.

    Source: He et al., "Delving deep into rectifiers", 2015.
    """
    return variance_scaling(2.0, "fan_in", "uniform", seed)


def he_normal(seed: int | None = None) -> Initializer:
    """Truncated normal of variance `2 / fan_in`. Source: as `he_uniform`."""
    return variance_scaling(2.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> Initializer:
    """Uniform of variance `1 / fan_in`.

    Source: LeCun et al., "Efficient backprop", 1998.
    """
    return variance_scaling(1.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> Initializer:
    """Truncated normal of variance `1 / fan_in`. Source: as `lecun_uniform`."""
    return variance_scaling(1.0, "fan_in", "truncated_normal", seed)


def orthogonal(gain: float = 1.0, seed: int | None = None) -> Initializer:
    """A random matrix with orthonormal rows or columns, whichever are fewer, times `gain`.

    A shape of more dimensions counts as the matrix whose columns are its last dimension.

    Source: Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear
    neural networks", 2013.
    """

    def initialize(shape: Sequence[int], dtype: DType) -> Tensor:
        if len(shape) < 2:
            raise InvalidArgumentError(f"an orthogonal matrix has two dimensions, not {shape}")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        tall = (max(rows, columns), min(rows, columns))
        wide = dtype if dtype.size >= 4 else float32
        q, r = qr(random_numbers.random_normal(tall, dtype=wide, seed=seed))
        # With these signs every orthogonal matrix is equally likely.
        q = q * sign(matrix_diag_part(r))
        q = q if rows >= columns else matrix_transpose(q)
        return cast(reshape(q, shape) * gain, dtype)

    return _drawing(initialize)
