"""How an operation is built for all elements of a batch at once, as `vectorized_map` builds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor

__all__ = ["Batching"]


class Batched(NamedTuple):
    """What stands for an input of the operation that one element has.

    Attributes:
        tensor: what stands for it.
        rank: the rank of one element.
        is_each: whether it has a first dimension, of one for each element; otherwise it is the same
            for all.
    """

    tensor: Tensor
    rank: int
    is_each: bool


class Batch(Protocol):
    """The elements, for which operations are built."""

    def again(self, op: Operation, inputs: Sequence[Tensor], **changed: Any) -> tuple[Tensor, ...]:
        """Build an operation with other inputs, and some other attributes; give its outputs."""

    def spread(self, value: Batched) -> Tensor:
        """A value with a first dimension, of the same for each element if there was none."""

    def raised(self, value: Batched, rank: int) -> Tensor:
        """A value for all elements, of elements of a higher rank, to which it broadcasts."""

    def shifted(self, axis: Any) -> Any:
        """An axis of an element, or several, as those of all elements."""

    def shape_for_all(self, op: Operation, shape: Tensor) -> Tensor:
        """The shape of the output of an operation for all elements, by that of one."""

    def before(self, first: Any, rest: Any) -> Tensor:
        """A tensor of ints with one row more at its begin."""


Build = Callable[[Batch, Operation, list[Batched]], Sequence[Tensor]]
Admits = Callable[[Operation, list[bool]], bool]


def _of_the_first(op: Operation, each: list[bool]) -> bool:
    return not any(each[1:])


def of_any(op: Operation, each: list[bool]) -> bool:
    """That it has a form whichever of its inputs differ between elements."""
    return True


@dataclass(frozen=True)
class Batching:
    """How an operation is built for all elements of a batch at once.

    Attributes:
        build: `build(batch, operation, inputs)` gives its outputs for all elements, each with a
            first dimension of one for each; `operation` is that of one element, and `inputs` are
            `(tensor, rank, is_each)`. `batch.again(operation, tensors, **attributes)` builds the
            same with other inputs.
        admits: `admits(operation, each)` says whether it has that form, where those of its inputs
            differ between elements that `each` says; by default the first alone may.
        is_alike: whether its outputs are the same for all elements, whatever these are; they have
            no first dimension then.
        takes_tensors: whether `build` is right, too, where what the definition says is an axis is a
            tensor, among the attributes of `operation` and those that it changes. The same in all
            elements' place is `batch.shifted(axis)`, whether it is a tensor or not.

    `Batching.ELEMENTWISE` is the form of what computes each element of the output of the elements
    in the same place of its inputs, as they broadcast; `Batching.LEADING` of what computes with the
    last dimensions of its first input, whatever comes before; `Batching.ALONG_AXIS` of what
    computes along the axes of its first input that its attribute `axis` names, all for None.
    """

    build: Build
    admits: Admits = _of_the_first
    is_alike: bool = False
    takes_tensors: bool = False

    ELEMENTWISE: ClassVar[Batching]
    LEADING: ClassVar[Batching]
    ALONG_AXIS: ClassVar[Batching]


def _lined_up(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
    rank = max(value.rank for value in inputs)
    return batch.again(op, [batch.raised(value, rank) for value in inputs])


def _as_it_is(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
    return batch.again(op, [value.tensor for value in inputs])


def _along(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
    axis = op.attributes["axis"]
    if axis is None:
        axis = range(inputs[0].rank)
    return batch.again(op, [value.tensor for value in inputs], axis=batch.shifted(axis))


def _joined(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
    changed = {"axis": batch.shifted(op.attributes["axis"])} if "axis" in op.attributes else {}
    return batch.again(op, [batch.spread(value) for value in inputs], **changed)


Batching.ELEMENTWISE = Batching(_lined_up, of_any)
Batching.LEADING = Batching(_as_it_is)
Batching.ALONG_AXIS = Batching(_along, takes_tensors=True)

# Of what takes many tensors of one shape, or that differ along an axis.
JOINED = Batching(_joined, of_any, takes_tensors=True)
