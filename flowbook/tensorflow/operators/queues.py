"""Queues, and readers of files whose names come from queues."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import int64
from flowbook.graph.model.shape import SCALAR, UNKNOWN
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.queues import queue_ops, readers
from flowbook.graph.ops.queues.queue import elements_of
from flowbook.graph.ops.random.random_numbers import seeds
from flowbook.tensorflow.node import Node, Rule, Rules, named
from flowbook.tensorflow.operators.random import seed_of


def _elements(n: Node) -> dict[str, Any]:
    """What a queue's elements are, and how many it holds."""
    dtypes, shapes = n.dtypes("component_types"), n.shapes("shapes")
    found = shapes or [UNKNOWN] * len(dtypes)
    if n.type.startswith("PriorityQueue"):
        dtypes, found = [int64, *dtypes], [SCALAR, *found]
    return elements_of(dtypes, found, None, n.whole("capacity", -1), n.text("shared_name"))


def _queue(op_def: OpDef[Any]) -> Rule:
    return lambda n: op_def(**_elements(n), name=n.scope)


def _shuffling(n: Node) -> Any:
    least = n.whole("min_after_dequeue")
    drawn = {"min_after_dequeue": least, **seeds(seed_of(n))}
    return queue_ops.random_shuffle_queue_op(**_elements(n), **drawn, name=n.scope)


def _put(op_def: OpDef[Any]) -> Rule:
    return lambda n, queue, *components: op_def(queue, list(components), name=n.scope)


def _taken(op_def: OpDef[Any]) -> Rule:
    def rule(n: Node, queue: Tensor, *count: Any) -> Any:
        dtypes = tuple(n.dtypes("component_types"))
        shapes = queue.op.attributes.get("shapes", (UNKNOWN,) * len(dtypes))
        return op_def(queue, *count, dtypes=dtypes, shapes=shapes, name=n.scope)

    return rule


def _reader(op_def: OpDef[Any], *numbers: str, compression: str = "") -> Rule:
    """The rule of a reader.

    Args:
        op_def: the operation.
        numbers: its attributes that are numbers.
        compression: the attribute that says how files are compressed.
    """

    def rule(n: Node) -> Any:
        attributes: dict[str, Any] = {key: n.whole(key) for key in numbers}
        if compression:
            attributes["compression"] = n.text(compression).lower()
        return op_def(**attributes, shared_name=n.text("shared_name"), name=n.scope)

    return rule


def _both(rules: Rules) -> Rules:
    """The rules, under the names of earlier and of later types."""
    return {f"{type}{version}": rule for type, rule in rules.items() for version in ("", "V2")}


RULES: Rules = _both(
    {
        "FIFOQueue": _queue(queue_ops.fifo_queue_op),
        "PaddingFIFOQueue": _queue(queue_ops.padding_fifo_queue_op),
        "PriorityQueue": _queue(queue_ops.priority_queue_op),
        "QueueClose": named(
            queue_ops.close_op,
            cancel_pending_enqueues=lambda n: n.flag("cancel_pending_enqueues"),
        ),
        "QueueDequeue": _taken(queue_ops.dequeue_op),
        "QueueDequeueMany": _taken(queue_ops.dequeue_many_op),
        "QueueDequeueUpTo": _taken(queue_ops.dequeue_up_to_op),
        "QueueEnqueue": _put(queue_ops.enqueue_op),
        "QueueEnqueueMany": _put(queue_ops.enqueue_many_op),
        "QueueIsClosed": named(queue_ops.is_closed_op),
        "QueueSize": named(queue_ops.size_op),
        "RandomShuffleQueue": _shuffling,
        "FixedLengthRecordReader": _reader(
            readers.fixed_length_record_reader_op,
            "record_bytes",
            "header_bytes",
            "footer_bytes",
            "hop_bytes",
            compression="encoding",
        ),
        "IdentityReader": _reader(readers.identity_reader_op),
        "ReaderNumRecordsProduced": named(readers.records_produced_op),
        "ReaderNumWorkUnitsCompleted": named(readers.work_units_completed_op),
        "ReaderRead": named(readers.read_op),
        "ReaderReadUpTo": named(readers.read_up_to_op),
        "ReaderReset": named(readers.reset_op),
        "TFRecordReader": _reader(readers.tf_record_reader_op, compression="compression_type"),
        "TextLineReader": _reader(readers.text_line_reader_op, "skip_header_lines"),
        "WholeFileReader": _reader(readers.whole_file_reader_op),
    }
)
