"""What a run will cost, before it runs: floating-point operations and memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flowbook.exec.report import Report, Table, in_bytes, scaled
from flowbook.exec.signature.feeds import check_mapping, feedable
from flowbook.exec.signature.fetches import flatten, graph_of
from flowbook.graph.building.graph import Graph, get_default_graph
from flowbook.graph.model.context import Frame, chain, runs_in
from flowbook.graph.model.dtypes import resource, variant
from flowbook.graph.model.errors import InvalidArgumentError, NotFoundError, without_internal_frames
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin.called import called, tensor_called
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import VARIABLE
from flowbook.graph.model.whole_numbers import as_whole
from flowbook.graph.rewrite.prune import prune
from flowbook.graph.transfer.shaping import check_fed, shape_of, shaped

__all__ = ["forecast"]

_MOST_ROWS = 15


@dataclass(frozen=True)
class Cost:
    """What one operation, or several, cost in a run.

    Attributes:
        operations: how many there are.
        flops: floating-point operations.
        bytes: of the values that they produce.
        unknown: how many of them have outputs whose size only the run knows; these count nothing.
    """

    operations: int = 0
    flops: int = 0
    bytes: int = 0
    unknown: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.operations + other.operations,
            self.flops + other.flops,
            self.bytes + other.bytes,
            self.unknown + other.unknown,
        )

    def __mul__(self, times: int) -> Cost:
        """What as many runs of the same operations cost."""
        return Cost(self.operations, self.flops * times, self.bytes * times, self.unknown)


class Forecast(Report):
    """The cost of a run.

    Attributes:
        by_operation: the cost of each operation.
        total: their sum.
        peak_bytes: the most memory that values occupy at once, when operations run in the order of
            construction and values are freed after their last use.
        peak_at: the operation during which that is.
        variable_bytes: the memory of the variables that it reads or writes.
        unsized: tensors whose size only the run knows, those that are fed included.
        trips: how many iterations of each loop are counted, by the loop's name.
        per_iteration: what one iteration of each costs, with the loops within it.
        stack_bytes: what gradients keep besides the other values: of loops of all iterations.
        swapped_bytes: how much of that waits in host memory: of loops with `swap_memory`, and what
            `fb.gradients` was told to swap.
    """

    def __init__(
        self,
        by_operation: dict[Operation, Cost],
        peak: tuple[int, Operation | None],
        variable_bytes: int,
        unsized: list[Tensor],
        trips: dict[str, int],
        per_iteration: dict[str, Cost],
        uncounted: list[str],
    ) -> None:
        self.by_operation = by_operation
        self.total = sum(by_operation.values(), Cost())
        self.peak_bytes, self.peak_at = peak
        self.variable_bytes = variable_bytes
        self.unsized = unsized
        self.trips = trips
        self.per_iteration = per_iteration
        pushing = {op: cost.bytes for op, cost in by_operation.items() if op.op_def.pushes}
        self.stack_bytes = sum(pushing.values())
        self.swapped_bytes = sum(size for op, size in pushing.items() if op.op_def.swaps)
        self._uncounted = uncounted

    def by_type(self) -> dict[str, Cost]:
        """The costs by operation type, the most expensive first."""
        return self._grouped(lambda op: op.type)

    def by_scope(self, depth: int = 1) -> dict[str, Cost]:
        """The costs by name scope down to a depth, the most expensive first."""
        return self._grouped(lambda op: "/".join(op.name.split("/")[:-1][:depth]))

    def _grouped(self, key: Any) -> dict[str, Cost]:
        found: dict[str, Cost] = {}
        for op, cost in self.by_operation.items():
            found[key(op)] = found.get(key(op), Cost()) + cost
        return dict(sorted(found.items(), key=lambda item: (-item[1].flops, -item[1].bytes)))

    @property
    def table(self) -> Table:
        """A row for each operation type."""
        types = self.by_type()
        shown = list(types.items())[:_MOST_ROWS]
        rest = sum(list(types.values())[_MOST_ROWS:], Cost())
        if rest.operations:
            shown.append((f"{len(types) - _MOST_ROWS} more types", rest))
        at_least = "at least " if self.unsized else ""
        notes = []
        if self.peak_at is not None:
            notes.append(
                f"Most memory is in use during {called(self.peak_at)} ({self.peak_at.site.place})."
            )
        if self.unsized:
            names = ", ".join(tensor_called(t) for t in self.unsized[:5])
            more = f" and {len(self.unsized) - 5} more" if len(self.unsized) > 5 else ""
            notes.append(
                f"Not counted, as only the run knows their sizes: {names}{more}. "
                "Give the shapes of what is fed."
            )
        notes += [
            f"One iteration of the loop {name} costs {scaled(cost.flops)}FLOP; "
            f"{self.trips[name]:,} of them are counted."
            for name, cost in self.per_iteration.items()
        ]
        if self.stack_bytes:
            swapped = self.swapped_bytes
            notes.append(
                f"For gradients {in_bytes(self.stack_bytes)} are kept besides"
                + (f", {in_bytes(swapped)} of them in host memory." if swapped else ".")
            )
        if self._uncounted:
            name = self._uncounted[0]
            notes.append(f"How many there are only the run knows: trips={{{name!r}: 10}} says it.")
        return Table(
            f"{at_least}{scaled(self.total.flops)}FLOP, {in_bytes(self.peak_bytes)} of values at "
            f"most, {in_bytes(self.variable_bytes)} of variables",
            ("operation type", "operations", "FLOP", "values"),
            [(t, f"{c.operations:,}", scaled(c.flops), in_bytes(c.bytes)) for t, c in shown],
            notes,
            (1, 2, 3),
        )


def forecast(
    fetches: Any,
    feeds: Mapping[Any, Any] | None = None,
    *,
    graph: Graph | None = None,
    trips: int | Mapping[str, int] | None = None,
) -> Forecast:
    """Forecast what a run would cost. Nothing is run.

    Of branches both sides are counted, and of a loop one iteration, if nothing else is said.

    Args:
        fetches: as for `sess.run`.
        feeds: for each tensor that would be fed its value, or only its shape as a tuple or
            `fb.Shape`. With these, shapes are inferred through the whole run.
        graph: the graph; by default that of the fetches, and the default graph if those are names.
        trips: how many iterations the loops have, each time that they are entered: by their names,
            or one number for all of them.

    Returns:
        The forecast: FLOP by `OpDef.cost`, memory by lifetimes of values.

    Raises:
        InvalidArgumentError: if a shape does not fit, a needed placeholder is not in `feeds`, or
            `trips` is no such number.
        NotFoundError: if the run enters no loop of a name in `trips`.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [None, 784], name="x")
    >>> y = fb.matmul(x, fb.zeros([784, 10]))
    >>> fb.forecast(y, {x: (100, 784)}).total.flops
    1568000
    """
    check_mapping(feeds)
    graph = graph or graph_of(fetches) or get_default_graph()
    flat = flatten(graph, fetches)
    given = (feeds or {}).items()
    fed = {feedable(graph, key): shape_of(value, "a forecast") for key, value in given}
    check_fed(fed)
    pruned = prune(flat.tensors, flat.targets, list(fed))
    operations = [op for op in pruned.operations if op.op_def.stands_for is None]
    copies = shaped(pruned.operations, fed).copies
    once = {op: _cost(copies[op]) for op in operations}
    loops = _loops(operations)
    counted = _trips(trips, loops)
    costs = {op: cost * _times(_frames(op), counted) for op, cost in once.items()}
    per_iteration = {
        frame.name: sum(
            [
                cost * _times(_frames(op)[: _frames(op).index(frame)], counted)
                for op, cost in once.items()
                if frame in _frames(op)
            ],
            Cost(),
        )
        for frame in loops
    }
    taken = {tensor for op in operations for tensor in op.inputs}
    unsized = [
        tensor
        for tensor, shape in fed.items()
        if tensor in taken
        and tensor.dtype is not resource
        and tensor.shape.merge(shape).size is None
    ]
    unsized += [
        original
        for op in operations
        for original, copy in zip(op.outputs, copies[op].outputs, strict=True)
        if _bytes(copy) is None
    ]
    return Forecast(
        costs,
        _peak(operations, copies, {*flat.tensors}),
        sum(_variable_bytes(op) for op in operations),
        unsized,
        {frame.name: counted[frame] for frame in loops},
        per_iteration,
        [frame.name for frame in loops] if trips is None else [],
    )


def _frames(operation: Operation) -> list[Frame]:
    """The loops that an operation runs in, the innermost first."""
    return [context for context in chain(runs_in(operation)) if isinstance(context, Frame)]


def _loops(operations: Iterable[Operation]) -> list[Frame]:
    """The loops that operations run in, in the order of their construction."""
    return list(dict.fromkeys(frame for op in operations for frame in reversed(_frames(op))))


def _trips(given: Any, loops: Sequence[Frame]) -> dict[Frame, int]:
    """How many iterations of each loop are counted."""
    said = given if isinstance(given, Mapping) else {}
    every = 1 if given is None or given is said else given
    names = [frame.name for frame in loops]
    for name, count in (*said.items(), ("", every)):
        number = as_whole(count)
        if number is None or number < 0:
            raise InvalidArgumentError(f"trips are numbers of iterations, not {count!r}")
        if name and name not in names:
            there = ", ".join(map(repr, names)) or "no loops"
            raise NotFoundError(f"the run enters no loop {name!r}: there are {there}")
    return {frame: said.get(frame.name, every) for frame in loops}


def _times(frames: Iterable[Frame], trips: Mapping[Frame, int]) -> int:
    return math.prod(trips[frame] for frame in frames)


def _cost(op: Operation) -> Cost:
    sizes = [_bytes(t) for t in op.outputs]
    known = [size for size in sizes if size is not None]
    flops = _flops(op)
    held = sum(size or 0 for t, size in zip(op.outputs, sizes, strict=True) if not _is_view(t))
    return Cost(1, flops, held, int(len(known) < len(sizes)))


def _flops(op: Operation) -> int:
    if op.op_def.cost is None:
        return 0
    try:
        return op.op_def.cost(op)
    except Exception as error:
        if op.op_def.is_builtin:
            raise
        raise InvalidArgumentError(
            f"its cost raised {type(error).__name__}: {error}",
            op,
            hint="shapes may be partly known, or not at all",
        ) from without_internal_frames(error)


def _is_view(tensor: Tensor) -> bool:
    """Whether a tensor lies in the memory of another, or of a variable, whose handle that is."""
    return _viewed(tensor) is not None


def _viewed(tensor: Tensor) -> Tensor | None:
    """The input in whose memory an output may lie."""
    place = tensor.op.op_def.views.get(tensor.index)
    return None if place is None else tensor.op.inputs[place]


def _bytes(tensor: Tensor) -> int | None:
    if tensor.dtype is variant:  # A stack: what this operation has put on it.
        place = tensor.op.op_def.pushes.get(tensor.index)
        return 0 if place is None else _bytes(tensor.op.inputs[place])
    if tensor.dtype is resource:
        return 0
    size = tensor.shape.size
    return None if size is None or not tensor.dtype.size else size * tensor.dtype.size


def _variable_bytes(op: Operation) -> int:
    if op.op_def.owns != VARIABLE.name:
        return 0
    return (op.attributes["shape"].size or 0) * int(op.attributes["dtype"].size)


def _peak(
    operations: list[Operation], copies: Mapping[Operation, Operation], fetched: set[Tensor]
) -> tuple[int, Operation | None]:
    """The most bytes alive at once, and during which operation; views live in what they show."""
    shown = {t: _owner(t) for op in operations for t in op.outputs}
    last_use: dict[Tensor, int] = {}
    for i, op in enumerate(operations):
        for t in op.inputs:
            last_use[shown.get(t, t)] = i
    for t in fetched:
        last_use[shown.get(t, t)] = len(operations)
    ends: dict[int, list[Tensor]] = {}
    for t, i in last_use.items():
        ends.setdefault(i, []).append(t)
    sizes = {
        t: 0 if _is_view(t) else _bytes(copy) or 0
        for op in operations
        for t, copy in zip(op.outputs, copies[op].outputs, strict=True)
    }
    alive = most = 0
    at: Operation | None = None
    for i, op in enumerate(operations):
        alive += sum(sizes[t] for t in op.outputs)
        if alive > most:
            most, at = alive, op
        alive -= sum(sizes.get(t, 0) for t in ends.get(i, ()))
        alive -= sum(sizes[t] for t in op.outputs if t not in last_use)
    return most, at


def _owner(tensor: Tensor) -> Tensor:
    """The tensor in whose memory a view lies."""
    while (viewed := _viewed(tensor)) is not None:
        tensor = viewed
    return tensor
