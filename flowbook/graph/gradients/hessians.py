"""Second derivatives: the gradient of every element of a gradient.

What is built grows with the elements of each `x`, for each of which there is a backward pass.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.gradients.backward import gradients
from flowbook.graph.model.errors import InvalidArgumentError, OpError, without_internal_frames
from flowbook.graph.model.long_work import track
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.joining import stack
from flowbook.graph.ops.basis.shaping import reshape

__all__ = ["hessians"]


def hessians(ys: Any, xs: Any, name: str = "hessians") -> list[Tensor | None]:
    """Build the Hessian of the sum of `ys` with respect to each of `xs`.

    Args:
        ys: a tensor, or a list of them, of floating-point dtype.
        xs: a tensor or variable, or a list of them, whose shapes are known. The graph grows by a
            backward pass for each of their elements.
        name: the name scope of what is built.

    Returns:
        For each of `xs`, of shape S, a tensor of shape S + S: `[i, j]` is the derivative by `x[i]`
        and `x[j]`. None where `ys` does not depend on it.

    Raises:
        InvalidArgumentError: if a shape is not known.
        NotFoundError: if an operation on the way has no gradient, or that has none. It is a
            LookupError.

    >>> import flowbook as fb
    >>> x = fb.constant([2.0, 3.0])
    >>> [h] = fb.hessians(x[0] ** 2 * x[1], x)
    >>> with fb.Session() as sess:
    ...     print(sess.run(h))
    [[6. 4.]
     [4. 0.]]
    """
    try:
        x_list = list(xs) if isinstance(xs, list | tuple) else [xs]
        with name_scope(name):
            slopes = gradients(ys, x_list)
            return [
                None if slope is None else _jacobian(convert_to_tensor(slope), x)
                for slope, x in zip(slopes, x_list, strict=True)
            ]
    except OpError as error:
        error.at("hessians", sites.capture())
        raise without_internal_frames(error) from error.__cause__


def _jacobian(y: Tensor, x: Any) -> Tensor:
    """The derivative of each of y's elements, of which there are as many as in x."""
    if not x.shape.is_fully_defined:
        raise InvalidArgumentError(
            f"{x.name} has the shape {x.shape}, which says not how many derivatives there are",
            hint="fb.ensure_shape(x, shape) makes it known",
        )
    flat = reshape(y, [-1])
    rows = [
        convert_to_tensor(gradients(flat[i], x, unconnected_gradients="zero")[0])
        for i in track(range(x.shape.size), "differentiating")
    ]
    square = [*x.shape.as_list()] * 2
    return reshape(stack(rows) if rows else flat, square)
