"""One row per operation type: inputs to try it on, and a reference to compare it with.

`tests/graph/ops/test_op_cases.py` makes all checks from the rows; a built-in operation type without
a row fails there. State and effects need more than values: those types have a `Scenario`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flowbook.graph import dtypes
from flowbook.graph.dtypes import DType
from flowbook.graph.ops import (
    activations,
    arithmetic,
    broadcasting,
    comparison,
    constants,
    elementwise,
    filling,
    functions,
    gathering,
    growing,
    indexing,
    joining,
    linalg,
    losses,
    products,
    reductions,
    segments,
    shaping,
)

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """How to try an operation type.

    Attributes:
        type: the operation type.
        build: builds the operation from tensors, one per input.
        inputs: an array for each; those of the signature's type variables are converted to each
            dtype in turn.
        reference: what the outputs are, computed from the inputs in float64.
        differentiable: the inputs with a gradient.
        fixed: the inputs that decide shapes, constants unless a check is about unknown ones.
        empty: inputs without elements; None where the type has no such.
        special: inputs with NaN and infinities, in float64.
        only: the dtypes to try, where not all that the signature admits have a meaning.
        twice: whether there is a second gradient.
        tolerance: a factor on the error that is allowed for a dtype.
        note: tells rows of one type apart.
    """

    type: str
    build: Callable[..., Any]
    inputs: Sequence[Any]
    reference: Callable[..., Any]
    differentiable: Sequence[int] = ()
    fixed: Sequence[int] = ()
    empty: Sequence[Any] | None = None
    special: Sequence[Any] | None = None
    only: Sequence[DType] | None = None
    twice: bool = True
    tolerance: float = 1.0
    note: str = ""

    @property
    def name(self) -> str:
        """The test's name."""
        return f"{self.type}-{self.note}" if self.note else self.type


@dataclass(frozen=True)
class Scenario:
    """A check of an operation type that a row of values cannot express."""

    type: str
    where: str = field(metadata={"about": "the test that performs it"})


def f(*values: Any) -> Array:
    """Float64 values; the tests convert them."""
    return np.array(values if len(values) > 1 else values[0], dtype=np.float64)


def i(*values: Any) -> Array:
    """Indices."""
    return np.array(values if len(values) > 1 else values[0], dtype=np.int32)


SOME = f([[0.5, -1.5, 2.0], [3.0, -0.25, 1.25]])
OTHER = f([[1.5, 2.0, -1.0], [0.75, 3.0, -2.5]])
ROW = f([2.0, -3.0, 0.5])
POSITIVE = f([[0.5, 1.5, 2.0], [3.0, 0.25, 1.25]])
ODD = f([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0])
NONE = np.zeros((0, 3))
TRUTH = np.array([[True, False, True], [False, False, True]])


def unary(
    op: Any,
    reference: Callable[..., Any],
    inputs: Array = SOME,
    *,
    smooth: bool = True,
    special: Array | None = ODD,
    **options: Any,
) -> Case:
    """An elementwise function of one argument."""
    return Case(
        op.type,
        op,
        [inputs],
        reference,
        differentiable=[0] if smooth else [],
        empty=[NONE],
        special=None if special is None else [special],
        **options,
    )


def binary(
    op: Any,
    reference: Callable[..., Any],
    x: Array = SOME,
    y: Array = ROW,
    *,
    smooth: bool = True,
    build: Any = None,
    special: Any = (ODD[:, None], ODD),
    **options: Any,
) -> Case:
    """An elementwise function of two arguments that broadcast."""
    return Case(
        op.type,
        build or op,
        [x, y],
        reference,
        differentiable=[0, 1] if smooth else [],
        empty=[NONE, y],
        special=special,
        **options,
    )


ARITHMETIC = [
    binary(arithmetic.add, np.add),
    binary(arithmetic.subtract, np.subtract, POSITIVE + 4, POSITIVE[:1]),
    binary(arithmetic.multiply, np.multiply),
    binary(arithmetic.multiply, np.multiply, SOME[:, :1], ROW, note="both-repeated"),
    binary(arithmetic.div_op, np.divide),
    binary(arithmetic.floordiv, np.floor_divide, SOME * 3, f([2.0, -3.0, 1.0]), smooth=False),
    binary(
        arithmetic.mod,
        np.mod,
        f([[5.5, -7.25, 8.0], [-5.5, 7.25, 1.0]]),
        f([2.0, -3.0, 3.0]),
    ),
    binary(
        arithmetic.pow,
        np.power,
        f([[0.5, 1.5, 2.0], [3.0, 1.0, 2.5]]),
        f([2.0, 3.0, 1.0]),
        tolerance=4,
    ),
    unary(arithmetic.negative, np.negative),
    unary(arithmetic.abs, np.abs),
    unary(arithmetic.sign, np.sign, smooth=False),
    binary(arithmetic.maximum, np.maximum),
    binary(arithmetic.minimum, np.minimum),
    Case(
        "ClipByValue",
        arithmetic.clip_by_value,
        [SOME, f(-1.0), f([1.0, 0.5, 1.5])],
        lambda x, a, b: np.minimum(np.maximum(x, a), b),
        [0, 1, 2],
        empty=[NONE, f(-1.0), f(1.0)],
        special=[ODD, f(-0.5), f(0.5)],
    ),
    binary(arithmetic.squared_difference, lambda x, y: (x - y) ** 2, SOME + 4, POSITIVE[:1]),
    Case(
        "AddN",
        lambda *xs: arithmetic.add_n(list(xs)),
        [SOME, OTHER, POSITIVE],
        lambda *xs: sum(xs),
        [0, 1, 2],
        empty=[NONE, NONE, NONE],
        special=[ODD, ODD, ODD],
    ),
    Case(
        "Conj",
        arithmetic.conj,
        [SOME + 1j * OTHER],
        np.conj,
        empty=[NONE],
    ),
]

ELEMENTWISE = [
    unary(elementwise.exp, np.exp),
    unary(elementwise.log, np.log, POSITIVE),
    unary(elementwise.log1p, np.log1p, POSITIVE),
    unary(elementwise.expm1, np.expm1),
    unary(elementwise.sqrt, np.sqrt, POSITIVE),
    unary(elementwise.rsqrt, lambda x: 1 / np.sqrt(x), POSITIVE),
    unary(elementwise.square, np.square),
    unary(elementwise.reciprocal, lambda x: 1 / x),
    unary(elementwise.sin, np.sin),
    unary(elementwise.cos, np.cos),
    unary(elementwise.tanh, np.tanh),
    unary(elementwise.sigmoid, lambda x: 0.5 * (1 + np.tanh(x / 2))),
    unary(
        elementwise.sigmoid,
        lambda x: np.exp(-np.logaddexp(0, -x)),
        f([-80.0, -20.0, 20.0, 1000.0, -1000.0]),
        only=[dtypes.float32, dtypes.float64],
        smooth=False,
        tolerance=40,
        note="far-out",
    ),
    unary(elementwise.floor, np.floor, smooth=False),
    unary(elementwise.ceil, np.ceil, smooth=False),
    unary(elementwise.round, np.round, f([0.5, 1.5, 2.5, -0.5, -1.5, 0.3, -0.7]), smooth=False),
    unary(elementwise.is_nan, np.isnan, ODD, smooth=False),
    unary(elementwise.is_inf, np.isinf, ODD, smooth=False),
    unary(elementwise.is_finite, np.isfinite, ODD, smooth=False),
    *(
        Case(
            "Cast",
            lambda x, dtype=dtype: elementwise.cast(x, dtype),
            [POSITIVE * 4],
            lambda x, dtype=dtype: (x if dtype.is_complex else np.real(x)).astype(dtype.numpy),
            [0] if dtype is dtypes.float64 else [],
            empty=[NONE],
            note=dtype.name,
        )
        for dtype in (*dtypes.NUMBERS, dtypes.bool)
    ),
]

COMPARISON = [
    *(
        binary(op, ufunc, np.round(SOME), np.round(OTHER[:1]), smooth=False)
        for op, ufunc in (
            (comparison.equal, np.equal),
            (comparison.not_equal, np.not_equal),
            (comparison.less, np.less),
            (comparison.less_equal, np.less_equal),
            (comparison.greater, np.greater),
            (comparison.greater_equal, np.greater_equal),
        )
    ),
    *(
        binary(
            op,
            lambda x, y, ufunc=ufunc: ufunc(np.int64(x), np.int64(y)),
            f([[0.0, 1.0, 6.0], [5.0, 3.0, 1.0]]),
            f([1.0, 0.0, 5.0]),
            smooth=False,
            special=None,
        )
        for op, ufunc in (
            (comparison.and_op, np.bitwise_and),
            (comparison.or_op, np.bitwise_or),
            (comparison.xor_op, np.bitwise_xor),
        )
    ),
    Case(
        "Not",
        comparison.not_op,
        [f([[0.0, 1.0, 6.0]])],
        lambda x: np.invert(np.int64(x)),
        empty=[NONE],
        only=(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    ),
    Case(
        "Not",
        comparison.logical_not,
        [TRUTH],
        np.logical_not,
        empty=[TRUTH[:0]],
        note="bool",
        only=[dtypes.bool],
    ),
    Case(
        "Where",
        comparison.where,
        [TRUTH, SOME, ROW],
        np.where,
        [1, 2],
        empty=[TRUTH[:0], NONE, ROW],
        special=[np.arange(7) % 2 == 0, ODD, -ODD],
    ),
]


def reduction(
    public: Callable[..., Any],
    type: str,
    reference: Callable[..., Any],
    inputs: Array,
    *,
    smooth: bool = True,
    empty: Array = NONE,
    special: Array | None = None,
    **options: Any,
) -> list[Case]:
    """A reduction over all axes, one, several, none, and with its axes kept."""
    return [
        Case(
            type,
            lambda x, axis=axis, keepdims=keepdims: public(x, axis, keepdims),
            [inputs],
            lambda x, axis=axis, keepdims=keepdims: reference(x, axis=axis, keepdims=keepdims),
            [0] if smooth else [],
            empty=[empty],
            special=None if special is None else [special],
            note=f"{axis}{'-kept' if keepdims else ''}",
            **options,
        )
        for axis, keepdims in (
            (None, False),
            (0, False),
            (-1, True),
            ((0, 1), False),
            ((1, -2), True),
            ((), False),
            (None, True),
        )
    ]


def _logsumexp(x: Array, axis: Any, keepdims: bool) -> Array:
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


ODD_ROWS = f([[np.nan, np.inf, 1.0], [-np.inf, np.inf, 2.0], [-np.inf, -np.inf, -np.inf]])

REDUCTIONS = [
    *reduction(reductions.reduce_sum, "Sum", np.sum, POSITIVE, special=ODD_ROWS),
    *reduction(
        reductions.reduce_mean,
        "Mean",
        lambda x, axis, keepdims: (
            np.sum(x, axis=axis, keepdims=keepdims)
            / (x.size // max(np.sum(x, axis=axis, keepdims=keepdims).size, 1))
        ),
        SOME,
        special=ODD_ROWS,
    ),
    *reduction(reductions.reduce_prod, "Prod", np.prod, POSITIVE, special=ODD_ROWS),
    *reduction(
        reductions.reduce_max,
        "Max",
        _no_elements := lambda x, axis, keepdims: np.max(
            x, axis=axis, keepdims=keepdims, initial=-np.inf
        ),
        SOME,
        special=ODD_ROWS[:1],
    ),
    *reduction(
        reductions.reduce_min,
        "Min",
        lambda x, axis, keepdims: np.min(x, axis=axis, keepdims=keepdims, initial=np.inf),
        SOME,
        special=ODD_ROWS[:1],
    ),
    *reduction(
        reductions.reduce_any, "Any", np.any, TRUTH, smooth=False, empty=np.zeros((0, 3), bool)
    ),
    *reduction(
        reductions.reduce_all, "All", np.all, TRUTH, smooth=False, empty=np.zeros((0, 3), bool)
    ),
    *reduction(
        reductions.reduce_logsumexp, "LogSumExp", _logsumexp, SOME, special=ODD_ROWS, tolerance=4
    ),
    Case(
        "Prod",
        lambda x: reductions.reduce_prod(x, 1),
        [f([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.5, 2.0, -1.0]])],
        lambda x: np.prod(x, axis=1),
        [0],
        only=[dtypes.float32, dtypes.float64],
        note="with-zeros",
    ),
    Case(
        "ProductOfOthers",
        lambda x: products.product_of_others(x, axis=(1,)),
        [f([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.5, 2.0, -1.0]])],
        lambda x: np.stack([np.prod(np.delete(x, k, 1), axis=1) for k in range(3)], 1),
        [0],
        twice=False,
        empty=[NONE],
    ),
    Case(
        "ProductOfOthersGrad",
        lambda x, dy: products.product_of_others_gradient(x, dy, axis=(1,)),
        [f([[0.0, 2.0], [1.5, -1.0]]), f([[1.0, 3.0], [0.5, 2.0]])],
        lambda x, dy: dy[:, ::-1],
        empty=[np.zeros((0, 2)), np.zeros((0, 2))],
    ),
    Case(
        "ArgMax",
        lambda x: reductions.argmax(x, 1),
        [f([[1.0, 5.0, 5.0], [7.0, 2.0, 3.0]])],
        lambda x: np.argmax(x, 1),
        empty=[NONE],
    ),
    Case(
        "ArgMin",
        lambda x: reductions.argmin(x, -1),
        [f([[4.0, 1.0, 1.0], [7.0, 2.0, 3.0]])],
        lambda x: np.argmin(x, 1),
        empty=[NONE],
    ),
    Case("ArgMax", reductions.argmax, [f([3.0, 9.0, 1.0])], np.argmax, note="vector"),
]

CUBE = np.arange(24.0).reshape(2, 3, 4)

SHAPING = [
    Case("Shape", shaping.shape, [SOME], lambda x: np.array(np.shape(x)), empty=[NONE]),
    Case(
        "Shape",
        lambda x: shaping.shape(x, dtypes.int64),
        [f(3.0)],
        lambda x: np.array([], np.int64),
        note="scalar",
    ),
    Case("Size", shaping.size, [SOME], np.size, empty=[NONE]),
    Case("Rank", shaping.rank, [SOME], np.ndim, empty=[NONE]),
    Case(
        "Reshape",
        shaping.reshape,
        [SOME, i([3, -1])],
        lambda x, shape: np.reshape(x, shape),
        [0],
        fixed=[1],
        empty=[NONE, i([3, -1])],
    ),
    Case(
        "Reshape",
        shaping.reshape,
        [f([3.0]), i([])],
        lambda x, s: np.reshape(x, ()),
        [0],
        fixed=[1],
        note="scalar",
    ),
    Case(
        "ExpandDims",
        lambda x: shaping.expand_dims(x, -2),
        [SOME],
        lambda x: np.expand_dims(x, -2),
        [0],
        empty=[NONE],
    ),
    Case(
        "ExpandDims",
        lambda x: shaping.expand_dims(x, (0, 2)),
        [f(2.0, 3.0)],
        lambda x: np.expand_dims(x, (0, 2)),
        [0],
        note="several",
    ),
    Case(
        "Squeeze", shaping.squeeze, [CUBE[:1, :, :1]], np.squeeze, [0], empty=[np.zeros((1, 0, 1))]
    ),
    Case(
        "Squeeze",
        lambda x: shaping.squeeze(x, -1),
        [CUBE[:1, :, :1]],
        lambda x: np.squeeze(x, -1),
        [0],
        note="axis",
    ),
    Case("Transpose", shaping.transpose, [CUBE], np.transpose, [0], empty=[np.zeros((2, 0))]),
    Case(
        "Transpose",
        lambda x: shaping.transpose(x, [1, -1, 0]),
        [CUBE],
        lambda x: np.transpose(x, [1, 2, 0]),
        [0],
        note="perm",
    ),
    Case(
        "BroadcastTo",
        broadcasting.broadcast_to,
        [SOME[:, :1], i([3, 2, 4])],
        np.broadcast_to,
        [0],
        fixed=[1],
        empty=[SOME[:, :1], i([0, 2, 4])],
    ),
    Case(
        "SumToShape",
        broadcasting.sum_to_shape_op,
        [CUBE % 5, i([3, 1])],
        lambda x, s: x.sum(axis=(0, 2))[:, None],
        [0],
        fixed=[1],
        empty=[np.zeros((0, 3, 4)), i([3, 1])],
    ),
]


JOINING = [
    Case(
        "Concat",
        lambda x, y: joining.concat([x, y], 1),
        [SOME, OTHER[:, :2]],
        lambda x, y: np.concatenate([x, y], 1),
        [0, 1],
        empty=[NONE, np.zeros((0, 2))],
    ),
    Case("Concat", lambda x: joining.concat([x], -1), [SOME], lambda x: x, [0], note="one"),
    Case(
        "ConcatGrad",
        lambda dy, s, t: joining.concat_gradient_op(dy, [s, t], axis=1, Tout=(dy.dtype,) * 2),
        [SOME, i([2, 1]), i([2, 2])],
        lambda dy, s, t: (dy[:, :1], dy[:, 1:]),
        [0],
        fixed=[1, 2],
        empty=[NONE, i([0, 1]), i([0, 2])],
    ),
    Case(
        "Split",
        lambda x: joining.split(x, [1, 2, 0], 1),
        [SOME],
        lambda x: (x[:, :1], x[:, 1:], x[:, 3:]),
        [0],
        empty=[NONE],
    ),
    Case(
        "Stack",
        lambda x, y: joining.stack([x, y], -1),
        [SOME, OTHER],
        lambda x, y: np.stack([x, y], -1),
        [0, 1],
        empty=[NONE, NONE],
    ),
    Case(
        "Stack",
        lambda x, y: joining.stack([x, y]),
        [f(1.0), f(2.0)],
        lambda x, y: np.stack([x, y]),
        [0, 1],
        note="scalars",
    ),
    Case(
        "Unstack",
        lambda x: joining.unstack(x, 3, 1),
        [SOME],
        lambda x: (x[:, 0], x[:, 1], x[:, 2]),
        [0],
        empty=[NONE],
    ),
    Case(
        "Tile",
        growing.tile,
        [SOME, i([2, 3])],
        np.tile,
        [0],
        fixed=[1],
        empty=[SOME, i([0, 2])],
    ),
    Case(
        "Pad",
        growing.pad,
        [SOME, i([[1, 0], [0, 2]]), f(7.0)],
        lambda x, p, v: np.vstack([np.full((1, 5), v), np.hstack([x, np.full((2, 2), v)])]),
        [0, 2],
        fixed=[1],
        empty=[np.zeros((1, 0)), i([[1, 0], [0, 5]]), f(7.0)],
    ),
]

FILLING = [
    Case(
        "Fill",
        filling.fill,
        [i([2, 3]), f(1.5)],
        np.full,
        [1],
        fixed=[0],
        empty=[i([0, 3]), f(1.5)],
    ),
    Case("ZerosLike", filling.zeros_like, [SOME], lambda x: np.zeros(x.shape), empty=[NONE]),
    Case("OnesLike", filling.ones_like, [SOME], lambda x: np.ones(x.shape), empty=[NONE]),
    Case(
        "Range",
        filling.range_op,
        [f(1.0), f(9.0), f(3.0)],
        lambda a, b, c: np.arange(a, b, c),
        fixed=[0, 1, 2],
        empty=[f(3.0), f(1.0), f(1.0)],
    ),
    Case(
        "LinSpace",
        filling.linspace,
        [f(1.0), f(9.0), i(5)],
        lambda a, b, n: np.linspace(a, b, 5),
        [0, 1],
        fixed=[2],
    ),
    Case(
        "Eye",
        lambda n, m: filling.eye(n, m, dtypes.int64),
        [i(2), i(3)],
        lambda n, m: np.eye(int(n), int(m)),
        fixed=[0, 1],
        empty=[i(0), i(3)],
    ),
]

KEY = (slice(None, None, -2), None, Ellipsis, -1)

INDEXING = [
    Case(
        "StridedSlice",
        lambda x: indexing.strided_slice(x, KEY),
        [CUBE],
        lambda x: x[::-2, None, ..., -1],
        [0],
        empty=[np.zeros((2, 0, 4))],
    ),
    Case(
        "StridedSlice",
        lambda x, a, b: indexing.strided_slice(x, (a, slice(b, None, 2))),
        [CUBE, np.int64(1), i(-2)],
        lambda x, a, b: x[1, -2::2],
        [0],
        note="tensors",
    ),
    Case(
        "StridedSlice",
        lambda x: indexing.strided_slice(x, 1),
        [f(2.0, 3.0)],
        lambda x: x[1],
        [0],
        note="element",
    ),
    Case(
        "StridedSliceGrad",
        lambda dy, s: indexing.strided_slice_gradient_op(dy, s, [], key=(("slice", 1, 3, None),)),
        [f(2.0, 3.0), i([4])],
        lambda dy, s: np.pad(dy, 1) if dy.size else dy,
        [0],
        fixed=[1],
        empty=[f(2.0, 3.0)[:0], i([0])],
    ),
    Case(
        "Slice",
        indexing.slice,
        [CUBE, i([1, 0, 2]), i([1, -1, 2])],
        lambda x, b, s: x[1:, :, 2:],
        [0],
        fixed=[1, 2],
        empty=[np.zeros((2, 0)), i([0, 0]), i([2, -1])],
    ),
    Case(
        "Gather",
        gathering.gather,
        [SOME, i([[1, 0], [1, 1]])],
        lambda x, k: x[k],
        [0],
        empty=[SOME, i([[], []])],
    ),
    Case(
        "Gather",
        lambda x, k: gathering.gather(x, k, -1),
        [SOME, i([2, 0, 2])],
        lambda x, k: x[:, [2, 0, 2]],
        [0],
        note="axis",
    ),
    Case(
        "GatherGrad",
        lambda dy, k, s: gathering.gather_gradient_op(dy, k, s, axis=1),
        [SOME, i([1, 0, 1]), i([2, 2])],
        lambda dy, k, s: np.stack([dy[:, 1], dy[:, 0] + dy[:, 2]], 1),
        [0],
        fixed=[2],
        empty=[np.zeros((2, 0)), i([]), i([2, 2])],
    ),
    Case(
        "OneHot",
        lambda k, n, a, b: gathering.one_hot(k, n, a, b, axis=0),
        [i([0, 2, 3, -1]), i(3), f(2.0), f(-1.0)],
        lambda k, n, a, b: np.where(np.arange(n)[:, None] == k, a, b),
        fixed=[1],
        empty=[i([]), i(3), f(2.0), f(-1.0)],
    ),
    Case(
        "UnsortedSegmentSum",
        segments.unsorted_segment_sum,
        [f([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]), i([2, 0, -1, 2]), i(4)],
        lambda x, k, n: np.stack([x[1], 0 * x[0], x[0] + x[3], 0 * x[0]]),
        [0],
        fixed=[2],
        empty=[np.zeros((0, 2)), i([]), i(4)],
    ),
    Case(
        "UnsortedSegmentSum",
        segments.unsorted_segment_sum,
        [SOME, i([[2, 0, -1], [2, 0, 1]]), np.int64(3)],
        lambda x, k, n: np.stack([x[0, 1] + x[1, 1], x[1, 2], x[0, 0] + x[1, 0]]),
        [0],
        fixed=[2],
        note="of-scalars",
    ),
    Case(
        "UnsortedSegmentTake",
        segments.unsorted_segment_take,
        [SOME, i([1, -1, 0])],
        lambda x, k: np.stack([x[1], 0 * x[0], x[0]]),
        [0],
        empty=[NONE, i([])],
    ),
]

SQUARE = f([[2.0, 1.0], [0.5, 3.0]])


def _matmul_case(transpose_a: bool, transpose_b: bool, **options: Any) -> Case:
    a, b = POSITIVE, POSITIVE.T[:, ::-1] * 2
    return Case(
        "MatMul",
        lambda x, y: linalg.matmul(x, y, transpose_a, transpose_b),
        [a.T if transpose_a else a, b.T if transpose_b else b],
        lambda x, y: np.matmul(x.T if transpose_a else x, y.T if transpose_b else y),
        [0, 1],
        tolerance=4,
        note=f"{transpose_a}-{transpose_b}",
        **options,
    )


LINALG = [
    _matmul_case(False, False, empty=[NONE, np.zeros((3, 2))]),
    _matmul_case(True, False, empty=[NONE, np.zeros((0, 2))]),
    _matmul_case(False, True),
    _matmul_case(True, True),
    Case(
        "MatMul",
        linalg.matmul,
        [CUBE[:, None] % 3, np.ones((2, 4, 2))],
        lambda a, b: np.matmul(a, b),
        [0, 1],
        note="batches",
        tolerance=8,
    ),
    Case(
        "MatrixInverse",
        linalg.matrix_inverse,
        [np.stack([SQUARE, SQUARE.T * 2])],
        np.linalg.inv,
        [0],
        empty=[np.zeros((0, 2, 2))],
        tolerance=16,
    ),
    Case(
        "MatrixDeterminant",
        linalg.matrix_determinant,
        [np.stack([SQUARE, SQUARE.T * 2])],
        np.linalg.det,
        [0],
        empty=[np.zeros((0, 2, 2))],
        tolerance=16,
    ),
]


def _softmax(x: Array, axis: int = -1) -> Array:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-1e9))
    return e / e.sum(axis=axis, keepdims=True)


LABELS = f([[0.2, 0.3, 0.5], [1.0, 0.0, 0.5]])


def _cross_entropy(labels: Array, logits: Array) -> Any:
    loss = -(labels * np.log(_softmax(logits))).sum(-1)
    return loss, _softmax(logits) * labels.sum(-1, keepdims=True) - labels


def _sparse_cross_entropy(labels: Array, logits: Array) -> Any:
    return _cross_entropy(np.eye(3)[np.asarray(labels, int)].reshape(logits.shape), logits)


def _in_top_k(predictions: Array, targets: Array, k: Array) -> Array:
    found = [
        np.isfinite(row).all() and sum(row > row[target]) < k
        for row, target in zip(predictions, np.asarray(targets, int), strict=True)
    ]
    return np.array(found, bool)


ACTIVATIONS = [
    unary(activations.relu, lambda x: np.maximum(x, 0)),
    Case(
        "ReluGrad",
        activations.relu_gradient,
        [OTHER, SOME],
        lambda dy, y: dy * (y > 0),
        [0],
        empty=[NONE, NONE],
    ),
    unary(activations.relu6, lambda x: np.clip(x, 0, 6), SOME * 4),
    unary(
        activations.elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), special=ODD[1:]
    ),
    unary(activations.leaky_relu_op, lambda x: np.where(x > 0, x, 0.2 * x), special=ODD),
    unary(activations.softplus, lambda x: np.logaddexp(x, 0), SOME * 10, tolerance=16),
    Case(
        "Softmax",
        activations.softmax,
        [SOME],
        _softmax,
        [0],
        empty=[NONE],
        special=[f([[1000.0, 1.0], [-np.inf, 0.0]])],
    ),
    Case(
        "Softmax",
        lambda x: activations.softmax(x, 0),
        [SOME],
        lambda x: _softmax(x, 0),
        [0],
        note="axis",
    ),
    Case(
        "LogSoftmax",
        activations.log_softmax,
        [SOME],
        lambda x: np.log(_softmax(x)),
        [0],
        empty=[NONE],
        tolerance=4,
    ),
    Case(
        "BiasAdd",
        activations.bias_add,
        [CUBE, f(1.0, 2.0, 3.0, 4.0)],
        np.add,
        [0, 1],
        empty=[NONE, ROW],
    ),
    Case(
        "SoftmaxCrossEntropyWithLogits",
        losses.cross_entropy_op,
        [LABELS, SOME],
        _cross_entropy,
        [0, 1],
        empty=[NONE, NONE],
        tolerance=8,
    ),
    Case(
        "SparseSoftmaxCrossEntropyWithLogits",
        losses.sparse_cross_entropy_op,
        [i([2, 0]), SOME],
        _sparse_cross_entropy,
        [1],
        empty=[i([]), NONE],
        tolerance=8,
    ),
    Case(
        "SparseSoftmaxCrossEntropyWithLogits",
        losses.sparse_cross_entropy_op,
        [i([[2, 0], [1, 1]]), np.stack([SOME, OTHER])],
        _sparse_cross_entropy,
        [1],
        tolerance=8,
        note="batches",
    ),
    Case(
        "SigmoidCrossEntropyWithLogits",
        losses.sigmoid_cross_entropy_op,
        [LABELS, SOME],
        lambda z, x: np.logaddexp(x, 0) - x * z,
        [0, 1],
        empty=[NONE, NONE],
        tolerance=16,
    ),
    Case("L2Loss", losses.l2_loss, [SOME], lambda x: (x * x).sum() / 2, [0], empty=[NONE]),
    Case(
        "InTopK",
        losses.in_top_k,
        [SOME, i([2, 1]), i(2)],
        _in_top_k,
        fixed=[2],
        empty=[NONE, i([]), i(2)],
        special=[f([[np.nan, 1.0], [np.inf, 1.0], [2.0, 1.0]]), i([0, 0, 0]), i(1)],
    ),
]


PASSING = [
    Case("Identity", constants.identity, [SOME], lambda x: x, [0], empty=[NONE], special=[ODD]),
    Case("StopGradient", constants.stop_gradient, [SOME], lambda x: x, empty=[NONE]),
    Case("PreventGradient", constants.prevent_gradient, [SOME], lambda x: x, empty=[NONE]),
    Case(
        "PyFuncStateless",
        lambda x: functions.py_func(lambda a: a * 2, [x], dtypes.float64, stateful=False),
        [SOME],
        lambda x: x * 2,
        only=[dtypes.float64],
    ),
]

CASES = [
    *ARITHMETIC,
    *ELEMENTWISE,
    *COMPARISON,
    *REDUCTIONS,
    *SHAPING,
    *JOINING,
    *FILLING,
    *INDEXING,
    *LINALG,
    *ACTIVATIONS,
    *PASSING,
]

SCENARIOS = [
    Scenario("Const", "tests/graph/ops/test_constants.py"),
    Scenario("Placeholder", "tests/graph/ops/test_constants.py"),
    Scenario("NoOp", "tests/graph/ops/test_constants.py"),
    *(
        Scenario(type, "tests/graph/ops/test_variables.py")
        for type in (
            "Variable",
            "ReadVariable",
            "IsInitialized",
            "Assign",
            "AssignAdd",
            "AssignSub",
            "ScatterAdd",
            "ScatterSub",
            "ScatterUpdate",
            "VariableGather",
        )
    ),
    *(
        Scenario(type, "tests/graph/ops/test_random.py")
        for type in ("RandomUniform", "RandomNormal", "RandomUniformInt")
    ),
    Scenario("PyFunc", "tests/graph/ops/test_functions.py"),
]
