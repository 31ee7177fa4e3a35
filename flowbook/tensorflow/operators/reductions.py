"""Sums and other reductions, and sums along an axis."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model.dtypes import int32, int64
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.linalg.norms import reduce_euclidean_norm
from flowbook.graph.ops.reduction.counting import bincount, histogram_fixed_width
from flowbook.graph.ops.reduction.reductions import (
    argmax,
    argmin,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
)
from flowbook.graph.ops.reduction.scans import cumprod, cumsum, cumulative_logsumexp
from flowbook.graph.ops.sparse.products import (
    sparse_segment_mean,
    sparse_segment_sqrt_n,
    sparse_segment_sum,
)
from flowbook.tensorflow.node import Node, Rules, named


def _reduced(function: Any) -> Any:
    return named(function, keepdims=lambda n: n.flag("keep_dims"))


def _place(function: Any) -> Any:
    return named(function, output_type=lambda n: n.dtype("output_type", int64))


def _scan(function: Any) -> Any:
    return named(
        function, exclusive=lambda n: n.flag("exclusive"), reverse=lambda n: n.flag("reverse")
    )


def _counted(n: Node, values: Any, most: Any, weights: Any) -> Any:
    """How often each number is there, or the sum of its weights; without weights these are none."""
    size = int(n.known(most, "how many numbers it counts"))
    given = None if weights.shape.size == 0 else weights
    return bincount(values, given, size, size, weights.dtype, name=n.scope)


def _histogram(n: Node, values: Any, bounds: Any, count: Any) -> Any:
    bins = int(n.known(count, "the number of its bins"))
    return histogram_fixed_width(values, bounds, bins, n.dtype("dtype", int32), name=n.scope)


RULES: Rules = {
    "All": _reduced(reduce_all),
    "Any": _reduced(reduce_any),
    "ArgMax": _place(argmax),
    "ArgMin": _place(argmin),
    "Bincount": _counted,
    "Cumprod": _scan(cumprod),
    "Cumsum": _scan(cumsum),
    "CumulativeLogsumexp": _scan(cumulative_logsumexp),
    "EuclideanNorm": _reduced(reduce_euclidean_norm),
    "HistogramFixedWidth": _histogram,
    "Max": _reduced(reduce_max),
    "Mean": _reduced(reduce_mean),
    "Min": _reduced(reduce_min),
    "Prod": _reduced(reduce_prod),
    **{
        f"SparseSegment{what}{end}": named(function)
        for what, function in {
            "Mean": sparse_segment_mean,
            "SqrtN": sparse_segment_sqrt_n,
            "Sum": sparse_segment_sum,
        }.items()
        for end in ("", "WithNumSegments")
    },
    "Sum": _reduced(reduce_sum),
}
