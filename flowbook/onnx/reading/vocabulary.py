"""The operations that translations of ONNX operators are built of."""

from flowbook import nn, sparse, strings
from flowbook.graph.control_flow.while_loop import while_loop
from flowbook.graph.model import errors
from flowbook.graph.model.dtypes import (
    INDICES,
    SMALL_FLOATS,
    bool,
    float8_e8m0fnu,
    float32,
    float64,
    int32,
    int64,
    string,
    uint8,
    uint32,
)
from flowbook.graph.ops.arrays.gathering import gather, one_hot
from flowbook.graph.ops.arrays.indexing_nd import (
    gather_nd,
    tensor_scatter_nd_add,
    tensor_scatter_nd_update,
)
from flowbook.graph.ops.arrays.masking import boolean_mask
from flowbook.graph.ops.arrays.ordering import argsort
from flowbook.graph.ops.arrays.repeating import repeat, tile
from flowbook.graph.ops.arrays.reversing import reverse, reverse_sequence
from flowbook.graph.ops.arrays.uniqueness import unique, unique_with_counts
from flowbook.graph.ops.basis.broadcasting import broadcast_dynamic_shape, broadcast_to, reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.conjugation import conj
from flowbook.graph.ops.basis.constants import constant, convert_to_tensor, identity
from flowbook.graph.ops.basis.filling import fill, ones_like, range, zeros, zeros_like
from flowbook.graph.ops.basis.joining import concat, split, stack, unstack
from flowbook.graph.ops.basis.padding import pad
from flowbook.graph.ops.basis.permuting import invert_permutation, transpose
from flowbook.graph.ops.basis.shaping import expand_dims, reshape, shape, size, squeeze
from flowbook.graph.ops.image.files import decode_op
from flowbook.graph.ops.linalg.einsum import einsum
from flowbook.graph.ops.linalg.matrix_products import matmul
from flowbook.graph.ops.linalg.norms import reduce_euclidean_norm
from flowbook.graph.ops.math.arithmetic import (
    add,
    add_n,
    divide,
    floordiv,
    maximum,
    minimum,
    mod,
    multiply,
)
from flowbook.graph.ops.math.bitwise import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    invert,
    left_shift,
    right_shift,
)
from flowbook.graph.ops.math.casting import bitcast
from flowbook.graph.ops.math.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    where,
)
from flowbook.graph.ops.math.complex import abs, complex, imag, real
from flowbook.graph.ops.math.division import truncatediv, truncatemod
from flowbook.graph.ops.math.elementwise import (
    exp,
    expm1,
    floor,
    is_inf,
    is_nan,
    log,
    round,
    rsqrt,
    sigmoid,
    sqrt,
    square,
    tanh,
)
from flowbook.graph.ops.math.no_nan import div_no_nan
from flowbook.graph.ops.math.powers import pow
from flowbook.graph.ops.math.special import erfinv
from flowbook.graph.ops.nn.clipping import clip_by_value
from flowbook.graph.ops.random.distributions import random_categorical
from flowbook.graph.ops.random.random_numbers import random_normal, random_uniform
from flowbook.graph.ops.reduction.counting import count_nonzero
from flowbook.graph.ops.reduction.reductions import (
    argmax,
    argmin,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
)
from flowbook.graph.ops.reduction.scans import cumprod, cumsum
from flowbook.graph.ops.reduction.segments import (
    unsorted_segment_max,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sum,
)
from flowbook.graph.ops.signal.fourier import fft, ifft
