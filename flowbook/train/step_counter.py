"""The counter of training steps that a graph has."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.building.graph import Graph, get_default_graph
from flowbook.graph.building.scopes import device, name_scope
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.state.variables import Variable
from flowbook.train.remembered import is_current

__all__ = ["get_or_create_global_step", "global_step"]

_NAME = "global_step"


def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """The graph's counter of training steps, made on first use.

    It is the variable named "global_step": an int64 scalar, zero at first, not trainable.
    `minimize(loss, global_step=...)` counts in it; schedules and summaries read it.

    Args:
        graph: whose; by default the default graph's.

    Raises:
        InvalidTypeError: if the graph has something else by that name.

    >>> import flowbook as fb
    >>> fb.train.get_or_create_global_step() is fb.train.get_or_create_global_step()
    True
    """
    graph = graph if graph is not None else get_default_graph()
    if graph.has_operation(_NAME):
        operation = graph.get_operation_by_name(_NAME)
        found = graph.variable_of(operation)
        if found is None or not found.dtype.is_integer or found.shape.rank != 0:
            what = operation if found is None else found
            raise InvalidTypeError(
                f"the graph's {_NAME!r} is {what!r}, not an integer scalar variable"
            )
        if is_current(found):
            return found  # type: ignore[no-any-return]
    with graph.as_default(), name_scope(None), device(None):
        return Variable(np.int64(0), trainable=False, name=_NAME)


def global_step(sess: Any, global_step_tensor: Variable | Tensor) -> int:
    """What a counter of steps says now, as Python's integer.

    Args:
        sess: the session.
        global_step_tensor: the counter.
    """
    return int(sess.run(global_step_tensor))
