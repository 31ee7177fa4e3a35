"""Spectra with frequency 0 in the middle, and back."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.axes import all_in_range, as_axes
from flowbook.graph.definition.composed import composed
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.reversing import roll
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import shape_of

__all__ = ["fftshift", "ifftshift"]


@composed
def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Move frequency 0 from the beginning of axes to their middle.

    Args:
        x: of any dtype and of known rank.
        axes: an int or a sequence of ints; None for all.

    Raises:
        InvalidArgumentError: if there is no such axis.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.signal.fftshift([0, 1, 2, -2, -1])))
    [-2 -1  0  1  2]
    """
    return _shifted(x, axes, name, lambda size: size // 2)


@composed
def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Undo `fftshift`."""
    return _shifted(x, axes, name, lambda size: -(size // 2))


def _shifted(x: Any, axes: Any, name: str | None, by: Any) -> Tensor:
    x = convert_to_tensor(x)
    if x.shape.rank is None:
        raise InvalidArgumentError(f"the rank of {x.name} is not known")
    given = as_axes(axes)
    along = range(x.shape.rank) if given is None else all_in_range(given, x.shape.rank)
    dims = shape_of(x)
    return roll(x, [by(dims[k]) for k in along], list(along), name=name)
