"""Names of TensorFlow 1 and NumPy that are spelt differently here: using one says what to write.

For keywords of functions see `flowbook/graph/definition/keywords.py`.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType
from typing import NoReturn

from flowbook.graph.definition.keywords import explained

_INSTEAD = {
    "ConfigProto": "arguments of fb.Session, and fb.options.intra_op_threads",
    "GraphDef": "graph.save(path) and fb.Graph.load(path), or graph.to_bytes() for bytes",
    "InteractiveSession": "fb.Session(), and sess.run(tensor) for a value",
    "RegisterGradient": "fb.OpDef(..., grad=function)",
    "TensorShape": "fb.Shape",
    "accumulate_n": "fb.add_n",
    "add_check_numerics_ops": "sess.guard()",
    "all_variables": "fb.get_default_graph().variables()",
    "arccos": "fb.acos",
    "arccosh": "fb.acosh",
    "arcsin": "fb.asin",
    "arcsinh": "fb.asinh",
    "arctan": "fb.atan",
    "arctan2": "fb.atan2",
    "arctanh": "fb.atanh",
    "arange": "fb.range",
    "assert_all_finite": "fb.check_numerics(x, message)",
    "assert_proper_iterable": "isinstance(x, list | tuple)",
    "assert_same_float_dtype": "fb.assert_type, or x.dtype of each",
    "batch_gather": "fb.gather(params, indices, batch_dims=...)",
    "batch_matmul": "fb.matmul",
    "batch_scatter_update": "fb.scatter_nd_update",
    "bitwise": "fb.bitwise_and and its like, or the operators &, |, ^, ~, << and >>",
    "complex_abs": "fb.abs",
    "div": "fb.divide, or fb.floordiv for whole numbers",
    "divide_no_nan": "fb.div_no_nan",
    "floor_div": "fb.floordiv",
    "floor_mod": "fb.mod",
    "floormod": "fb.mod",
    "fmod": "fb.truncatemod",
    "batch_to_space": "fb.batch_to_space_nd",
    "concatenate": "fb.concat",
    "flip": "fb.reverse",
    "get_collection": "graph.variables(trainable=True, scope='...'), which is always up to date",
    "get_variable": "fb.Variable; share it by passing it on",
    "global_variables": "fb.get_default_graph().variables()",
    "histogram": "fb.histogram_fixed_width",
    "initialize_all_variables": "fb.global_variables_initializer()",
    "is_numeric_tensor": "x.dtype in fb.NUMBERS",
    "lin_space": "fb.linspace",
    "listdiff": "fb.setdiff1d",
    "mul": "fb.multiply",
    "multinomial": "fb.random_categorical",
    "neg": "fb.negative",
    "nonzero": "fb.where(condition)",
    "pack": "fb.stack",
    "power": "fb.pow",
    "realdiv": "fb.divide",
    "rint": "fb.round",
    "bucketize": "fb.searchsorted(boundaries, x, side='right')",
    "debugging": "the names themselves: fb.assert_equal, fb.check_numerics, ...",
    "guarantee_const": "the tensor itself",
    "reverse_v2": "fb.reverse",
    "scalar_mul": "fb.multiply",
    "as_string": "fb.strings.as_string",
    "permutation": "fb.random_permutation",
    "reduce_join": "fb.strings.reduce_join",
    "regex_replace": "fb.strings.regex_replace",
    "shuffle": "fb.random_shuffle",
    "sparse_merge": "fb.SparseTensor with the ids as the last column of its indices",
    "stateless_categorical": "fb.stateless_random_categorical",
    "stateless_gamma": "fb.stateless_random_gamma",
    "stateless_multinomial": "fb.stateless_random_categorical",
    "stateless_normal": "fb.stateless_random_normal",
    "stateless_poisson": "fb.stateless_random_poisson",
    "stateless_shuffle": "fb.stateless_random_shuffle",
    "stateless_uniform": "fb.stateless_random_uniform",
    "string_join": "fb.strings.join",
    "string_split": "fb.strings.split",
    "string_strip": "fb.strings.strip",
    "string_to_hash_bucket": "fb.strings.to_hash_bucket_fast, whose buckets are others",
    "string_to_hash_bucket_fast": "fb.strings.to_hash_bucket_fast",
    "string_to_hash_bucket_strong": "fb.strings.to_hash_bucket_strong",
    "string_to_number": "fb.strings.to_number",
    "substr": "fb.strings.substr",
    "std": "fb.reduce_std",
    "parallel_dynamic_stitch": "fb.dynamic_stitch",
    "parallel_stack": "fb.stack",
    "space_to_batch": "fb.space_to_batch_nd",
    "strided_slice": "x[begin:end:step]",
    "sparse_placeholder": "fb.sparse.placeholder",
    "sparse_tensor_dense_matmul": "fb.sparse.sparse_dense_matmul",
    "sparse_tensor_to_dense": "fb.sparse.to_dense",
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
    "batch_cholesky_solve": "fb.cholesky_solve",
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
    "AggregationMethod": "fb.gradients(ys, xs), which adds partial gradients up itself",
    "Dimension": "an int, or None where it is unknown",
    "GPUOptions": "fb.Session()",
    "GradientTape": "fb.gradients(ys, xs)",
    "GraphKeys": "graph.variables(trainable=True, scope='...'), or graph.updates(of=loss)",
    "absolute": "fb.abs",
    "add_to_collection": "a list of your own; graph.variables() and graph.updates() are computed",
    "all": "fb.reduce_all",
    "any": "fb.reduce_any",
    "app": "a plain function main()",
    "arg_max": "fb.argmax",
    "arg_min": "fb.argmin",
    "array": "fb.constant",
    "asarray": "fb.convert_to_tensor",
    "assert_variables_initialized": "fb.is_variable_initialized",
    "astype": "fb.cast",
    "clip": "fb.clip_by_value",
    "compat": "the names themselves: Flowbook's are those of TensorFlow 1",
    "contrib": "fb.layers, fb.nn and fb.train for what there is of it",
    "count_up_to": "fb.assign_add(variable, 1)",
    "custom_gradient": "fb.OpDef(..., grad=function)",
    "data": "arrays that are fed: sess.run(train, {x: batch})",
    "distributions": "fb.random_normal and its like to draw",
    "double": "fb.float64",
    "dtypes": "the names themselves: fb.float32, fb.int64, ...",
    "e": "np.e",
    "estimator": "fb.train and fb.Session",
    "flags": "Python's argparse",
    "float": "fb.float32",
    "full": "fb.fill",
    "get_default_session": "the session's own name, as in sess.run(...)",
    "get_variable_scope": "fb.name_scope",
    "gfile": "Python's open and pathlib",
    "gradient_override_map": "fb.OpDef(..., grad=function)",
    "graph_util": "fb.import_graph_def(graph, {'W/read': fb.constant(value)}) to freeze W",
    "half": "fb.float16",
    "hstack": "fb.concat(values, 1)",
    "inf": "np.inf",
    "int": "fb.int32",
    "keras": "fb.layers, fb.train and fb.Session",
    "local_variables": "fb.get_default_graph().variables()",
    "local_variables_initializer": "fb.global_variables_initializer()",
    "logging": "Python's logging",
    "make_template": "a function that is given the variables",
    "manip": "the names themselves: fb.roll, fb.reshape, fb.gather_nd, ...",
    "math": "the names themselves: fb.add, fb.log, fb.reduce_sum, ...",
    "max": "fb.reduce_max",
    "mean": "fb.reduce_mean",
    "metrics": "operations of your own, as fb.reduce_mean(fb.cast(fb.equal(a, b), fb.float32))",
    "min": "fb.reduce_min",
    "model_variables": "fb.get_default_graph().variables()",
    "moving_average_variables": "average(variable) of the fb.train.ExponentialMovingAverage",
    "nan": "np.nan",
    "ndim": "fb.rank(x), or x.shape.rank",
    "newaxis": "None, as in x[:, None]",
    "numpy_function": "fb.py_func",
    "op_scope": "fb.name_scope",
    "outer": "fb.einsum('i,j->ij', x, y)",
    "pi": "np.pi",
    "prod": "fb.reduce_prod",
    "py_function": "fb.py_func",
    "random": "the names themselves: fb.random_normal, fb.random_uniform, ...",
    "read_file": "Python's open and pathlib, and feed the bytes",
    "report_uninitialized_variables": "fb.is_variable_initialized(variable)",
    "select": "fb.where",
    "sparse_to_dense": "fb.scatter_nd(indices, values, shape)",
    "str": "fb.string",
    "sum": "fb.reduce_sum",
    "swapaxes": "fb.transpose(x, perm)",
    "take": "fb.gather",
    "to_bfloat16": "fb.cast(x, fb.bfloat16)",
    "to_complex128": "fb.cast(x, fb.complex128)",
    "to_complex64": "fb.cast(x, fb.complex64)",
    "to_double": "fb.cast(x, fb.float64)",
    "to_int64": "fb.cast(x, fb.int64)",
    "test": "pytest, and fb.gradient_error for gradients",
    "tuple": "fb.identity of each under fb.control_dependencies of all",
    "verify_tensor_all_finite": "fb.check_numerics",
    "variable_op_scope": "fb.name_scope",
    "vstack": "fb.concat(values, 0)",
    "with_dependencies": "fb.identity(x) under fb.control_dependencies(...)",
    "wrap_function": "a plain Python function that builds operations",
    "write_file": "Python's open and pathlib with what sess.run gives",
    "AUTO_REUSE": "fb.Variable; share it by passing it on",
    "NoGradient": "fb.OpDef(..., grad=fb.NO_GRADIENT)",
    "NotDifferentiable": "fb.OpDef(..., grad=fb.NO_GRADIENT)",
    "OpError": "fb.errors.OpError",
    "RunOptions": "sess.run(..., timeout=seconds)",
    "UnconnectedGradients": "fb.gradients(ys, xs, unconnected_gradients='zero')",
    "convert_to_tensor_or_indexed_slices": "fb.convert_to_tensor",
    "convert_to_tensor_or_sparse_tensor": "fb.convert_to_tensor, or fb.SparseTensor",
    "get_seed": "fb.set_random_seed(seed), and seed= of an operation",
    "initialize_variables": "fb.variables_initializer",
    "io": "the names themselves: fb.decode_raw, fb.encode_base64, ...",
    "is_tensor": "isinstance(x, fb.Tensor)",
    "no_regularizer": "no regularizer at all",
    "uniform_unit_scaling_initializer": "fb.initializers.variance_scaling(distribution='uniform')",
    "where_v2": "fb.where",
    "dimension_at_index": "x.shape[axis]",
    "dimension_value": "x.shape[axis], an int or None",
    "disable_eager_execution": "graphs and sessions, which are all there is",
    "disable_v2_behavior": "graphs and sessions, which are all there is",
    "disable_v2_tensorshape": "x.shape[axis], an int or None",
    "enable_eager_execution": "fb.Session(): what is built in a cell runs in the next",
    "enable_resource_variables": "fb.Variable, which is a resource already",
    "enable_v2_behavior": "fb.Session(): what is built in a cell runs in the next",
    "executing_eagerly": "False: nothing runs but in sess.run(...)",
    "get_local_variable": "fb.Variable; share it by passing it on",
    "get_logger": "Python's logging",
    "get_static_value": "sess.run(tensor)",
    "initialize_local_variables": "fb.global_variables_initializer()",
    "make_ndarray": "fb.import_graph_def, after which sess.run(tensor) gives arrays",
    "make_tensor_proto": "fb.constant",
    "no_gradient": "fb.OpDef(..., grad=fb.NO_GRADIENT)",
    "required_space_to_batch_paddings": "the dilations of fb.nn.convolution and fb.nn.pool",
    "sparse_matmul": "fb.matmul",
    "timestamp": "fb.py_func(time.time, [], fb.float64)",
    "nest": "nested lists, tuples and dicts: sess.run takes them as they are",
    "raw_ops": "the names themselves, as everywhere",
}

# The same in the namespaces.
_INSTEAD_IN: dict[str, dict[str, str]] = {
    "image": {
        "random_crop": "fb.random_crop(image, size)",
        "resize": "fb.image.resize_images",
        "transpose": "fb.image.transpose_image",
        "resize_with_crop_or_pad": "fb.image.resize_image_with_crop_or_pad",
        "resize_with_pad": "fb.image.resize_image_with_pad",
        "extract_patches": "fb.extract_image_patches",
    },
    "initializers": {
        "he_initializer": "fb.initializers.he_normal",
        "xavier": "fb.initializers.glorot_uniform",
        "xavier_initializer": "fb.initializers.glorot_uniform",
    },
    "layers": {
        "Conv2D": "fb.layers.conv2d, a function",
        "Dense": "fb.layers.dense, a function",
        "Dropout": "fb.layers.dropout, a function",
        "Flatten": "fb.layers.flatten, a function",
        "batch_norm": "fb.layers.batch_normalization",
        "fully_connected": "fb.layers.dense",
        "layer_norm": "fb.layers.layer_normalization",
    },
    "losses": {
        "add_loss": "a loss that you add to the others yourself",
        "get_losses": "a list of your own",
        "get_regularization_loss": "fb.layers.regularization_loss(loss)",
        "get_regularization_losses": "fb.layers.regularization_loss(loss)",
        "get_total_loss": "loss + fb.layers.regularization_loss(loss)",
    },
    "nn": {
        "BasicLSTMCell": "fb.nn.lstm_cell, a function of the step, the state and the weights",
        "BasicRNNCell": "fb.nn.rnn_cell, a function of the step, the state and the weights",
        "DropoutWrapper": "fb.nn.dropout on what goes into a cell or comes out of it",
        "GRUCell": "fb.nn.gru_cell, a function of the step, the state and the weights",
        "LSTMCell": "fb.nn.lstm_cell, a function of the step, the state and the weights",
        "MultiRNNCell": "fb.nn.static_rnn on the outputs of fb.nn.static_rnn",
        "avg_pool2d": "fb.nn.avg_pool",
        "avg_pool_v2": "fb.nn.avg_pool",
        "conv_transpose": "fb.nn.conv2d_transpose, or that for 1 or 3 dimensions",
        "batch_norm_with_global_normalization": "fb.nn.batch_normalization",
        "bidirectional_dynamic_rnn": "fb.layers.lstm on x and fb.reverse_sequence(x, lengths, 1)",
        "depthwise_conv2d_native": "fb.nn.depthwise_conv2d",
        "dynamic_rnn": "fb.layers.lstm or fb.layers.gru, or fb.nn.static_rnn",
        "lrn": "fb.nn.local_response_normalization",
        "max_pool2d": "fb.nn.max_pool",
        "max_pool_v2": "fb.nn.max_pool",
        "raw_rnn": "fb.nn.static_rnn",
        "with_space_to_batch": "the dilations of fb.nn.convolution and fb.nn.pool",
        "relu_layer": "fb.nn.relu(x @ weights + biases)",
        "silu": "fb.nn.swish",
        "softmax_cross_entropy_with_logits_v2": "fb.nn.softmax_cross_entropy_with_logits",
        "static_bidirectional_rnn": "fb.nn.static_rnn on the inputs and on the reversed inputs",
        "xw_plus_b": "x @ weights + biases",
        "conv3d_backprop_filter": "fb.gradients(y, filters, grad_ys)",
        "conv3d_backprop_filter_v2": "fb.gradients(y, filters, grad_ys)",
        "ctc_beam_search_decoder_v2": "fb.nn.ctc_beam_search_decoder",
        "ctc_loss_v2": "fb.nn.ctc_loss",
        "depthwise_conv2d_backprop_filter": "fb.gradients(y, filters, grad_ys)",
        "depthwise_conv2d_backprop_input": "fb.gradients(y, x, grad_ys)",
        "depthwise_conv2d_native_backprop_filter": "fb.gradients(y, filters, grad_ys)",
        "depthwise_conv2d_native_backprop_input": "fb.gradients(y, x, grad_ys)",
        "space_to_batch": "fb.space_to_batch_nd",
        "scale_regularization_loss": "a division by the number of replicas",
    },
    "sparse": {
        "matmul": "fb.sparse.sparse_dense_matmul",
        "merge": "fb.SparseTensor with the ids as the last column of its indices",
        "sparse_tensor_dense_matmul": "fb.sparse.sparse_dense_matmul",
        "segment_sqrt_n": "fb.sparse_segment_sqrt_n",
    },
    "signal": {
        "fftnd": "fb.fft, fb.fft2d or fb.fft3d",
        "kaiser_window": "fb.constant(numpy.kaiser(length, beta))",
    },
    "strings": {
        "to_hash_bucket": "fb.strings.to_hash_bucket_fast, whose buckets are others",
    },
    "summary": {
        "EventFileWriter": "sess.summarize(to=path)",
        "FileWriter": "sess.summarize(to=path)",
        "SummaryWriter": "sess.summarize(to=path)",
        "create_file_writer": "sess.summarize(to=path)",
        "merge": "sess.summarize(), which takes all summaries that a run can give",
        "merge_all": "sess.summarize(), which takes all summaries that a run can give",
    },
    "train": {
        "Checkpoint": "sess.run(variables) for the values, and fb.assign to put them back",
        "MonitoredTrainingSession": "fb.Session",
        "Saver": "sess.run(variables) for the values, and fb.assign to put them back",
        "SummarySaverHook": "sess.summarize(every=n, to=path)",
        "create_global_step": "fb.train.get_or_create_global_step",
        "get_global_step": "fb.train.get_or_create_global_step",
        "piecewise_constant_decay": "fb.train.piecewise_constant",
        "export_meta_graph": "graph.save(path)",
        "import_meta_graph": "fb.import_graph_def",
        "write_graph": "graph.save(path)",
    },
}

# A namespace in front of or behind what it holds, as TensorFlow 1 spells the name outside of it.
_SPELT = {
    "image": ("image_{}",),
    "initializers": ("{}_initializer",),
    "layers": (),
    "losses": (),
    "nn": (),
    "regularizers": ("{}_regularizer",),
    "sets": ("set_{}",),
    "signal": (),
    "sparse": ("sparse_{}", "sparse_tensor_{}"),
    "strings": ("string_{}",),
    "summary": ("{}_summary",),
    "train": (),
}


def no_such_name(name: str) -> NoReturn:
    """Raise the AttributeError for a name that `flowbook` does not have."""
    _no_such_name("", _INSTEAD, name)


def no_such_name_in(module: str) -> Callable[[str], NoReturn]:
    """The `__getattr__` of one of flowbook's namespaces.

    Args:
        module: its `__name__`.
    """
    namespace = module.rpartition(".")[2]
    return partial(_no_such_name, namespace, _INSTEAD_IN.get(namespace, {}))


def _no_such_name(namespace: str, table: Mapping[str, str], name: str) -> NoReturn:
    where = f"flowbook.{namespace}" if namespace else "flowbook"
    instead = table.get(name)
    if instead is None and not name.startswith("_"):
        instead = " or ".join(_elsewhere(name)) or None
    if instead is not None:
        raise AttributeError(f"{where} has no {name}: use {instead}")
    close = difflib.get_close_matches(name, sys.modules[where].__all__, 3)
    raise AttributeError(
        f"module {where!r} has no attribute {name!r}"
        + (f": did you mean {' or '.join(close)}?" if close else "")
    )


def explain_keywords() -> None:
    """Have what flowbook names say what to write for a keyword that it does not take.

    Flowbook's own modules call what they imported of each other as it is.
    """
    for namespace in ("", *_SPELT):
        module = sys.modules[f"flowbook.{namespace}" if namespace else "flowbook"]
        for name in module.__all__:
            member = getattr(module, name)
            if isinstance(member, FunctionType):
                found = explained(member)
                setattr(module, name, found)
                # The module that defines it is where pickle looks for it.
                setattr(sys.modules[member.__module__], member.__name__, found)
            elif isinstance(member, type) and "__init__" in vars(member):
                member.__init__ = explained(member.__init__)  # type: ignore[misc]


def _elsewhere(name: str) -> list[str]:
    """Where flowbook has a name that was looked for in another place."""
    found = [f"fb.{name}"] if name in sys.modules["flowbook"].__all__ else []
    for namespace, spelt in _SPELT.items():
        own = sys.modules[f"flowbook.{namespace}"].__all__
        found += [f"fb.{namespace}.{n}" for n in own if name in (n, *(s.format(n) for s in spelt))]
    return found
