"""Costs against counts by hand: floating-point operations, and the bytes of what is produced."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.registry import op_definitions, op_named
from flowbook.graph.ops.basis.constants import zeros_like_op
from flowbook.graph.ops.linalg.product_sums import sum_of_products_op
from tests.op_cases import CASES
from tests.op_checks import built


def f(*shape: int) -> fb.Tensor:
    return fb.placeholder(fb.float32, shape)


def d(*shape: int) -> fb.Tensor:
    return fb.placeholder(fb.float64, shape)


def c(*shape: int) -> fb.Tensor:
    return fb.placeholder(fb.complex64, shape)


def i(*shape: int) -> fb.Tensor:
    return fb.placeholder(fb.int32, shape)


def long(*shape: int) -> fb.Tensor:
    return fb.placeholder(fb.int64, shape)


def pixels(*shape: int) -> fb.Tensor:
    return fb.placeholder(fb.uint8, shape)


def truth(*shape: int) -> fb.Tensor:
    return fb.placeholder(fb.bool, shape)


def text(*shape: int) -> fb.Tensor:
    return fb.placeholder(fb.string, shape)


def sparse(count: int, *shape: int) -> fb.SparseTensor:
    """A sparse tensor of so many elements."""
    return fb.SparseTensor(long(count, len(shape)), f(count), np.array(shape))


def variable(*shape: int) -> fb.Variable:
    return fb.Variable(np.zeros(shape, np.float32))


def temporary(*shape: int) -> fb.Tensor:
    return fb.temporary_variable(shape, fb.float32)


BOX = {"strides": [1, 1], "padding": "VALID"}

# (type, what builds it, operations, bytes): of one operation of the type, or of all that are built.
Row = tuple[str, Callable[[], Any], int, int]
ROWS: list[Row] = [
    # Elementwise: so many for each element; the smaller operand is broadcast.
    ("Add", lambda: f(4, 3) + f(3), 12, 48),
    ("Mul", lambda: d(4, 3) * d(4, 3), 12, 96),
    ("AddN", lambda: fb.add_n([f(5), f(5), f(5)]), 2 * 5, 20),
    ("Exp", lambda: fb.exp(f(4, 3)), 10 * 12, 48),
    ("Sqrt", lambda: fb.sqrt(f(7)), 4 * 7, 28),
    ("Less", lambda: fb.less(f(4, 3), f(4, 3)), 12, 12),
    ("Where", lambda: fb.where(truth(6), f(6), f(6)), 6, 24),
    ("Cast", lambda: fb.cast(f(6), fb.float64), 6, 48),
    ("And", lambda: fb.logical_and(truth(6), truth(6)), 6, 6),
    ("BiasAdd", lambda: fb.nn.bias_add(f(5, 3), f(3)), 15, 60),
    # The largest, a difference, an exponential, a sum, a quotient.
    ("Softmax", lambda: fb.nn.softmax(f(2, 8)), 14 * 16, 64),
    ("LogSoftmax", lambda: fb.nn.log_softmax(f(2, 8)), 14 * 16, 64),
    ("Cross", lambda: fb.cross(f(5, 3), f(5, 3)), 3 * 15, 60),
    ("Complex", lambda: fb.complex(f(5), f(5)), 5, 40),
    ("Real", lambda: fb.real(c(5)), 0, 0),
    ("Lgamma", lambda: fb.lgamma(f(5)), 30 * 5, 20),
    ("CheckNumerics", lambda: fb.check_numerics(f(5), "x"), 5, 20),
    ("FloorDiv", lambda: f(5) // f(5), 2 * 5, 20),
    ("Mod", lambda: f(5) % f(5), 2 * 5, 20),
    ("TruncateMod", lambda: fb.truncatemod(f(5), f(5)), 2 * 5, 20),
    ("Range", lambda: fb.range(5), 5, 20),
    # Continued fractions, and sums over a window: about so much.
    ("Igamma", lambda: fb.igamma(f(5), f(5)), 200 * 5, 20),
    ("IgammaGradA", lambda: fb.gradients(fb.igamma(a := f(5), f(5)), a), 2000 * 5, 20),
    ("Betainc", lambda: fb.betainc(f(5), f(5), f(5)), 300 * 5, 20),
    ("Zeta", lambda: fb.zeta(f(5), f(5)), 100 * 5, 20),
    ("LRN", lambda: fb.nn.local_response_normalization(f(1, 2, 2, 5)), 20 * 20, 80),
    # Reductions: each element of the input once; variances take its distance from the mean too.
    ("Sum", lambda: fb.reduce_sum(f(4, 6), axis=1), 24, 16),
    ("Max", lambda: fb.reduce_max(f(4, 6)), 24, 4),
    ("Variance", lambda: fb.reduce_variance(f(4, 6), axis=0), 4 * 24, 24),
    # The largest, a difference, an exponential, a sum.
    ("LogSumExp", lambda: fb.reduce_logsumexp(f(4, 6), axis=1), 13 * 24, 16),
    ("EuclideanNorm", lambda: fb.reduce_euclidean_norm(f(4, 6), axis=1), 2 * 24, 16),
    ("ArgMax", lambda: fb.argmax(f(4, 6), axis=1), 24, 4 * 8),
    ("L2Loss", lambda: fb.nn.l2_loss(f(4, 6)), 2 * 24, 4),
    ("Cumsum", lambda: fb.cumsum(f(4, 6)), 24, 96),
    # Products: 2 m n k.
    ("MatMul", lambda: fb.matmul(f(3, 5), f(5, 7)), 2 * 3 * 5 * 7, 4 * 21),
    ("MatMul", lambda: fb.matmul(f(6, 5, 3), f(6, 7, 5), True, True), 6 * 2 * 3 * 5 * 7, 6 * 84),
    ("TensorDot", lambda: fb.tensordot(f(2, 3, 4), f(3, 4, 5), 2), 2 * 2 * 5 * 12, 40),
    ("Einsum", lambda: fb.einsum("bij,bjk->bik", f(6, 3, 5), f(6, 5, 7)), 6 * 210, 6 * 84),
    ("Einsum", lambda: fb.einsum("ij->i", f(3, 5)), 15, 12),
    ("Einsum", lambda: fb.einsum("ij->ji", f(3, 5)), 0, 60),
    # Three pairs of [4, 5] and [4, 6], each transposed and multiplied: 2 * 5 * 6 * 4 for each.
    (
        "SumOfProducts",
        lambda: sum_of_products_op([f(4, 5), f(4, 5), f(4, 5), f(4, 6), f(4, 6), f(4, 6)]),
        3 * 2 * 5 * 6 * 4,
        120,
    ),
    # Attention of 2 examples, 3 queries, 5 keys of 4, values of 6.
    (
        "MatMul",
        lambda: fb.nn.scaled_dot_product_attention(f(2, 3, 4), f(2, 5, 4), f(2, 5, 6)),
        2 * (2 * 3 * 5 * 4 + 2 * 3 * 6 * 5),
        4 * (2 * 3 * 5 + 2 * 3 * 6),
    ),
    # Convolutions: 2 N H W Kh Kw Cin Cout. Windows of 3 x 2 fit into 6 x 6 at 4 x 5 places.
    (
        "Convolution",
        lambda: fb.nn.conv2d(f(2, 6, 6, 3), f(3, 2, 3, 7), **BOX),
        2 * (2 * 4 * 5) * (3 * 2) * 3 * 7,
        4 * 2 * 4 * 5 * 7,
    ),
    (
        "DepthwiseConvolution",
        lambda: fb.nn.depthwise_conv2d(f(2, 6, 6, 3), f(3, 2, 3, 4), **BOX),
        2 * (2 * 4 * 5 * 12) * 3 * 2,
        4 * 2 * 4 * 5 * 12,
    ),
    # Windows: one for each element of each. [2, 3, 3, 5] windows of 2 x 2.
    ("MaxPool", lambda: fb.nn.max_pool(f(2, 6, 6, 5), 2, 2, "VALID"), 4 * 90, 360),
    ("AvgPool", lambda: fb.nn.avg_pool(f(2, 6, 6, 5), 2, 2, "VALID"), 4 * 90, 360),
    # A comparison, two for the element's place, and one for the place's choice.
    (
        "MaxPoolWithArgmax",
        lambda: fb.nn.max_pool_with_argmax(f(2, 6, 6, 5), 2, 2, "VALID")[0],
        4 * 4 * 90,
        360 + 8 * 90,
    ),
    # A sum and a comparison for each element of windows of 3 x 2: [2, 4, 5, 3] of them.
    (
        "Dilation2D",
        lambda: fb.nn.dilation2d(f(2, 6, 6, 3), f(3, 2, 3), [1, 1], [1, 1], "VALID"),
        2 * 120 * 6,
        480,
    ),
    # Normalisation. Distances from a first mean, their mean and that of their squares.
    ("Moments", lambda: fb.nn.moments(f(8, 5), [0])[0], 6 * 40, 40),
    # A mean, a difference, the mean of their squares, a root, and two for scale and offset.
    ("Normalize", lambda: fb.nn.layer_normalization(f(8, 5), f(5), f(5)), 8 * 40, 4 * (40 + 16)),
    # Sorting: each element once for each halving of its row, of 16 and of 9.
    ("Sort", lambda: fb.sort(f(3, 16)), 48 * 4, 192),
    ("Sort", lambda: fb.sort(f(9, 2), axis=0), 18 * 4, 72),
    ("TopK", lambda: fb.nn.top_k(f(3, 16), 2)[0], 48 * 4, 6 * 8),
    ("Unique", lambda: fb.unique(i(8))[0], 8 * 3, 8 * 4),
    ("SearchSorted", lambda: fb.searchsorted(f(1024), f(5)), 5 * 10, 20),
    ("NthElement", lambda: fb.nn.nth_element(f(3, 16), 2), 48 * 4, 12),
    # Transforms: 5 n log2(n); of real signals half of that.
    ("FFT", lambda: fb.fft(c(3, 64)), 3 * 5 * 64 * 6, 3 * 64 * 8),
    ("FFT2D", lambda: fb.fft2d(c(3, 4, 8)), 3 * 5 * 32 * 5, 3 * 32 * 8),
    ("FFT3D", lambda: fb.fft3d(c(3, 4, 8, 2)), 3 * 5 * 64 * 6, 3 * 64 * 8),
    ("FFT", lambda: fb.fft(c(100)), round(5 * 100 * np.log2(100)), 800),
    ("RFFT", lambda: fb.rfft(f(3, 64)), 3 * 5 * 64 * 6 // 2, 3 * 33 * 8),
    ("RFFT", lambda: fb.rfft(f(3, 60), [64]), 3 * 5 * 64 * 6 // 2, 3 * 33 * 8),
    ("IRFFT", lambda: fb.irfft(c(3, 33)), 3 * 5 * 64 * 6 // 2, 3 * 64 * 4),
    ("DCT", lambda: fb.dct(f(3, 64)), 3 * 5 * 64 * 6 // 2, 3 * 64 * 4),
    # Decompositions of n = 6: n^3 / 3, 2 n^3 / 3, 2 n^3 (Golub and Van Loan, Matrix Computations).
    ("Cholesky", lambda: fb.cholesky(d(2, 6, 6)), 2 * 216 // 3, 2 * 288),
    ("Lu", lambda: fb.lu(d(6, 6))[0], 2 * 216 // 3, 288 + 24),
    ("MatrixInverse", lambda: fb.matrix_inverse(d(6, 6)), 2 * 216, 288),
    ("MatrixDeterminant", lambda: fb.matrix_determinant(d(6, 6)), 2 * 216 // 3, 8),
    # For three columns two substitutions, each of n^2 for a column; triangles take one.
    ("MatrixSolve", lambda: fb.matrix_solve(d(6, 6), d(6, 3)), 144 + 2 * 36 * 3, 144),
    ("MatrixTriangularSolve", lambda: fb.matrix_triangular_solve(d(6, 6), d(6, 3)), 108, 144),
    ("TridiagonalSolve", lambda: fb.tridiagonal_solve(d(3, 9), d(9)), 8 * 9, 72),
    # R of [9, 6]: 2 m n^2 - 2 n^3 / 3; as much again for Q, unless Q is [9, 9].
    ("Qr", lambda: fb.qr(d(9, 6))[0], 2 * (648 - 144), 8 * (54 + 36)),
    ("Qr", lambda: fb.qr(d(6, 9))[0], (648 - 144) + (432 - 144), 8 * (36 + 54)),
    ("Qr", lambda: fb.qr(d(9, 6), True)[0], 504 + 4 * 9 * 6 * 3 + 288, 8 * (81 + 54)),
    # 14 m n^2 + 8 n^3 with vectors, 4 m n^2 - 4 n^3 / 3 without, of the longer and shorter side.
    ("Svd", lambda: fb.svd(d(9, 6))[0], 14 * 324 + 8 * 216, 8 * (6 + 54 + 36)),
    ("Svd", lambda: fb.svd(d(6, 9))[0], 14 * 324 + 8 * 216, 8 * (6 + 36 + 54)),
    ("Svd", lambda: fb.svd(d(9, 6), compute_uv=False), 4 * 324 - 288, 48),
    ("MatrixRank", lambda: fb.matrix_rank(d(9, 6)), 4 * 324 - 288, 4),
    ("MatrixPseudoInverse", lambda: fb.pinv(d(9, 6)), 14 * 324 + 8 * 216 + 2 * 324, 8 * 54),
    ("SelfAdjointEig", lambda: fb.self_adjoint_eig(d(6, 6))[0], 9 * 216, 8 * (6 + 36)),
    ("SelfAdjointEig", lambda: fb.self_adjoint_eigvals(d(6, 6)), 4 * 216 // 3, 48),
    # A Pade approximant and squarings (Higham, Functions of Matrices).
    ("MatrixExponential", lambda: fb.matrix_exponential(d(6, 6)), 30 * 216, 288),
    # By Schur's form, which takes 25 n^3; as much again for a logarithm's roots and approximant.
    ("MatrixSquareRoot", lambda: fb.matrix_square_root(d(6, 6)), 25 * 216, 288),
    ("MatrixLogarithm", lambda: fb.matrix_logarithm(c(6, 6)), 50 * 216, 288),
    # What moves data: no operations, but bytes, unless it lies where it came from.
    ("Gather", lambda: fb.gather(f(9, 4), i(5)), 0, 80),
    ("Concat", lambda: fb.concat([f(2, 3), f(4, 3)], 0), 0, 72),
    ("Pad", lambda: fb.pad(f(4), [[1, 2]]), 0, 28),
    ("Reshape", lambda: fb.reshape(f(4, 6), [24]), 0, 0),
    ("Transpose", lambda: fb.transpose(f(4, 6)), 0, 0),
    ("BroadcastTo", lambda: fb.broadcast_to(f(1, 6), [4, 6]), 0, 0),
    ("ReadVariable", lambda: variable(4).value, 0, 0),
    ("Assign", lambda: fb.assign(variable(4), f(4)), 0, 0),
    ("Const", lambda: fb.constant(np.zeros(6)), 0, 48),
    ("Fill", lambda: fb.fill([4, 6], 1.0), 0, 96),
    ("ZerosLike", lambda: zeros_like_op(f(4, 6)), 0, 96),
    ("StridedSlice", lambda: f(4, 6)[1:3], 0, 0),
    ("BooleanMask", lambda: fb.boolean_mask(f(4, 6), truth(4)), 0, 0),
    ("MatrixDiag", lambda: fb.matrix_diag(f(4)), 0, 64),
    ("MatrixTranspose", lambda: fb.matrix_transpose(f(4, 6)), 0, 0),
    ("DynamicStitch", lambda: fb.dynamic_stitch([[0, 2], [1]], [f(2, 3), f(1, 3)]), 0, 36),
    ("RandomShuffle", lambda: fb.random_shuffle(f(4, 6)), 0, 96),
    ("Repeat", lambda: fb.repeat(f(4), 3), 0, 48),
    ("ReverseSequence", lambda: fb.reverse_sequence(f(4, 6), i(4), 1), 0, 96),
    ("SparseOrder", lambda: fb.sparse.reorder(sparse(7, 3, 4)).values, 0, 7 * 8),
    ("SparseConcat", lambda: fb.sparse.concat(0, [sparse(7, 3, 4)] * 2).values, 0, 14 * 16 + 16),
    ("Bitcast", lambda: fb.bitcast(f(4, 6), fb.int32), 0, 0),
    ("SetShape", lambda: op_named("SetShape")(f(4, 6), shape=fb.Shape([4, 6])), 0, 0),
    ("EnsureShape", lambda: fb.ensure_shape(f(4, 6), [4, 6]), 0, 0),
    ("StringFormat", lambda: fb.strings.format("{}", f(4)), 0, 0),
    ("RegexReplace", lambda: fb.strings.regex_replace(text(4), "a", "b"), 0, 0),
    ("AsString", lambda: fb.strings.as_string(f(4)), 0, 0),
    ("StringLower", lambda: fb.strings.lower(text(4)), 0, 0),
    ("DecodeCSV", lambda: fb.decode_csv(text(4), [[0.0], [0.0]])[0], 0, 32),
    # Sums into places; what a write gives lies in its variable.
    ("AssignAdd", lambda: fb.assign_add(variable(4), f(4)), 4, 0),
    ("WriteTemporary", lambda: fb.assign_add(temporary(4), f(4)), 4, 16),
    ("WriteTemporary", lambda: fb.assign(temporary(4), f(4)), 0, 16),
    ("ScatterAdd", lambda: fb.scatter_add(variable(9, 4), i(5), f(5, 4)), 20, 0),
    ("ScatterUpdate", lambda: fb.scatter_update(variable(9, 4), i(5), f(5, 4)), 0, 0),
    ("ScatterNd", lambda: fb.scatter_nd(i(5, 1), f(5, 4), [9, 4]), 20, 144),
    ("UnsortedSegmentSum", lambda: fb.unsorted_segment_sum(f(5, 4), i(5), 3), 20, 48),
    ("SegmentSum", lambda: fb.segment_sum(f(5, 4), np.array([0, 0, 1, 2, 2])), 20, 48),
    ("Bincount", lambda: fb.bincount(i(20), minlength=4, maxlength=4), 20, 16),
    # Sparse: of 7 elements, with 5 columns on the other side.
    ("SparseDenseMatMul", lambda: fb.sparse.sparse_dense_matmul(sparse(7, 3, 4), f(4, 5)), 70, 60),
    ("SparseSoftmax", lambda: fb.sparse.softmax(sparse(7, 3, 4)).values, 14 * 7, 28),
    (
        "SparseSegmentCombine",
        lambda: fb.sparse_segment_sum(f(9, 4), i(5), i(5), num_segments=2),
        2 * 5 * 4,
        32,
    ),
    # Images.
    ("Resize", lambda: fb.image.resize_bilinear(f(2, 4, 4, 3), [8, 6]), 6 * 288, 4 * 288),
    (
        "Resize",
        lambda: fb.image.resize_nearest_neighbor(f(2, 4, 4, 3), [8, 6]),
        0,
        4 * 288,
    ),
    ("DrawBoundingBoxes", lambda: fb.image.draw_bounding_boxes(f(1, 5, 5, 3), f(1, 2, 4)), 75, 300),
    # Each of 3 chosen boxes is compared with 20.
    ("NonMaxSuppression", lambda: fb.image.non_max_suppression(f(20, 4), f(20), 3), 16 * 60, 0),
    (
        "NonMaxSuppressionWithScores",
        lambda: fb.image.non_max_suppression_with_scores(f(20, 4), f(20), 3)[0],
        30 * 60,
        0,
    ),
    (
        "NonMaxSuppressionWithOverlaps",
        lambda: fb.image.non_max_suppression_overlaps(f(20, 20), f(20), 3),
        4 * 60,
        0,
    ),
    (
        "CombinedNonMaxSuppression",
        lambda: fb.image.combined_non_max_suppression(f(2, 20, 1, 4), f(2, 20, 5), 3, 9)[0],
        16 * 2 * 5 * 20 * 3,
        2 * (9 * 6 * 4 + 4),
    ),
    # A hundred attempts, each with a hundred.
    (
        "SampleDistortedBoundingBox",
        lambda: fb.image.sample_distorted_bounding_box(i(3), f(1, 2, 4)).begin,
        100 * 100,
        12 + 12 + 16,
    ),
    # Files: about so much for each element, and bytes whose number is not known.
    ("EncodePng", lambda: fb.image.encode_png(pixels(4, 5, 3)), 50 * 60, 0),
    ("EncodeJpeg", lambda: fb.image.encode_jpeg(pixels(4, 5, 3)), 50 * 60, 0),
    (
        "EncodeJpegVariableQuality",
        lambda: fb.image.adjust_jpeg_quality(pixels(4, 5, 3), i()),
        50 * 60,
        0,
    ),
    ("DecodeImage", lambda: fb.image.decode_png(text()), 0, 0),
    # Losses: a softmax without its quotient, and what gives loss and gradient.
    (
        "SoftmaxCrossEntropyWithLogits",
        lambda: fb.nn.softmax_cross_entropy_with_logits(labels=f(2, 8), logits=f(2, 8)),
        18 * 16,
        8 + 64,
    ),
    (
        "SparseSoftmaxCrossEntropyWithLogits",
        lambda: fb.nn.sparse_softmax_cross_entropy_with_logits(labels=i(2), logits=f(2, 8)),
        14 * 16,
        8 + 64,
    ),
    ("InTopK", lambda: fb.nn.in_top_k(f(2, 8), i(2), 3), 16, 2),
    # Random: ten rounds of a generator for every four numbers, and what shapes their distribution.
    ("RandomUniform", lambda: fb.random_uniform([6]), 20 * 6, 24),
    ("RandomNormal", lambda: fb.random_normal([6]), 60 * 6, 24),
    # Twice as many as are kept.
    ("TruncatedNormal", lambda: fb.truncated_normal([6]), 120 * 6, 24),
    ("StatelessRandomUniform", lambda: fb.stateless_random_uniform([6], [1, 2]), 20 * 6, 24),
    ("StatelessRandomPoisson", lambda: fb.stateless_random_poisson([6], [1, 2], 3.0), 200 * 6, 24),
    ("StatelessRandomGamma", lambda: fb.stateless_random_gamma([6], [1, 2], 3.0), 300 * 6, 24),
    (
        "StatelessRandomCategorical",
        lambda: fb.stateless_random_categorical(f(2, 5), 7, [1, 2]),
        40 * 14,
        112,
    ),
    ("RandomCategorical", lambda: fb.random_categorical(f(2, 5), 7), 20 * 10 + 40 * 14, 112),
    # Four classes, and the counts to expect of them and of two true ones.
    (
        "UniformCandidateSampler",
        lambda: fb.nn.uniform_candidate_sampler(long(2, 1), 1, 4, True, 9)[0],
        60 * (4 + 2 + 4),
        4 * 8 + 2 * 4 + 4 * 4,
    ),
    ("PyFunc", lambda: fb.py_func(np.sum, [f(6)], fb.float32), 0, 0),
]

# Rows of tests/op_cases, by their names, and their operations.
COUNTED = {
    # [3, 2] windows, 2 channels, for each element of [2, 4, 5, 3].
    "ConvolutionBackpropInput-same": 2 * 120 * 3 * 2 * 2,
    "ConvolutionBackpropFilter-same": 2 * 120 * 3 * 2 * 2,
    # For each element of [2, 4, 5, 2] those of its own channel.
    "DepthwiseConvolutionBackpropInput-same": 2 * 80 * 3 * 2,
    "DepthwiseConvolutionBackpropFilter-same": 2 * 80 * 3 * 2,
    # [2, 2, 2, 2] windows of 2 x 2: a sum; or looking for the largest, choosing and summing.
    "AvgPoolGrad-halves": 16 * 4,
    "MaxPoolGrad-halves": 3 * 16 * 4,
    "MaxPoolGradGrad-halves": 3 * 16 * 4,
    "FractionalMaxPool-distinct": 2 * 2 * 5 * 6 * 2,
    "Dilation2DGrad-some": 2 * 24 * 3 * 2,
    # Sums of all that is put together.
    "GatherGrad": 6,
    "MirrorPadGrad": 5,
    "SumToShape": 24,
    "OverlapAndAdd-1": 30,
    "ExtractImagePatchesGrad": 4,
    "SparseSumInto": 4,
    "SparseMaxInto": 4,
    "EinsumDiagonal": 0,
    # [2, 4] by [3, 4].
    "TensorDotGradient-a-1": 2 * 2 * 3 * 4,
    "NormalizeGrad-batch": 12 * 48,
    "ProductOfOthers-(1,)": 3 * 9,
    "ProductOfOthersGrad-1-directions": 4 * 3 * 8,
    "SegmentProductOfOthers-0-directions": 8 * 12,
    "ResizeGrad": 6 * 48,
    # Four elements, each the product of rows of 4.
    "SparseSampledMatMul": 2 * 4 * 4,
    "SparseSegmentSpread-sum": 0,
    # A signal of 6, and one of 3, three of each.
    "RFFTGrad-6": round(3 * 5 * 6 * np.log2(6)) // 2,
    "IRFFTGrad-3": round(3 * 5 * 3 * np.log2(3)) // 2,
    # About so much for each element, as values decide.
    "CTCLoss": 100 * 48,
    "CTCLossGradAlong-1-directions": 300 * 3 * 48,
    "CTCGreedyDecoder": 2 * 63,
    "CTCBeamSearchDecoder-1-True": 10 * 100 * 63,
    "SetOperation-difference": 20 * 10,
    "SetSize": 10 * 5,
    "EditDistance": 7 * 8,
    "ComputeAccidentalHits": 20 * 10,
}


NAMES = [f"{number}-{type}" for number, (type, *_) in enumerate(ROWS)]


@pytest.mark.parametrize(("type", "build", "flops", "size"), ROWS, ids=NAMES)
def test_a_cost_is_what_a_hand_counts(
    type: str, build: Callable[[], Any], flops: int, size: int
) -> None:
    fetch = build()
    inputs = [op for op in fb.get_default_graph().operations if op.type == "Placeholder"]
    feeds = {tensor: tensor.shape for op in inputs for tensor in op.outputs}
    cost = fb.forecast(fetch, feeds).by_type()[type]
    assert (cost.flops, cost.bytes) == (flops, size)


@pytest.mark.parametrize("name", COUNTED)
def test_a_row_costs_what_a_hand_counts(name: str) -> None:
    [case] = [case for case in CASES if case.name == name]
    outputs, _ = built(case, case.inputs)
    [op] = [op for op in outputs[0].graph.operations if op.type == case.type]
    assert op.op_def.cost is not None
    assert op.op_def.cost(op) == COUNTED[name]


# What a call in an expression takes for each element, where it is more than one.
TENS = ["exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "arcsin"]
TENS += ["arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "cbrt"]
CALLS = dict.fromkeys(TENS, 10) | {
    "sqrt": 4,
    "hypot": 8,  # two squares, a sum, a root, and a scale against overflow
    "sinc": 14,  # a comparison, a selection, a product, a sine, a quotient
    "arctan2": 20,
    "logaddexp": 24,  # as softplus
    "power": 20,
    "floor_divide": 2,  # a quotient and a rounding
    "remainder": 2,
    "fmod": 2,
}
OPERATORS = {ast.Pow: "power", ast.FloorDiv: "floor_divide", ast.Mod: "remainder"}
EXPRESSIONS = [d for d in op_definitions().values() if d.expression is not None and d.is_builtin]


def flops_in(expression: str) -> int:
    """What the calls and operators in an expression take for each element."""
    # What stands there twice is computed once, and what numbers make of each other before the run.
    steps = {ast.dump(n): n for n in ast.walk(ast.parse(expression)) if has_names(n)}.values()
    return sum(flops_of(step) for step in steps)


def has_names(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Name) for inner in ast.walk(node))


def flops_of(step: ast.AST) -> int:
    """What one node of an expression takes, besides those in it."""
    match step:
        case ast.Call(func=ast.Name(id=name)):
            return CALLS.get(name, 1)
        case ast.BinOp(op=operator) | ast.UnaryOp(op=operator):
            return CALLS.get(OPERATORS.get(type(operator), ""), 1)
        case ast.Compare(ops=ops):
            return len(ops)
    return 0


@pytest.mark.parametrize(
    ("expression", "flops"),
    [
        ("exp(x) + 1", 11),
        ("add(exp(x), 1)", 11),
        ("where(-x > 0, x * y, x * y / 2)", 1 + 1 + 1 + 1 + 1),
        ("add(x, -0.5)", 1),
        ("~(x == y) & (0 < x < y)", 5),
        ("x ** 2 // y", 22),
    ],
)
def test_calls_and_operators_in_an_expression_count(expression: str, flops: int) -> None:
    assert flops_in(expression) == flops


@pytest.mark.parametrize("op_def", EXPRESSIONS, ids=lambda op_def: op_def.type)
def test_an_expression_costs_what_its_steps_do(op_def: fb.OpDef) -> None:
    assert op_def.expression is not None
    [case, *_] = [case for case in CASES if case.type == op_def.type]
    outputs, _ = built(case, case.inputs)
    [op, *_] = [op for op in outputs[0].graph.operations if op.type == op_def.type]
    assert op_def.cost is not None
    assert op_def.cost(op) == flops_in(op_def.expression.text) * op.outputs[0].shape.size


def formula(cost: Callable[..., int]) -> tuple[Any, ...]:
    """What makes a cost what it is: its code, and the factors that the code was given."""
    given = [cell.cell_contents for cell in cost.__closure__ or ()]
    return cost.__code__, *(formula(each) if callable(each) else each for each in given)


def test_every_cost_function_has_been_counted() -> None:
    builtin = [op_def for op_def in op_definitions().values() if op_def.is_builtin]
    names = {type for type, *_ in ROWS} | {case.type for case in CASES if case.name in COUNTED}
    counted = {formula(op_def.cost) for op_def in (*map(op_named, names), *EXPRESSIONS)}
    missing = [op_def.type for op_def in builtin if formula(op_def.cost) not in counted]
    assert missing == []
