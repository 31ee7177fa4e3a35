"""Says so where a fetch by name runs an operation and leaves its value behind.

`"Mean:0"` is a tensor, whose value is fetched; `"Mean"` is an operation, which runs and returns
nothing (white paper, section 2). Where all that it does is to compute a value, that is a slip.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from flowbook.graph.building.graph import Graph
from flowbook.graph.model.origin import site as sites


def warn_of_unasked_values(graph: Graph, fetches: Any) -> None:
    """Warn of names without a port among fetches, whose operations do nothing but give values.

    Args:
        graph: what they are names in.
        fetches: what is fetched; all names in it are there.
    """
    for name in dict.fromkeys(_names(fetches)):
        operation = graph.get_operation_by_name(name)
        if operation.outputs and operation.op_def.is_pure:
            site = sites.capture()
            warnings.warn_explicit(
                f"the name {name!r} is an operation's, which runs and returns nothing: "
                f"its value is {operation.outputs[0].name!r}",
                UserWarning,
                site.cell_label or site.filename,
                site.line,
            )


def _names(fetches: Any) -> Iterator[str]:
    if isinstance(fetches, str):
        if ":" not in fetches:
            yield fetches
    elif isinstance(fetches, Mapping):
        yield from _names(list(fetches.values()))
    elif isinstance(fetches, list | tuple):
        for each in fetches:
            yield from _names(each)
