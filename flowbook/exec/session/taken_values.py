"""Which variables of a graph take which of a session's values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowbook.graph.building.graph import Graph
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey


def fitting(
    graph: Graph, values: Mapping[ResourceKey, Any], is_of_graph: bool
) -> dict[Operation, Any]:
    """The values that variables can take, by the variables' handle operations.

    Args:
        graph: the graph of the variables.
        values: what there is, by key.
        is_of_graph: whether the keys are of this graph; if not, variables are found by name.
    """
    # Of several generations of one name the latest.
    by_name = {key.name: values[key] for key in sorted(values)}
    found = {}
    for variable in graph.variables():
        key = variable.op.key
        value = values.get(key) if is_of_graph else by_name.get(key.name)
        if (
            value is not None
            and not key.container
            and value.dtype == variable.dtype.numpy
            and variable.op.attributes["shape"].is_compatible_with(value.shape)
        ):
            found[variable.op] = value
    return found
