"""Every pass keeps the subgraph legal, on generated graphs; the checker finds what is not."""

import numpy as np
import pytest
from hypothesis import given, settings

import flowbook as fb
from flowbook.exec.plan.schedule import schedule
from flowbook.exec.signature.fetches import flatten
from flowbook.graph.rewrite.cse import merge_common
from flowbook.graph.rewrite.fold import fold
from flowbook.graph.rewrite.join_products import join_products
from flowbook.graph.rewrite.legality import check_subgraph
from flowbook.graph.rewrite.order_state import order_state
from flowbook.graph.rewrite.prune import prune
from flowbook.graph.rewrite.simplify import simplify
from flowbook.graph.rewrite.subgraph import Subgraph
from tests.exec.random_graphs import examples

PASSES = (order_state, fold, simplify, merge_common, join_products, Subgraph.sweep, schedule)


def check_all_passes(fetches, targets, feeds):
    """The subgraph after all passes, checked before the first and after each."""
    subgraph = prune(fetches, targets, feeds)
    check_subgraph(subgraph, fetches)
    for transform in PASSES:
        transform(subgraph)
        check_subgraph(subgraph, fetches)
    return subgraph


@settings(max_examples=150)
@given(examples(with_waiting=True, feed_variables=True))
def test_every_pass_keeps_the_subgraph_legal(example):
    for fetches, feeds in example.steps:
        flat = flatten(example.graph, [*fetches, *example.sends])
        check_all_passes(flat.tensors, flat.targets, list(feeds))


def test_every_rewriting_keeps_dtypes_and_shapes():
    x = fb.placeholder(fb.float32, [None, 3], name="x")
    v = fb.Variable(np.ones((5, 5), np.float32))
    a = [fb.placeholder(fb.float32, [1, 5]) for _ in range(3)]
    b = [fb.placeholder(fb.float32, [1, 4]) for _ in range(3)]
    c = [fb.placeholder(fb.float32, [5, 1]) for _ in range(3)]
    fetches = [
        fb.cast(fb.identity(x), fb.float32),  # passed on, both
        fb.cast(x, fb.float64),  # kept
        fb.reshape(a[0], fb.constant([1, 1]) * [5, 1]),  # of a folded shape
        fb.reduce_sum(x, axis=0) + fb.reduce_sum(x, axis=0),  # merged
        fb.reduce_sum(x, axis=1, keepdims=True),  # not merged with those
        x + fb.constant([0.0, 0.0, 0.0]),
        fb.cast(x, fb.int32) + fb.constant([0, 0, 0]),  # of the same bits
        fb.add_n([fb.matmul(*each, transpose_a=True) for each in zip(a, b, strict=True)]),  # joined
        fb.add_n([fb.matmul(*each) for each in zip(c, b, strict=True)]),  # not joined
        v * 2.0,  # of what is fed in its place
    ]
    subgraph = check_all_passes(fetches, [], [x, v.handle, *a, *b, *c])
    left = [node.op_def.type for node in subgraph.nodes]
    assert {kind: left.count(kind) for kind in ("SumOfProducts", "AddN", "Cast", "Sum")} == {
        "SumOfProducts": 1,
        "AddN": 1,
        "Cast": 2,
        "Sum": 2,
    }


@pytest.fixture
def run():
    """A subgraph, and the fetches of it."""
    x = fb.placeholder(fb.float32, [2])
    with fb.control_dependencies([fb.negative(x)]):
        y = fb.reduce_sum(fb.exp(x) * [2.0, 3.0])
    return prune([y], [], [x]), [y]


def break_order(graph):
    graph.nodes.reverse()


def break_input(graph):
    graph.nodes[-1].inputs = (99, *graph.nodes[-1].inputs[1:])


def break_arity(graph):
    graph.nodes[-1].inputs *= 2


def break_output(graph):
    graph.nodes[-1].outputs = graph.nodes[0].outputs


def break_waiting(graph):
    del graph.nodes[0]


def break_fetch(graph):
    graph.fetches = [99]


def break_dtype(graph):
    [(value, array)] = graph.constants.items()
    graph.constants[value] = array.astype(np.float64)


def break_shape(graph):
    [(value, array)] = graph.constants.items()
    graph.constants[value] = np.append(array, array)


def break_shape_that_fits_by_itself(graph):
    [(value, array)] = graph.constants.items()
    graph.constants[value] = array[:, None]


def break_definition(graph):
    graph.nodes[-1].op_def, graph.nodes[-1].attributes = fb.size(1.0).op.op_def, {}


def break_attributes(graph):
    graph.nodes[-1].attributes = {**graph.nodes[-1].attributes, "axis": 1}


def break_attributes_that_fit_by_themselves(graph):
    graph.nodes[-1].attributes = {**graph.nodes[-1].attributes, "keepdims": True}


def break_dtype_of_a_fetch(graph):
    with graph.feeds[0].graph.as_default():
        graph.feeds = [fb.placeholder(fb.float64, [2])]
    graph.fetches = [0]


def break_shape_of_a_fetch(graph):
    graph.fetches = [0]


DAMAGES = [damage for name, damage in globals().items() if name.startswith("break_")]


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_not_legal_is_found(run, damage):
    subgraph, fetches = run
    check_subgraph(subgraph, fetches)
    damage(subgraph)
    with pytest.raises(fb.errors.InternalError):
        check_subgraph(subgraph, fetches)
