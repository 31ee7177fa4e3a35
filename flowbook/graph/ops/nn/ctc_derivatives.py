"""The derivatives of the CTC loss's gradient along directions, of any order.

What the forward-backward recursion adds up are sums of products: here of numbers with infinitesimal
parts (`reduction/infinitesimals.py`). Each is kept over its ordinary part, of which `Paths` has the
logarithm, so that nothing vanishes or overflows where that does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowbook.graph.numerics.ctc_paths import Paths, moved
from flowbook.graph.ops.reduction.infinitesimals import Number, product, quotient


def derivative_of_gradient(
    xp: Any,
    inputs: Any,
    labels_indices: Any,
    labels_values: Any,
    sequence_length: Any,
    *directions: Any,
    **options: bool,
) -> Any:
    """The kernel: how the gradient [time, batch, classes] changes along directions like it."""
    paths = Paths(xp, inputs, labels_indices, labels_values, sequence_length, **options)
    if not inputs.size:
        return xp.zeros_like(inputs)
    raised = [paths.chances * part for part in _exponential(xp, inputs, directions)]
    found = quotient(raised, [xp.sum(part, axis=-1, keepdims=True) for part in raised])[-1]
    emitted = _exponential(xp, paths.emitted, [paths.of_states(d) for d in directions])
    forward = _forward(paths, emitted)
    total = _total(paths, forward)
    # What follows the last step is no more than the ordinary part.
    unit = _exponential(xp, paths.ending, [xp.zeros_like(paths.ending)] * len(directions))
    behind = unit
    for t, after in paths.backward():
        through = quotient(product([part[t] for part in forward], behind), total)[-1]
        found[t] -= paths.by_class(paths.occupancy(t, after) * through)
        leaving = product([part[t] for part in emitted], behind)
        shares = _shares(xp, paths.leaving(after + paths.emitted[t]))
        is_inside = (t < sequence_length)[:, None]
        behind = [
            xp.where(is_inside, mixed, edge)
            for mixed, edge in zip(_mixed(xp, shares, leaving, -1), unit, strict=True)
        ]
    found[~paths.counts] = 0
    return found.astype(inputs.dtype)


def _exponential(xp: Any, like: Any, directions: Sequence[Any]) -> Number:
    """`exp(t1 d1 + t2 d2 + ...)`, of float64."""
    found: Number = [xp.ones(like.shape)]
    for direction in directions:
        found += [part * direction for part in found]
    return found


def _forward(paths: Paths, emitted: Number) -> Number:
    """The beginnings of paths, [time, batch, states], over their ordinary part."""
    xp = paths.xp
    found = [xp.array(part) for part in emitted]
    for t in range(1, len(paths.emitted)):
        shares = _shares(xp, paths.arriving(paths.forward[t - 1]))
        arriving = _mixed(xp, shares, [part[t - 1] for part in found], 1)
        for part, value in zip(found, product([p[t] for p in emitted], arriving), strict=True):
            part[t] = value
    return found


def _total(paths: Paths, forward: Number) -> Number:
    """The sum of all paths, [batch, 1], over its ordinary part."""
    xp, rows = paths.xp, paths.xp.arange(len(paths.states))
    last = xp.maximum(paths.lengths - 1, 0)
    is_there = ~paths.is_impossible & (paths.lengths > 0)
    # Of no path there is nothing to change; any number that divides will do.
    scores = paths.forward[last, rows] + paths.ending - paths.total[:, None]
    shares = xp.exp(xp.where(is_there[:, None], scores, 0.0))
    found = [xp.sum(shares * part[last, rows], axis=-1, keepdims=True) for part in forward]
    return [found[0], *[xp.where(is_there[:, None], part, 0.0) for part in found[1:]]]


def _shares(xp: Any, scores: tuple[Any, Any, Any]) -> list[Any]:
    """What each of three logarithms contributes to the logarithm of the sum."""
    top = xp.maximum(xp.maximum(scores[0], scores[1]), scores[2])
    parts = [xp.exp(score - top) for score in scores]
    total = parts[0] + parts[1] + parts[2]
    return [part / total for part in parts]


def _mixed(xp: Any, shares: list[Any], values: Number, way: int) -> Number:
    """The mean of each state's value and those one and two states away, by their shares."""
    return [
        shares[0] * part
        + shares[1] * moved(xp, part, way, 0.0)
        + shares[2] * moved(xp, part, 2 * way, 0.0)
        for part in values
    ]
