"""Barriers: elements whose components come from different places, joined by keys."""

from __future__ import annotations

from typing import Any

from flowbook.graph.building.scopes import init_scope
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.definition.public import builds
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import as_dtype
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import SCALAR, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import BARRIER, TAKES
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.queues.waiting_ops import looking_op, owning_op, waiting_op

__all__ = ["Barrier"]

_TYPED = {"dtypes": REQUIRED, "shapes": REQUIRED}

barrier_op = owning_op("Barrier", BARRIER, **_TYPED)

insert_many_op: OpDef[Operation] = waiting_op(
    "BarrierInsertMany",
    "barrier: resource, keys: string, values: dtype ->",
    attributes={"component_index": REQUIRED, "dtype": REQUIRED},
    kernel=lambda context, barrier, keys, values, component_index: barrier.insert_many(
        context, component_index, keys, values
    ),
)


def _taken_shapes(*_: Any, shapes: tuple[Shape, ...], **__: Any) -> list[Shape]:
    rows = Shape([None])
    return [rows, rows, *[rows.concatenate(shape) for shape in shapes]]


take_many_op: OpDef[tuple[Tensor, ...]] = waiting_op(
    "BarrierTakeMany",
    "barrier: resource, num_elements: int32 -> indices: int64, keys: string, values: *dtypes",
    attributes={**_TYPED, "allow_small_batch": False},
    infer=_taken_shapes,
    kernel=lambda context, barrier, num_elements, allow_small_batch: barrier.take_many(
        context, num_elements, allow_small_batch
    ),
    host_args=("num_elements",),
    touches=TAKES,
)

close_op: OpDef[Operation] = waiting_op(
    "BarrierClose",
    "barrier: resource ->",
    attributes={"cancel_pending_enqueues": False},
    kernel=lambda context, barrier, cancel_pending_enqueues: barrier.close(
        context, cancel_pending_enqueues
    ),
)


def _two_scalars(barrier: Tensor) -> list[Shape]:
    return [SCALAR, SCALAR]


sizes_op: OpDef[tuple[Tensor, Tensor]] = looking_op(
    "BarrierSizes",
    "barrier: resource -> ready: int32, incomplete: int32",
    infer=_two_scalars,
    kernel=lambda xp, barrier: barrier.sizes(),
)


@builds
@barrier_op.front
@elsewhere({"barrier_ref": "barrier.handle"})
class Barrier:
    """Elements under keys, whose components come one by one, and which leave when complete.

    Args:
        types: the dtype of each component.
        shapes: the shape of each component.
        shared_name: a name under which several operations share one barrier.
        name: the operation's name.

    Attributes:
        op: the operation that produces its handle.
        handle: the handle.

    Raises:
        InvalidArgumentError: if types and shapes do not fit each other.

    >>> import flowbook as fb
    >>> barrier = fb.Barrier([fb.float32, fb.int32], shapes=[[], []])
    >>> puts = [
    ...     barrier.insert_many(0, ["a", "b"], [1.0, 2.0]),
    ...     barrier.insert_many(1, ["b", "a"], [20, 10]),
    ... ]
    >>> with fb.Session() as sess:
    ...     for put in puts:
    ...         sess.run(put)
    ...     indices, keys, values = sess.run(barrier.take_many(2))
    ...     print(keys, *values)
    [b'a' b'b'] [1. 2.] [10 20]
    """

    def __init__(
        self,
        types: Any,
        shapes: Any,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        listed = list(types) if isinstance(types, list | tuple) else [types]
        self.dtypes = tuple([as_dtype(t) for t in listed])
        self.shapes = tuple([Shape(s) for s in shapes])
        if not listed or len(self.dtypes) != len(self.shapes):
            raise InvalidArgumentError(
                f"{counted(len(self.shapes), 'shape')} cannot fit "
                f"{counted(len(self.dtypes), 'component')}"
            )
        if not all(shape.is_fully_defined for shape in self.shapes):
            raise InvalidArgumentError("the shapes of all components have to be known")
        with init_scope():
            self.handle: Tensor = barrier_op(
                dtypes=self.dtypes, shapes=self.shapes, shared_name=shared_name or "", name=name
            )
        self.op: Operation = self.handle.op

    @property
    def name(self) -> str:
        """The name of the operation that produces its handle."""
        return self.op.name

    def insert_many(
        self, component_index: int, keys: Any, values: Any, name: str | None = None
    ) -> Operation:
        """Give elements one of their components: all of them, or none if one is refused.

        Args:
            component_index: which component.
            keys: a string vector: the elements, which are new or wait for this component.
            values: a row for each.
            name: the operation's name.

        Raises:
            InvalidArgumentError: if there is no such component, if shapes do not fit, now or in the
                run, or if an element has it already.
            CancelledError: in the run, if the barrier is closed, and a key is new or components
                are not admitted any more.
        """
        with self.op.graph.as_default():
            if not 0 <= component_index < len(self.dtypes):
                raise InvalidArgumentError(
                    f"there is no component {component_index}: {self.name!r} has {len(self.dtypes)}"
                )
            dtype = self.dtypes[component_index]
            given = convert_to_tensor(values, dtype)
            rows = Shape([None]).concatenate(self.shapes[component_index])
            if not rows.is_compatible_with(given.shape):
                raise InvalidArgumentError(
                    f"component {component_index} is of shape {self.shapes[component_index]}, "
                    f"and values of shape {given.shape} are no rows of that"
                )
            return insert_many_op(
                self.handle,
                keys,
                given,
                component_index=int(component_index),
                dtype=dtype,
                name=name,
            )

    def take_many(
        self, num_elements: Any, allow_small_batch: bool = False, name: str | None = None
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Take complete elements, when there are enough, those first whose keys came first.

        Args:
            num_elements: how many: an int32 scalar.
            allow_small_batch: whether those are enough that are left when it is closed.
            name: the operation's name.

        Returns:
            Their numbers, which grow with the keys' arrival, their keys, and each component.

        Raises:
            OutOfRangeError: in the run, if it is closed, and too few are left.
        """
        with self.op.graph.as_default():
            indices, keys, *values = take_many_op(
                self.handle,
                num_elements,
                dtypes=self.dtypes,
                shapes=self.shapes,
                allow_small_batch=bool(allow_small_batch),
                name=name,
            )
        return indices, keys, values

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Admit no new keys.

        Args:
            cancel_pending_enqueues: whether elements that are not complete get no components
                either.
            name: the operation's name.
        """
        with self.op.graph.as_default():
            return close_op(
                self.handle, cancel_pending_enqueues=bool(cancel_pending_enqueues), name=name
            )

    def ready_size(self, name: str | None = None) -> Tensor:
        """How many elements are complete: an int32 scalar."""
        with self.op.graph.as_default():
            return sizes_op(self.handle, name=name)[0]

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many elements are not complete: an int32 scalar."""
        with self.op.graph.as_default():
            return sizes_op(self.handle, name=name)[1]

    def as_tensor(self, handle: bool) -> Tensor:
        """Its handle."""
        return self.handle
