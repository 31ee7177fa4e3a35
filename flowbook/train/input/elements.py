"""Elements that threads make and put into a queue, and the batches that come out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.whole_numbers import as_whole
from flowbook.graph.ops.arrays.masking import boolean_mask
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import fill
from flowbook.graph.ops.basis.shaping import expand_dims
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor, SparseTensorValue
from flowbook.graph.ops.queues.queue import Queue
from flowbook.graph.ops.queues.queue_runners import QueueRunner
from flowbook.graph.ops.sparse.arranging import expand_dims as sparse_expand_dims
from flowbook.graph.ops.sparse.arranging import known_rank
from flowbook.graph.ops.sparse.serialising import deserialize_many, serialize_many


class _Form(NamedTuple):
    """What a component of an element is.

    Attributes:
        dtype: its dtype.
        rank: of what is sparse, that of the rows; None of what is dense.
    """

    dtype: DType
    rank: int | None


class Elements:
    """The elements that threads make. In the queue what is sparse is a string.

    Args:
        places: of each place that makes elements one of them, or with `are_rows` many.
        are_rows: whether each row is an element.
        shapes: what else is known of the shape of each component.
        threads: how many threads each place has.
        keep: whether an element is put into the queue: of each place a bool for each of its rows,
            or one for all; None keeps all.

    Attributes:
        dtypes: the dtype of each component in the queue.
        shapes: what is known of its shape there.
    """

    def __init__(
        self,
        places: Sequence[Any],
        are_rows: bool,
        shapes: Any,
        threads: int,
        keep: Sequence[Any] | None = None,
    ) -> None:
        if not isinstance(places, list | tuple) or not places:
            raise InvalidTypeError(f"a list of what makes elements is wanted, not {places!r}")
        count = as_whole(threads)
        if count is None or count < 1:
            raise InvalidArgumentError(f"num_threads is a positive integer, not {threads!r}")
        self._like = places[0]
        self._threads = count
        self._is_single = not isinstance(self._like, Mapping | list) and not (
            isinstance(self._like, tuple) and not isinstance(self._like, SparseTensorValue)
        )
        given = [[_as_tensor(part) for part in self._parts(each)] for each in places]
        # An element alone is a row where rows are chosen, or made strings of.
        self._are_rows = are_rows or keep is not None or any(map(_has_sparse, given))
        if self._are_rows and not are_rows:
            given = [[_as_row(part) for part in parts] for parts in given]
        self._forms = _common_forms(given)
        self._rows = [[_in_queue(part) for part in parts] for parts in given]
        self.dtypes = [tensor.dtype for tensor in self._rows[0]]
        self.shapes = self._common_shapes(shapes)
        if keep is not None:
            self._keep(keep)

    def _parts(self, place: Any) -> list[Any]:
        """The components of an element, in order."""
        if isinstance(self._like, Mapping):
            if not isinstance(place, Mapping) or set(place) != set(self._like):
                raise InvalidArgumentError(f"a dict with {list(self._like)} is wanted, not {place}")
            return [place[key] for key in self._like]
        return [place] if self._is_single else list(place)

    def _common_shapes(self, shapes: Any) -> list[Shape]:
        """What is known of the shape of each component, wherever it comes from."""
        found = []
        for column in zip(*self._rows, strict=True):
            each = [tensor.shape[1:] if self._are_rows else tensor.shape for tensor in column]
            found.append(reduce(Shape.generalise, each))
        if shapes is None:
            return found
        given = [shapes] if self._is_single else list(shapes)
        return [
            known.merge(Shape(shape)) if form.rank is None else known
            for known, shape, form in zip(found, given, self._forms, strict=True)
        ]

    def _keep(self, wishes: Sequence[Any]) -> None:
        """Leave out elements."""
        if not isinstance(wishes, list | tuple) or len(wishes) != len(self._rows):
            raise InvalidArgumentError(
                f"keep_input has one entry for each of {len(self._rows)} places, and is "
                f"{wishes!r:.80}"
            )
        for place, (rows, wish) in enumerate(zip(self._rows, wishes, strict=True)):
            wanted = convert_to_tensor(wish, dtypes.bool)
            if wanted.shape.rank is None:
                raise InvalidArgumentError(
                    "of keep_input has to be known whether it is a scalar or a vector"
                )
            if wanted.shape.rank == 0:
                wanted = fill(shape_of(rows[0])[:1], wanted)
            self._rows[place] = [boolean_mask(each, wanted) for each in rows]

    def batch(self, queue: Queue, size: Any, is_less_enough: bool) -> Any:
        """A batch of them out of a queue for them, arranged as one of them."""
        take = queue.dequeue_up_to if is_less_enough else queue.dequeue_many
        found = take(size)
        # Only now: nothing is to be filled where a batch cannot be made.
        self.fill(queue)
        return self.arranged([found] if len(self.dtypes) == 1 else found)

    def fill(self, queue: Queue) -> None:
        """Have threads put them into a queue."""
        put = queue.enqueue_many if self._are_rows else queue.enqueue
        self._run(queue, [put(rows) for rows in self._rows])

    def fill_numbered(self, queue: Queue, numbers: Sequence[Tensor]) -> None:
        """Have threads put them into a queue, with numbers before their components.

        Args:
            queue: the queue.
            numbers: scalars, which go with an element that stands alone.
        """
        [rows] = self._rows
        if not self._are_rows:
            self._run(queue, [queue.enqueue([*numbers, *rows])])
            return
        count = shape_of(rows[0])[:1]
        self._run(queue, [queue.enqueue_many([*[fill(count, n) for n in numbers], *rows])])

    def _run(self, queue: Queue, puts: Sequence[Operation]) -> None:
        QueueRunner(queue, [put for put in puts for _ in range(self._threads)])

    def arranged(self, found: Sequence[Tensor]) -> Any:
        """The components of a batch, arranged as those of an element."""
        values = [
            each if form.rank is None else deserialize_many(each, form.dtype, form.rank)
            for each, form in zip(found, self._forms, strict=True)
        ]
        if isinstance(self._like, Mapping):
            return dict(zip(self._like, values, strict=True))
        return values[0] if self._is_single else values


def _as_tensor(part: Any) -> Tensor | SparseTensor:
    if isinstance(part, SparseTensor | SparseTensorValue):
        return SparseTensor.from_value(part)
    return convert_to_tensor(part)


def _has_sparse(parts: Sequence[Tensor | SparseTensor]) -> bool:
    return any(isinstance(part, SparseTensor) for part in parts)


def _as_row(part: Tensor | SparseTensor) -> Tensor | SparseTensor:
    return sparse_expand_dims(part, 0) if isinstance(part, SparseTensor) else expand_dims(part, 0)


def _in_queue(rows: Tensor | SparseTensor) -> Tensor:
    return serialize_many(rows) if isinstance(rows, SparseTensor) else rows


def _common_forms(given: Sequence[Sequence[Tensor | SparseTensor]]) -> list[_Form]:
    found = [
        [_Form(p.dtype, known_rank(p) - 1 if isinstance(p, SparseTensor) else None) for p in parts]
        for parts in given
    ]
    if any(forms != found[0] for forms in found):
        raise InvalidArgumentError(
            "the places that make elements differ in their dtypes, or in what is sparse"
        )
    if not found[0]:
        raise InvalidArgumentError("an element has at least one component")
    return found[0]
