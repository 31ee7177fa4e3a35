"""Writes to parts of a variable: to rows, to parts by vectors of indices, and to slices.

Each is one write: nothing is written where an index is out of range, and a concurrent step sees all
of it or nothing. Updates of a part that is named twice are combined in their order; where they
replace, the last wins.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.inference import no_flops
from flowbook.graph.definition.op_def import NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.dtypes import INDICES, INEXACT
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import UNKNOWN, Shape, broadcast
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import WRITES
from flowbook.graph.ops.arrays.indexing_nd import check_updates, parts_shape, placed_rows
from flowbook.graph.ops.basis.indexing import Key, encoded, indexed_shape, place_of
from flowbook.graph.ops.state.variables import Variable, flops_of_value, scatter_definition, write

__all__ = [
    "assign_slice",
    "scatter_div",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_nd_add",
    "scatter_nd_sub",
    "scatter_nd_update",
]

_TYPED = {"dtype": REQUIRED, "shape": UNKNOWN}

scatter_mul_op = scatter_definition("ScatterMul", "multiply")
scatter_div_op = scatter_definition("ScatterDiv", "divide")
scatter_max_op = scatter_definition("ScatterMax", "maximum")
scatter_min_op = scatter_definition("ScatterMin", "minimum")


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


def _written_parts(
    variable: Tensor, indices: Tensor, updates: Tensor, *, shape: Shape, **_: Any
) -> Shape:
    check_updates(updates.shape, parts_shape(shape, indices), indices.shape)
    return shape


def _scatter_nd(type_name: str, ufunc: str | None) -> OpDef:
    def kernel(xp: Any, variable: Any, indices: Any, updates: Any) -> Any:
        def place(dims: tuple[int, ...]) -> Any:
            places, rows = placed_rows(xp, indices, updates, dims)
            if not indices.shape[-1]:
                raise InvalidArgumentError(
                    "vectors of no indices name no parts", hint="fb.assign writes the whole"
                )
            return places, rows, (-1, *rows.shape[1:])

        return variable.scatter_parts(getattr(xp, ufunc) if ufunc else None, place)

    return OpDef(
        type_name,
        "variable: resource, indices: I, updates: dtype -> new_value: dtype",
        I=INDICES,
        attributes=_TYPED,
        infer=_written_parts,
        kernel=kernel,
        grad=NO_GRADIENT,
        touches=WRITES,
        aliases={0: 0},
        cost=flops_of_value if ufunc else no_flops,
    )


scatter_nd_add_op = _scatter_nd("ScatterNdAdd", "add")
scatter_nd_sub_op = _scatter_nd("ScatterNdSub", "subtract")
scatter_nd_update_op = _scatter_nd("ScatterNdUpdate", None)


def scatter_nd_add(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Add to parts of a variable, each named by a vector of indices; those named twice get both.

    Args:
        ref: the variable.
        indices: int32 or int64 of shape [..., k]: vectors of k indices into its first k axes.
        updates: of shape `indices.shape[:-1] + ref.shape[k:]`.
        name: the operation's name.

    Returns:
        The variable's value afterwards.

    Raises:
        InvalidIndexError: if an index lies outside; nothing is written then.
        InvalidArgumentError: if the shapes do not fit.
    """
    return write(scatter_nd_add_op, ref, indices, updates, name=name)


def scatter_nd_sub(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Subtract from parts of a variable. Arguments and errors as for `scatter_nd_add`."""
    return write(scatter_nd_sub_op, ref, indices, updates, name=name)


def scatter_nd_update(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Replace parts of a variable; of parts named twice the last wins. As `scatter_nd_add`."""
    return write(scatter_nd_update_op, ref, indices, updates, name=name)


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
    attributes={**_TYPED, "key": REQUIRED},
    infer=_sliced_shape,
    kernel=_assign_slice,
    host_args=("bounds",),
    grad=NO_GRADIENT,
    touches=WRITES,
    aliases={0: 0},
    cost=no_flops,
)


@assign_slice_op.front
def assign_slice(ref: Variable, key: Any, value: Any, name: str | None = None) -> Tensor:
    """Give a part of a variable a new value: `ref[key] = value`, as NumPy writes it.

    Args:
        ref: the variable.
        key: which part: an int, a slice with any step, None for a new axis, Ellipsis, or a tuple of
            them, as in `ref[key]`. Ints may be scalar integer tensors.
        value: of the variable's dtype, and of a shape that broadcasts to the part's.
        name: the operation's name.

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
