"""Rules for writing reductions, running sums, and products of matrices."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model import dtypes
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.transfer.equations import tensordot_equation
from flowbook.graph.transfer.refusals import rank_of
from flowbook.tensorflow.writer import Writer
from flowbook.tensorflow.written.arrays import sum_to_shape
from flowbook.tensorflow.written.elementwise import number
from flowbook.tensorflow.written.types import Rules, same


def axes_of(w: Writer, op: Operation, x: str, axes: Any) -> str:
    """The axes of a reduction as an output: all of them for None."""
    if axes is not None:
        return w.integers([axes] if isinstance(axes, int) else list(axes))
    if op.inputs[0].shape.rank is not None:
        return w.integers(list(range(op.inputs[0].shape.rank)))
    rank = w.node("Rank", [x], T=op.inputs[0].dtype)
    return w.node("Range", [w.integers(0), rank, w.integers(1)], Tidx=dtypes.int32)


def _given(type: str, op: Operation, keepdims: bool, kind: Any = dtypes.int32) -> dict[str, Any]:
    typed = {} if type in ("All", "Any") else {"T": op.inputs[0].dtype}
    return {"keep_dims": keepdims, "Tidx": kind, **typed}


def reduced(w: Writer, op: Operation, type: str, x: str, axes: str, keepdims: bool) -> str:
    """A reduction on the way."""
    return w.node(type, [x, axes], **_given(type, op, keepdims))


def _reduction(type: str) -> Any:
    def rule(w: Writer, op: Operation, x: str) -> Any:
        axes = axes_of(w, op, x, op.attributes["axis"])
        return w.last(type, [x, axes], **_given(type, op, op.attributes["keepdims"]))

    return rule


def _reduction_at(type: str) -> Any:
    def rule(w: Writer, op: Operation, x: str, axes: str) -> Any:
        given = _given(type, op, op.attributes["keepdims"], op.inputs[1].dtype)
        return w.last(type, [x, axes], **given)

    return rule


def _spread(w: Writer, op: Operation, x: str, axes: str) -> tuple[str, str]:
    """The mean along axes, and the squares of the distances from it."""
    mean = reduced(w, op, "Mean", x, axes, True)
    return mean, w.node("SquaredDifference", [x, mean], T=op.inputs[0].dtype)


def _variance(w: Writer, op: Operation, x: str) -> Any:
    axes = axes_of(w, op, x, op.attributes["axis"])
    _, squares = _spread(w, op, x, axes)
    return w.last("Mean", [squares, axes], **_given("Mean", op, op.attributes["keepdims"]))


def _deviation(w: Writer, op: Operation, x: str) -> Any:
    axes = axes_of(w, op, x, op.attributes["axis"])
    _, squares = _spread(w, op, x, axes)
    found = reduced(w, op, "Mean", squares, axes, op.attributes["keepdims"])
    return w.last("Sqrt", [found], T=op.inputs[0].dtype)


def _moments(w: Writer, op: Operation, x: str) -> Any:
    axes = axes_of(w, op, x, op.attributes["axes"])
    mean, squares = _spread(w, op, x, axes)
    return w.several([mean, reduced(w, op, "Mean", squares, axes, True)])


def _normalize(w: Writer, op: Operation, x: str, scale: str, offset: str) -> Any:
    dtype = op.inputs[0].dtype
    axes = axes_of(w, op, x, op.attributes["axes"])
    mean, squares = _spread(w, op, x, axes)
    variance = reduced(w, op, "Mean", squares, axes, True)
    total = w.node("AddV2", [variance, number(w, op, op.attributes["epsilon"])], T=dtype)
    factor = w.node("Mul", [w.node("Rsqrt", [total], T=dtype), scale], T=dtype)
    scaled = w.node("Mul", [w.node("Sub", [x, mean], T=dtype), factor], T=dtype)
    return w.several([w.node("AddV2", [scaled, offset], T=dtype), mean, variance])


def _normalize_gradient(w: Writer, op: Operation, *inputs: str) -> Any:
    dtype = op.inputs[0].dtype
    x, scale, mean, variance, dy, dmean, dvariance = inputs
    axes = axes_of(w, op, x, op.attributes["axes"])

    def of(type: str, *taken: str) -> str:
        return w.node(type, taken, T=dtype)

    def average(value: str) -> str:
        return reduced(w, op, "Mean", value, axes, True)

    spread = of("Rsqrt", of("AddV2", variance, number(w, op, op.attributes["epsilon"])))
    centred = of("Sub", x, mean)
    unit, scaled = of("Mul", centred, spread), of("Mul", dy, scale)
    along = of("Mul", unit, average(of("Mul", scaled, unit)))
    through = of("Mul", spread, of("Sub", of("Sub", scaled, average(scaled)), along))
    # What else depends on the moments: each element has its share in them.
    twice = of("Mul", of("Mul", centred, number(w, op, 2)), dvariance)
    sizes = [w.node("Size", [value], T=dtype) for value in (x, mean)]
    count, groups = (w.node("Cast", [n], SrcT=dtypes.int32, DstT=dtype) for n in sizes)
    share = of("RealDiv", of("Mul", of("AddV2", twice, dmean), groups), count)
    dims = w.node("Shape", [scale], T=dtype)
    sums = [sum_to_shape(w, value, dims, dtype) for value in (of("Mul", dy, unit), dy)]
    return w.several([of("AddV2", through, share), *sums])


def _log_sum_exp(w: Writer, op: Operation, x: str) -> Any:
    dtype, keepdims = op.inputs[0].dtype, op.attributes["keepdims"]
    axes = axes_of(w, op, x, op.attributes["axis"])
    top = w.node("StopGradient", [reduced(w, op, "Max", x, axes, True)], T=dtype)
    finite = w.node("IsFinite", [top], T=dtype)
    top = w.node("SelectV2", [finite, top, w.node("ZerosLike", [top], T=dtype)], T=dtype)
    parts = w.node("Exp", [w.node("Sub", [x, top], T=dtype)], T=dtype)
    log = w.node("Log", [reduced(w, op, "Sum", parts, axes, keepdims)], T=dtype)
    kept = top if keepdims else reduced(w, op, "Sum", top, axes, False)
    return w.last("AddV2", [log, kept], T=dtype)


def _place(type: str) -> Any:
    def rule(w: Writer, op: Operation, x: str) -> Any:
        given = {"T": op.inputs[0].dtype, "output_type": op.outputs[0].dtype}
        axis = w.integers(op.attributes["axis"])
        return w.last(type, [x, axis], Tidx=dtypes.int32, **given)

    return rule


def _scan(type: str) -> Any:
    def rule(w: Writer, op: Operation, x: str) -> Any:
        given = {k: op.attributes[k] for k in ("exclusive", "reverse")}
        axis = w.integers(op.attributes["axis"])
        return w.last(type, [x, axis], T=op.inputs[0].dtype, Tidx=dtypes.int32, **given)

    return rule


def _matmul(w: Writer, op: Operation, a: str, b: str) -> Any:
    dtype = op.inputs[0].dtype
    turned = [op.attributes["transpose_a"], op.attributes["transpose_b"]]
    if all(t.shape.rank == 2 for t in op.inputs):
        given = dict(zip(("transpose_a", "transpose_b"), turned, strict=True))
        return w.last("MatMul", [a, b], T=dtype, **given)
    if any(turned) and dtype.is_complex:
        raise UnimplementedError("a product of many transposed complex matrices")
    return w.last("BatchMatMulV2", [a, b], T=dtype, adj_x=turned[0], adj_y=turned[1])


def _einsum(w: Writer, op: Operation, *inputs: str) -> Any:
    if op.attributes["sums_rest"]:
        raise UnimplementedError("an einsum that sums its rest")
    if len(inputs) > 2:
        raise UnimplementedError(f"an einsum of {len(inputs)} arrays: TensorFlow's takes two")
    given = {"equation": op.attributes["equation"], "N": len(inputs), "T": op.inputs[0].dtype}
    return w.last("Einsum", inputs, **given)


def _tensordot(w: Writer, op: Operation, a: str, b: str) -> Any:
    equation = tensordot_equation([rank_of(t) for t in op.inputs], op.attributes["axes"])
    return w.last("Einsum", [a, b], equation=equation, N=2, T=op.inputs[0].dtype)


def _solved(w: Writer, op: Operation, *inputs: str) -> Any:
    if len({t.shape.rank for t in op.inputs}) > 1:
        raise UnimplementedError("a system of equations for matrices of several ranks")
    return w.last("MatrixSolve", inputs, T=op.inputs[0].dtype, adjoint=op.attributes["adjoint"])


_REDUCTIONS = ("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum")
_SEGMENTS = ("Max", "Min", "Prod", "Sum")

RULES: Rules = {
    **{type: _reduction(type) for type in _REDUCTIONS},
    **{f"{type}At": _reduction_at(type) for type in _REDUCTIONS},
    **{
        f"UnsortedSegment{what}": same(
            f"UnsortedSegment{what}", dtypes={"T": 0, "Tindices": 1, "Tnumsegments": 2}
        )
        for what in _SEGMENTS
    },
    **{
        f"Segment{what}": same(f"Segment{what}", dtypes={"T": 0, "Tindices": 1})
        for what in (*_SEGMENTS, "Mean")
    },
    "ArgMax": _place("ArgMax"),
    "ArgMin": _place("ArgMin"),
    "Cumprod": _scan("Cumprod"),
    "Cumsum": _scan("Cumsum"),
    "Deviation": _deviation,
    "Einsum": _einsum,
    "LogSumExp": _log_sum_exp,
    "MatMul": _matmul,
    "MatrixInverse": same("MatrixInverse", adjoint=False),
    "MatrixSolve": _solved,
    "Moments": _moments,
    "Normalize": _normalize,
    "NormalizeGrad": _normalize_gradient,
    "TensorDot": _tensordot,
    "Variance": _variance,
}
