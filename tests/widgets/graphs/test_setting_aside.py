"""What stands aside, and what never does."""

import numpy as np

import flowbook as fb
from flowbook.widgets.graphs.name_tree import name_tree
from flowbook.widgets.graphs.scope_edges import scope_edges
from flowbook.widgets.graphs.setting_aside import aside
from flowbook.widgets.graphs.spine import spine


def aside_of(names: list[str], pairs: list[tuple[int, int]], kept: list[int]) -> list[str]:
    tree = name_tree(names)
    source, target = np.asarray(pairs, np.int32).T
    found = aside(tree, scope_edges(tree, source, target), kept)
    return [tree.labels[i] for i in np.flatnonzero(found)]


def chain(first: int, count: int) -> list[tuple[int, int]]:
    return [(i, i + 1) for i in range(first, first + count - 1)]


def test_what_is_not_joined_does_not_count() -> None:
    """Five nodes that each feed five others: crowded only beside a long chain."""
    dense = [(i, 5 + j) for i in range(10) for j in range(10) if 0 <= j - i % 5 <= 5]
    names = [f"n{i}" for i in range(15)]
    assert aside_of(names, dense, []) == []
    apart = dense + chain(15, 60)
    assert aside_of([f"n{i}" for i in range(75)], apart, []) == []
    joined = [*apart, (0, 15)]
    assert aside_of([f"n{i}" for i in range(75)], joined, []) != []


def test_what_is_kept_stays_with_the_scopes_around_it() -> None:
    names = [f"s{i}/x" for i in range(20)] + ["sum/deep/x"]
    pairs = [(i, 20) for i in range(20)]
    assert aside_of(names, pairs, []) == ["sum"]
    assert aside_of(names, pairs, [20]) == []


def test_what_only_goes_on_with_what_is_aside_is_aside_too() -> None:
    names = [
        *(f"s{i}/x" for i in range(12)),
        "gradients/x",
        "clip/x",
        "optimizer/x",
        "used/x",
        "out",
    ]
    pairs = [(i, 12) for i in range(12)] + [(12, 13), (13, 14), (0, 14), (12, 15), (15, 16)]
    assert aside_of(names, pairs, []) == ["gradients", "clip", "optimizer"]


def test_towers_between_two_that_are_aside_are_not() -> None:
    names = ["x", *(f"tower_{i}/y" for i in range(20)), "sum"]
    pairs = [(0, i) for i in range(1, 21)] + [(i, 21) for i in range(1, 21)]
    assert not [name for name in aside_of(names, pairs, []) if name.startswith("tower")]


def two_layers() -> fb.Graph:
    with fb.Graph().as_default() as graph:
        x = fb.placeholder(fb.float32, [None, 2], name="x")
        W = fb.Variable(fb.zeros([2, 2]), name="W")
        with fb.name_scope("net"):
            h = fb.tanh(x @ W, name="h")
            fb.abs(h, name="beside")
        fb.reduce_mean(h, name="loss")
        fb.placeholder(fb.float32, [], name="unused")
    return graph


def names_of(graph: fb.Graph) -> set[str]:
    return {op.name for op in spine(graph.operations)}


SPINE = {"x", "W", "W/read", "net/MatMul", "net/h", "loss", "unused"}


def test_the_spine_leads_from_inputs_and_variables_to_losses() -> None:
    graph = two_layers()
    assert names_of(graph) == SPINE
    with graph.as_default():
        fb.train.AdamOptimizer(0.1).minimize(graph.get_tensor_by_name("loss:0"))
    # Of what the optimizer computes there are numbers too: no losses.
    assert names_of(graph) == SPINE


def test_the_spine_of_a_stored_graph_is_the_same() -> None:
    graph = two_layers()
    with graph.as_default():
        fb.gradients(
            graph.get_tensor_by_name("loss:0"), graph.variables(), name="outer/derivatives"
        )
    assert names_of(fb.Graph.from_bytes(graph.to_bytes())) == SPINE
