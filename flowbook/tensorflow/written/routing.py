"""Rules for writing branches and loops, which are the same operations there."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model.operation import Operation
from flowbook.tensorflow.writer import Writer
from flowbook.tensorflow.written.types import Rules, same


def _merge(w: Writer, op: Operation, *inputs: str) -> Any:
    # Where a loop comes back to is known before that is written: by its operation's name.
    back = [] if op.closed_by is None else [w.nodes[op.closed_by]]
    given = {"N": len(inputs) + len(back), "T": op.outputs[0].dtype}
    return w.last("Merge", [*inputs, *back], **given)


RULES: Rules = {
    "ControlTrigger": same("ControlTrigger", dtypes={}),
    "Enter": same("Enter", "frame_name", "is_constant", "parallel_iterations"),
    "Exit": same("Exit"),
    "LoopCond": same("LoopCond", dtypes={}),
    "MarkTraining": same("NoOp", dtypes={}),
    "MarkUpdate": same("NoOp", dtypes={}),
    "Merge": _merge,
    "NextIteration": same("NextIteration"),
    "Switch": same("Switch"),
}
