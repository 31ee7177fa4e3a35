"""Names of TensorFlow 1 that are spelt differently here: using one says what to write instead."""

from __future__ import annotations

import difflib
import sys
from typing import NoReturn

_INSTEAD = {
    "ConfigProto": "arguments of fb.Session",
    "GraphDef": "graph.save(path) and fb.Graph.load(path), or graph.to_bytes() for bytes",
    "InteractiveSession": "fb.Session(), and sess.run(tensor) for a value",
    "RegisterGradient": "fb.OpDef(..., grad=function)",
    "TensorShape": "fb.Shape",
    "all_variables": "fb.get_default_graph().variables()",
    "arange": "fb.range",
    "assert_equal": "an assert on fetched values",
    "batch_gather": "fb.gather(params, indices, batch_dims=...)",
    "batch_matmul": "fb.matmul",
    "batch_to_space": "fb.batch_to_space_nd",
    "concatenate": "fb.concat",
    "flip": "fb.reverse",
    "get_collection": "graph.variables(), which is computed from the live operations",
    "get_variable": "fb.Variable; share it by passing it on",
    "global_variables": "fb.get_default_graph().variables()",
    "initialize_all_variables": "fb.global_variables_initializer()",
    "lin_space": "fb.linspace",
    "listdiff": "fb.setdiff1d",
    "mul": "fb.multiply",
    "neg": "fb.negative",
    "nonzero": "fb.where(condition)",
    "pack": "fb.stack",
    "sparse_placeholder": "fb.sparse.placeholder",
    "sparse_tensor_dense_matmul": "fb.sparse.sparse_dense_matmul",
    "sparse_tensor_to_dense": "fb.sparse.to_dense",
    "parallel_dynamic_stitch": "fb.dynamic_stitch",
    "parallel_stack": "fb.stack",
    "space_to_batch": "fb.space_to_batch_nd",
    "strided_slice": "x[begin:end:step]",
    "sub": "fb.subtract",
    "tensor_scatter_add": "fb.tensor_scatter_nd_add",
    "tensor_scatter_sub": "fb.tensor_scatter_nd_sub",
    "tensor_scatter_update": "fb.tensor_scatter_nd_update",
    "to_float": "fb.cast(x, fb.float32)",
    "to_int32": "fb.cast(x, fb.int32)",
    "top_k": "fb.nn.top_k",
    "trainable_variables": "fb.get_default_graph().variables(trainable=True)",
    "truediv": "fb.divide",
    "unpack": "fb.unstack",
    "variable_scope": "fb.name_scope",
}


def no_such_name(name: str) -> NoReturn:
    """Raise the AttributeError for a name that `flowbook` does not have."""
    instead = _INSTEAD.get(name)
    if instead is None:
        close = difflib.get_close_matches(name, sys.modules["flowbook"].__all__, 3)
        raise AttributeError(
            f"module 'flowbook' has no attribute {name!r}"
            + (f": did you mean {' or '.join(close)}?" if close else "")
        )
    raise AttributeError(f"flowbook has no {name}: use {instead}")
