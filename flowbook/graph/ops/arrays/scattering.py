"""Writes to parts of a variable, each named by a vector of indices.

Each is one write: nothing is written where an index is out of range, and a concurrent step sees all
of it or nothing. Updates of a part that is named twice are combined in their order; where they
replace, the last wins.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.op_def import NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import INDICES
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import WRITES
from flowbook.graph.ops.arrays.indexing_nd import check_updates, parts_shape, placed_rows
from flowbook.graph.ops.state.variables import TYPED, Variable
from flowbook.graph.ops.state.writing import flops_of_value, write

__all__ = ["scatter_nd_add", "scatter_nd_sub", "scatter_nd_update"]


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
        attributes=TYPED,
        infer=_written_parts,
        kernel=kernel,
        grad=NO_GRADIENT,
        touches=WRITES,
        aliases={0: 0},
        only_moves=not ufunc,
        cost=flops_of_value if ufunc else None,
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
