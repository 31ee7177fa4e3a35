"""Which rule writes an operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.onnx.saving.rules import RULES, RUN_AXES, FixedAxes
from flowbook.onnx.saving.writer import Writer


def has_rule(op: Operation) -> bool:
    """Whether there is a rule for an operation's type, or what it is with an axis that is known."""
    fixed = op.op_def.fixed_axis
    return op.type in RULES or (fixed is not None and fixed[0].type in RULES)


def ruled(w: Writer, op: Operation, inputs: Sequence[str]) -> Any:
    """What an operation's rule makes of it."""
    if op.op_def.fixed_axis is None:
        rule = RULES["Gather"] if op.type == "VariableGather" else RULES.get(op.type, _passed_on)
        return rule(w, op, *inputs)
    fixed, name = op.op_def.fixed_axis
    *rest, axes = inputs
    known = w.values.of(op.inputs[-1])
    if known is not None:
        value = tuple(known.tolist()) if known.ndim else known.item()
        attributes = {**op.attributes, name: value}
        view = FixedAxes(fixed.type, op.name, op.inputs[:-1], op.outputs, attributes)
        return RULES[fixed.type](w, view, *rest)
    if fixed.type not in RUN_AXES:
        raise UnimplementedError(
            f"{fixed.type} along what only the run knows, {op.inputs[-1].name}"
        )
    return RUN_AXES[fixed.type](w, op, *rest, w.reshape(w.long(axes), [-1]))


def _passed_on(w: Writer, op: Operation, x: str) -> str:
    found: str = w.node("Identity", [x])
    return found
