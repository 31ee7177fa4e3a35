"""Sparse tensors: made, converted, arranged anew, computed with."""

from flowbook.graph.ops.sparse.arithmetic import *
from flowbook.graph.ops.sparse.arranging import *
from flowbook.graph.ops.sparse.conversion import *
from flowbook.graph.ops.sparse.mapping import *
from flowbook.graph.ops.sparse.parts import *
from flowbook.graph.ops.sparse.products import sparse_dense_matmul as sparse_dense_matmul
from flowbook.graph.ops.sparse.reductions import *
from flowbook.graph.ops.sparse.selecting import *
from flowbook.graph.ops.sparse.serialising import *
