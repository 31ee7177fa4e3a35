"""Sets along the last dimension of tensors: their sizes, and what is in both or in either."""

from flowbook._renamed import no_such_name_in
from flowbook.graph.ops.sparse.sets import difference, intersection, size, union

__all__ = [
    "difference",
    "intersection",
    "size",
    "union",
]

__getattr__ = no_such_name_in(__name__)
