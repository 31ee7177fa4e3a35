"""The type of the tables for writing, and the rule of what is called the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flowbook.graph.model.operation import Operation
from flowbook.tensorflow.writer import Writer

# A rule takes the writer, the operation and the outputs that it takes, adds nodes, and gives the
# outputs that stand for what the operation gives: one, or a list.
Rule = Callable[..., Any]
Rules = dict[str, Rule]

# Stands for the first output, where dtypes are those of inputs by their numbers.
OUTPUT = -1


def same(type: str, *attributes: str, dtypes: Mapping[str, int] = {"T": 0}, **fixed: Any) -> Rule:
    """The rule of a type that is one node of the same inputs.

    Args:
        type: the node's.
        attributes: those that are called the same.
        dtypes: the node's attributes that are dtypes: of which input each is, or of OUTPUT.
        fixed: attributes of the node that are always the same.
    """

    def rule(w: Writer, op: Operation, *inputs: str) -> Any:
        given = {name: op.attributes[name] for name in attributes} | fixed
        for name, place in dtypes.items():
            given[name] = (op.outputs[0] if place == OUTPUT else op.inputs[place]).dtype
        return w.last(type, inputs, **given)

    return rule
