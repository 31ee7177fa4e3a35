"""The derivatives of products over axes, of any order, without divisions: zeros do no harm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.graph.definition.axes import all_in_range
from flowbook.graph.definition.inference import same_as_input
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import INEXACT
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.reduction.infinitesimals import Number, gradients_along, moved, product

Axes = tuple[int, ...] | None


def _flops_of_input(op: Operation) -> int:
    return op.inputs[0].shape.size or 0


def _over_last_axis(xp: Any, function: Callable[..., Any], axis: Axes, *arrays: Any) -> Any:
    """Call a function with the reduced axes as one last axis, and put its result's axes back."""
    shape = arrays[0].shape
    gone = all_in_range(axis, len(shape))
    order = [i for i in range(len(shape)) if i not in gone] + list(gone)
    turned = [xp.transpose(a, order) for a in arrays]
    kept = len(order) - len(gone)
    length = 1
    for d in turned[0].shape[kept:]:
        length *= d
    rows = [xp.reshape(t, (*t.shape[:kept], length)) for t in turned]
    result = xp.reshape(function(*rows), turned[0].shape)
    return xp.transpose(result, sorted(range(len(order)), key=order.__getitem__))


def _product_of_others(xp: Any, x: Any, axis: Axes) -> Any:
    def products(rows: Any) -> Any:
        before, after = xp.ones_like(rows), xp.ones_like(rows)
        if rows.shape[-1] > 1:
            xp.cumprod(rows[..., :-1], axis=-1, out=before[..., 1:])
            after[..., :-1] = xp.cumprod(rows[..., :0:-1], axis=-1)[..., ::-1]
        return before * after

    return _over_last_axis(xp, products, axis, x)


def _grad(op: Operation, dy: Tensor) -> Tensor:
    return product_of_others_gradient(conjugate(op.inputs[0]), [dy], axis=op.attributes["axis"])


product_of_others = OpDef(
    "ProductOfOthers",
    "x: T -> y: T",
    T=INEXACT,
    attributes={"axis": None},
    infer=same_as_input,
    kernel=_product_of_others,
    grad=_grad,
    axes="axis",
    cost=lambda op: 3 * _flops_of_input(op),
    doc="""For each element the product of all others along the axes: the gradient of `reduce_prod`.

    It does not divide, so zeros do no harm.
    """,
)


def _products_before(xp: Any, factors: Number) -> Number:
    """For each place along the last axis the product of the factors before it."""
    ones = xp.ones_like(factors[0][..., :1])
    edges = [ones, *[xp.zeros_like(ones)] * (len(factors) - 1)]
    found = [
        xp.concatenate([edge, f[..., :-1]], axis=-1) for edge, f in zip(edges, factors, strict=True)
    ]
    reach, length = 1, found[0].shape[-1]
    while reach < length:  # Each round doubles how many factors a product spans.
        longer = product([f[..., :-reach] for f in found], [f[..., reach:] for f in found])
        found = [
            xp.concatenate([f[..., :reach], more], axis=-1)
            for f, more in zip(found, longer, strict=True)
        ]
        reach *= 2
    return found


def _gradient(xp: Any, x: Any, *directions: Any, axis: Axes) -> Any:
    def derivative(*rows: Any) -> Any:
        factors = moved(xp, rows[0], rows[1:])
        before = _products_before(xp, factors)
        after = _products_before(xp, [f[..., ::-1] for f in factors])
        return product(before, [f[..., ::-1] for f in after])[-1]

    if not x.size:
        return xp.zeros_like(x)
    return _over_last_axis(xp, derivative, axis, x, *directions)


def _grads(op: Operation, dy: Tensor) -> list[Tensor]:
    x, *directions = (conjugate(t) for t in op.inputs)

    def along(chosen: list[Tensor]) -> Tensor:
        return product_of_others_gradient(x, chosen, axis=op.attributes["axis"])

    return gradients_along(along, directions, dy)


def _same_as_first(x: Tensor, directions: list[Tensor], axis: Axes) -> Shape:
    return x.shape


product_of_others_gradient: OpDef = OpDef(
    "ProductOfOthersGrad",
    "x: T, directions: N*T -> dx: T",
    T=INEXACT,
    attributes={"axis": None},
    infer=_same_as_first,
    kernel=_gradient,
    grad=_grads,
    axes="axis",
    cost=lambda op: 4 * 3 ** (len(op.inputs) - 1) * _flops_of_input(op),
)
