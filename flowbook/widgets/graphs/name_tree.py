"""The tree of name scopes over operations, as columns of numbers.

Operations are numbered first, then the scopes, the root before all others and each before what
lies in it. An operation whose own name is a scope's, as a variable's is, lies in that scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Ints = np.ndarray[tuple[int], np.dtype[np.int32]]


@dataclass(frozen=True)
class NameTree:
    """Operations and scopes, by number.

    Attributes:
        operations: how many operations there are; the root's number.
        labels: the last part of each name; the root's is empty.
        parent: the scope that each lies in; -1 for the root.
        depth: how many scopes lie around each.
        first: the first operation in each.
        count: how many operations are in each.
        own: for each scope, the operation that has its name; -1 where none has.
        scopes: the number of each scope, by its name.
    """

    operations: int
    labels: list[str]
    parent: Ints
    depth: Ints
    first: Ints
    count: Ints
    own: Ints
    scopes: Mapping[str, int]


def name_tree(names: Sequence[str]) -> NameTree:
    """The tree of unique names of operations, in the order of construction."""
    total = len(names)
    scopes: dict[str, int] = {"": total}
    scope_labels = [""]
    scope_parent = [-1]
    scope_depth = [0]

    def scope(path: str) -> int:
        """The number of a scope, made if it is new, as are those around it."""
        missing = []
        while path not in scopes:
            missing.append(path)
            path = path.rpartition("/")[0]
        number = scopes[path]
        for inner in reversed(missing):
            scope_labels.append(inner.rpartition("/")[2])
            scope_parent.append(number)
            scope_depth.append(scope_depth[number - total] + 1)
            number = scopes[inner] = total + len(scope_labels) - 1
        return number

    split = [name.rpartition("/") for name in names]
    parents = [scope(outer) for outer, _, _ in split]
    own = np.full(len(scope_labels), -1, np.int32)
    for i, name in enumerate(names):
        taken = scopes.get(name)
        if taken is not None and name:
            parents[i] = taken
            own[taken - total] = i
    parent = np.asarray([*parents, *scope_parent], np.int32)
    depth = np.empty(len(parent), np.int32)
    depth[total:] = scope_depth
    depth[:total] = depth[parent[:total]] + 1 if total else 0
    first, count = _contents(total, parent)
    labels = [label for _, _, label in split] + scope_labels
    return NameTree(total, labels, parent, depth, first, count, own, scopes)


def _contents(total: int, parent: Ints) -> tuple[Ints, Ints]:
    """The first operation in each, and how many there are."""
    first = np.full(len(parent), max(total, 1) - 1, np.int32)
    first[:total] = np.arange(total)
    count = np.zeros(len(parent), np.int32)
    count[:total] = 1
    np.minimum.at(first, parent[:total], first[:total])
    np.add.at(count, parent[:total], 1)
    for scope in range(len(parent) - 1, total, -1):
        outer = parent[scope]
        count[outer] += count[scope]
        first[outer] = min(first[outer], first[scope])
    return first, count
