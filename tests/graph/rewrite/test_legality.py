"""Every pass keeps the subgraph legal, on generated graphs; the checker finds what is not."""

import pytest
from hypothesis import given, settings

import flowbook as fb
from flowbook.exec.plan.schedule import schedule
from flowbook.exec.signature.fetches import flatten
from flowbook.graph.rewrite.cse import merge_common
from flowbook.graph.rewrite.fold import fold
from flowbook.graph.rewrite.legality import check_subgraph
from flowbook.graph.rewrite.order_state import order_state
from flowbook.graph.rewrite.prune import prune
from flowbook.graph.rewrite.simplify import simplify
from flowbook.graph.rewrite.subgraph import Subgraph
from tests.exec.random_graphs import examples

PASSES = (order_state, fold, simplify, merge_common, Subgraph.sweep, schedule)


@settings(max_examples=150)
@given(examples(with_waiting=True, feed_variables=True))
def test_every_pass_keeps_the_subgraph_legal(example):
    for fetches, feeds in example.steps:
        flat = flatten(example.graph, [*fetches, *example.sends])
        subgraph = prune(flat.tensors, flat.targets, list(feeds))
        check_subgraph(subgraph)
        for transform in PASSES:
            transform(subgraph)
            check_subgraph(subgraph)


@pytest.fixture
def subgraph():
    x = fb.placeholder(fb.float32, [])
    with fb.control_dependencies([fb.negative(x)]):
        y = fb.exp(x)
    return prune([y * 2.0], [], [x])


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


@pytest.mark.parametrize(
    "damage", [break_order, break_input, break_arity, break_output, break_waiting, break_fetch]
)
def test_what_is_not_legal_is_found(subgraph, damage):
    check_subgraph(subgraph)
    damage(subgraph)
    with pytest.raises(fb.errors.InternalError):
        check_subgraph(subgraph)
