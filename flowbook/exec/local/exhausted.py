"""Who holds the memory of a device that has none left: what the error of the step lists.

Of variables what they hold is known, of the step's values what the plan tells of their sizes: those
that were made before the operation that failed, and are used by it or later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flowbook.exec.plan.failure import Failure
from flowbook.exec.plan.pipeline import Prepared
from flowbook.exec.plan.program import Part, PlanNode
from flowbook.exec.report import in_bytes
from flowbook.exec.resources.session_stores import SessionStores
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.shape import Shape
from flowbook.graph.transfer.shaping import shaped

# So many are listed of all.
_MOST_LISTED = 5


def holders(
    failure: Failure, prepared: Prepared, feeds: Sequence[Any], stores: SessionStores, graph: Graph
) -> list[str]:
    """Lines that name the largest holders of memory where a step failed.

    Args:
        failure: what became of the step.
        prepared: what it ran.
        feeds: what it was fed with, as far as it was.
        stores: where its resources live.
        graph: what names the operations.
    """
    program, part = prepared.program, prepared.program.parts[failure.part]
    given = zip(prepared.signature.feeds, feeds, strict=False)
    fed = {tensor: Shape(np.shape(value)) for tensor, value in given}
    shapes = shaped(prepared.operations, fed)
    held: list[tuple[int, str]] = []
    for key, size in stores.sizes_on(part.device).items():
        owner = graph.get_operation_by_name(key.name) if graph.has_operation(key.name) else None
        held.append((size, f"variable {key.name!r}{_place(owner)}"))
    if program.is_parted:
        here = [prepared.signature.feeds[place] for place in part.feeds[:-1]]
        held += [(_size(t.dtype, shapes.feed(t)), f"what was fed for {t.name}") for t in here]
    for node in _alive(part, failure.node):
        operation = prepared.sources[node.sources[0]] if node.sources else None
        known = shapes.of(operation).shapes if operation is not None else node.shapes
        aliases = op_keyed(node.type).aliases or {}
        own = [
            _size(*s)
            for i, s in enumerate(zip(node.dtypes, known, strict=True))
            if i not in aliases
        ]
        held.append((sum(own), f"what {node.name!r} gave{_place(operation)}"))
    held.sort(key=lambda each: -each[0])
    lines = [f"{in_bytes(size)}: {what}" for size, what in held[:_MOST_LISTED] if size]
    return [f"the most of the memory of {part.device} is held by", *lines] if lines else []


def _place(operation: Operation | None) -> str:
    return f" ({operation.site.place})" if operation is not None else ""


def _size(dtype: DType, shape: Shape) -> int:
    return (shape.size or 0) * (dtype.size or 0)


def _alive(part: Part, failed: int) -> Iterator[PlanNode]:
    """The nodes whose values lay in memory when one failed."""
    nodes = part.nodes
    used = {value for node in nodes[failed:] for value in node.inputs}.union(part.fetches)
    for node in nodes[:failed]:
        if not used.isdisjoint(node.outputs):
            yield node
