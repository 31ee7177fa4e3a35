"""Temporary variables: state that one step makes, writes and forgets.

One is a value, as a stack is (`control_flow/stacks.py`): a write gives the next state of it, and
the step's memory lets the last one be overwritten. Where two would have to share a state, which
only an order that nobody gave could tell apart, the second is refused.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.dtypes import MOVABLE, as_dtype
from flowbook.graph.model.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor

__all__ = ["destroy_temporary_variable", "temporary_variable"]


def _one_shape(*, dtype: Any, shape: Any, var_name: Any) -> Shape:
    if not isinstance(shape, Shape) or not shape.is_fully_defined:
        raise InvalidArgumentError(f"a temporary variable has one shape, which {shape} is not")
    return shape


temporary_variable_op = OpDef(
    "TemporaryVariable",
    "-> ref: dtype",
    attributes={"dtype": REQUIRED, "shape": REQUIRED, "var_name": REQUIRED},
    infer=_one_shape,
    kernel=lambda xp, dtype, shape: xp.zeros(shape.dims, dtype.numpy),
    only_moves=True,
)


@temporary_variable_op.front
def temporary_variable(
    shape: Any, dtype: Any, name: str | None = None, var_name: str | None = None
) -> Tensor:
    """A variable that lives within a step: each begins with zeros, and none sees another's.

    `fb.assign`, `fb.assign_add` and `fb.assign_sub` write it, and give what it is afterwards: that
    is what is written, read or destroyed next. No gradient is lost in it.

    Args:
        shape: its shape, fully known.
        dtype: its dtype.
        var_name: what `destroy_temporary_variable` calls it; by default the operation's type.

    Raises:
        InvalidArgumentError: if the shape is not fully known.

    >>> import flowbook as fb
    >>> total = fb.temporary_variable([2], fb.float32, var_name="total")
    >>> total = fb.assign_add(fb.assign(total, [1.0, 2.0]), [10.0, 20.0])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.destroy_temporary_variable(total, "total")))
    [11. 22.]
    """
    return temporary_variable_op(
        dtype=as_dtype(dtype),
        shape=Shape(shape),
        var_name=var_name or temporary_variable_op.type,
        name=name,
    )


def _fitting(ref: Tensor, value: Tensor, combine: str) -> Shape:
    if not ref.shape.is_compatible_with(value.shape):
        raise InvalidArgumentError(
            f"a value of shape {value.shape} does not fit the variable of shape {ref.shape}"
        )
    return ref.shape


def _written(xp: Any, ref: Any, value: Any, combine: str) -> Any:
    if value.shape != ref.shape:
        raise InvalidArgumentError(
            f"a value of shape {list(value.shape)} does not fit the variable of shape "
            f"{list(ref.shape)}"
        )
    return getattr(xp, combine)(ref, value) if combine else value


def _write_gradient(op: Operation, dy: Tensor) -> tuple[Tensor | None, Tensor]:
    combine = op.attributes["combine"]
    return (dy if combine else None), (-dy if combine == "subtract" else dy)


write_temporary_op = OpDef(
    "WriteTemporary",
    "ref: T, value: T -> written: T",
    T=MOVABLE,
    attributes={"combine": ""},
    # What is done with what is there, by NumPy's names; the value takes its place otherwise.
    choices={"combine": ("", "add", "subtract")},
    infer=_fitting,
    kernel=_written,
    grad=_write_gradient,
    aliases=None,
    cost=lambda op: (op.inputs[0].shape.size or 0) if op.attributes["combine"] else 0,
)

destroy_temporary_op = OpDef(
    "DestroyTemporaryVariable",
    "ref: T -> value: T",
    T=MOVABLE,
    attributes={"var_name": REQUIRED},
    infer=lambda ref, var_name: ref.shape,
    kernel=lambda xp, ref: ref,
    grad=lambda op, dy: dy,
    aliases={0: 0},
    only_moves=True,
)

_STATES = (temporary_variable_op, write_temporary_op)
_ENDS = (write_temporary_op, destroy_temporary_op)


def is_temporary(tensor: Tensor) -> bool:
    """Whether a tensor is a state of a temporary variable."""
    return tensor.op.op_def in _STATES


@write_temporary_op.front
def write_temporary(ref: Tensor, value: Any, combine: str, name: str | None = None) -> Tensor:
    """What a temporary variable is after a write; `combine` is "", "add" or "subtract"."""
    _check_latest(ref)
    return write_temporary_op(ref, value, combine=combine, name=name)


@destroy_temporary_op.front
def destroy_temporary_variable(ref: Any, var_name: str, name: str | None = None) -> Tensor:
    """The value of a temporary variable, which cannot be written any more.

    Args:
        ref: the variable, or what the last write to it gave.
        var_name: its name, as `temporary_variable` was given it.

    Raises:
        NotFoundError: if it is not the temporary variable of that name.
        FailedPreconditionError: if it has been written since, or destroyed.
    """
    origin = ref.op if isinstance(ref, Tensor) else None
    while origin is not None and origin.op_def is write_temporary_op:
        origin = origin.inputs[0].op
    if (
        origin is None
        or origin.op_def is not temporary_variable_op
        or origin.attributes["var_name"] != var_name
    ):
        raise NotFoundError(f"{ref!r} is no temporary variable {var_name!r}")
    _check_latest(ref)
    return destroy_temporary_op(ref, var_name=var_name, name=name)


def _check_latest(ref: Tensor) -> None:
    """Refuse a state that a write or a destruction has ended, unless the same is built again."""
    site = sites.capture()
    for end in ref.consumers():
        is_again = site.author is not None and site.author.may_take(end.site.author)
        if end.op_def in _ENDS and not is_again:
            raise FailedPreconditionError(
                f"{ref.name} is what the temporary variable was before {end.name!r}",
                hint="take what that gives",
            )
    flow = ref.graph.scope.flow
    if flow is not None and flow.is_outside(ref):
        raise FailedPreconditionError(
            f"{ref.name} is outside of the loop or branch that would change it",
            hint="give a tensor to the loop, or take one out of the branch",
        )
