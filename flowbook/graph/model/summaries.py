"""Summaries and training steps of a graph, computed from the live operations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from flowbook.graph.model.ancestors import running
from flowbook.graph.model.mark import Mark
from flowbook.graph.model.operation import Operation

# What follows the tag in an operation's name.
SUFFIX = "/summary"
_NUMBER = re.compile(SUFFIX + r"(_\d+)\Z")


def summaries_among(operations: Iterable[Operation]) -> list[Operation]:
    """Those that summarise and can run, in the order of their construction."""
    return [op for op in running(operations) if op.op_def.summary]


def tag_of(operation: Operation) -> str:
    """The name under which a summary is shown: as it was given, numbered where it comes again."""
    tag: str = operation.attributes["tag"]
    name = operation.name.partition("@")[0]
    number = _NUMBER.search(name)
    return (tag or name) + (number[1] if tag and number else "")


def trainings_among(operations: Iterable[Operation]) -> dict[Operation, Any]:
    """The live operations that are an optimizer's step, each with its counter.

    Returns:
        For each the variable that `minimize(loss, global_step=...)` counts in, or None.
    """
    found: dict[Operation, Any] = {}
    for operation in operations:
        if operation.op_def.marks is Mark.TRAINING:
            *counter, marked = operation.control_inputs
            if not marked.retired:
                found[marked] = counter[0].variable if counter else None
    return found
