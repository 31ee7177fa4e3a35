"""Ensembles of decision trees, as onnxruntime has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.need import requires
from tests.onnx.exchange import inference
from tests.onnx.models import model, value

onnx = pytest.importorskip("onnx")
pytestmark = [requires(module="onnx"), requires(module="onnxruntime")]

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")


def grown(
    random: np.random.Generator, trees: int, targets: int, speaks_of_all: bool = False
) -> dict[str, list[Any]]:
    """Trees of drawn shapes over three columns, with what their leaves say of targets."""
    nodes: dict[str, list[Any]] = {
        n: []
        for n in ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids",
                  "falsenodeids", "missing_value_tracks_true")
    }  # fmt: skip
    leaves: dict[str, list[Any]] = {n: [] for n in ("treeids", "nodeids", "ids", "weights")}

    def grow(tree: int, depth: int, numbers: Any) -> int:
        number = next(numbers)
        is_leaf = depth > 4 or random.random() < 0.3 * (depth > 0)
        place = len(nodes["treeids"])
        mode = "LEAF" if is_leaf else f"BRANCH_{random.choice(MODES)}"
        row = (tree, number, mode, int(random.integers(3)),
               float(random.integers(-2, 3)), 0, 0, int(random.integers(2)))  # fmt: skip
        for column, cell in zip(nodes.values(), row, strict=True):
            column.append(cell)
        if not is_leaf:
            nodes["truenodeids"][place] = grow(tree, depth + 1, numbers)
            nodes["falsenodeids"][place] = grow(tree, depth + 1, numbers)
            return number
        for target in random.permutation(targets)[
            : targets if speaks_of_all else random.integers(1, targets + 1)
        ]:
            weight = float(np.round(random.normal(), 2))
            for column, cell in zip(
                leaves.values(), (tree, number, int(target), weight), strict=True
            ):
                column.append(cell)
        return number

    for tree in range(trees):
        grow(tree, 0, iter(range(1000)))
    return {f"nodes_{n}": c for n, c in nodes.items()} | {f"leaf_{n}": c for n, c in leaves.items()}


def made(type: str, forest: dict[str, Any], role: str, outputs: Any, **how: Any) -> Any:
    attributes = {n.replace("leaf_", f"{role}_"): v for n, v in forest.items()}
    names = [info.name for info in outputs]
    node = helper.make_node(type, ["x"], names, domain="ai.onnx.ml", **attributes, **how)
    opsets = [helper.make_opsetid("ai.onnx.ml", 3)]
    return model([node], [value("x", ["n", 3])], outputs, opsets=opsets)


def rows(random: np.random.Generator) -> Any:
    x = random.integers(-3, 4, (50, 3)).astype(np.float32)
    x[random.random(x.shape) < 0.1] = np.nan
    return x


def agrees(proto: Any, x: Any) -> None:
    loaded = fb.onnx.load(proto, graph=fb.Graph())
    with fb.Session(graph=loaded.graph) as sess:
        found = sess.run(list(loaded.outputs.values()), {loaded.inputs["x"]: x})
    for one, right in zip(found, inference(proto).run(None, {"x": x}), strict=True):
        if one.dtype == object:
            assert [s.decode() for s in one] == list(right)
        else:
            assert (one.shape, one.dtype) == (right.shape, right.dtype)
            np.testing.assert_allclose(one, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("base", [None, [0.5, -1.0, 0.25]])
def test_regressors(aggregate: str, base: Any) -> None:
    # Onnxruntime adds no base to a target that no leaf speaks of.
    random = np.random.default_rng(len(aggregate))
    for trees in (1, 7):
        how = {"n_targets": 3, "aggregate_function": aggregate, "base_values": base}
        how = {name: v for name, v in how.items() if v is not None}
        outputs = [value("y", ["n", 3])]
        forest = grown(random, trees, 3, speaks_of_all=base is not None)
        agrees(made("TreeEnsembleRegressor", forest, "target", outputs, **how), rows(random))


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("labels", [[3, 1, 2], ["a", "b", "c", "d"]], ids=str)
def test_classifiers(transform: str, labels: Any) -> None:
    random = np.random.default_rng(len(labels))
    kind = TensorProto.STRING if isinstance(labels[0], str) else TensorProto.INT64
    name = "strings" if isinstance(labels[0], str) else "int64s"
    outputs = [value("label", ["n"], kind), value("scores", ["n", len(labels)])]
    forest = grown(random, 5, len(labels))
    how = {f"classlabels_{name}": labels, "post_transform": transform}
    agrees(made("TreeEnsembleClassifier", forest, "class", outputs, **how), rows(random))


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("are_shares", [False, True])
def test_classifiers_of_two_classes_that_speak_of_one(transform: str, are_shares: bool) -> None:
    random = np.random.default_rng(5)
    forest = grown(random, 4, 1)
    if are_shares:
        forest["leaf_weights"] = [abs(w) / 4 for w in forest["leaf_weights"]]
    outputs = [value("label", ["n"], TensorProto.INT64), value("scores", ["n", 2])]
    how = {"classlabels_int64s": [0, 1], "post_transform": transform}
    agrees(made("TreeEnsembleClassifier", forest, "class", outputs, **how), rows(random))


def test_what_are_no_trees_is_refused() -> None:
    forest = grown(np.random.default_rng(1), 1, 1)
    inner = [i for i, mode in enumerate(forest["nodes_modes"]) if mode != "LEAF"]
    assert len(inner) > 2
    for child in (forest["nodes_nodeids"][inner[0]], forest["nodes_nodeids"][inner[1]], 999):
        forest["nodes_truenodeids"] = list(forest["nodes_truenodeids"])
        forest["nodes_truenodeids"][inner[-1]] = child
        proto = made("TreeEnsembleRegressor", forest, "target", [value("y", ["n", 1])], n_targets=1)
        with pytest.raises(fb.errors.InvalidArgumentError, match="TreeEnsembleRegressor"):
            fb.onnx.load(proto)


def test_nodes_that_are_reached_on_two_ways_are_refused() -> None:
    """Going down them would take twice as long with each level."""
    count = 20
    following = [*range(1, count), 0]
    node = helper.make_node(
        "TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, tree_roots=[0],
        nodes_featureids=[0] * count,
        nodes_modes=numpy_helper.from_array(np.zeros(count, np.uint8)),
        nodes_splits=numpy_helper.from_array(np.zeros(count, np.float32)),
        nodes_truenodeids=following, nodes_falsenodeids=following,
        nodes_trueleafs=[0] * (count - 1) + [1], nodes_falseleafs=[0] * (count - 1) + [1],
        leaf_targetids=[0], leaf_weights=numpy_helper.from_array(np.ones(1, np.float32)),
    )  # fmt: skip
    opsets = [helper.make_opsetid("ai.onnx.ml", 5)]
    proto = model([node], [value("x", ["n", 3])], [value("y", ["n", 1])], opsets=opsets)
    with pytest.raises(fb.errors.InvalidArgumentError, match="reached on two ways"):
        fb.onnx.load(proto)


def test_so_many_targets_are_refused() -> None:
    forest = grown(np.random.default_rng(0), 1, 1)
    outputs = [value("y", ["n", "targets"])]
    proto = made("TreeEnsembleRegressor", forest, "target", outputs, n_targets=2**40)
    with pytest.raises(fb.errors.ResourceExhaustedError, match="targets"):
        fb.onnx.load(proto)
