"""Sets along the last dimension of tensors: their sizes, and what is in both or in either."""

from flowbook.graph.ops.sparse.sets import *
