"""Noise composed of other operations: dropout."""

from __future__ import annotations

from typing import Any

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.model.convert import to_array
from flowbook.graph.model.dtypes import float64
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity
from flowbook.graph.ops.basis.shaping import shape_of
from flowbook.graph.ops.checks.checking import ensure_shape
from flowbook.graph.ops.math.arithmetic import multiply
from flowbook.graph.ops.math.comparison import greater_equal
from flowbook.graph.ops.random.random_numbers import random_uniform

__all__ = ["dropout"]


def dropout(
    x: Any,
    *,
    rate: Any,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Set elements to zero at random and scale up the others, so that sums stay on average.

    Args:
        x: of a floating-point dtype.
        rate: the probability that an element is dropped, in [0, 1): a number or a scalar tensor.
            It is given by name, as TensorFlow's second argument is the probability of the contrary.
        noise_shape: the shape of the random choices, which broadcasts to `x`'s; by default `x`'s.
            In a list, None stands for `x`'s dimension there.
        seed: an int that makes the choices reproducible, see `set_random_seed`.
        name: the name scope.

    Raises:
        InvalidArgumentError: if `rate` is a number outside [0, 1), or `noise_shape` does not
            broadcast to `x`'s.

    Source: Srivastava et al., "Dropout", 2014.
    """
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        raise InvalidTypeError(f"dropout takes floating-point tensors, not {x.dtype.name}")
    is_number = not isinstance(rate, Arithmetic)
    if is_number:
        rate = to_array(rate, float64)
        if rate.ndim or not 0 <= rate < 1:
            raise InvalidArgumentError(f"rate is a probability in [0, 1), not {rate}")
    _check_noise_shape(x, noise_shape)
    if is_number and rate == 0:
        return identity(x, name=name)
    with name_scope(name or "dropout") as scope:
        rate = ensure_shape(convert_to_tensor(rate, x.dtype), [])
        noise = random_uniform(_noise_shape(x, noise_shape), dtype=x.dtype, seed=seed)
        kept = cast(greater_equal(noise, rate), x.dtype)
        if noise_shape is None or noise.shape.is_fully_defined:
            return multiply(x / (1 - rate), kept, name=scope)
        # Choices of a shape that only the run knows do not make the result larger than x.
        return ensure_shape(x / (1 - rate) * kept, x.shape, name=scope)


def _check_noise_shape(x: Tensor, noise_shape: Any) -> None:
    if x.shape.dims is None or not isinstance(noise_shape, Shape | list | tuple):
        return
    chosen = noise_shape.dims or () if isinstance(noise_shape, Shape) else noise_shape
    pairs = zip(reversed(x.shape.dims), reversed(chosen), strict=False)
    if len(chosen) > len(x.shape.dims) or any(
        isinstance(c, int) and c not in (1, d) for d, c in pairs if d is not None
    ):
        raise InvalidArgumentError(
            f"noise_shape {list(chosen)} does not broadcast to the shape {x.shape}"
        )


def _noise_shape(x: Tensor, noise_shape: Any) -> Any:
    if noise_shape is None:
        return shape_of(x)
    if not isinstance(noise_shape, list | tuple) or None not in noise_shape:
        return noise_shape
    whole = shape_of(x)
    return [whole[i] if d is None else d for i, d in enumerate(noise_shape)]
