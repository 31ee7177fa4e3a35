"""Discrete cosine transforms of real signals over the last dimension; the others are a batch.

A transform is a linear map: its gradient is the transposed map, and so is that one's.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.axes import as_axis
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import float32, float64
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.cosines import cosine_transform
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.joining import stack
from flowbook.graph.ops.basis.padding import pad
from flowbook.graph.ops.basis.shaping import shape_op
from flowbook.graph.ops.signal.fourier import transform_flops

__all__ = ["dct", "idct"]

# The types whose maps are each other's inverses and, but for the ends, each other's transposed.
_PARTNERS = {1: 1, 2: 3, 3: 2, 4: 4}


def _check(dims: Any, type: int) -> None:
    least = 2 if type == 1 else 1
    if dims is not None and (not dims or (dims[-1] is not None and dims[-1] < least)):
        raise InvalidArgumentError(
            f"a cosine transform of type {type} needs signals of at least {least} elements, "
            f"not the shape {Shape(dims)}"
        )


def _transformed_shape(input: Tensor, type: int, **_: Any) -> Shape:
    _check(input.shape.dims, type)
    return input.shape


def _transform(xp: Any, input: Any, type: int, norm: str | None, transposed: bool) -> Any:
    _check(input.shape, type)
    if not transposed:
        return cosine_transform(xp, input, type, norm)
    partner = _PARTNERS[type]
    if norm == "ortho" or type == 4:
        return cosine_transform(xp, input, partner, norm)
    # The transforms count the ends of a signal half as much as its inner elements.
    ends = [0, -1] if type == 1 else [0]
    if type in (1, 2):
        input = xp.array(input)
        input[..., ends] *= 2
    result = cosine_transform(xp, input, partner)
    if type in (1, 3):
        result[..., ends] /= 2
    return result


def _gradient(op: Operation, dy: Tensor) -> Tensor:
    attributes = {**op.attributes, "transposed": not op.attributes["transposed"]}
    return dct_op(dy, **attributes)


def _flops(op: Operation) -> int:
    """As a real transform."""
    shape = op.inputs[0].shape
    return transform_flops(shape, shape.dims[-1:] if shape.dims else ()) // 2


dct_op: OpDef = OpDef(
    "DCT",
    "input: T -> output: T",
    T=(float32, float64),
    attributes={"type": 2, "norm": None, "transposed": False},
    choices={"norm": (None, "ortho")},
    infer=_transformed_shape,
    kernel=_transform,
    grad=_gradient,
    cost=_flops,
)


@dct_op.front
def dct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The discrete cosine transform of real signals (Ahmed, Natarajan and Rao 1974).

    Args:
        input: [..., m] of float32 or float64.
        type: 1, 2, 3 or 4.
        n: signals are cut to this length, or filled up with zeros; by default m.
        axis: the last one, -1.
        norm: None, or "ortho" for an orthogonal map (not of type 1).

    Returns:
        [..., n] of the input's dtype. Without `norm` sums count inner elements twice.

    Raises:
        InvalidArgumentError: if there is no such transform, or signals are too short for it.
    """
    return _cosines(input, type, n, axis, norm, name)


def idct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of `dct`; without `norm` it is `2 * n` times the inverse (type 1: `2 * (n - 1)`).

    Arguments as for `dct`; the type is that of the transform to invert.
    """
    return _cosines(input, _PARTNERS.get(type, type), n, axis, norm, name)


def _cosines(input: Any, type: Any, n: Any, axis: int, norm: Any, name: str | None) -> Tensor:
    input = convert_to_tensor(input)
    if type not in _PARTNERS or (type == 1 and norm):
        raise InvalidArgumentError(
            f"there is no cosine transform of type {type!r} with the norm {norm!r}"
        )
    if axis != -1:
        raise InvalidArgumentError(f"the axis is the last one, -1, not {axis!r}")
    if n is not None:
        input = _fitted(input, as_axis(n))
    return dct_op(input, type=type, norm=norm, name=name)


def _fitted(signals: Tensor, n: int) -> Tensor:
    """Signals cut, or filled up with zeros, to a length."""
    dims = signals.shape.dims
    if n < 1:
        raise InvalidArgumentError(f"n is at least 1, not {n}")
    if dims is None:
        raise InvalidArgumentError("a transform of another length needs an input of known rank")
    cut: Tensor = signals[..., :n]
    if dims and dims[-1] is not None and dims[-1] >= n:
        return cut
    length = shape_op(cut)[-1]
    widths = stack([0, n - length])
    before = [[0, 0]] * (len(dims) - 1)
    rows = [*(stack(pair) for pair in before), widths]
    return pad(cut, stack(rows))
