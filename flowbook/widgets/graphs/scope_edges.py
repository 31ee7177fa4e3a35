"""Edges by the scope that they run in, and which scopes are alike by them.

An edge between two operations runs in the innermost scope that holds both, between two members of
that scope. So every edge is in one place, however deep the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flowbook.widgets.graphs.name_tree import Ints, NameTree


@dataclass(frozen=True)
class ScopeEdges:
    """The distinct edges between members of scopes, in the order of scope, source and target."""

    scope: Ints
    source: Ints
    target: Ints


def scope_edges(tree: NameTree, source: Ints, target: Ints) -> ScopeEdges:
    """The edges between members of scopes.

    Args:
        tree: the scopes.
        source: the operation that each edge leaves.
        target: the operation that each edge enters.
    """
    parent, depth = tree.parent, tree.depth
    a, b = source.copy(), target.copy()
    while len(deep := np.flatnonzero(depth[a] > depth[b])):
        a[deep] = parent[a[deep]]
    while len(deep := np.flatnonzero(depth[b] > depth[a])):
        b[deep] = parent[b[deep]]
    while len(apart := np.flatnonzero(parent[a] != parent[b])):
        a[apart] = parent[a[apart]]
        b[apart] = parent[b[apart]]
    differ = a != b
    a, b = a[differ], b[differ]
    scope = parent[a]
    order = np.lexsort((b, a, scope))
    scope, a, b = scope[order], a[order], b[order]
    new = np.ones(len(a), bool)
    new[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    return ScopeEdges(scope[new], a[new], b[new])


def templates(tree: NameTree, edges: ScopeEdges, types: Sequence[int]) -> Ints:
    """A number for each operation and scope: equal for those that are built alike.

    Scopes are alike if their members, in the order of construction, are alike and joined alike.

    Args:
        tree: the scopes.
        edges: the edges between their members.
        types: a number for each operation's type.
    """
    total = tree.operations
    found = np.empty(len(tree.parent), np.int32)
    found[:total] = types
    members = np.lexsort((tree.first, tree.parent))[1:]  # The root has no scope around it.
    starts = np.searchsorted(tree.parent[members], np.arange(total, len(found) + 1))
    slot = np.empty(len(found), np.int32)
    slot[members] = np.arange(len(members)) - starts[tree.parent[members] - total]
    edge_starts = np.searchsorted(edges.scope, np.arange(total, len(found) + 1))
    ends = np.stack([slot[edges.source], slot[edges.target]], axis=1)
    known: dict[tuple[bytes, bytes], int] = {}
    fresh = max(types, default=-1) + 1
    for scope in range(len(found) - 1, total - 1, -1):
        i = scope - total
        inside = found[members[starts[i] : starts[i + 1]]].tobytes()
        pairs = ends[edge_starts[i] : edge_starts[i + 1]]
        joined = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].tobytes() if len(pairs) else b""
        found[scope] = known.setdefault((inside, joined), fresh + len(known))
    return found
