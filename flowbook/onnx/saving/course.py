"""How a loop goes: how often, through which elements, and what it leaves at each.

A counter is a variable that is one more, or one less, in each iteration. A loop that goes on until
a counter has come to a number has as many iterations as that says. What is read of an array at a
counter is one element after the other; an array that is nothing but written at a counter is what
all iterations give, one upon the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowbook.graph.model import dtypes
from flowbook.graph.model.context import Frame, is_within
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.onnx.saving.structure import Reached, first_value, next_value, outcome_of, reached
from flowbook.onnx.sums import ONE, ZERO, Size, Sum, Sums, added, fixed, is_handed_on, outside


@dataclass(frozen=True)
class Places:
    """The indices of an array that the iterations come to, one after the other.

    Attributes:
        first: that of the first iteration.
        is_backward: whether the next one is before it.
    """

    first: Sum
    is_backward: bool

    def begin(self, count: Sum) -> Sum:
        """The least of them, after so many iterations."""
        return added(added(self.first, ONE), count, -1) if self.is_backward else self.first

    def end(self, count: Sum) -> Sum:
        """The index behind the greatest."""
        return added(self.first, ONE if self.is_backward else count)


@dataclass(frozen=True)
class Elements:
    """Elements of a tensor that a loop reads one after the other.

    Attributes:
        read: the operation that gives one of them.
        whole: the tensor, outside of the loop.
        begin: the first of them, wherever the loop begins.
        end: what is behind the last.
        is_backward: whether the last one comes first.
    """

    read: Operation
    whole: Tensor
    begin: int
    end: int
    is_backward: bool


@dataclass(frozen=True)
class Collected:
    """An array of what the iterations give.

    Attributes:
        variable: the Merge that is the array in an iteration.
        part: what an iteration gives.
        places: where that lies in the array.
        size: how many elements the array has; None if as many as are written.
    """

    variable: Operation
    part: Tensor
    places: Places
    size: Sum | None


class Course:
    """The course of a loop, as far as some Exits of it need it.

    Args:
        sums: whole numbers as sums.
        frame: the loop.
        exits: the Exits.

    Attributes:
        count: how many iterations it has, before the first; None if each says it of the next.
        collected: the arrays of what the iterations give.
        outcome: what says whether there is another iteration.
    """

    def __init__(self, sums: Sums, frame: Frame, exits: Sequence[Operation]) -> None:
        self._sums = sums
        self._frame = frame
        self.outcome = outcome_of(exits[0])
        inside = reached(frame, [t for op in exits for t in op.inputs])
        self._operations = inside.operations
        self._firsts, self._steps = self._counters(inside.variables)
        self.count = self._counted()
        found = [
            self._collected(m) for m in inside.variables if m.outputs[0].dtype.name == "variant"
        ]
        self.collected = [each for each in found if each is not None]
        self._wanted = [op.inputs[0].op.inputs[0] for op in exits]

    def elements(self) -> list[Elements]:
        """What the loop reads one after the other, of which as much is left as is known here."""
        reads = [op for op in self._operations if op.type == "TensorArrayRead"]
        found = [self._elements(op) for op in sorted(reads, key=lambda op: op.id)]
        return [each for each in found if each is not None]

    def needed(self, given: Sequence[Tensor] = ()) -> Reached:
        """What each iteration has to know of the one before, and of what is outside.

        Args:
            given: what each iteration is given otherwise.
        """
        left = {each.variable.outputs[0]: each.part for each in self.collected}
        ends = [left.get(value, value) for value in self._wanted]
        if self.count is None:
            ends += self.outcome.op.inputs
        return reached(self._frame, ends, {self.outcome, *given})

    def _counters(
        self, variables: Sequence[Operation]
    ) -> tuple[dict[Tensor | Size | None, Sum], dict[Tensor | Size | None, int]]:
        """What each counter begins with, and by how much it goes on."""
        firsts: dict[Tensor | Size | None, Sum] = {}
        steps: dict[Tensor | Size | None, int] = {}
        for merge in variables:
            value = merge.outputs[0]
            if value.dtype in dtypes.INDICES and value.shape.rank == 0:
                step = added(self._sums.of(next_value(merge)), {value: 1}, -1)
                if fixed(step) in (1, -1):
                    firsts[value], steps[value] = self._sums.of(first_value(merge)), step[None]
        return firsts, steps

    def _counted(self) -> Sum | None:
        """How many iterations there are, if they go on as long as a counter is below a number."""
        compared = self.outcome.op.inputs[0].op
        if compared.type not in ("Less", "Greater"):
            return None
        low, high = compared.inputs if compared.type == "Less" else compared.inputs[::-1]
        if low.dtype not in dtypes.INDICES:
            return None
        places = self._places(added(self._sums.of(high), self._sums.of(low), -1))
        return places.first if places is not None and places.is_backward else None

    def _places(self, index: Sum) -> Places | None:
        """Where an index is at first, and where it goes from there; None if it does not so."""
        moving = [part for part in index if self._is_inside(part)]
        if len(moving) != 1 or moving[0] not in self._steps:
            return None
        [counter] = moving
        by = index[counter] * self._steps[counter]
        if by not in (1, -1):
            return None
        first = added(index, {counter: index[counter]}, -1)
        return Places(added(first, self._firsts[counter], index[counter]), by < 0)

    def _is_inside(self, part: Tensor | Size | None) -> bool:
        tensor = part.tensor if isinstance(part, Size) else part
        return tensor is not None and is_within(tensor.op.context, self._frame)

    def _elements(self, read: Operation) -> Elements | None:
        array, index = read.inputs
        found = whole_of(self._sums, array)
        places = self._places(self._sums.of(index))
        if found is None or places is None or self.count is None:
            return None
        whole, _ = found
        begin, end = fixed(places.begin(self.count)), fixed(places.end(self.count))
        rows = whole.shape[0]
        if begin is None or end is None or rows is None or is_within(whole.op.context, self._frame):
            return None
        # What only some iterations read is there for all of them, of which there is one at least:
        # onnxruntime refuses a Scan over no elements.
        is_there = 0 <= begin < end <= rows
        return Elements(read, whole, begin, end, places.is_backward) if is_there else None

    def _collected(self, merge: Operation) -> Collected | None:
        following = next_value(merge)
        write = following.op
        switches = self._users(merge.outputs[0])
        if len(switches) != 1 or switches[0].type != "Switch" or self._users(following):
            return None
        array = switches[0].outputs[1]
        if write.inputs[:1] != (array,) or self._users(array) != [write]:
            return None
        first = first_value(merge)
        origin, size = begun(self._sums, first)
        if write.type in ("StackPush", "StackPushToHost"):
            part = write.inputs[1]
            # If none was pushed, the shape alone tells of which shape they would be.
            is_plain = part.dtype is not dtypes.variant and part.shape.is_fully_defined
            whole = Collected(merge, part, Places(ZERO, False), None)
            return whole if is_plain and origin is first.op else None
        if write.type != "TensorArrayWrite" or not _is_regular(origin, first):
            return None
        places = self._places(self._sums.of(write.inputs[1]))
        if places is None:
            return None
        if size is None:
            # It grows: there is nothing before what is written, and nothing behind.
            begins = origin is first.op and self._sums.of(origin.inputs[0]) == ZERO
            if not begins or places != Places(ZERO, False):
                return None
        return Collected(merge, write.inputs[2], places, size)

    def _users(self, tensor: Tensor) -> list[Operation]:
        return [op for op in tensor.consumers() if op in self._operations]


def _is_regular(origin: Operation, array: Tensor) -> bool:
    """Whether elements of an array have one shape, and none has a value that others add up to."""
    how = origin.attributes
    return (
        origin.type == "TensorArray"
        and how["infer_shape"]
        and (not how["adds_up"] or origin is array.op)
    )


def begun(sums: Sums, array: Tensor) -> tuple[Operation, Sum | None]:
    """What made the array that was written to since, and of which size; None for one that grows."""
    op = array.op
    while (op.type.startswith("TensorArray") and op.type != "TensorArray") or is_handed_on(op):
        op = op.inputs[0].op
    is_fixed = op.type == "TensorArray" and not op.attributes["dynamic_size"]
    return op, sums.of(op.inputs[0]) if is_fixed else None


def whole_of(sums: Sums, array: Tensor) -> tuple[Tensor, Sum] | None:
    """The tensor whose rows are the elements of an array, and how many it has place for."""
    scatter = outside(array).op
    if scatter.type != "TensorArrayScatter":
        return None
    made, indices, whole = scatter.inputs
    origin, size = begun(sums, made)
    if size is None or origin is not made.op or origin.attributes["adds_up"]:
        return None
    if indices.op.type != "Range":
        return None
    start, _, delta = indices.op.inputs
    if (sums.of(start), sums.of(delta)) != (ZERO, ONE):
        return None
    return whole, size
