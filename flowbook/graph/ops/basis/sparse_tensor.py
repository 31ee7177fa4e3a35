"""Sparse tensors: the nonzero elements of a tensor, as three tensors that go together.

Invariant: `indices` is int64 [n, r], `values` [n] and `dense_shape` int64 [r], as far as their
shapes are known. That each index lies inside the dense shape is for the run to say.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from flowbook.graph.building.graph import get_default_graph, mixed_graphs
from flowbook.graph.definition.inference import shape_from
from flowbook.graph.definition.public import builds
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import MOVABLE, int64
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.registry import op_named
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor

if TYPE_CHECKING:
    from flowbook.graph.building.graph import Graph
    from flowbook.graph.model.dtypes import DType
    from flowbook.graph.model.operation import Operation

__all__ = ["SparseTensor", "SparseTensorValue"]


class SparseTensorValue(NamedTuple):
    """The value of a `SparseTensor`: what a run gives for it, and what may be fed for it.

    Attributes:
        indices: int64 [n, r], where each element stands.
        values: [n], the elements.
        dense_shape: int64 [r], the shape of the whole.
    """

    indices: Any
    values: Any
    dense_shape: Any


# What TensorFlow 1 has as attributes.
_ELSEWHERE = {
    "consumers": "sparse.values.consumers()",
    "eval": "sess.run(sparse, feeds)",
    "get_shape": "sparse.shape",
}


@builds
@elsewhere(_ELSEWHERE)
class SparseTensor:
    """A tensor that is zero but for the elements `values[i]` at `indices[i]`.

    Fetching it gives a SparseTensorValue, and such a one, or a tuple of three arrays, may be fed
    for it. `fb.sparse` holds the functions for sparse tensors. `*` and `/` by a dense tensor that
    broadcasts to it give a sparse tensor, and so do functions of one argument that are zero at
    zero, such as `fb.abs`, `fb.square` and `fb.tanh`, and `fb.cast` and `fb.identity`; `fb.shape`,
    `fb.size` and `fb.rank` are those of the whole. Gradients are taken with respect to its
    `values`.

    Args:
        indices: int64 [n, r], where each element stands; most functions want row-major order
            without repetition, which `fb.sparse.reorder` makes.
        values: [n], the elements, of any dtype.
        dense_shape: int64 [r], the shape of the whole.

    Raises:
        InvalidArgumentError: if the shapes of the three do not go together.
        InvalidTypeError: if indices or shape are not int64.

    >>> import flowbook as fb
    >>> x = fb.SparseTensor(indices=[[0, 1], [2, 0]], values=[5.0, 7.0], dense_shape=[3, 2])
    >>> x
    <SparseTensor shape=[3, 2] dtype=float32>
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.sparse.to_dense(x)).tolist())
    [[0.0, 5.0], [0.0, 0.0], [7.0, 0.0]]
    """

    __slots__ = ("_dense_shape", "_indices", "_values")

    # NumPy's arrays and dense tensors defer: np.ones(3) * x is a SparseTensor.
    __array_ufunc__ = None
    is_sparse = True

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        parts = {"indices": indices, "values": values, "dense_shape": dense_shape}
        given = {name: part for name, part in parts.items() if isinstance(part, Arithmetic)}
        graphs = [part.graph for part in given.values()]  # type: ignore[attr-defined]
        if any(graph is not graphs[0] for graph in graphs):
            raise mixed_graphs(list(zip(given, graphs, strict=True)))
        with (graphs[0] if graphs else get_default_graph()).as_default():
            self._indices = convert_to_tensor(indices, int64, name="indices")
            self._values = convert_to_tensor(values, name="values")
            self._dense_shape = convert_to_tensor(dense_shape, int64, name="dense_shape")
        _check_together(self._indices, self._values, self._dense_shape)

    @classmethod
    def from_value(cls, value: Any) -> SparseTensor:
        """The sparse tensor of a SparseTensorValue, or of any three arrays; itself if it is one.

        Raises:
            InvalidTypeError: if it is neither.
        """
        if isinstance(value, SparseTensor):
            return value
        if isinstance(value, SparseTensorValue):
            return cls(*value)
        raise InvalidTypeError(
            f"a SparseTensor is wanted, not {value!r:.80}",
            hint="fb.sparse.from_dense(x) makes one of a dense tensor",
        )

    @property
    def indices(self) -> Tensor:
        """Int64 [n, r], where each element stands."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """[n], the elements."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """Int64 [r], the shape of the whole as a tensor."""
        return self._dense_shape

    @property
    def shape(self) -> Shape:
        """What is known of the shape of the whole."""
        shape = shape_from(self.dense_shape)
        rank = self.indices.shape.dims[1] if self.indices.shape.dims else None
        return shape if rank is None else shape.with_rank(rank)

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self.values.dtype

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        return self.values.graph

    @property
    def op(self) -> Operation:
        """The operation that produces the elements."""
        return self.values.op

    def as_tensor(self, handle: bool = False) -> NoReturn:
        """Nothing makes it dense silently; a TypeError says how to."""
        if handle:
            raise InvalidTypeError(
                f"{self!r} stands where a dense tensor is wanted",
                hint="gradients are taken with respect to its values: x.values",
            )
        raise InvalidTypeError(
            f"{self!r} stands where a dense tensor is wanted",
            hint="fb.sparse.to_dense(x) is the whole, x.values the elements, x.dense_shape the "
            "shape; fb.sparse has the functions for sparse tensors; x * dense is a product with a "
            "dense tensor; fb.sparse.map_values(function, x) is a function of the elements",
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.as_tensor()

    def __mul__(self, other: Any) -> SparseTensor:
        return self._combined(operator.mul, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        return self._combined(operator.truediv, other)

    def __neg__(self) -> SparseTensor:
        return self.with_values(-self.values)

    def __abs__(self) -> SparseTensor:
        return self.with_values(abs(self.values))

    def with_values(self, values: Tensor) -> SparseTensor:
        """Other elements at the same places."""
        return SparseTensor(self.indices, values, self.dense_shape)

    def _combined(self, combine: Callable[[Any, Any], Any], other: Any) -> SparseTensor:
        """The elements combined with those of a dense tensor that stand at the same places."""
        with self.graph.as_default():
            dense = convert_to_tensor(other, None if isinstance(other, Arithmetic) else self.dtype)
            if dense.shape.rank != 0:
                dense = op_named("SparsePick")(self.indices, self.dense_shape, dense)
            return self.with_values(combine(self.values, dense))

    def __repr__(self) -> str:
        return f"<SparseTensor shape={self.shape} dtype={self.dtype.name}>"


def _check_together(indices: Tensor, values: Tensor, dense_shape: Tensor) -> None:
    """Refuse three tensors whose shapes say that they are no sparse tensor."""
    if values.dtype not in MOVABLE:
        raise InvalidTypeError(f"'values' cannot be of dtype {values.dtype.name}")
    for name, tensor, rank, means in (
        ("indices", indices, 2, "[n, r]"),
        ("values", values, 1, "[n]"),
        ("dense_shape", dense_shape, 1, "[r]"),
    ):
        if tensor.shape.rank not in (None, rank):
            raise InvalidArgumentError(f"{name!r} has the shape {means}, not {tensor.shape}")
    n, r = indices.shape.dims or (None, None)
    (count,) = values.shape.dims or (None,)
    (rank_given,) = dense_shape.shape.dims or (None,)
    if n is not None and count is not None and n != count:
        raise InvalidArgumentError(
            f"{counted(n, 'index', 'indices')} cannot go with {counted(count, 'value')}"
        )
    if r is not None and rank_given is not None and r != rank_given:
        raise InvalidArgumentError(
            f"each index has {counted(r, 'number')}, but the dense shape has "
            f"{counted(rank_given, 'dimension')}"
        )
