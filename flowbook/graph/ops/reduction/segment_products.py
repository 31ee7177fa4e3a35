"""The derivatives of products by segment, of any order, without divisions: zeros do no harm."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import INDICES, INEXACT
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.reduction.infinitesimals import Number, gradients_along, moved, product


def _same_as_data(data: Tensor, segment_ids: Tensor, directions: list[Tensor]) -> Shape:
    return data.shape


def _products_of_others(xp: Any, data: Any, segment_ids: Any, *directions: Any) -> Any:
    if not data.size:
        return xp.zeros_like(data)
    ids = xp.reshape(segment_ids, (-1,))
    order = xp.argsort(ids, kind="stable")
    ids = ids[order]
    factors = moved(
        xp,
        xp.reshape(data, (ids.size, -1))[order],
        [xp.reshape(d, (ids.size, -1))[order] for d in directions],
    )
    before = _products_before(xp, factors, ids)
    after = _products_before(xp, [f[::-1] for f in factors], ids[::-1])
    found = xp.empty_like(factors[0])
    found[order] = product(before, [a[::-1] for a in after])[-1]
    found[xp.reshape(segment_ids, (-1,)) < 0] = 0
    return xp.reshape(found, data.shape)


def _products_before(xp: Any, factors: Number, ids: Any) -> Number:
    """For each row the product of those before it with the same id; equal ids lie together."""
    begins = xp.concatenate([xp.ones(1, bool), ids[1:] != ids[:-1]])
    places = xp.arange(ids.size) - xp.flatnonzero(begins)[xp.cumsum(begins) - 1]
    found = [xp.zeros_like(f) for f in factors]
    found[0][...] = 1
    inner = xp.flatnonzero(places >= 1)
    for result, factor in zip(found, factors, strict=True):
        result[inner] = factor[inner - 1]
    reach, longest = 1, int(places.max())
    while reach < longest:  # Each round doubles how many factors a product spans.
        far = xp.flatnonzero(places > reach)
        longer = product([f[far - reach] for f in found], [f[far] for f in found])
        for result, more in zip(found, longer, strict=True):
            result[far] = more
        reach *= 2
    return found


def _gradients(op: Operation, dy: Tensor) -> list[Tensor | None]:
    data, ids, *directions = op.inputs

    def along(chosen: list[Tensor]) -> Tensor:
        return segment_product_of_others(conjugate(data), ids, chosen)

    first, *rest = gradients_along(along, [conjugate(d) for d in directions], dy)
    return [first, None, *rest]


segment_product_of_others: OpDef = OpDef(
    "SegmentProductOfOthers",
    "data: T, segment_ids: I, directions: N*T -> output: T",
    T=INEXACT,
    I=INDICES,
    infer=_same_as_data,
    kernel=_products_of_others,
    grad=_gradients,
    cost=lambda op: 8 * 3 ** (len(op.inputs) - 2) * (op.inputs[0].shape.size or 0),
    doc="""For each element the product of all others of its segment; 0 where the id is negative.

    With directions, that product's derivative along these.
    """,
)
