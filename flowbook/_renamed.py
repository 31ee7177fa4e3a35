"""Names of TensorFlow 1 that are spelt differently here: using one says what to write instead."""

from __future__ import annotations

import difflib
import sys
from typing import NoReturn

_INSTEAD = {
    "ConfigProto": "arguments of fb.Session",
    "GraphDef": "graph.to_bytes() and fb.Graph.from_bytes(data)",
    "InteractiveSession": "fb.Session(), and sess.run(tensor) for a value",
    "RegisterGradient": "fb.OpDef(..., grad=function)",
    "TensorShape": "fb.Shape",
    "accumulate_n": "fb.add_n",
    "all_variables": "fb.get_default_graph().variables()",
    "arccos": "fb.acos",
    "arccosh": "fb.acosh",
    "arcsin": "fb.asin",
    "arcsinh": "fb.asinh",
    "arctan": "fb.atan",
    "arctan2": "fb.atan2",
    "arctanh": "fb.atanh",
    "arange": "fb.range",
    "assert_equal": "an assert on fetched values",
    "batch_gather": "fb.gather(params, indices, batch_dims=...)",
    "batch_matmul": "fb.matmul",
    "bitwise": "fb.bitwise_and and its like, or the operators &, |, ^, ~, << and >>",
    "complex_abs": "fb.abs",
    "div": "fb.divide, or fb.floordiv for whole numbers",
    "divide_no_nan": "fb.div_no_nan",
    "floor_div": "fb.floordiv",
    "floormod": "fb.mod",
    "fmod": "fb.truncatemod",
    "batch_to_space": "fb.batch_to_space_nd",
    "concatenate": "fb.concat",
    "flip": "fb.reverse",
    "get_collection": "graph.variables(), which is computed from the live operations",
    "get_variable": "fb.Variable; share it by passing it on",
    "global_variables": "fb.get_default_graph().variables()",
    "histogram": "fb.histogram_fixed_width",
    "initialize_all_variables": "fb.global_variables_initializer()",
    "lin_space": "fb.linspace",
    "listdiff": "fb.setdiff1d",
    "mul": "fb.multiply",
    "neg": "fb.negative",
    "nonzero": "fb.where(condition)",
    "pack": "fb.stack",
    "power": "fb.pow",
    "realdiv": "fb.divide",
    "rint": "fb.round",
    "scalar_mul": "fb.multiply",
    "std": "fb.reduce_std",
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
    "var": "fb.reduce_variance",
    "variable_scope": "fb.name_scope",
    "band_part": "fb.matrix_band_part",
    "batch_cholesky": "fb.cholesky",
    "batch_fft": "fb.fft",
    "batch_matrix_inverse": "fb.matrix_inverse",
    "batch_matrix_solve": "fb.matrix_solve",
    "batch_svd": "fb.svd",
    "det": "fb.matrix_determinant",
    "diagonal": "fb.matrix_diag_part",
    "dot": "fb.matmul, or fb.tensordot for tensors",
    "eigh": "fb.self_adjoint_eig",
    "eigvalsh": "fb.self_adjoint_eigvals",
    "expm": "fb.matrix_exponential",
    "fftn": "fb.fft2d or fb.fft3d",
    "inv": "fb.matrix_inverse",
    "irfftn": "fb.irfft2d or fb.irfft3d",
    "linalg": "the names themselves: fb.matmul, fb.cholesky, fb.svd, ...",
    "logm": "fb.matrix_logarithm",
    "lstsq": "fb.matrix_solve_ls",
    "rfftn": "fb.rfft2d or fb.rfft3d",
    "set_diag": "fb.matrix_set_diag",
    "signal": "the names themselves: fb.fft, fb.rfft, ...",
    "slogdet": "fb.log_matrix_determinant",
    "solve": "fb.matrix_solve",
    "solve_triangular": "fb.matrix_triangular_solve",
    "spectral": "the names themselves: fb.fft, fb.rfft, ...",
    "sqrtm": "fb.matrix_square_root",
    "tensor_diag": "fb.diag",
    "tensor_diag_part": "fb.diag_part",
    "triangular_solve": "fb.matrix_triangular_solve",
    "tril": "fb.matrix_band_part(x, -1, 0)",
    "triu": "fb.matrix_band_part(x, 0, -1)",
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
