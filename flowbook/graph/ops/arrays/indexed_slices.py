"""Sparse gradients: some rows of a tensor, as values and indices."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flowbook.graph.building.graph import Graph, get_default_graph, mixed_graphs
from flowbook.graph.model.dtypes import INDICES, int32, int64
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.registry import op_named
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import constant, convert_to_tensor
from flowbook.graph.ops.basis.filling import zeros
from flowbook.graph.ops.basis.joining import concat
from flowbook.graph.ops.basis.shaping import reshape_op
from flowbook.graph.ops.reduction.segments import unsorted_segment_sum

if TYPE_CHECKING:
    from flowbook.graph.model.dtypes import DType

__all__ = ["IndexedSlices", "IndexedSlicesValue"]


class IndexedSlicesValue(NamedTuple):
    """The value of `IndexedSlices`: what a run gives for them, and what may be fed for them.

    Attributes:
        values: [n, ...], the rows.
        indices: [n], int32 or int64.
        dense_shape: an int vector, the shape of the whole; None where it is not known.
    """

    values: Any
    indices: Any
    dense_shape: Any = None


def _integers(given: Any, name: str) -> Tensor:
    tensor: Tensor = convert_to_tensor(given, name=name)
    if tensor.dtype not in INDICES:
        raise InvalidTypeError(f"{name} are int32 or int64, not {tensor.dtype.name}")
    if tensor.graph is not get_default_graph():
        raise mixed_graphs([(tensor.name, tensor.graph), ("the values", get_default_graph())])
    return tensor


# What TensorFlow 1 has as attributes.
_ELSEWHERE = {
    "consumers": "slices.values.consumers()",
    "device": "slices.op.device",
    "name": "slices.values.name",
    "shape": "slices.dense_shape",
}


@elsewhere(_ELSEWHERE)
class IndexedSlices:
    """The rows `values[i]` at `indices[i]` of a tensor that is zero elsewhere.

    Rows named twice add up. This is what the gradient of `fb.gather` is, so that a step that
    touches few rows of a large table costs by those rows. Fetching them gives an
    IndexedSlicesValue, and such a one, or a tuple of three arrays, may be fed for them. `-g`, and
    `*` and `/` by a scalar, give IndexedSlices; other arithmetic takes the whole, for which
    `dense_shape` is needed.

    Args:
        values: [n, ...], the rows.
        indices: [n], int32 or int64.
        dense_shape: an int vector, the shape of the whole; None where it is not known.

    Raises:
        InvalidTypeError: if indices or shape are not integers.
        InvalidArgumentError: if the three belong to different graphs.

    >>> import flowbook as fb
    >>> rows = fb.IndexedSlices(fb.constant([[1.0, 2.0]]), fb.constant([1]), fb.constant([3, 2]))
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.convert_to_tensor(rows)).tolist())
    [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]
    """

    __slots__ = ("_dense_shape", "_indices", "_values")

    # NumPy's scalars defer: np.float32(0.5) * g is IndexedSlices.
    __array_ufunc__ = None

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values: Tensor = convert_to_tensor(values, name="values")
        with self._values.graph.as_default():
            self._indices = _integers(indices, "indices")
            self._dense_shape = (
                None if dense_shape is None else _integers(dense_shape, "dense_shape")
            )

    @property
    def values(self) -> Tensor:
        """[n, ...], the rows."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """[n], int32 or int64."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """An int vector, the shape of the whole; None where it is not known."""
        return self._dense_shape

    @property
    def dtype(self) -> DType:
        """The dtype of the rows."""
        return self.values.dtype

    @property
    def graph(self) -> Graph:
        """The graph of the rows."""
        return self.values.graph

    @property
    def op(self) -> object:
        """The operation that produces the rows."""
        return self.values.op

    def as_tensor(self, handle: bool = False) -> Tensor:
        """The whole, as a dense tensor.

        Raises:
            InvalidArgumentError: if its shape is not known.
        """
        if self.dense_shape is None:
            raise InvalidArgumentError(
                f"the shape of the whole is not known: {self!r}",
                hint="fb.IndexedSlices(values, indices, dense_shape)",
            )
        rows = unsorted_segment_sum(self.values, self.indices, self.dense_shape[0])
        return reshape_op(rows, self.dense_shape)

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self.values, self.indices, self.dense_shape)

    def __mul__(self, other: Any) -> IndexedSlices | Tensor:
        return self._scaled("Mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> IndexedSlices | Tensor:
        return self._scaled("Div", other)

    def _scaled(self, type_name: str, other: Any) -> IndexedSlices | Tensor:
        """Each row scaled alike; by what is no scalar, the whole."""
        build = op_named(type_name).public
        if not isinstance(other, Number) and getattr(other, "shape", None) != ():
            return build(self.as_tensor(), other)  # type: ignore[no-any-return]
        return IndexedSlices(build(self.values, other), self.indices, self.dense_shape)

    def __repr__(self) -> str:
        return f"<IndexedSlices values={self.values!r} indices={self.indices!r}>"


Gradient = Tensor | IndexedSlices


def as_dense(gradient: Gradient) -> Tensor:
    """A gradient as a tensor."""
    return gradient.as_tensor() if isinstance(gradient, IndexedSlices) else gradient


def no_rows(like: IndexedSlices, dense_shape: Any) -> IndexedSlices:
    """No rows of a whole: what adds nothing to others.

    Args:
        like: others, whose dtypes it has.
        dense_shape: the shape of the whole, an int vector.
    """
    row = like.values.shape[1:]
    shape = (
        [0, *row.as_list()]
        if row.is_fully_defined
        else concat([[0], cast(dense_shape[1:], int32)], 0)
    )
    indices = constant(np.zeros(0, like.indices.dtype.numpy))
    return IndexedSlices(zeros(shape, like.dtype), indices, dense_shape)


def with_equal_indices(slices: Sequence[IndexedSlices]) -> Sequence[IndexedSlices]:
    """The same rows, their indices of one dtype, so that they can be joined."""
    if len({each.indices.dtype for each in slices}) == 1:
        return slices
    return [
        IndexedSlices(each.values, cast(each.indices, int64), each.dense_shape) for each in slices
    ]
