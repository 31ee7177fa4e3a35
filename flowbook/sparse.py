"""Sparse tensors: made, converted, arranged anew, computed with."""

from flowbook.graph.ops.sparse_conversion import (
    eye,
    from_dense,
    to_dense,
    to_indicator,
)
from flowbook.graph.ops.sparse_conversion import sparse_placeholder as placeholder

__all__ = [
    "eye",
    "from_dense",
    "placeholder",
    "to_dense",
    "to_indicator",
]
