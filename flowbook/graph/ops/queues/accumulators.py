"""Conditional accumulators: gradients of several workers, taken when there are enough of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.building.scopes import init_scope
from flowbook.graph.definition.inference import uncounted
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.definition.public import builds
from flowbook.graph.model.dtypes import INDICES, DType, as_dtype, int64
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import (
    ACCUMULATOR,
    SPARSE_ACCUMULATOR,
    TAKES,
    WAITS,
)
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import constant, convert_to_tensor
from flowbook.graph.ops.queues.waiting_ops import looking_op, owning_op, waiting_op

__all__ = ["ConditionalAccumulator", "SparseConditionalAccumulator"]

_TYPED = {"dtype": REQUIRED, "shape": UNKNOWN}


_ACCUMULATOR: dict[str, Any] = {**_TYPED, "reduction_type": "MEAN"}
_CHOICES = {"reduction_type": ("MEAN", "SUM")}

accumulator_op = owning_op("ConditionalAccumulator", ACCUMULATOR, _CHOICES, **_ACCUMULATOR)
sparse_accumulator_op = owning_op(
    "SparseConditionalAccumulator", SPARSE_ACCUMULATOR, _CHOICES, **_ACCUMULATOR
)

apply_op: OpDef[Operation] = waiting_op(
    "AccumulatorApply",
    "accumulator: resource, local_step: int64, gradient: dtype ->",
    attributes={"dtype": REQUIRED},
    kernel=lambda context, accumulator, local_step, gradient: accumulator.apply(
        context, local_step, gradient
    ),
    host_args=("local_step",),
    cost=uncounted,
    kinds=None,
)

sparse_apply_op: OpDef[Operation] = waiting_op(
    "SparseAccumulatorApply",
    "accumulator: resource, local_step: int64, indices: I, values: dtype, dense_shape: J ->",
    I=INDICES,
    J=INDICES,
    attributes={"dtype": REQUIRED},
    kernel=lambda context, accumulator, local_step, indices, values, dense_shape: accumulator.apply(
        context, local_step, indices.astype(np.int64), values, dense_shape.astype(np.int64)
    ),
    host_args=("local_step",),
    cost=uncounted,
)


def _taken_shape(*_: Any, shape: Shape, **__: Any) -> Shape:
    return shape


def _taken_rows(*_: Any, shape: Shape, **__: Any) -> list[Shape]:
    rows = Shape([None]).concatenate(shape[1:] if shape.rank else UNKNOWN)
    return [Shape([None]), rows, Shape([None])]


take_op: OpDef = waiting_op(
    "AccumulatorTake",
    "accumulator: resource, num_required: int32 -> gradient: dtype",
    attributes=_TYPED,
    infer=_taken_shape,
    kernel=lambda context, accumulator, num_required: accumulator.take(context, num_required),
    host_args=("num_required",),
    touches=TAKES,
    cost=uncounted,
    kinds=None,
)

sparse_take_op: OpDef[tuple[Tensor, Tensor, Tensor]] = waiting_op(
    "SparseAccumulatorTake",
    "accumulator: resource, num_required: int32 -> indices: int64, values: dtype, "
    "dense_shape: int64",
    attributes=_TYPED,
    infer=_taken_rows,
    kernel=lambda context, accumulator, num_required: accumulator.take(context, num_required),
    host_args=("num_required",),
    touches=TAKES,
    cost=uncounted,
)

size_op: OpDef = looking_op(
    "AccumulatorSize",
    "accumulator: resource -> size: int32",
    kernel=lambda xp, accumulator: xp.asarray(np.int32(accumulator.size)),
    kinds=None,
)

set_step_op: OpDef[Operation] = waiting_op(
    "AccumulatorSetStep",
    "accumulator: resource, step: int64 ->",
    kernel=lambda context, accumulator, step: accumulator.set_step(context, step),
    touches=WAITS,
    host_args=("step",),
    kinds=None,
)


@builds
@elsewhere({"accumulator_ref": "accumulator.handle"})
class _Accumulator:
    """What both kinds have in common.

    Attributes:
        op: the operation that produces its handle.
        handle: the handle.
    """

    op: Operation
    handle: Tensor

    def _make(
        self, op_def: OpDef, dtype: Any, shape: Any, reduction_type: str, **names: str | None
    ) -> None:
        typed: dict[str, Any] = {"dtype": as_dtype(dtype), "shape": Shape(shape)}
        with init_scope():
            self.handle = op_def(
                **typed,
                reduction_type=reduction_type,
                shared_name=names["shared_name"] or "",
                name=names["name"],
            )
        self.op = self.handle.op

    @property
    def name(self) -> str:
        """The name of the operation that produces its handle."""
        return self.op.name

    @property
    def dtype(self) -> DType:
        """That of the gradients."""
        return self.op.attributes["dtype"]  # type: ignore[no-any-return]

    @property
    def shape(self) -> Shape:
        """What is known of the shape of the gradients."""
        return self.op.attributes["shape"]  # type: ignore[no-any-return]

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """How many gradients there are: an int32 scalar."""
        with self.op.graph.as_default():
            return size_op(self.handle, name=name)

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """Have gradients of earlier steps be stale from now on.

        Args:
            new_global_step: an int64 scalar.
            name: the operation's name.
        """
        with self.op.graph.as_default():
            return set_step_op(self.handle, _step(new_global_step), name=name)

    def as_tensor(self, handle: bool) -> Tensor:
        """Its handle, which is all that operations can take of it."""
        if not handle:
            raise InvalidTypeError(f"accumulator {self.name!r} is no tensor")
        return self.handle


def _step(step: Any) -> Tensor:
    tensor = convert_to_tensor(step) if hasattr(step, "as_tensor") else step
    if not isinstance(tensor, Tensor):
        return constant(tensor, int64)
    return tensor if tensor.dtype is int64 else cast(tensor, int64)


@builds
@accumulator_op.front
class ConditionalAccumulator(_Accumulator):
    """Adds up gradients until there are enough of them for one step.

    Args:
        dtype: that of the gradients.
        shape: what is known of their shape.
        shared_name: a name under which several operations share one accumulator.
        name: the operation's name.
        reduction_type: "MEAN" or "SUM": what is taken of the gradients.

    Raises:
        InvalidArgumentError: if the reduction is another.

    >>> import flowbook as fb
    >>> total = fb.ConditionalAccumulator(fb.float32, shape=[2])
    >>> puts = [total.apply_grad([1.0, 2.0]), total.apply_grad([3.0, 4.0])]
    >>> with fb.Session() as sess:
    ...     for put in puts:
    ...         sess.run(put)
    ...     print(sess.run(total.take_grad(2)))
    [2. 3.]
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str | None = None,
        reduction_type: str = "MEAN",
    ) -> None:
        names = {"shared_name": shared_name, "name": name}
        self._make(accumulator_op, dtype, shape, reduction_type, **names)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """Add a gradient, unless it is stale.

        Args:
            grad: the gradient.
            local_step: the step that it is of, an int64 scalar: if more have been taken since, it
                is dropped.
            name: the operation's name.

        Raises:
            InvalidArgumentError: in the run, if its shape does not fit.
        """
        with self.op.graph.as_default():
            given = convert_to_tensor(grad, self.dtype)
            if not self.shape.is_compatible_with(given.shape):
                raise InvalidArgumentError(
                    f"a gradient of shape {given.shape} does not fit {self.name!r} of shape "
                    f"{self.shape}"
                )
            return apply_op(self.handle, _step(local_step), given, dtype=self.dtype, name=name)

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """The mean or the sum of the gradients, when there are enough; it begins anew.

        Args:
            num_required: how many are enough: an int32 scalar.
            name: the operation's name.

        Raises:
            InvalidArgumentError: in the run, if that is less than one.
        """
        with self.op.graph.as_default():
            return take_op(self.handle, num_required, dtype=self.dtype, shape=self.shape, name=name)


@builds
@sparse_accumulator_op.front
class SparseConditionalAccumulator(_Accumulator):
    """Adds up gradients of a few rows each; arguments and errors as `ConditionalAccumulator`.

    The mean of a row is that of the gradients that have it.
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str | None = None,
        reduction_type: str = "MEAN",
    ) -> None:
        names = {"shared_name": shared_name, "name": name}
        self._make(sparse_accumulator_op, dtype, shape, reduction_type, **names)

    def apply_indexed_slices_grad(
        self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None
    ) -> Operation:
        """Add a gradient, unless it is stale; arguments and errors as `apply_grad`."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self,
        grad_indices: Any,
        grad_values: Any,
        grad_shape: Any = None,
        local_step: Any = 0,
        name: str | None = None,
    ) -> Operation:
        """Add a gradient, unless it is stale.

        Args:
            grad_indices: an int64 vector: of which rows it is.
            grad_values: a row for each, of the accumulator's dtype.
            grad_shape: the shape of all rows, an int64 vector, where that is known.
            local_step: an int64 scalar, see `ConditionalAccumulator.apply_grad`.
            name: the operation's name.

        Raises:
            InvalidArgumentError: in the run, if its shapes do not fit.
        """
        with self.op.graph.as_default():
            values = convert_to_tensor(grad_values, self.dtype)
            whole = constant([], int64) if grad_shape is None else grad_shape
            return sparse_apply_op(
                self.handle,
                _step(local_step),
                grad_indices,
                values,
                whole,
                dtype=self.dtype,
                name=name,
            )

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """The rows' means or sums, by ascending indices; as `ConditionalAccumulator.take_grad`."""
        indices, values, whole = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, whole)

    def take_grad(
        self, num_required: Any, name: str | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same as three tensors: indices, values, and the shape of all rows."""
        with self.op.graph.as_default():
            return sparse_take_op(
                self.handle, num_required, dtype=self.dtype, shape=self.shape, name=name
            )
