"""Looking at a tensor without leaving a trace: what its fetch needs, and why it is refused.

A peek changes nothing that anything else could see: no variable, not even by giving it its initial
value, no generator, nothing outside, no summaries. What only a run could show is refused, and the
error says what to run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flowbook.exec.instruments.retained_feeds import RetainedFeeds
from flowbook.exec.plan.failure import deadline_after
from flowbook.exec.signature.compound_feeds import expanded
from flowbook.exec.signature.feeds import Feed, check_mapping, feedable
from flowbook.exec.signature.fetches import flatten
from flowbook.exec.signature.signature import Signature
from flowbook.graph.model.dtypes import resource
from flowbook.graph.model.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
    OpError,
    ResourceExhaustedError,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey, touched_by
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Access
from flowbook.graph.rewrite.prune import closure

if TYPE_CHECKING:
    from flowbook.exec.master import Master

MOST_BYTES = 1 << 26
SECONDS = 10.0

_WHY: dict[Access | None, str] = {
    Access.WRITE: "changes a variable",
    Access.DRAW: "draws random numbers, after which later runs would draw others",
    Access.WAIT: "takes from a queue or puts into one",
    Access.OUTSIDE: "acts outside the graph",
}


class Needs(NamedTuple):
    """What a fetch of one tensor needs, beside computing.

    Attributes:
        effects: operations that would change something, in the order of construction.
        reads: the handles of the variables whose values are read.
        placeholders: those that have to be fed.
    """

    effects: tuple[Operation, ...]
    reads: tuple[Operation, ...]
    placeholders: tuple[Tensor, ...]


def needs(tensor: Tensor, fed: Collection[Tensor] = ()) -> Needs:
    """What a fetch of a tensor needs.

    Args:
        tensor: the tensor.
        fed: tensors whose values are given; a variable's handle stands for its reads.
    """
    given = set(fed)
    operations = closure([tensor], [], given, {t for t in given if t.dtype is resource})
    return Needs(
        tuple(op for op in operations if _changes_something(op)),
        tuple(dict.fromkeys(_read_handles(operations, given))),
        tuple(op.outputs[0] for op in operations if _is_open(op, given)),
    )


def _changes_something(operation: Operation) -> bool:
    touch = operation.op_def.touches
    harmless = (Access.READ, Access.STEP)
    return touch is not None and touch.access not in harmless and not touch.only_fails


def _is_open(operation: Operation, given: Collection[Tensor]) -> bool:
    return operation.op_def.must_be_fed and operation.outputs[0] not in given


def _read_handles(operations: list[Operation], given: Collection[Tensor]) -> Iterator[Operation]:
    for operation in operations:
        definition = operation.op_def
        if definition.access is Access.READ and definition.needs_value:
            owner = touched_by(operation)
            assert owner is not None
            if not (owner.outputs[0] in given and definition.reads_as is not None):
                yield owner


def peek(
    master: Master,
    item: Any,
    feeds: Mapping[Any, Any] | None,
    retained: RetainedFeeds | None,
    most_bytes: int = MOST_BYTES,
    timeout: float = SECONDS,
) -> Any:
    """The value of a tensor; see `Session.peek`."""
    if isinstance(item, str) and ":" not in item:
        item = f"{item}:0"  # A tensor is wanted, not to run the operation.
    tensors = flatten(master.graph, item).tensors
    if len(tensors) != 1:
        raise InvalidTypeError(f"one tensor or variable is looked at, not {item!r:.80}")
    [tensor] = tensors
    check_mapping(feeds)
    given = dict(retained.latest) if retained is not None else {}
    for key, value in expanded(feeds or {}).items():
        given[feedable(master.graph, key)] = value
    held = master.graph.values.held_by(master)
    error = _refusal(tensor, needs(tensor, given), held, retained, most_bytes)
    if error is not None:
        raise error
    feeds_used = used(tensor, given)
    prepared = master.prepare(Signature((tensor,), (), tuple(feeds_used)))
    values = [Feed(key).value(value) for key, value in feeds_used.items()]
    # Nothing is initialised, no instrument takes part.
    [value] = master.run(prepared, values, deadline_after(timeout), initializes=False)
    size = np.asarray(value).nbytes
    if size > most_bytes:
        raise _too_large(tensor, size, most_bytes)
    return value


def used(tensor: Tensor, given: Mapping[Tensor, Any]) -> dict[Tensor, Any]:
    """The feeds that a fetch of a tensor comes upon."""
    operations = closure([tensor], [], set(given), {t for t in given if t.dtype is resource})
    taken = {each for op in operations for each in op.inputs} | {tensor}
    return {key: value for key, value in given.items() if key in taken}


def _refusal(
    tensor: Tensor,
    needed: Needs,
    held: Collection[ResourceKey],
    retained: RetainedFeeds | None,
    most_bytes: int,
) -> OpError | None:
    size = (tensor.shape.size or 0) * (tensor.dtype.size or 0)
    if size > most_bytes:
        return _too_large(tensor, size, most_bytes)
    if needed.effects:
        first, *others = needed.effects
        more = f"; so do {len(others):,} other operations" if len(others) > 1 else ""
        more = f"; so does {others[0].name!r}" if len(others) == 1 else more
        why = _WHY.get(first.op_def.access, "has effects")
        return FailedPreconditionError(
            f"looking at {tensor.name} would run {first.name!r} ({first.type}), which {why}{more}",
            hint="fetch it in a cell, where you decide when that happens",
        )
    empty = [handle for handle in needed.reads if handle.key not in held]
    if empty:
        return FailedPreconditionError(
            f"variable {empty[0].name!r} has no value yet, and looking gives it none",
            hint="run something that uses it, or its initializer",
        )
    if needed.placeholders:
        return _unfed(tensor, needed.placeholders, retained)
    return None


def _unfed(
    tensor: Tensor, placeholders: tuple[Tensor, ...], retained: RetainedFeeds | None
) -> InvalidArgumentError:
    names = ", ".join(repr(t.name) for t in placeholders[:3])
    more = f" and {len(placeholders) - 3:,} more" if len(placeholders) > 3 else ""
    if retained is None:
        hint = "sess.peek(tensor, {x: value}); after sess.retain_feeds(), the last run's are used"
    elif retained.left_out:
        hint = f"the last run's feeds took {retained.left_out:,} bytes, more than are retained"
    else:
        hint = "sess.peek(tensor, {x: value}), or run something that feeds them"
    lack = "has no value" if len(placeholders) == 1 else "have no values"
    return InvalidArgumentError(f"{tensor.name} needs {names}{more}, which {lack} here", hint=hint)


def _too_large(tensor: Tensor, size: int, most_bytes: int) -> ResourceExhaustedError:
    return ResourceExhaustedError(
        f"{tensor.name} takes {size:,} bytes; at most {most_bytes:,} are looked at",
        hint="fetch it in a cell, or a part of it",
    )
