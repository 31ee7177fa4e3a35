"""Penalties on weights, which training adds to its loss.

A regularizer is a function from weights to a scalar. A layer that is given one marks what it
returns; `regularization_loss` sums the marked ones that belong to a loss, from live operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.graph.building.scopes import control_dependencies, name_scope, within
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.constants import constant, convert_to_tensor
from flowbook.graph.ops.math.arithmetic import add_n
from flowbook.graph.ops.math.complex import abs as absolute
from flowbook.graph.ops.math.elementwise import square
from flowbook.graph.ops.nn.penalties import penalties_of, penalty_op
from flowbook.graph.ops.state.variables import Variable

__all__ = ["l1", "l1_l2", "l2"]

Regularizer = Callable[[Any], Tensor]


def l1(scale: float = 0.01) -> Regularizer:
    """`scale` times the sum of absolute values."""
    _check(scale)
    return lambda weights: reduce_sum(absolute(weights)) * scale


def l2(scale: float = 0.01) -> Regularizer:
    """`scale` times the sum of squares."""
    _check(scale)
    return lambda weights: reduce_sum(square(weights)) * scale


def l1_l2(l1_scale: float = 0.01, l2_scale: float = 0.01) -> Regularizer:
    """The sum of both."""
    first, second = l1(l1_scale), l2(l2_scale)
    return lambda weights: first(weights) + second(weights)


def _check(scale: float) -> None:
    if not 0 <= scale < float("inf"):
        raise InvalidArgumentError(f"scale is a number from 0 on, not {scale}")


def penalize(weights: Variable, regularizer: Regularizer) -> Tensor:
    """Build the penalty of a variable and mark it; `regularization_loss` finds it.

    As variables, penalties are outside of all loops and branches.
    """
    with (
        within(weights.op.graph, lambda scope: scope._replace(flow=None)),
        control_dependencies(None),
        name_scope(f"{weights.op.name.rpartition('/')[2]}_penalty"),
    ):
        return penalty_op(regularizer(weights))


def regularization_loss(loss: Any, name: str = "regularization_loss") -> Tensor:
    """The sum of the penalties on all variables that a loss depends on.

    Args:
        loss: a tensor.
        name: the operation's name.

    Returns:
        A scalar of the loss's dtype; 0 where no layer was given a regularizer.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [None, 3])
    >>> y = fb.layers.dense(x, 2, kernel_regularizer=fb.regularizers.l2(0.1))
    >>> loss = fb.reduce_mean(fb.square(y))
    >>> total = loss + fb.layers.regularization_loss(loss)
    """
    loss = convert_to_tensor(loss)
    with loss.graph.as_default():
        penalties = penalties_of(loss)
        if not penalties:
            return constant(0.0, loss.dtype, name=name)
        return add_n(penalties, name=name)
