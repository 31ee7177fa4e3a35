"""Exchange with other frameworks by ONNX models: `load` and `save`.

Both need the onnx package (`pip install flowbook[onnx]`), which is imported when they are called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flowbook.graph.graph import Graph

if TYPE_CHECKING:
    from flowbook.onnx.reading import Model

__all__ = ["load"]


def load(
    model: Any,
    *,
    graph: Graph | None = None,
    name: str | None = None,
    trainable: bool = False,
    values: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Any] | None = None,
    base_folder: Any = None,
) -> Model:
    """Add an ONNX model to a graph."""
    from flowbook.onnx.reading import load as read

    return read(
        model,
        graph=graph,
        name=name,
        trainable=trainable,
        values=values,
        shapes=shapes,
        base_folder=base_folder,
    )
