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
from flowbook.graph.rewrite.legality import Checker
from flowbook.graph.rewrite.order_state import order_state
from flowbook.graph.rewrite.prune import prune
from flowbook.graph.rewrite.simplify import simplify
from flowbook.graph.rewrite.subgraph import Node, Subgraph
from tests.exec.random_graphs import examples

PASSES = (order_state, fold, simplify, merge_common, join_products, Subgraph.sweep, schedule)


def check_all_passes(fetches, targets, feeds):
    """The subgraph after all passes, checked before the first and after each."""
    subgraph = prune(fetches, targets, feeds)
    checker = Checker(subgraph, fetches, targets)
    checker.check()
    for transform in PASSES:
        transform(subgraph)
        checker.check()
    return subgraph


FLAT, NESTED = (examples(with_waiting=True, feed_variables=True, depth=d) for d in (0, 2))


@settings(max_examples=200)
@given(FLAT | NESTED)
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
        *(fb.random_uniform([2], seed=1) for _ in range(2)),  # not merged
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
    """A subgraph, and what checks it."""
    x = fb.placeholder(fb.float32, [2])
    with fb.control_dependencies([fb.negative(x)]):
        y = fb.reduce_sum(fb.exp(x) * [2.0, 3.0])
    subgraph = prune([y], [], [x])
    return subgraph, Checker(subgraph, [y], [])


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
    subgraph, checker = run
    checker.check()
    damage(subgraph)
    with pytest.raises(fb.errors.InternalError):
        checker.check()


@pytest.fixture
def stateful_run():
    """A pruned subgraph that reads and writes, with a loop and a branch, and what checks it."""
    x = fb.placeholder(fb.float32, [])
    v, w = fb.Variable(1.0, name="v"), fb.Variable(1.0, name="w")
    before, other = fb.identity(v, name="before"), fb.identity(w, name="other")
    first, second = (fb.assign_add(v, x, name=name) for name in ("first", "second"))
    with fb.control_dependencies([second]):
        after, done = fb.identity(v, name="after"), fb.no_op(name="done")
    turns = fb.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, 0.0), (0, x), name="loop")
    no, yes = fb.control_flow.switch(x, x > 0)
    with fb.control_dependencies([fb.identity(yes, name="taken")]):
        third = fb.assign_add(v, 1.0, name="third")
    with fb.control_dependencies([third]):
        acted = fb.identity(yes, name="acted")
    with fb.control_dependencies([fb.control_flow.merge([no, acted]).output]):
        last = fb.identity(v, name="last")
    fetches = [before, other, after, first, last]
    targets = [done, *(turn.op for turn in turns)]
    subgraph = prune(fetches, targets, [x])
    return subgraph, Checker(subgraph, fetches, targets)


def node_of(graph, name):
    """The node of an operation, by its name."""
    return next(node for node in graph.nodes if node.operation.name == name)


def read_for(graph, name):
    """The node that reads what one takes."""
    return graph.producer[node_of(graph, name).inputs[0]]


def drop(graph, dropped, *instead, value=None):
    """What a pass does that has others, and another value, stand for a node."""
    values = {} if value is None else {dropped.outputs[0]: value}
    graph.replace([node for node in graph.nodes if node is not dropped], values, {dropped: instead})
    for node in graph.nodes:
        node.inputs = tuple(values.get(v, v) for v in node.inputs)


def swap_fetches(graph):
    graph.fetches[:2] = graph.fetches[1::-1]


def forget_a_target(graph):
    graph.targets.remove(node_of(graph, "done"))


def forget_a_control_input(graph):
    taken = node_of(graph, "taken")
    node_of(graph, "third").after = ()
    graph.nodes.remove(taken)
    del graph.node_of[taken.operation]


def forget_a_target_from_the_start(graph):
    done = node_of(graph, "done")
    graph.targets.remove(done)
    graph.nodes.remove(done)
    del graph.node_of[done.operation]


def forget_a_control_edge(graph):
    node_of(graph, "done").after = ()


def forget_an_order(graph):
    node_of(graph, "second").behind = ()


def forget_an_order_where_a_branch_leads(graph):
    read_for(graph, "last").behind = ()


def forget_what_a_branch_gives(graph):
    merge = node_of(graph, "Merge")
    merge.inputs = (merge.inputs[0], merge.inputs[0])


def pass_on_what_waits(graph):
    acted = node_of(graph, "acted")
    drop(graph, acted, graph.producer[acted.inputs[0]], value=acted.inputs[0])


def fold_what_is_not_constant(graph):
    before = node_of(graph, "before")
    graph.constants[before.outputs[0]] = np.float32(0)
    drop(graph, before)


def read_another_state(graph):
    read = read_for(graph, "before")
    drop(graph, read_for(graph, "after"), read, value=read.outputs[0])


def read_another_variable(graph):
    read = read_for(graph, "before")
    drop(graph, read_for(graph, "other"), read, value=read.outputs[0])


def write_once(graph):
    first = node_of(graph, "first")
    drop(graph, node_of(graph, "second"), first, value=first.outputs[0])


def write_never(graph):
    drop(graph, node_of(graph, "third"))


def write_again(graph):
    first = node_of(graph, "first")
    graph.nodes.append(
        Node(first.operation, first.op_def, first.attributes, first.inputs, (99,), (), first.owner)
    )


def write_otherwise(graph):
    node_of(graph, "third").op_def = fb.assign_sub(fb.Variable(1.0), 1.0).op.op_def


def close_another_loop(graph):
    one, other = (node_of(graph, f"loop/NextIteration{n}") for n in ("", "_1"))
    one.closes, other.closes = other.closes, one.closes


def close_nothing(graph):
    node_of(graph, "loop/NextIteration").closes = None


def close_what_is_not_there(graph):
    for name in ("loop/Merge_1", "loop/Switch_1", "loop/Exit_1"):
        graph.nodes.remove(node_of(graph, name))
    del graph.targets[-1]


def leave_a_loop_open(graph):
    graph.nodes.remove(node_of(graph, "loop/NextIteration_1"))


MISTAKES = {
    swap_fetches: "are not those of",
    forget_a_target: "not run: .*'done'",
    forget_a_control_input: "nothing was made of .*'taken'",
    forget_a_target_from_the_start: "nothing was made of .*'done'",
    forget_a_control_edge: "'done'.* does not wait for .*'second'",
    forget_an_order: "'second'.* does not wait for .*'first'",
    forget_an_order_where_a_branch_leads: "'v/read_2'.* does not wait for .*'third'",
    forget_what_a_branch_gives: "'Merge'.* does not wait for .*'acted'",
    pass_on_what_waits: "'Switch'.* does not wait for .*'third'",
    fold_what_is_not_constant: "'before'.* was after .*'v/read'.*, and nothing stands for it",
    read_another_state: "'v/read'.* does not wait for .*'second'",
    read_another_variable: "'v/read'.* does not do what .*'w/read'",
    write_once: "'first'.* does only once what .*'second'",
    write_never: "'third'.* touches something, and is gone",
    write_again: "'first'.* runs what another node runs",
    write_otherwise: "'third'.* does not do what .*'third'",
    close_another_loop: "'loop/NextIteration'.* closes .*'loop/Merge_1'.* instead of",
    close_nothing: "'loop/NextIteration'.* closes None instead of .*'loop/Merge'",
    close_what_is_not_there: "'loop/NextIteration_1'.* closes what is not there",
    leave_a_loop_open: "'loop/Merge_1'.* is not closed by .*'loop/NextIteration_1'",
}


@pytest.mark.parametrize(("mistake", "message"), MISTAKES.items())
def test_a_wrong_pass_is_found(stateful_run, mistake, message):
    subgraph, checker = stateful_run
    checker.check()
    order_state(subgraph)
    checker.check()
    mistake(subgraph)
    # What is near the node is told too, after a semicolon.
    with pytest.raises(fb.errors.InternalError, match=message.replace(".*", "[^;]*")):
        checker.check()


@pytest.mark.parametrize("mistake", [forget_a_control_edge, forget_a_control_input])
def test_what_pruning_loses_is_found(stateful_run, mistake):
    subgraph, checker = stateful_run
    mistake(subgraph)
    with pytest.raises(fb.errors.InternalError, match=MISTAKES[mistake]):
        checker.check()
