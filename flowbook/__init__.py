"""Flowbook: dataflow graphs built cell by cell, run in any part, on this machine or a pool.

The public API is what the modules below name in their `__all__`; `fb.nn` holds building blocks of
neural networks, `fb.control_flow` what branches and loops are made of, `fb.lookup` look-up tables,
`fb.losses` losses, `fb.metrics` what predictions are worth, `fb.signal` frames of signals,
`fb.sparse` what sparse tensors have, `fb.summary` what charts show, `fb.train` optimizers,
`fb.errors` what can go wrong; `fb.onnx` and `fb.tensorflow` exchange models.
"""

__version__ = "0.1.0"

from flowbook import _notebook
from flowbook import control_flow as control_flow
from flowbook import image as image
from flowbook import initializers as initializers
from flowbook import layers as layers
from flowbook import lookup as lookup
from flowbook import losses as losses
from flowbook import metrics as metrics
from flowbook import nn as nn
from flowbook import onnx as onnx
from flowbook import regularizers as regularizers
from flowbook import sets as sets
from flowbook import signal as signal
from flowbook import sparse as sparse
from flowbook import strings as strings
from flowbook import summary as summary
from flowbook import tensorflow as tensorflow
from flowbook import train as train
from flowbook._public import make_public as _make_public
from flowbook.exec import stalled as _stalled
from flowbook.exec.devices.device import *
from flowbook.exec.devices.kinds import *
from flowbook.exec.engine import blas_threads as _blas_threads
from flowbook.exec.kernels import compiling as _compiling
from flowbook.exec.kernels import shared_products as _shared_products
from flowbook.exec.kernels.compiling import *
from flowbook.exec.kernels.cuda import convolutions as _gpu_windows  # noqa: F401  # Registers.
from flowbook.exec.kernels.cuda import elementwise as _gpu_functions  # noqa: F401  # Registers.
from flowbook.exec.kernels.cuda import factorisations as _gpu_factors  # noqa: F401  # Registers.
from flowbook.exec.kernels.cuda import pooling as _gpu_pools  # noqa: F401  # Registers.
from flowbook.exec.kernels.cuda import random_numbers as _gpu_numbers  # noqa: F401  # Registers.
from flowbook.exec.kernels.onednn_kernels import *
from flowbook.exec.resources.containers import *
from flowbook.exec.session.calibration import *
from flowbook.exec.session.frozen import *
from flowbook.exec.session.partial_run import *
from flowbook.exec.session.session import *
from flowbook.explain.compare import *
from flowbook.explain.forecast import *
from flowbook.explain.lint import *
from flowbook.explain.parameters import *
from flowbook.graph.building.graph import *
from flowbook.graph.building.scopes import *
from flowbook.graph.control_flow.case import *
from flowbook.graph.control_flow.cond import *
from flowbook.graph.control_flow.dependencies import tuple as tuple
from flowbook.graph.control_flow.over_elements import *
from flowbook.graph.control_flow.tensor_array import *
from flowbook.graph.control_flow.while_loop import *
from flowbook.graph.definition.async_context import *
from flowbook.graph.definition.inference import *
from flowbook.graph.definition.op_def import *
from flowbook.graph.functions.function import *
from flowbook.graph.functions.template import *
from flowbook.graph.functions.vectorized_map import *
from flowbook.graph.gradients.backward import *
from flowbook.graph.gradients.custom import *
from flowbook.graph.gradients.hessians import *
from flowbook.graph.model import errors as errors
from flowbook.graph.model.dtypes import *
from flowbook.graph.model.operation import *
from flowbook.graph.model.options import *
from flowbook.graph.model.options import act_on as _act_on
from flowbook.graph.model.registry import *
from flowbook.graph.model.shape import *
from flowbook.graph.model.tensor import *
from flowbook.graph.model.touch import *
from flowbook.graph.numerics.hot_loop import compile_with as _compile_with
from flowbook.graph.numerics.products import compute_with as _compute_with
from flowbook.graph.ops.arrays.dynamic_partition import *
from flowbook.graph.ops.arrays.gathering import *
from flowbook.graph.ops.arrays.indexed_slices import *
from flowbook.graph.ops.arrays.indexing_nd import *
from flowbook.graph.ops.arrays.masking import *
from flowbook.graph.ops.arrays.ordering import *
from flowbook.graph.ops.arrays.positions import *
from flowbook.graph.ops.arrays.repeating import *
from flowbook.graph.ops.arrays.reversing import *
from flowbook.graph.ops.arrays.scattering import *
from flowbook.graph.ops.arrays.spaces import *
from flowbook.graph.ops.arrays.uniqueness import *
from flowbook.graph.ops.basis.broadcasting import *
from flowbook.graph.ops.basis.cast import *
from flowbook.graph.ops.basis.conjugation import *
from flowbook.graph.ops.basis.constants import *
from flowbook.graph.ops.basis.filling import *
from flowbook.graph.ops.basis.joining import *
from flowbook.graph.ops.basis.padding import *
from flowbook.graph.ops.basis.permuting import *
from flowbook.graph.ops.basis.shaping import *
from flowbook.graph.ops.basis.sparse_tensor import *
from flowbook.graph.ops.checks.assertions import *
from flowbook.graph.ops.checks.checking import *
from flowbook.graph.ops.checks.shape_assertions import *
from flowbook.graph.ops.checks.uninitialized import *
from flowbook.graph.ops.linalg.decompositions import *
from flowbook.graph.ops.linalg.diagonals import *
from flowbook.graph.ops.linalg.einsum import *
from flowbook.graph.ops.linalg.least_squares import *
from flowbook.graph.ops.linalg.matrices import *
from flowbook.graph.ops.linalg.matrix_functions import *
from flowbook.graph.ops.linalg.matrix_products import *
from flowbook.graph.ops.linalg.norms import *
from flowbook.graph.ops.linalg.solving import *
from flowbook.graph.ops.linalg.spectra import *
from flowbook.graph.ops.linalg.tensordot import *
from flowbook.graph.ops.linalg.tridiagonal import *
from flowbook.graph.ops.math.arithmetic import *
from flowbook.graph.ops.math.bitwise import *
from flowbook.graph.ops.math.casting import *
from flowbook.graph.ops.math.closeness import *
from flowbook.graph.ops.math.comparison import *
from flowbook.graph.ops.math.complex import *
from flowbook.graph.ops.math.division import *
from flowbook.graph.ops.math.elementwise import *
from flowbook.graph.ops.math.incomplete_gamma import *
from flowbook.graph.ops.math.no_nan import *
from flowbook.graph.ops.math.numeric import *
from flowbook.graph.ops.math.polynomials import *
from flowbook.graph.ops.math.powers import *
from flowbook.graph.ops.math.special import *
from flowbook.graph.ops.math.trigonometry import *
from flowbook.graph.ops.nn.activations import log_sigmoid as log_sigmoid
from flowbook.graph.ops.nn.clipping import *
from flowbook.graph.ops.outside.files import *
from flowbook.graph.ops.outside.printing import *
from flowbook.graph.ops.outside.python_functions import *
from flowbook.graph.ops.queues.accumulators import *
from flowbook.graph.ops.queues.array_readers import *
from flowbook.graph.ops.queues.barrier import *
from flowbook.graph.ops.queues.mutex import *
from flowbook.graph.ops.queues.queue import *
from flowbook.graph.ops.queues.queues import *
from flowbook.graph.ops.queues.readers import *
from flowbook.graph.ops.random.distributions import *
from flowbook.graph.ops.random.orders import *
from flowbook.graph.ops.random.random_numbers import *
from flowbook.graph.ops.random.stateless_distributions import *
from flowbook.graph.ops.random.stateless_numbers import *
from flowbook.graph.ops.reduction.counting import *
from flowbook.graph.ops.reduction.monotonic import *
from flowbook.graph.ops.reduction.reductions import *
from flowbook.graph.ops.reduction.scans import *
from flowbook.graph.ops.reduction.segments import *
from flowbook.graph.ops.reduction.sorted_segments import *
from flowbook.graph.ops.reduction.statistics import *
from flowbook.graph.ops.signal.cosines import *
from flowbook.graph.ops.signal.fourier import *
from flowbook.graph.ops.sparse.products import *
from flowbook.graph.ops.state.initialising import *
from flowbook.graph.ops.state.marks import *
from flowbook.graph.ops.state.session_tensors import *
from flowbook.graph.ops.state.temporary import *
from flowbook.graph.ops.state.variables import *
from flowbook.graph.ops.state.writing import *
from flowbook.graph.ops.text.array_files import *
from flowbook.graph.ops.text.csv_records import *
from flowbook.graph.ops.text.edit_distance import *
from flowbook.graph.ops.text.examples import *
from flowbook.graph.ops.text.sequence_examples import *
from flowbook.graph.ops.text.string_numbers import decode_base64 as decode_base64
from flowbook.graph.ops.text.string_numbers import decode_raw as decode_raw
from flowbook.graph.ops.text.string_numbers import encode_base64 as encode_base64
from flowbook.graph.ops.windows.patches import *
from flowbook.graph.transfer.importing import *
from flowbook.train.gradient_error import *
from flowbook.widgets.export import *
from flowbook.widgets.graphs.graph_view import *
from flowbook.widgets.pipelines.pipeline_view import *
from flowbook.widgets.placements.placement_view import *
from flowbook.widgets.progress import *
from flowbook.widgets.summaries.summary_view import *
from flowbook.widgets.timelines.timeline_view import *

_act_on("intra_op_threads", _blas_threads.limit)
_act_on("machine_code", _compiling.choose)
_act_on("report_waits", _stalled.check_seconds)
_compile_with(_compiling.compile_behind)
_compute_with(_shared_products.multiply, _shared_products.factorise)
_make_public()
_notebook.connect()
