"""The type of the tables for writing, and the rule of what is called the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.graph.model.operation import Operation
from flowbook.tensorflow.writer import Writer

# A rule takes the writer, the operation and the outputs that it takes, adds nodes, and gives the
# outputs that stand for what the operation gives: one, or a list.
Rule = Callable[..., Any]
Rules = dict[str, Rule]


def same(type: str, *attributes: str, dtype: str = "T", **fixed: Any) -> Rule:
    """The rule of a type that is one node of the same inputs.

    Args:
        type: the node's.
        attributes: those that are called the same.
        dtype: the attribute that is the dtype of the first input; "" if there is none.
        fixed: attributes of the node that are always the same.
    """

    def rule(w: Writer, op: Operation, *inputs: str) -> Any:
        given = {name: op.attributes[name] for name in attributes} | fixed
        if dtype:
            given[dtype] = op.inputs[0].dtype
        return w.last(type, inputs, **given)

    return rule
