"""What all queues have in common, as users hold them: `queues.py` has their kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from flowbook.graph.building.graph import Graph
from flowbook.graph.building.names import name_from
from flowbook.graph.building.scopes import init_scope
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.definition.public import builds
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import DType, as_dtype
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.whole_numbers import as_whole
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.queues.queue_ops import (
    close_op,
    dequeue_many_op,
    dequeue_op,
    dequeue_up_to_op,
    enqueue_many_op,
    enqueue_op,
    is_closed_op,
    select_op,
    size_op,
)

__all__ = ["Queue"]


@builds
@elsewhere({"queue_ref": "queue.handle"})
class Queue:
    """What all kinds of queue have in common. `Queue.of(operation)` finds one of a loaded graph.

    Each element is one tensor, or several as its components. What puts in waits while the queue is
    full, and what takes out while it is empty; a run's timeout ends the wait, and closing the queue
    does where nothing can come of it.

    Attributes:
        op: the operation that produces its handle.
        handle: the handle.
    """

    # Whether elements that differ in shape make a batch.
    _pads = False

    op: Operation
    handle: Tensor

    @classmethod
    def of(cls, operation: Operation) -> Queue:
        """The queue of an operation that produces a queue's handle.

        Raises:
            InvalidTypeError: if it produces another one, or none.
        """
        found = _classes.get(operation.type) if isinstance(operation, Operation) else None
        if found is None:
            raise InvalidTypeError(f"{operation!r} makes no queue")
        self = found.__new__(found)
        self._set(operation.outputs[0])
        return self

    @staticmethod
    def from_list(index: Any, queues: Sequence[Queue]) -> Queue:
        """One of several queues, which each run chooses.

        Args:
            index: an int32 scalar: which of them.
            queues: queues whose elements have the same dtypes and names.

        Raises:
            InvalidTypeError: if they are no queues, or differ in dtypes or names.
            InvalidArgumentError: in the run, if `index` is out of range.
        """
        if not queues or not all(isinstance(queue, Queue) for queue in queues):
            raise InvalidTypeError(f"a list of queues is wanted, not {queues!r}")
        first = queues[0]
        for queue in queues:
            if (queue.dtypes, queue.names) != (first.dtypes, first.names):
                raise InvalidTypeError(
                    f"the elements of {first.name!r} and of {queue.name!r} differ in dtypes "
                    "or names"
                )
        columns = zip(*[queue.shapes for queue in queues], strict=True)
        shapes = tuple([_common(column) for column in columns])
        self = Queue()
        self._set(
            select_op(
                index,
                [queue.handle for queue in queues],
                dtypes=first.dtypes,
                shapes=shapes,
                names=first.names,
            )
        )
        self._pads = all(queue._pads for queue in queues)
        return self

    def _set(self, handle: Tensor) -> None:
        self.handle = handle
        self.op = handle.op

    def _make(self, op_def: OpDef, name: str | None, **attributes: Any) -> None:
        with init_scope():
            self._set(op_def(**attributes, name=name))

    # What it is

    @property
    def name(self) -> str:
        """The name of the operation that produces its handle."""
        return self.op.name

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The dtype of each component."""
        return self.op.attributes["dtypes"]  # type: ignore[no-any-return]

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """What is known of the shape of each component."""
        return self.op.attributes["shapes"]  # type: ignore[no-any-return]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the components; empty if they have none."""
        return self.op.attributes["names"]  # type: ignore[no-any-return]

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        return self.op.graph

    def as_tensor(self, handle: bool) -> Tensor:
        """Its handle, which is all that operations can take of it."""
        if not handle:
            raise InvalidTypeError(
                f"queue {self.name!r} is no tensor", hint="queue.dequeue() takes one out of it"
            )
        return self.handle

    # Operations

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """Put in one element, as soon as there is room.

        Args:
            vals: a tensor; of several components a list or tuple, or of named ones a dict. The only
                component may be in a list or tuple too, as `[image]` or `(1.0,)`, where that cannot
                be the tensor itself.
            name: the operation's name.

        Raises:
            InvalidArgumentError: if a dtype or a shape does not fit, now or in the run.
            CancelledError: in the run, if the queue is closed.
        """
        return self._put(enqueue_op, vals, name, "enqueue")

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """Put in one element for each row, as there comes to be room: they may be more than fit.

        Args:
            vals: as for `enqueue`, each with one dimension more before the others.
            name: the operation's name.

        Raises:
            InvalidArgumentError: if a dtype or a shape does not fit, now or in the run.
            CancelledError: in the run, if the queue is closed. What has been put in stays.
        """
        return self._put(enqueue_many_op, vals, name, "enqueue_many")

    def dequeue(self, name: str | None = None) -> Any:
        """Take out one element, as soon as there is one.

        Returns:
            Its tensor; of several components a list, or of named ones a dict.

        Raises:
            OutOfRangeError: in the run, if the queue is closed, and none is left.
        """
        return self._take(dequeue_op, (), name, "dequeue")

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Take out elements as one batch, when that many have come.

        Args:
            n: how many: an int32 scalar.
            name: the operation's name.

        Returns:
            As `dequeue`, with one dimension more before the others.

        Raises:
            InvalidArgumentError: if nothing is known of the elements' shapes.
            OutOfRangeError: in the run, if the queue is closed, and too few are left; they stay.
        """
        self._check_batches()
        return self._take(dequeue_many_op, (n,), name, "dequeue_many")

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """As `dequeue_many`, but that those are enough which are left when the queue is closed."""
        self._check_batches()
        return self._take(dequeue_up_to_op, (n,), name, "dequeue_up_to")

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Let no more elements in; those that are there can still be taken out.

        Args:
            cancel_pending_enqueues: whether what waits to put something in is given up too.
            name: the operation's name.
        """
        with self.graph.as_default():
            return close_op(
                self.handle,
                cancel_pending_enqueues=bool(cancel_pending_enqueues),
                name=self._named(name, "close"),
            )

    def size(self, name: str | None = None) -> Tensor:
        """How many elements there are: an int32 scalar."""
        with self.graph.as_default():
            return size_op(self.handle, name=self._named(name, "size"))

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether it is closed: a bool scalar."""
        with self.graph.as_default():
            return is_closed_op(self.handle, name=self._named(name, "is_closed"))

    def _put(self, op_def: OpDef[Operation], vals: Any, name: str | None, method: str) -> Operation:
        name = self._named(name, method)
        with self.graph.as_default():
            given = self._components(vals, rows=op_def is enqueue_many_op)
            tensors = [
                convert_to_tensor(value, dtype)
                for value, dtype in zip(given, self.dtypes, strict=True)
            ]
            return op_def(self.handle, tensors, name=name)

    def _components(self, vals: Any, rows: bool) -> list[Any]:
        """What an element, or rows of them, is made of, in order."""
        names, count = self.names, len(self.dtypes)
        if names:
            if not isinstance(vals, Mapping) or set(vals) != set(names):
                given = _quoted(vals) if isinstance(vals, Mapping) else repr(vals)
                raise InvalidArgumentError(
                    f"an element of {self.name!r} is a dict with {_quoted(names)}, not {given}"
                )
            return [vals[each] for each in names]
        if isinstance(vals, Mapping):
            raise InvalidArgumentError(
                f"the components of {self.name!r} have no names", hint="give `names` to the queue"
            )
        is_listed = isinstance(vals, list | tuple) and (
            count > 1 or (len(vals) == 1 and self._lists_a_component(vals, rows))
        )
        components = list(vals) if is_listed else [vals]
        if len(components) != count:
            raise InvalidArgumentError(
                f"{counted(len(components), 'component')} cannot make an element of {self.name!r}, "
                f"which has {count}"
            )
        return components

    def _lists_a_component(self, vals: Sequence[Any], rows: bool) -> bool:
        """Whether one value in a list or tuple is the only component, as in TensorFlow 1.

        Else the list is the component. Ranks tell the two apart, where they are known.
        """
        rank, wanted = _rank(vals[0]), self.shapes[0].rank
        if rank is None or wanted is None:
            return isinstance(vals, tuple) or isinstance(vals[0], Tensor | np.ndarray)
        return rank + 1 != wanted + rows

    def _take(
        self, op_def: OpDef[list[Tensor]], more: tuple[Any, ...], name: str | None, method: str
    ) -> Any:
        typed = {"dtypes": self.dtypes, "shapes": self.shapes}
        with self.graph.as_default():
            found = op_def(self.handle, *more, **typed, name=self._named(name, method))
        if self.names:
            return dict(zip(self.names, found, strict=True))
        return found if len(found) > 1 else found[0]

    def _check_batches(self) -> None:
        for place, shape in enumerate(self.shapes):
            if not (shape.is_fully_defined or (self._pads and shape.rank is not None)):
                raise InvalidArgumentError(
                    f"elements of {self.name!r} make no batch: of the shape of component {place} "
                    f"is known {shape}",
                    hint="give the queue `shapes`, or use a PaddingFIFOQueue",
                ).at("QueueDequeueMany", self.op.site)

    def _named(self, name: str | None, method: str) -> str:
        plain = name_from(self.op.name.rpartition("/")[2])
        return name if name is not None else f"{plain}_{method}"

    def __iter__(self) -> NoReturn:
        raise InvalidTypeError(
            f"queue {self.name!r} cannot be iterated over",
            hint="each sess.run(queue.dequeue()) takes one element; build that once",
        )

    def __repr__(self) -> str:
        elements = ", ".join(
            f"{dtype.name} {shape}" for dtype, shape in zip(self.dtypes, self.shapes, strict=True)
        )
        return f"<{type(self).__name__} {self.name!r} of {elements}>"


def _common(shapes: Sequence[Shape]) -> Shape:
    """What is known of a shape that is one of several."""
    found = shapes[0]
    for shape in shapes[1:]:
        found = found.generalise(shape)
    return found


def _rank(value: Any) -> int | None:
    """The rank of what will be a tensor, if it is known."""
    if isinstance(value, list | tuple):
        inside = _rank(value[0]) if value else 0
        return None if inside is None else inside + 1
    return Shape(getattr(value, "shape", ())).rank


def _quoted(names: Any) -> str:
    return ", ".join(repr(name) for name in names)


def elements_of(
    dtypes: Any, shapes: Any, names: Any, capacity: Any, shared_name: str | None
) -> dict[str, Any]:
    """The attributes that all queues have.

    Raises:
        InvalidTypeError: if something is not of its kind.
        InvalidArgumentError: if they do not fit each other.
    """
    types = [as_dtype(t) for t in (dtypes if isinstance(dtypes, list | tuple) else [dtypes])]
    if not types:
        raise InvalidArgumentError("an element has at least one component")
    found = shapes_of(shapes, len(types))
    if names is not None and not isinstance(names, list | tuple):
        names = [names]
    if names is not None and (len(names) != len(types) or len(set(names)) != len(names)):
        raise InvalidArgumentError(
            f"{len(types)} different names are wanted, one for each component, not {names!r}"
        )
    most = as_whole(capacity)
    if most is None or not (most > 0 or most == -1):
        raise InvalidArgumentError(
            f"capacity is a positive number of elements, or -1 for any number, not {capacity!r}"
        )
    return {
        "dtypes": tuple(types),
        "shapes": found,
        "names": tuple(names or ()),
        "capacity": most,
        "shared_name": shared_name or "",
    }


def shapes_of(shapes: Any, count: int) -> tuple[Shape, ...]:
    """The shapes of the components: one for each, or a single one for the only one."""
    if shapes is None:
        return (UNKNOWN,) * count
    is_single = isinstance(shapes, Shape) or not any(
        isinstance(s, list | tuple | Shape) for s in shapes
    )
    # () is the shape of a single scalar component, and [()] too.
    found = [Shape(shapes)] if is_single and count == 1 else [Shape(s) for s in shapes]
    if len(found) != count:
        raise InvalidArgumentError(
            f"{counted(len(found), 'shape')} cannot fit {counted(count, 'component')}",
            hint="one for each component",
        )
    return tuple(found)


_classes: dict[str, type[Queue]] = {}

Kind = TypeVar("Kind", bound=type)


def made_by(*op_defs: OpDef) -> Callable[[Kind], Kind]:
    """Have `Queue.of` give objects of a class for operations of some types, as a decorator."""

    def register(found: Kind) -> Kind:
        _classes.update({op_def.type: found for op_def in op_defs})
        return found

    return register


made_by(select_op)(Queue)
