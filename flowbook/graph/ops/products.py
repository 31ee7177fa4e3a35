"""The gradient of products over axes, and its gradient, without divisions: zeros do no harm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.graph.dtypes import FLOATS
from flowbook.graph.op_def import OpDef
from flowbook.graph.operation import Operation
from flowbook.graph.ops.axes import all_in_range
from flowbook.graph.ops.inference import same_as_input

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


product_of_others = OpDef(
    "ProductOfOthers",
    "x: T -> y: T",
    T=FLOATS,
    attributes={"axis": None},
    infer=same_as_input,
    kernel=_product_of_others,
    grad=lambda op, dy: product_of_others_gradient(op.inputs[0], dy, axis=op.attributes["axis"]),
    aliases={},
    cost=lambda op: 3 * _flops_of_input(op),
    doc="""For each element the product of all others along the axes: the gradient of `reduce_prod`.

    It does not divide, so zeros do no harm.
    """,
)


def _product_of_others_gradient(xp: Any, x: Any, dy: Any, axis: Axes) -> Any:
    def gradient(rows: Any, steps: Any) -> Any:
        # Products of dual numbers x + t dy, of all before and all after each element: what stands
        # with t is the sum over i of dy[i] times the product of the others but x[i].
        n = rows.shape[-1]
        result = xp.zeros_like(rows)
        one, zero = xp.ones_like(rows[..., 0]), xp.zeros_like(rows[..., 0])
        before = [(one, zero)]
        for i in range(n - 1):
            value, slope = before[-1]
            here, step = rows[..., i], steps[..., i]
            before.append((value * here, slope * here + value * step))
        value, slope = one, zero
        for i in range(n - 1, -1, -1):
            left, left_slope = before[i]
            result[..., i] = left * slope + left_slope * value
            here, step = rows[..., i], steps[..., i]
            value, slope = value * here, slope * here + value * step
        return result

    if not x.size:
        return xp.zeros_like(x)
    return _over_last_axis(xp, gradient, axis, x, dy)


product_of_others_gradient: OpDef = OpDef(
    "ProductOfOthersGrad",
    "x: T, dy: T -> dx: T",
    T=FLOATS,
    attributes={"axis": None},
    infer=same_as_input,
    kernel=_product_of_others_gradient,
    aliases={},
    cost=lambda op: 8 * _flops_of_input(op),
)
