"""The type of the tables for writing: what the rule of an operation type takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.graph.model.operation import Operation
from flowbook.onnx.saving.writer import Writer

# A rule takes the writer, the operation and the names of its inputs' values, adds nodes, and gives
# the name of the output's value, or a list of names.
Rule = Callable[..., Any]
Rules = dict[str, Rule]


def same(type: str, *attributes: str, **fixed: Any) -> Rule:
    """The rule for what ONNX has as one operator of the same inputs.

    Args:
        type: the operator's.
        attributes: those that are called the same.
        fixed: attributes of the node that are always the same.
    """

    def rule(w: Writer, op: Operation, *inputs: str) -> Any:
        given = {name: op.attributes[name] for name in attributes}
        return w.node(type, inputs, **given, **fixed)

    return rule
