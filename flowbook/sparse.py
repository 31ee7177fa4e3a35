"""Sparse tensors: made, converted, arranged anew, computed with."""

from flowbook._renamed import no_such_name_in
from flowbook.graph.ops.sparse.arithmetic import (
    add,
    maximum,
    minimum,
    reduce_max,
    reduce_sum,
    softmax,
)
from flowbook.graph.ops.sparse.arranging import expand_dims, reorder, reshape, transpose
from flowbook.graph.ops.sparse.conversion import eye, from_dense, to_dense, to_indicator
from flowbook.graph.ops.sparse.conversion import sparse_placeholder as placeholder
from flowbook.graph.ops.sparse.mapping import map_values
from flowbook.graph.ops.sparse.parts import concat, slice, split
from flowbook.graph.ops.sparse.products import sparse_dense_matmul
from flowbook.graph.ops.sparse.reductions import reduce_max_sparse, reduce_sum_sparse
from flowbook.graph.ops.sparse.selecting import fill_empty_rows, mask, reset_shape, retain

__all__ = [
    "add",
    "concat",
    "expand_dims",
    "eye",
    "fill_empty_rows",
    "from_dense",
    "map_values",
    "mask",
    "maximum",
    "minimum",
    "placeholder",
    "reduce_max",
    "reduce_max_sparse",
    "reduce_sum",
    "reduce_sum_sparse",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "slice",
    "softmax",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "to_indicator",
    "transpose",
]

__getattr__ = no_such_name_in(__name__)
