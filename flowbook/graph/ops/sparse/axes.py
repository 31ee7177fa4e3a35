"""The axes of sparse tensors whose rank only the run knows."""

from __future__ import annotations

import numpy as np

from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexing_nd import scatter_nd
from flowbook.graph.ops.basis.shaping import shape_op
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.math.comparison import equal


def dims_beside(x: SparseTensor, axes: tuple[int, ...]) -> Tensor:
    """For each dimension, whether it is none of the axes; those out of range fail in the run."""
    rank = shape_op(x.dense_shape)
    given = np.array(axes, np.int32)
    from_first = rank * (given < 0).astype(np.int32) + given
    named = scatter_nd(from_first[:, None], np.ones(len(axes), np.int32), rank)
    return equal(named, 0)
