"""Writes to variables: to all of one, to its rows, and to slices of it.

Each is one write: nothing is written where an index is out of range, and a concurrent step sees all
of it or nothing. Updates of a row that is named twice are combined in their order; where they
replace, the last wins.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.dtypes import INDICES, INEXACT, SMALL, DType
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.shape import SCALAR, UNKNOWN, Shape, broadcast
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import WRITES
from flowbook.graph.ops.basis.indexing import (
    Key,
    encoded,
    indexed_shape,
    place_of,
    strided_slice_op,
)
from flowbook.graph.ops.state.temporary import is_temporary, write_temporary
from flowbook.graph.ops.state.variables import (
    TYPED,
    Variable,
    assign_op,
    read_variable,
    written_shape,
)

__all__ = [
    "assign",
    "assign_add",
    "assign_slice",
    "assign_sub",
    "count_up_to",
    "scatter_add",
    "scatter_div",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_sub",
    "scatter_update",
]


def flops_of_value(operation: Operation) -> int:
    """One for each element of what is written."""
    return operation.inputs[-1].shape.size or 0


assign_add_op = OpDef(
    "AssignAdd",
    "variable: resource, value: dtype -> new_value: dtype",
    attributes=TYPED,
    infer=written_shape,
    kernel=lambda xp, variable, value: variable.update(xp.add, value),
    grad=NO_GRADIENT,
    touches=WRITES,
    aliases={0: 0},
    cost=flops_of_value,
)

assign_sub_op = OpDef(
    "AssignSub",
    "variable: resource, value: dtype -> new_value: dtype",
    attributes=TYPED,
    infer=written_shape,
    kernel=lambda xp, variable, value: variable.update(xp.subtract, value),
    grad=NO_GRADIENT,
    touches=WRITES,
    aliases={0: 0},
    cost=flops_of_value,
)


def _scattered_shape(
    variable: Tensor, indices: Tensor, updates: Tensor, *, shape: Shape, **_: Any
) -> Shape:
    if shape.rank == 0:
        raise InvalidArgumentError("a scalar variable has no rows to scatter into")
    rows = indices.shape.concatenate(shape[1:] if shape.rank else UNKNOWN)
    if updates.shape.rank != 0 and not rows.is_compatible_with(updates.shape):
        raise InvalidArgumentError(
            f"updates of shape {updates.shape} do not fit indices {indices.shape} "
            f"into the variable of shape {shape}, which need {rows}"
        )
    return shape


def scatter_definition(type_name: str, ufunc: str | None) -> OpDef:
    """A write to rows: by a ufunc such as "add", or None for one that replaces them."""
    return OpDef(
        type_name,
        "variable: resource, indices: I, updates: dtype -> new_value: dtype",
        I=INDICES,
        attributes=TYPED,
        infer=_scattered_shape,
        kernel=lambda xp, variable, indices, updates: variable.scatter(
            getattr(xp, ufunc) if ufunc else None, indices, updates
        ),
        grad=NO_GRADIENT,
        touches=WRITES,
        aliases={0: 0},
        only_moves=not ufunc,
        cost=flops_of_value if ufunc else None,
    )


scatter_add_op = scatter_definition("ScatterAdd", "add")
scatter_sub_op = scatter_definition("ScatterSub", "subtract")
scatter_update_op = scatter_definition("ScatterUpdate", None)
scatter_mul_op = scatter_definition("ScatterMul", "multiply")
scatter_div_op = scatter_definition("ScatterDiv", "divide")
scatter_max_op = scatter_definition("ScatterMax", "maximum")
scatter_min_op = scatter_definition("ScatterMin", "minimum")


def _check_fit(value: Any, part: Shape) -> None:
    """See that a value broadcasts to a part, without changing its shape."""
    try:
        fits = part.is_compatible_with(broadcast(value, part))
    except InvalidArgumentError:
        fits = False
    if not fits:
        raise InvalidArgumentError(
            f"a value of shape {value} does not broadcast to the part of shape {part}"
        )


def _sliced_shape(
    variable: Tensor, value: Tensor, bounds: list[Tensor], *, key: Key, shape: Shape, **_: Any
) -> Shape:
    _check_fit(value.shape, indexed_shape(shape, key))
    return shape


def _assign_slice(xp: Any, variable: Any, value: Any, *bounds: Any, key: Key) -> Any:
    def place(dims: tuple[int, ...]) -> Any:
        actual, part = place_of(key, bounds, dims)
        _check_fit(Shape.of(value.shape), Shape.of(part))
        return actual

    return variable.write(place, value)


assign_slice_op = OpDef(
    "StridedSliceAssign",
    "variable: resource, value: dtype, bounds: *bounds -> new_value: dtype",
    attributes={**TYPED, "key": REQUIRED},
    infer=_sliced_shape,
    kernel=_assign_slice,
    host_args=("bounds",),
    grad=NO_GRADIENT,
    touches=WRITES,
    aliases={0: 0},
    only_moves=True,
)


# How these change what is there.
_COMBINED = {assign_op: "", assign_add_op: "add", assign_sub_op: "subtract"}


def write(op_def: OpDef, ref: Any, *values: Any, name: str | None, **attributes: Any) -> Tensor:
    """Build a write to a variable."""
    if isinstance(ref, Tensor) and ref.op.variable is not None:
        ref = ref.op.variable
    if isinstance(ref, Tensor) and op_def in _COMBINED and is_temporary(ref):
        return write_temporary(ref, values[0], _COMBINED[op_def], name=name)
    if not isinstance(ref, Variable):
        raise InvalidTypeError(f"only a variable can be written to, not {ref!r}").at(
            op_def.type, sites.capture()
        )
    if ref.dtype in SMALL and op_def.computes:
        raise InvalidTypeError(
            f"{ref.name} is {ref.dtype.name}, which is only stored",
            hint=f"compute in another dtype and assign fb.cast(x, fb.{ref.dtype.name})",
        ).at(op_def.type, sites.capture())
    with ref.graph.as_default():
        typed = {"dtype": ref.dtype, "shape": ref.shape}
        return op_def(ref.handle, *values, **typed, **attributes, name=name)


def assign(ref: Any, value: Any, name: str | None = None) -> Tensor:
    """Give a variable, or a part of one, a new value. No gradient flows through it.

    Args:
        ref: the variable, its handle, or a part of it such as `v[1:]`.
        value: its new value, of its dtype and shape; for a part, of one that broadcasts to it.
        name: the operation's name.

    Returns:
        The variable's value after the assignment, all of it.

    Raises:
        InvalidArgumentError: if the shape does not fit.
        InvalidTypeError: if the dtype does not.

    >>> import flowbook as fb
    >>> v = fb.Variable([1, 2, 3])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.assign(v[1:], [5, 7])))
    [1 5 7]
    """
    part = ref.op if isinstance(ref, Tensor) and ref.op.op_def is strided_slice_op else None
    if part is not None and part.inputs[0].op.op_def is read_variable:
        variable = part.inputs[0].op.inputs[0].op.variable
        how: dict[str, Any] = {"name": name, "key": part.attributes["key"]}
        return write(assign_slice_op, variable, value, [*part.inputs[1:]], **how)
    return write(assign_op, ref, value, name=name)


def assign_add(ref: Variable, value: Any, name: str | None = None) -> Tensor:
    """Add to a variable; no concurrent addition is lost. Arguments and errors as `assign`."""
    return write(assign_add_op, ref, value, name=name)


def assign_sub(ref: Variable, value: Any, name: str | None = None) -> Tensor:
    """Subtract from a variable. Arguments and errors as `assign`."""
    return write(assign_sub_op, ref, value, name=name)


def scatter_add(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Add rows to those of a variable; rows named twice get both.

    Args:
        ref: a variable of shape [n, ...].
        indices: int32 or int64 of any shape, each in [0, n).
        updates: of shape `indices.shape + ref.shape[1:]`, or a scalar for all.
        name: the operation's name.

    Returns:
        The variable's value afterwards.

    Raises:
        InvalidIndexError: in the run, if an index lies outside [0, n); nothing is written then.
    """
    return write(scatter_add_op, ref, indices, updates, name=name)


def scatter_sub(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Subtract rows from those of a variable. Arguments and errors as `scatter_add`."""
    return write(scatter_sub_op, ref, indices, updates, name=name)


def scatter_update(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Replace rows of a variable; of rows named twice the last wins. As `scatter_add`."""
    return write(scatter_update_op, ref, indices, updates, name=name)


def scatter_mul(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Multiply rows of a variable; rows named twice by both. As `scatter_add`."""
    return write(scatter_mul_op, ref, indices, updates, name=name)


def scatter_div(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Divide rows of a variable of floating point; rows named twice by both. As `scatter_add`."""
    if isinstance(ref, Variable) and ref.dtype not in INEXACT:
        raise InvalidTypeError(
            f"scatter_div writes quotients, which a variable of {ref.dtype.name} does not hold"
        )
    return write(scatter_div_op, ref, indices, updates, name=name)


def scatter_max(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Keep the maximum of rows of a variable and updates. As `scatter_add`."""
    return write(scatter_max_op, ref, indices, updates, name=name)


def scatter_min(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Keep the minimum of rows of a variable and updates. As `scatter_add`."""
    return write(scatter_min_op, ref, indices, updates, name=name)


@assign_slice_op.front
def assign_slice(ref: Variable, key: Any, value: Any, name: str | None = None) -> Tensor:
    """Give a part of a variable a new value: `ref[key] = value`, as NumPy writes it.

    Args:
        ref: the variable.
        key: which part: an int, a slice with any step, None for a new axis, Ellipsis, or a tuple of
            them, as in `ref[key]`. Ints may be scalar integer tensors.
        value: of the variable's dtype, and of a shape that broadcasts to the part's.

    Returns:
        The variable's value afterwards, all of it.

    Raises:
        InvalidIndexError: if an index is out of range; in the run, where it is known only then.
        InvalidArgumentError: if the value's shape does not fit.

    >>> import flowbook as fb
    >>> v = fb.Variable([1, 2, 3, 4, 5])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.assign_slice(v, slice(None, None, 2), [10, 30, 50])))
    [10  2 30  4 50]
    """
    stored, bounds = encoded(key)
    return write(assign_slice_op, ref, value, bounds, name=name, key=stored)


def _counted(variable: Tensor, *, limit: int, dtype: DType, shape: Shape) -> Shape:
    if shape.rank not in (None, 0):
        raise InvalidArgumentError(f"what counts is a scalar, not of shape {shape}")
    return SCALAR


count_up_to_op = OpDef(
    "CountUpTo",
    "variable: resource -> output: dtype",
    attributes={"limit": REQUIRED, **TYPED},
    infer=_counted,
    kernel=lambda xp, variable, limit: variable.count_up_to(limit),
    kinds=HOST,
    grad=NO_GRADIENT,
    touches=WRITES,
    only_moves=True,
)


@count_up_to_op.front
def count_up_to(ref: Variable, limit: int, name: str | None = None) -> Tensor:
    """The value of a variable, which then is one more, as long as it is below a limit.

    Args:
        ref: a scalar variable of dtype int32 or int64.
        limit: an int.

    Returns:
        The value before: in each run another, whichever thread runs.

    Raises:
        OutOfRangeError: in the run, once the variable has reached the limit.
    """
    dtype = getattr(ref, "dtype", None)
    if isinstance(ref, Variable) and dtype not in INDICES:
        raise InvalidTypeError(f"what counts is int32 or int64, not {ref.dtype.name}")
    return write(count_up_to_op, ref, name=name, limit=int(limit))
