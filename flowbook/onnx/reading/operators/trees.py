"""Ensembles of decision trees: a loop goes down all trees at once, a level in each iteration.

Nodes of all trees are numbered together. A leaf is its own child, so trees need not be of one
depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowbook.graph.model.errors import InvalidArgumentError, ResourceExhaustedError
from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.opening import MOST_BYTES
from flowbook.onnx.reading.operators.types import Table

Array = np.ndarray[Any, Any]

_COMPARED = {
    "BRANCH_LEQ": fb.less_equal,
    "BRANCH_LT": fb.less,
    "BRANCH_GTE": fb.greater_equal,
    "BRANCH_GT": fb.greater,
    "BRANCH_EQ": fb.equal,
    "BRANCH_NEQ": fb.not_equal,
}
# As TreeEnsemble numbers them.
_MODES = (*_COMPARED, "BRANCH_MEMBER")
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass(frozen=True)
class _Forest:
    """Trees.

    Attributes:
        modes: [nodes]: how each compares; "LEAF" for those that do not.
        features: [nodes]: the column that it compares.
        splits: [nodes]: what it compares that with.
        members: [nodes, most]: of a BRANCH_MEMBER, the values that it asks for, and NaNs.
        missing: [nodes]: whether NaN counts as true.
        children: [nodes, 2]: the node that follows if that is false, and if it is true.
        roots: [trees].
    """

    modes: Array
    features: Array
    splits: Array
    members: Array | None
    missing: Array
    children: Array
    roots: Array

    def depth(self, node: Node) -> int:
        """How many levels lie below the roots.

        Raises:
            InvalidArgumentError: if these are no trees.
        """
        inner = self.modes != "LEAF"
        within = self.children[inner].ravel()
        places = (self.children, self.roots, np.flatnonzero(inner))
        if any(p.size and (p.min() < 0 or p.max() >= len(inner)) for p in places):
            raise InvalidArgumentError(f"{node} has children that are no nodes")
        parents = np.bincount([*within[inner[within]], *self.roots], minlength=len(inner))
        if parents[inner].max(initial=0) > 1:
            raise InvalidArgumentError(f"{node} has nodes that are reached on two ways")
        depth, count, level = 0, 0, self.roots[inner[self.roots]]
        while level.size:
            below = self.children[level].ravel()
            depth, count, level = depth + 1, count + level.size, below[inner[below]]
        if count < inner.sum():
            raise InvalidArgumentError(f"{node} has nodes that no root leads to")
        return depth

    def leaves(self, node: Node, x: Any) -> Any:
        """The leaf that each row of x comes to in each tree: [rows, trees]."""
        depth = self.depth(node)

        def below(level: Any, at: Any) -> Any:
            holds = self._compared(x, at)
            following = fb.where(
                holds, fb.gather(self.children[:, 1], at), fb.gather(self.children[:, 0], at)
            )
            return level + 1, following

        rows = fb.shape(x)[0]
        first = fb.broadcast_to(self.roots, fb.stack([rows, len(self.roots)]))
        return fb.while_loop(lambda level, _: level < depth, below, (0, first))[1]

    def _compared(self, x: Any, at: Any) -> Any:
        value = fb.gather(x, fb.gather(self.features, at), axis=1, batch_dims=1)
        split, mode = fb.gather(self.splits, at), fb.gather(self._mode_numbers, at)
        holds = fb.zeros_like(value, fb.bool)
        for name, compare in _COMPARED.items():
            if name in self.modes:
                is_this = fb.equal(mode, _MODES.index(name))
                holds = fb.logical_or(holds, fb.logical_and(is_this, compare(value, split)))
        if self.members is not None:
            is_one = fb.equal(fb.expand_dims(value, -1), fb.gather(self.members, at))
            holds = fb.logical_or(holds, fb.reduce_any(is_one, -1))
        if self.missing.any():
            is_missing = fb.logical_and(fb.is_nan(value), fb.gather(self.missing, at))
            holds = fb.logical_or(holds, is_missing)
        return holds

    @property
    def _mode_numbers(self) -> Array:
        return np.array([_MODES.index(m) if m in _MODES else -1 for m in self.modes], np.int32)


@dataclass(frozen=True)
class _Weights:
    """What leaves say.

    Attributes:
        sums: [nodes, targets].
        is_said: [nodes, targets]: whether a leaf says anything of a target.
    """

    sums: Array
    is_said: Array

    @staticmethod
    def of(node: Node, nodes: int, targets: int, leaves: Any, ids: Any, weights: Array) -> _Weights:
        """From the leaf, the target and the weight of each."""
        if targets < 1 or nodes * targets * weights.itemsize > MOST_BYTES:
            raise ResourceExhaustedError(f"{node} has {nodes} nodes with {targets} targets each")
        ids = np.asarray(ids, np.int64)
        if ids.size and (ids.min() < 0 or ids.max() >= targets):
            raise InvalidArgumentError(f"{node} has weights of targets that there are not")
        sums = np.zeros((nodes, targets), weights.dtype)
        np.add.at(sums, (leaves, ids), weights)
        is_said = np.zeros((nodes, targets), bool)
        is_said[leaves, ids] = True
        return _Weights(sums, is_said)

    def aggregated(self, node: Node, leaves: Any, how: str) -> Any:
        """What all trees say of each target: [rows, targets]."""
        if how not in _AGGREGATES:
            raise node.refuse(f"aggregation by {how}")
        if how in ("SUM", "AVERAGE"):
            found = fb.gather(self.sums, leaves)
            return fb.reduce_sum(found, 1) if how == "SUM" else fb.reduce_mean(found, 1)
        least, reduce = (np.inf, fb.reduce_min) if how == "MIN" else (-np.inf, fb.reduce_max)
        # A tree that says nothing of a target is not asked; nor are all trees, if none does.
        filled = np.where(self.is_said, self.sums, self.sums.dtype.type(least))
        found = reduce(fb.gather(filled, leaves), 1)
        is_any = fb.reduce_any(fb.gather(self.is_said, leaves), 1)
        return fb.where(is_any, found, fb.zeros_like(found))


def _transformed(node: Node, scores: Any, how: str) -> Any:
    match how:
        case "NONE":
            return scores
        case "SOFTMAX":
            return fb.nn.softmax(scores)
        case "LOGISTIC":
            return fb.sigmoid(scores)
        case "SOFTMAX_ZERO":
            # What is zero stays so.
            is_some = fb.abs(scores) > fb.constant(1e-7, scores.dtype)
            apart = scores - fb.reduce_max(scores, -1, True)
            shares = fb.where(is_some, fb.exp(apart), fb.zeros_like(scores))
            return fb.div_no_nan(shares, fb.reduce_sum(shares, -1, True))
        case "PROBIT":
            one = fb.ones_like(scores)
            return fb.erfinv(scores + scores - one) * fb.constant(np.sqrt(2), scores.dtype)
    raise node.refuse(f"transformation by {how}")


def _numbers(node: Node, name: str) -> Array | None:
    """An attribute of numbers, which may be a list or, where they are doubles, a tensor."""
    tensor = node.get(f"{name}_as_tensor")
    if tensor is not None:
        return np.asarray(tensor).reshape(-1)
    given = node.get(name)
    return None if given is None else np.array(given, np.float32)


def _forest(node: Node) -> tuple[_Forest, dict[tuple[int, int], int]]:
    """The trees of a TreeEnsembleRegressor or -Classifier, and nodes by tree and by number."""
    keys = list(zip(node.need("nodes_treeids"), node.need("nodes_nodeids"), strict=True))
    places = {key: place for place, key in enumerate(keys)}
    modes = np.array(node.need("nodes_modes"), object)
    itself = np.arange(len(keys))
    inner = modes != "LEAF"

    def followed(name: str) -> Array:
        ids = node.need(name)
        following = [places.get((tree, id), -1) for (tree, _), id in zip(keys, ids, strict=True)]
        return np.where(inner, following, itself)

    children = np.stack([followed("nodes_falsenodeids"), followed("nodes_truenodeids")], 1)
    is_child = np.zeros(len(keys), bool)
    is_child[children[inner]] = True
    roots = np.flatnonzero(~is_child)
    if sorted(keys[root][0] for root in roots) != sorted({tree for tree, _ in keys}):
        raise InvalidArgumentError(f"{node} has trees without a root, or with several")
    splits = _numbers(node, "nodes_values")
    assert splits is not None
    forest = _Forest(
        modes,
        np.array(node.need("nodes_featureids"), np.int32),
        splits,
        None,
        np.array(node.get("nodes_missing_value_tracks_true") or [0] * len(keys), bool),
        children.astype(np.int32),
        roots.astype(np.int32),
    )
    return forest, places


def _scores(node: Node, x: Any, role: str, targets: int, how: str) -> tuple[Any, _Weights]:
    """What trees with weights by tree and node say, before anything is added."""
    forest, places = _forest(node)
    keys = zip(node.need(f"{role}_treeids"), node.need(f"{role}_nodeids"), strict=True)
    weights = _numbers(node, f"{role}_weights")
    assert weights is not None
    leaves = [places[key] for key in keys]
    said = _Weights.of(node, len(forest.modes), targets, leaves, node.need(f"{role}_ids"), weights)
    x = fb.cast(x, fb.float64 if forest.splits.dtype == np.float64 else fb.float32)
    return said.aggregated(node, forest.leaves(node, x), how), said


def _regressor(node: Node, x: Any) -> Any:
    targets = node.need("n_targets")
    found, _ = _scores(node, x, "target", targets, node.get("aggregate_function", "SUM"))
    base = _numbers(node, "base_values")
    found = found if base is None else found + fb.cast(base, found.dtype)
    return _transformed(node, fb.cast(found, fb.float32), node.get("post_transform", "NONE"))


def _classifier(node: Node, x: Any) -> Any:
    strings = node.get("classlabels_strings")
    labels: Array = np.array(node.get("classlabels_int64s") or [], np.int64)
    if strings:
        labels = np.array([s.encode() for s in strings], object)
    count = max(len(labels), 1)
    scores, said = _scores(node, x, "class", count, "SUM")
    scores = fb.cast(scores, fb.float32)
    base = _numbers(node, "base_values")
    how = node.get("post_transform", "NONE")
    if len(set(node.need("class_ids"))) == 1 and count <= 2:
        return _of_one_class(node, scores, said, base, how, labels)
    scores = scores if base is None else scores + base.astype(np.float32)
    return fb.gather(labels, fb.argmax(scores, -1)), _transformed(node, scores, how)


def _of_one_class(
    node: Node, scores: Any, said: _Weights, base: Array | None, how: str, labels: Array
) -> Any:
    """Two classes of which the trees speak of one, by shares if no weight is negative."""
    [place] = set(node.need("class_ids"))
    score = scores[:, place : place + 1]
    if base is not None:
        score = score + np.float32(base[-1])
    are_shares = bool((said.sums >= 0).all())
    if len(labels) == 1:
        labels = np.array([0, labels[0]]) if labels.dtype != object else np.array([b"", labels[0]])
    is_second = fb.squeeze(score, 1) > np.float32(0.5 if are_shares else 0)
    label = fb.gather(labels, fb.cast(is_second, fb.int32))
    if are_shares and how != "LOGISTIC":
        return label, _transformed(node, fb.concat([1.0 - score, score], 1), how)
    return label, _transformed(node, fb.concat([-score, score], 1), how)


def _ensemble(node: Node, x: Any) -> Any:
    """The trees of TreeEnsemble: inner nodes, and leaves of their own numbers."""
    modes = np.array([_MODES[m] for m in node.need("nodes_modes").ravel()], object)
    splits = node.need("nodes_splits").reshape(-1)
    weights = node.need("leaf_weights").reshape(-1)
    inner, leaves = len(modes), len(weights)

    def followed(which: str) -> Array:
        ids, are_leaves = (np.array(node.need(f"nodes_{which}{n}")) for n in ("nodeids", "leafs"))
        return np.concatenate([ids + inner * are_leaves, inner + np.arange(leaves)])

    def padded(values: Any, dtype: Any) -> Array:
        return np.concatenate([np.array(values, dtype), np.zeros(leaves, dtype)])

    forest = _Forest(
        np.concatenate([modes, np.array(["LEAF"] * leaves, object)]),
        padded(node.need("nodes_featureids"), np.int32),
        padded(splits, splits.dtype),
        _members(node, modes, leaves, splits.dtype),
        padded(node.get("nodes_missing_value_tracks_true") or [0] * inner, bool),
        np.stack([followed("false"), followed("true")], 1).astype(np.int32),
        np.array(node.need("tree_roots"), np.int32),
    )
    said = _Weights.of(
        node,
        inner + leaves,
        node.need("n_targets"),
        inner + np.arange(leaves),
        node.need("leaf_targetids"),
        weights,
    )
    how = _AGGREGATES[node.get("aggregate_function", 1)]
    found = said.aggregated(node, forest.leaves(node, x), how)
    return _transformed(node, found, _TRANSFORMS[node.get("post_transform", 0)])


def _members(node: Node, modes: Array, leaves: int, dtype: Any) -> Array | None:
    """The values that each node asks for, which are listed with a NaN behind those of each."""
    asking = np.flatnonzero(modes == "BRANCH_MEMBER")
    if not asking.size:
        return None
    values = node.need("membership_values").reshape(-1)
    ends = np.flatnonzero(np.isnan(values))
    if len(ends) < len(asking):
        ends = np.append(ends, len(values))
    parts: Sequence[Array] = [part[~np.isnan(part)] for part in np.split(values, ends)]
    parts = parts[: len(asking)]
    most = max(len(part) for part in parts)
    if (len(modes) + leaves) * most * values.itemsize > MOST_BYTES:
        raise ResourceExhaustedError(f"{node} asks for {most} values at each of its nodes")
    found = np.full((len(modes) + leaves, most), np.nan, dtype)
    for place, part in zip(asking, parts, strict=True):
        found[place, : len(part)] = part
    return found


TABLE: Table = {
    "TreeEnsemble": _ensemble,
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor,
}
