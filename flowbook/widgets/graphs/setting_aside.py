"""What stands aside in a picture: members of scopes whose edges would hide all others.

Such are the gradients of a large model, which everything feeds. What is not joined does not count
among its neighbours, and the spine of a model is never set aside.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from flowbook.widgets.graphs.name_tree import Ints, NameTree
from flowbook.widgets.graphs.scope_edges import ScopeEdges

_MANY = 15  # Among so many members, those with unusually many neighbours stand out.
_SOME = 7  # Among so many, scopes fed by more than a third of the others do.
_LEAST = 4  # So many neighbours are never too many.

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


def aside(tree: NameTree, edges: ScopeEdges, kept: Collection[int]) -> Flags:
    """Which members of scopes stand aside.

    Args:
        tree: the scopes.
        edges: the edges between their members.
        kept: operations that stay, as do the scopes around them.
    """
    size = len(tree.parent)
    entering = np.bincount(edges.target, minlength=size)
    leaving = np.bincount(edges.source, minlength=size)
    found, crowded = np.zeros(size, bool), np.zeros(size, bool)
    component = _components(size, edges)
    ordered = np.argsort(component, kind="stable")
    starts = np.flatnonzero(np.diff(component[ordered], prepend=-1))
    for inside in np.split(ordered, starts[1:]):
        if len(inside) < _SOME:
            continue
        if len(inside) < _MANY:
            most = max(_LEAST, len(inside) // 3)
            crowded[inside] = (inside >= tree.operations) & (entering[inside] > most)
            continue
        low, high = np.quantile(entering[inside], (0.25, 0.75))
        crowded[inside] = entering[inside] > max(_LEAST, 2 * high - low)
        low, high = np.quantile(leaving[inside], (0.25, 0.75))
        found[inside] = leaving[inside] > max(_LEAST, high + 4 * (high - low))
    may_go = ~_with_scopes(tree, kept)
    return (found & may_go) | _with_what_goes_on(crowded & may_go, tree, edges, may_go)


def _components(size: int, edges: ScopeEdges) -> Ints:
    """A number for each node: equal for those that edges join, however far apart."""
    found = np.arange(size, dtype=np.int32)
    while True:
        least = np.minimum(found[edges.source], found[edges.target])
        joined = found.copy()
        for ends in (edges.source, edges.target):
            np.minimum.at(joined, ends, least)
            np.minimum.at(joined, found[ends], least)
        while not np.array_equal(joined, nearer := joined[joined]):
            joined = nearer
        if np.array_equal(joined, found):
            return found
        found = joined


def _with_scopes(tree: NameTree, operations: Collection[int]) -> Flags:
    """Operations, and the scopes around them."""
    found = np.zeros(len(tree.parent), bool)
    at = np.asarray(list(operations), np.int32)
    while len(at):
        found[at] = True
        at = np.unique(tree.parent[at])
        at = at[at >= 0]
    return found


def _with_what_goes_on(crowded: Flags, tree: NameTree, edges: ScopeEdges, may_go: Flags) -> Flags:
    """Members, and the scopes that only go on with them, as an optimizer does with gradients."""
    scopes = may_go.copy()
    scopes[: tree.operations + 1] = False
    found = crowded
    while (more := _ends(edges.target, found[edges.source], found) & scopes & ~found).any():
        found = found | more
    while (less := _ends(edges.source, ~found[edges.target], found) & found & ~crowded).any():
        found = found & ~less
    return found


def _ends(ends: Ints, chosen: Flags, like: Flags) -> Flags:
    """The nodes at the ends of chosen edges."""
    found = np.zeros_like(like)
    found[ends[chosen]] = True
    return found
