"""Arrays of tensors, written and read one by one: `TensorArray`.

Invariant: an array never changes. What is made of it by a write is another one, and so an array is
a loop's variable, or what a branch gives, like any tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.control_flow.array_ops import (
    array_op,
    concat_op,
    gather_op,
    read_op,
    scatter_op,
    size_op,
    split_op,
    write_op,
)
from flowbook.graph.definition.public import builds
from flowbook.graph.model.dtypes import INDICES, DType, as_dtype, int32, int64
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity, no_op
from flowbook.graph.ops.basis.filling import range as range_
from flowbook.graph.ops.basis.shaping import shape_of

if TYPE_CHECKING:
    from flowbook.graph.building.graph import Graph

__all__ = ["TensorArray"]


class Lineage:
    """What holds of an array and of all arrays that are made of it by writes.

    Attributes:
        name: what errors call it.
        dtype: that of the elements.
        size: how many there are; None if that may change.
        is_uniform: whether all elements have one shape.
        element_shape: what is known of it so far: what is written first tells more.
    """

    __slots__ = ("dtype", "element_shape", "is_uniform", "name", "size")

    def __init__(
        self, name: str, dtype: DType, size: Tensor | None, is_uniform: bool, element_shape: Shape
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.size = size
        self.is_uniform = is_uniform
        self.element_shape = element_shape

    def admit(self, shape: Shape) -> None:
        """Note the shape of what is written.

        Raises:
            InvalidArgumentError: if no element can have it.
        """
        if not self.element_shape.is_compatible_with(shape):
            raise InvalidArgumentError(
                f"the elements of the TensorArray {self.name!r} have the shape "
                f"{self.element_shape}, and not {shape}, as what is written has",
                hint="infer_shape=False admits elements of different shapes"
                if self.is_uniform
                else None,
            )
        if self.is_uniform:
            self.element_shape = self.element_shape.merge(shape)


# What TensorFlow 1 and Python's lists have.
_ELSEWHERE = {
    "append": "array.write(array.size(), value), where the array was made with dynamic_size=True",
    "handle": "array.flow",
}


@builds
@elsewhere(_ELSEWHERE)
class TensorArray:
    """An array of tensors, whose elements are written and read one by one, in loops above all.

    An array never changes: `write`, `scatter`, `unstack` and `split` give another one, in which
    the rest is as it was. Each index is written once. Arrays are variables of `fb.while_loop` and
    what branches of `fb.cond` give; they are neither fed nor fetched. Gradients flow through all
    that is written and read.

    Args:
        dtype: that of the elements.
        size: an int or int32 scalar: the number of elements; with `dynamic_size` 0 by default.
        dynamic_size: whether writes beyond the end make the array longer.
        clear_after_read: whether the memory of an element is let go of once it is read; reading it
            again is an error then.
        tensor_array_name: what errors call it.
        infer_shape: whether all elements have one shape, which the first of them tells.
        element_shape: what is known of each element's shape before.
        name: the name scope.

    Raises:
        InvalidTypeError: if there is no size, or it is no integer.

    Source: Yu et al., "Dynamic Control Flow in Large-Scale Machine Learning", 2018, section 5.2.

    >>> import flowbook as fb
    >>> squares = fb.TensorArray(fb.float32, size=4)
    >>> _, squares = fb.while_loop(
    ...     lambda i, a: i < 4,
    ...     lambda i, a: (i + 1, a.write(i, fb.square(fb.cast(i, fb.float32)))),
    ...     (0, squares),
    ... )
    >>> with fb.Session() as sess:
    ...     print(sess.run(squares.stack()))
    [0. 1. 4. 9.]
    """

    __slots__ = ("_flow", "_lineage")

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool = False,
        clear_after_read: bool = True,
        tensor_array_name: str | None = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        name: str | None = None,
    ) -> None:
        with name_scope(name or tensor_array_name or "TensorArray", values=[size]) as scope:
            if size is None and not dynamic_size:
                raise InvalidTypeError(
                    "the size of the array is missing",
                    hint="size=n, or dynamic_size=True for an array that grows",
                )
            count = _int32(0 if size is None else size, "size")
            self._lineage = Lineage(
                tensor_array_name or scope.rstrip("/"),
                as_dtype(dtype),
                None if dynamic_size else count,
                bool(infer_shape),
                Shape(element_shape),
            )
            self._flow: Tensor = array_op(
                count,
                element_shape=self._lineage.element_shape,
                dynamic_size=bool(dynamic_size),
                clear_after_read=bool(clear_after_read),
                infer_shape=self._lineage.is_uniform,
                tensor_array_name=self._lineage.name,
            )

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._lineage.dtype

    @property
    def element_shape(self) -> Shape:
        """What is known of each element's shape so far."""
        return self._lineage.element_shape

    @property
    def flow(self) -> Tensor:
        """The array as one tensor, of the dtype that only loops and branches hand on."""
        return self._flow

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        return self._flow.graph

    @property
    def lineage(self) -> Lineage:
        """What it shares with all arrays that are made of it by writes."""
        return self._lineage

    def with_flow(self, flow: Tensor) -> TensorArray:
        """The array that a tensor is, which was made of this one's."""
        return _array(self._lineage, flow)

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at an index, an int32 scalar.

        Raises:
            InvalidArgumentError: in the run, if there is no element, or it was read before and not
                kept.
        """
        return read_op(self._flow, _int32(index, "index"), **self._typed, name=name)

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with an element more: a value at an index, an int32 scalar.

        Raises:
            InvalidTypeError: if the value is of another dtype.
            InvalidArgumentError: if it has another shape than the elements; in the run, if it is
                known only then, if there is an element already, or no such index.
        """
        with self._building():
            value = self._value(value)
            self._lineage.admit(value.shape)
            return self.with_flow(write_op(self._flow, _int32(index, "index"), value, name=name))

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at some indices, an int32 vector, one upon the other.

        Raises:
            InvalidArgumentError: in the run, as `read`, and if their shapes differ; without any
                index, if the shape of the elements is not known.
        """
        return gather_op(self._flow, _int32(indices, "indices", 1), **self._typed, name=name)

    def stack(self, name: str | None = None) -> Tensor:
        """All elements, one upon the other: [size, ...]; see `gather`."""
        with name_scope(name or "stack"), self._building():
            return self.gather(range_(self._count))

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with the rows of a value at some indices, an int32 vector; see `write`."""
        with self._building():
            value = self._value(value)
            self._lineage.admit(value.shape[1:])
            return self.with_flow(
                scatter_op(self._flow, _int32(indices, "indices", 1), value, name=name)
            )

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array with all rows of a value, the first at index 0; see `write`."""
        with self._building(), name_scope(name or "unstack"):
            value = self._value(value)
            if value.shape.rank == 0:
                raise InvalidArgumentError(f"{value.name!r} is a scalar, and has no rows")
            known = value.shape[0]
            rows = known if known is not None else shape_of(value)[0]
            return self.scatter(range_(rows), value)

    def concat(self, name: str | None = None) -> Tensor:
        """All elements, joined along their first dimension, in which they may differ.

        Raises:
            InvalidArgumentError: in the run, as `gather`.
        """
        return concat_op(self._flow, **self._typed, name=name)[0]

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array whose elements are pieces of a value, of so many rows each.

        Args:
            value: [rows, ...].
            lengths: an int32 vector: the rows of each element.
            name: the operation's name.

        Raises:
            InvalidArgumentError: in the run, as `write`, and if the pieces do not make up the
                value.
        """
        with self._building():
            value = self._value(value)
            if value.shape.dims:
                self._lineage.admit(Shape.of((None, *value.shape.dims[1:])))
            lengths = _int32(lengths, "lengths", 1)
            return self.with_flow(split_op(self._flow, value, lengths, name=name))

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, written or not, an int32 scalar."""
        return size_op(self._flow, name=name)

    def grad(self, name: str | None = None) -> TensorArray:
        """An array for gradients of this one.

        It is zero where nothing is written, and what is written at one index adds up.
        """
        with self._building(), name_scope(name or "grad"):
            lineage = self._lineage
            made = Lineage(
                f"{lineage.name}_grad",
                lineage.dtype,
                lineage.size,
                lineage.is_uniform,
                lineage.element_shape,
            )
            flow = array_op(
                self._count,
                element_shape=lineage.element_shape,
                clear_after_read=False,
                infer_shape=lineage.is_uniform,
                adds_up=True,
                tensor_array_name=made.name,
            )
            return _array(made, flow)

    def identity(self) -> TensorArray:
        """The same array, which waits for what the surrounding `fb.control_dependencies` say."""
        return self.with_flow(identity(self._flow))

    def close(self) -> Operation:
        """Nothing: the memory of an array is let go of with its last use."""
        with self._building():
            return no_op()

    def __repr__(self) -> str:
        lineage = self._lineage
        return (
            f"<TensorArray {lineage.name!r} element_shape={lineage.element_shape} "
            f"dtype={lineage.dtype.name}>"
        )

    @property
    def _count(self) -> Tensor:
        return self.size() if self._lineage.size is None else self._lineage.size

    @property
    def _typed(self) -> dict[str, Any]:
        return {"dtype": self._lineage.dtype, "element_shape": self._lineage.element_shape}

    def _building(self) -> Any:
        return self._flow.graph.as_default()

    def _value(self, value: Any) -> Tensor:
        return convert_to_tensor(value, self._lineage.dtype, name="value")


def _array(lineage: Lineage, flow: Tensor) -> TensorArray:
    made = object.__new__(TensorArray)
    made._lineage, made._flow = lineage, flow
    return made


def _int32(value: Any, name: str, rank: int = 0) -> Tensor:
    """An index, or a vector of such, as the operations take it."""
    tensor = convert_to_tensor(value, name=name)
    if tensor.dtype not in INDICES or tensor.shape.rank not in (None, rank):
        what = "scalar" if not rank else "vector"
        raise InvalidTypeError(
            f"{name!r} is an int32 {what}, not a {tensor.dtype.name} of shape {tensor.shape}"
        )
    return cast(tensor, int32) if tensor.dtype is int64 else tensor
