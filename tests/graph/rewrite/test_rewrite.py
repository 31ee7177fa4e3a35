"""The passes from the pruned graph to what runs; each is tried on its own."""

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.rewrite import fold as folding
from flowbook.graph.rewrite.cse import SMALL, merge_common
from flowbook.graph.rewrite.fold import fold
from flowbook.graph.rewrite.join_products import join_products
from flowbook.graph.rewrite.order_state import order_state
from flowbook.graph.rewrite.prune import prune
from flowbook.graph.rewrite.simplify import simplify
from flowbook.graph.rewrite.subgraph import Subgraph


def names(graph: Subgraph):
    return [node.operation.name for node in graph.nodes]


def check(graph: Subgraph):
    """Every value that is needed is given before, and every node named is there."""
    given = {*range(len(graph.feeds)), *graph.constants}
    seen = set()
    for node in graph.nodes:
        assert given.issuperset(node.inputs), node
        assert seen.issuperset(node.after), node
        given.update(node.outputs)
        seen.add(node)
    assert given.issuperset(graph.fetches)
    assert seen.issuperset(graph.targets)


def after(first, build):
    with fb.control_dependencies([first]):
        return build()


@pytest.fixture
def x():
    return fb.placeholder(fb.float32, [2], name="x")


# Pruning


def test_prune_takes_what_the_fetches_need(x):
    a = fb.negative(x, name="a")
    b = fb.exp(a, name="b")
    fb.exp(b, name="not_needed")
    graph = prune([b], [], [x])
    assert names(graph) == ["a", "b"]
    assert graph.feeds == [x]
    assert graph.nodes[0].inputs == (0,)
    assert graph.fetches == [graph.nodes[1].outputs[0]]
    check(graph)


def test_prune_cuts_at_the_feeds(x):
    a = fb.negative(x, name="a")
    b = fb.exp(a, name="b")
    c = fb.add(b, a, name="c")
    assert names(prune([c], [], [x, b])) == ["a", "c"]
    assert names(prune([c], [], [a])) == ["b", "c"]
    assert names(prune([c], [], [c])) == []
    check(prune([c, b, a], [], [b, a]))


def test_prune_keeps_a_partly_fed_operation(x):
    first, second = fb.split(x, 2, name="s")
    total = fb.add(first, second, name="total")
    assert names(prune([total], [], [x, first])) == ["s", "total"]
    assert names(prune([total], [], [first, second])) == ["total"]
    graph = prune([first, second], [], [x, first])
    assert graph.fetches == [1, graph.nodes[0].outputs[1]]


def test_prune_follows_control_inputs(x):
    a = fb.negative(x, name="a")
    b = after(a, lambda: fb.exp(x, name="b"))
    graph = prune([b], [], [x])
    assert names(graph) == ["a", "b"]
    assert graph.nodes[1].after == (graph.nodes[0],)
    assert names(prune([b], [], [x, a])) == ["b"]


def test_prune_runs_targets_whose_outputs_are_fed(x):
    a = fb.negative(x, name="a")
    assert names(prune([], [a.op], [x, a])) == ["a"]
    assert names(prune([], [x.op], [x])) == []


def test_prune_needs_every_placeholder(x):
    y = fb.exp(fb.negative(x), name="y")
    with pytest.raises(ValueError, match="the fetch of 'y:0' needs it"):
        prune([y], [], [])


def test_prune_makes_reads_of_a_fed_variable_pure():
    v = fb.Variable([1.0, 2.0], name="v")
    gathered = fb.gather(v, [1])
    update = fb.assign_add(v, v.value * 2.0)
    graph = prune([v.value, gathered, update], [], [v.handle])
    kinds = {node.op_def.type for node in graph.nodes}
    assert "ReadVariable" not in kinds
    assert {"Identity", "Variable", "AssignAdd"} <= kinds
    check(graph)


# Folding


def folded(fetches, targets=(), feeds=()):
    graph = prune(fetches, list(targets), list(feeds))
    fold(graph)
    check(graph)
    return graph


def test_what_constants_determine_is_computed(x):
    a = fb.constant([1.0, 2.0]) * 3.0 + 1.0
    graph = folded([a, x + a], feeds=[x])
    assert [node.op_def.type for node in graph.nodes] == ["Add"]
    value = graph.constants[graph.fetches[0]]
    assert value.tolist() == [4.0, 7.0]
    assert not value.flags.writeable
    assert graph.went[a.op] == "computed before the run: its inputs are constants"


def test_feeds_are_no_constants():
    a = fb.constant([1.0, 2.0])
    b = a * 3.0
    assert names(folded([b], feeds=[a])) == ["Mul"]


def test_errors_wait_for_the_run():
    matrix = fb.matrix_inverse(fb.constant([[1.0, 1.0], [1.0, 1.0]]))
    graph = folded([matrix])
    assert names(graph) == ["MatrixInverse"]
    with fb.Session() as sess:
        for _ in range(2):
            with pytest.raises(fb.errors.InvalidArgumentError) as caught:
                sess.run(matrix)
            assert caught.value.operation is matrix.op


def test_only_small_results_are_kept():
    elements = folding.LARGEST // 4
    kept, large = fb.fill([elements], 1.0), fb.fill([elements + 1], 1.0)
    assert names(folded([kept])) == []
    assert names(folded([large])) == ["Fill_1"]
    assert names(folded([fb.reduce_sum(large)])) == ["Fill_1", "Sum"]


def test_large_results_of_known_shape_are_not_even_computed(monkeypatch):
    large = fb.fill([folding.LARGEST], 1.0)
    monkeypatch.setattr(large.op.op_def, "kernel", lambda xp, dims, value: pytest.fail("computed"))
    assert names(folded([large])) == ["Fill"]


def test_nothing_stateful_random_or_asynchronous_is_folded():
    calls = []
    noted = fb.py_func(lambda v: calls.append(1) or v, [1.0], fb.float32, name="noted")
    drawn = fb.random_uniform([2], name="drawn")
    v = fb.Variable(1.0, name="v")
    written = fb.assign(v, 2.0, name="written")
    waiting = fb.OpDef(
        "FoldNot",
        "x: float32 -> y: float32",
        kernel=lambda context, x: context.complete((x,)),
        is_async=True,
    )(1.0, name="waiting")
    graph = folded([noted, drawn, v.value, written, waiting])
    assert {"noted", "drawn", "v", "v/read", "written", "waiting"} <= set(names(graph))
    assert calls == []


def test_users_code_is_not_folded():
    """Nobody knows how long it takes, and no timeout would end it."""
    calls = []
    noted = fb.py_func(lambda v: calls.append(1) or v, [1.0], fb.float32, stateful=False)
    own = fb.OpDef(
        "FoldUsers",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda xp, x: calls.append(1) or x,
    )
    assert len(folded([noted, own(1.0)]).nodes) == 2
    assert calls == []


def product(size):
    matrix = np.ones([size, size], np.float32)
    return fb.matmul(fb.constant(matrix), fb.constant(matrix))


def test_folding_has_a_budget(monkeypatch):
    computed = []
    op_def = product(2).op.op_def
    kernel = op_def.kernel
    monkeypatch.setattr(op_def, "kernel", lambda *a, **k: computed.append(1) or kernel(*a, **k))
    large, small = product(400), product(100)
    assert large.shape.size * 4 < folding.LARGEST
    assert names(folded([large, small])) == [large.op.name]
    assert computed == [1]
    many = [product(100) for _ in range(60)]
    left = names(folded(many))
    assert 10 < len(left) < 50
    assert len(computed) == 1 + len(many) - len(left)


def test_what_is_computed_in_vain_counts_for_the_budget(monkeypatch):
    computed = []

    def fails(*args, **attributes):
        computed.append(1)
        raise ValueError("as asked")

    many = [product(100) for _ in range(60)]
    monkeypatch.setattr(many[0].op.op_def, "kernel", fails)
    assert len(folded(many).nodes) == 60
    assert 10 < len(computed) < 50


def test_what_waits_for_something_with_effects_is_not_folded(x):
    effect = fb.py_func(lambda: None, [], [], name="effect")
    value = after(effect, lambda: fb.negative(fb.identity(1.0), name="value"))
    assert "value" in names(folded([value]))
    pure = fb.negative(fb.constant(1.0))
    assert names(folded([after(pure, lambda: fb.negative(2.0))])) == []


@pytest.mark.parametrize(
    "kernel",
    [
        lambda xp, x: 1.0,
        lambda xp, x: x.astype(np.float64),
        lambda xp, x: (x,),
        lambda xp, x: xp.zeros(3, xp.float32),
    ],
    ids=["no array", "dtype", "tuple", "shape"],
)
def test_what_a_kernel_gets_wrong_is_not_folded(kernel, monkeypatch):
    y = fb.negative(1.0)
    monkeypatch.setattr(y.op.op_def, "kernel", kernel)
    assert len(folded([y]).nodes) == 1


# Common subexpressions


def merged(fetches, targets=(), feeds=()):
    graph = prune(fetches, list(targets), list(feeds))
    order_state(graph)
    merge_common(graph)
    graph.sweep()
    check(graph)
    return graph


def test_equal_operations_merge(x):
    a, b = fb.exp(x, name="a"), fb.exp(x, name="b")
    c = fb.add(a, b, name="c")
    graph = merged([c, b], feeds=[x])
    assert names(graph) == ["a", "c"]
    assert graph.nodes[1].inputs == graph.nodes[0].outputs * 2
    assert graph.fetches[1] == graph.nodes[0].outputs[0]
    assert graph.went[b.op] == "merged into 'a', which is the same"


def test_what_depends_on_merged_operations_merges(x):
    a = fb.exp(fb.negative(x)) + 1.0
    b = fb.exp(fb.negative(x)) + 1.0
    graph = merged([a, b], feeds=[x])
    assert len(graph.nodes) == 3
    assert graph.fetches[0] == graph.fetches[1]


def test_multi_output_operations_merge(x):
    one, two = fb.split(x, 2), fb.split(x, 2)
    graph = merged([one[0], two[1], two[0]], feeds=[x])
    assert len(graph.nodes) == 1
    assert graph.fetches == [*graph.nodes[0].outputs, graph.nodes[0].outputs[0]]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (lambda x: fb.exp(x), lambda x: fb.negative(x)),
        (lambda x: fb.reduce_sum(x, 0), lambda x: fb.reduce_sum(x)),
        (lambda x: fb.cast(x, fb.int32), lambda x: fb.cast(x, fb.int64)),
        (lambda x: x - 1.0, lambda x: 1.0 - x),
        (lambda x: x + 0.0, lambda x: x + -0.0),
        (lambda x: fb.random_uniform([2], seed=1), lambda x: fb.random_uniform([2], seed=1)),
        (lambda x: fb.py_func(abs, [x], fb.float32), lambda x: fb.py_func(abs, [x], fb.float32)),
    ],
    ids=["type", "attributes", "dtype", "order", "zeros", "random", "effects"],
)
def test_what_differs_does_not_merge(x, one, two):
    graph = merged([one(x), two(x)], feeds=[x])
    assert graph.fetches[0] != graph.fetches[1]


def test_constants_of_the_same_bits_merge_where_these_mean_the_same():
    zeros = [
        np.zeros([2, 3], np.float32),
        np.zeros([2, 3], np.int32),
        np.zeros([3, 2], np.float32),
    ]
    found = merged([fb.constant(each) for each in [*zeros, *zeros, *zeros]]).fetches
    assert found[:3] == found[3:6] == found[6:]
    assert len(set(found)) == 3


def test_constants_in_different_orders_of_memory_do_not_merge():
    rows = fb.constant(np.zeros([2, 3], np.float32))
    columns = fb.transpose(fb.constant(np.zeros([3, 2], np.float32)))
    graph = prune([rows, columns], [], [])
    fold(graph)
    merge_common(graph)
    assert [graph.constants[value].strides for value in graph.fetches] == [(12, 4), (4, 8)]


def test_equal_functions_without_state_merge(x):
    one, two = (fb.py_func(abs, [x], fb.float32, stateful=False) for _ in range(2))
    assert len(merged([one, two], feeds=[x]).nodes) == 1
    other = fb.py_func(lambda v: v, [x], fb.float32, stateful=False)
    assert len(merged([one, other], feeds=[x]).nodes) == 2


def test_equal_device_requests_merge(x):
    plain = fb.exp(x)
    with fb.device("/device:cpu:0"):
        one, two = fb.exp(x), fb.exp(x)
    with fb.colocate_with(x):
        three, four = fb.exp(x), fb.exp(x)
    graph = merged([plain, one, two, three, four], feeds=[x])
    assert len(graph.nodes) == 3
    assert graph.fetches[1] == graph.fetches[2] != graph.fetches[0]
    assert graph.fetches[3] == graph.fetches[4] != graph.fetches[0]


def test_equal_control_inputs_merge(x):
    gate, other = fb.py_func(lambda: None, [], []), fb.py_func(lambda: None, [], [])
    free = fb.exp(x)
    one, two = (after(gate, lambda: fb.exp(x)) for _ in range(2))
    three = after(other, lambda: fb.exp(x))
    graph = merged([free, one, two, three], feeds=[x])
    assert graph.fetches[1] == graph.fetches[2]
    assert len(set(graph.fetches)) == 3


def test_control_inputs_that_merge_count_as_equal(x):
    a, b = fb.exp(x, name="a"), fb.exp(x, name="b")
    one, two = after(a, lambda: fb.negative(x)), after(b, lambda: fb.negative(x))
    graph = merged([one, two], feeds=[x])
    assert graph.fetches[0] == graph.fetches[1]


def test_small_equal_constants_merge(x):
    small = [fb.add(x, fb.constant([1.0, 2.0])) for _ in range(2)]
    assert len(merged(small, feeds=[x]).nodes) == 1
    values = np.ones(SMALL, np.float32)
    y = fb.placeholder(fb.float32, [SMALL])
    large = [fb.add(y, fb.constant(values)) for _ in range(2)]
    assert len(merged(large, feeds=[y]).nodes) == 2
    words = [fb.constant("a"), fb.constant("a")]
    assert len(merged([fb.identity(w) for w in words]).nodes) == 2


def test_reads_between_the_same_writes_merge():
    v = fb.Variable(1.0, name="v")
    gate = fb.no_op(name="gate")
    first = after(gate, lambda: fb.add(v, 0.0))
    second = after(gate, lambda: fb.add(v, 0.0))
    update = fb.assign_add(v, 1.0)
    third = after(gate, lambda: fb.add(v, 0.0))
    behind = after(update, lambda: fb.add(v, 0.0))
    behind_too = after(update, lambda: fb.add(v, 0.0))
    graph = merged([first, second, third, update, behind, behind_too])
    assert graph.fetches[0] == graph.fetches[1] == graph.fetches[2]
    assert graph.fetches[4] == graph.fetches[5] != graph.fetches[0]
    with fb.Session() as sess:
        assert sess.run([first, behind, third, update]) == [1.0, 2.0, 1.0, 2.0]
        assert sess.run([first, behind, third, update]) == [2.0, 3.0, 2.0, 3.0]


def test_reads_of_different_variables_do_not_merge():
    v, w = fb.Variable(1.0), fb.Variable(1.0)
    graph = merged([v.value, w.value])
    assert graph.fetches[0] != graph.fetches[1]


# Simplifying


def simplified(fetches, targets=(), feeds=()):
    graph = prune(fetches, list(targets), list(feeds))
    simplify(graph)
    check(graph)
    return graph


def test_what_only_passes_a_value_on_drops_out(x):
    a = fb.exp(x, name="a")
    b = fb.identity(fb.stop_gradient(fb.prevent_gradient(fb.cast(a, fb.float32, name="again"))))
    c = fb.negative(b, name="c")
    graph = simplified([c, b], feeds=[x])
    assert names(graph) == ["a", "c"]
    assert graph.fetches[1] == graph.nodes[0].outputs[0]
    assert simplified([fb.identity(x)], feeds=[x]).fetches == [0]
    assert names(simplified([fb.cast(a, fb.float64)], feeds=[x])) == ["a", "Cast"]


def test_an_identity_that_waits_stays(x):
    gate = fb.py_func(lambda: None, [], [], name="gate")
    waiting = after(gate, lambda: fb.identity(x, name="waiting"))
    assert names(simplified([fb.exp(waiting, name="y")], feeds=[x])) == ["gate", "waiting", "y"]


def test_an_identity_on_another_device_stays(x):
    with fb.device("/device:cpu:0"):
        moved = fb.identity(x, name="moved")
        again = fb.identity(moved, name="again")
    assert names(simplified([again], feeds=[x])) == ["moved"]


def test_who_waits_for_an_identity_waits_for_its_input(x):
    noted = fb.py_func(lambda v: v, [x], fb.float32, name="noted")
    passed = fb.identity(noted)
    y = after(passed, lambda: fb.exp(x, name="y"))
    z = after(fb.identity(x), lambda: fb.exp(x, name="z"))
    graph = simplified([y, z], [passed.op], feeds=[x])
    assert names(graph) == ["noted", "y", "z"]
    assert graph.nodes[1].after == (graph.nodes[0],)
    assert graph.nodes[2].after == ()
    assert graph.targets == [graph.nodes[0]]


# The order of state: without threads; the rules in full are tested with the state


def order(fetches, targets=()):
    graph = prune(fetches, list(targets), [])
    order_state(graph)
    check(graph)
    return graph


def edges(graph):
    return {(w.operation.name, n.operation.name) for n in graph.nodes for w in n.after}


def test_reads_precede_writes_built_earlier():
    v = fb.Variable(1.0, name="v")
    one = fb.assign_add(v, 1.0, name="one")
    two = fb.assign_add(v, 1.0, name="two")
    graph = order([v.value, two, one])
    assert edges(graph) == {("v/read", "one"), ("one", "two")}


def test_a_read_between_two_writes():
    v = fb.Variable(1.0, name="v")
    one = fb.assign_add(v, 1.0, name="one")
    between = after(one, lambda: fb.add(v, 0.0, name="between"))
    two = fb.assign_add(v, 1.0, name="two")
    found = edges(order([between, two]))
    assert ("one", "v/read_1") in found
    assert ("v/read_1", "two") in found


def test_an_edge_that_would_close_a_cycle_yields():
    """The read built first sees the value before the write, the other must come after it."""
    v, w = fb.Variable(1.0, name="v"), fb.Variable(1.0, name="w")
    write_v = fb.assign_add(v, 1.0, name="write_v")
    write_w = fb.assign_add(w, 1.0, name="write_w")
    read_w = after(write_v, lambda: fb.add(w, 0.0, name="read_w"))
    read_v = after(write_w, lambda: fb.add(v, 0.0, name="read_v"))
    found = edges(order([read_w, read_v]))
    assert ("w/read_1", "write_w") in found
    assert ("v/read_1", "write_v") not in found
    for _ in range(2):
        with fb.Session() as sess:
            assert sess.run([read_w, read_v]) == [1.0, 2.0]


def test_effects_run_in_the_order_of_construction():
    for i in range(4):
        fb.py_func(lambda: None, [], [], name=f"f{i}")
    operations = [fb.get_default_graph().get_operation_by_name(f"f{i}") for i in (2, 0, 3)]
    assert edges(order([], operations)) == {("f0", "f2"), ("f2", "f3")}


def handing_on(built_first):
    """A queue that hands on a variable's new value; what is built behind and before that."""
    v, q = fb.Variable(1.0, name="v"), fb.FIFOQueue(1, fb.float32, [[]], name="q")
    taken = q.dequeue(name="taken")
    first = after(taken, lambda: built_first(v, taken))
    written = fb.assign_add(v, 1.0, name="written")
    put = q.enqueue(written, name="put")
    return v, taken, put, first


def behind(graph):
    return {(w.operation.name, n.operation.name) for n in graph.nodes for w in n.behind}


def test_a_read_behind_what_a_queue_hands_on_sees_what_was_written_before_it():
    """If it went before the write, as others do, it would wait for what comes after that."""
    _, _, put, read = handing_on(lambda v, _: fb.add(v, 0.0, name="read"))
    assert behind(order([read], [put])) == {("written", "v/read_1")}


def test_a_write_behind_what_a_queue_hands_on_follows_the_write_before_it():
    v, _, put, first = handing_on(lambda v, taken: fb.assign(v, taken, name="first"))
    last = fb.assign_sub(v, 1.0, name="last")
    assert behind(order([first, last], [put])) == {("written", "first"), ("first", "last")}


def test_effects_behind_what_a_queue_hands_on_follow_those_before_it():
    q = fb.FIFOQueue(1, fb.float32, [[]])
    first = fb.py_func(lambda x: x, [q.dequeue()], fb.float32, name="first")
    put = q.enqueue(fb.py_func(lambda: np.float32(1), [], fb.float32, name="second"))
    assert behind(order([first], [put])) == {("second", "first")}


def test_what_is_put_where_it_was_taken_before_hands_nothing_on():
    v, q = fb.Variable(1.0, name="v"), fb.FIFOQueue(1, fb.float32, [[]])
    taken = q.dequeue()
    written = fb.assign_add(v, taken, name="written")
    put = q.enqueue(written)
    read = after(taken, lambda: fb.add(v, 0.0, name="read"))
    assert behind(order([read], [put])) == {("v/read_1", "written")}


# The subgraph itself


def test_sweeping_keeps_what_is_waited_for(x):
    gate = fb.py_func(lambda: None, [], [], name="gate")
    y = after(gate, lambda: fb.exp(x, name="y"))
    graph = prune([y], [], [x])
    fb.constant(1.0)
    graph.sweep()
    assert names(graph) == ["gate", "y"]
    graph.fetches = []
    graph.sweep()
    assert names(graph) == []


def test_sorting_keeps_dependencies(x):
    a = fb.exp(x, name="a")
    b = fb.exp(a, name="b")
    c = fb.exp(x, name="c")
    d = after(c, lambda: fb.exp(x, name="d"))
    graph = prune([b, d], [], [x])
    graph.sort(lambda node: -node.operation.id)
    assert names(graph) == ["c", "d", "a", "b"]
    check(graph)


# Sums of products


def recurrent_gradients(count=4):
    """The products that add up to the gradient of a matrix that is used so often."""
    rows = [fb.placeholder(fb.float32, [2, 5], name=f"a{i}") for i in range(count)]
    slopes = [fb.placeholder(fb.float32, [2, 6], name=f"b{i}") for i in range(count)]
    pairs = zip(rows, slopes, strict=True)
    return [*rows, *slopes], [fb.matmul(a, b, transpose_a=True) for a, b in pairs]


def joined(fetches, feeds, targets=()):
    graph = prune(fetches, list(targets), feeds)
    join_products(graph)
    graph.sweep()
    check(graph)
    return [node.op_def.type for node in graph.nodes]


def test_a_sum_of_products_is_joined():
    feeds, products = recurrent_gradients()
    total = fb.add_n(products)
    assert joined([total], feeds) == ["SumOfProducts"]
    arrays = [np.random.default_rng(i).normal(size=t.shape.dims) for i, t in enumerate(feeds)]
    expected = sum(a.T @ b for a, b in zip(arrays[:4], arrays[4:], strict=True))
    with fb.Session() as session:
        for _ in range(2):
            found = session.run(total, dict(zip(feeds, arrays, strict=True)))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_products_that_something_else_needs_stay():
    feeds, products = recurrent_gradients()
    total = fb.add_n(products)
    assert "AddN" in joined([total, products[1]], feeds)
    assert "AddN" in joined([total], feeds, [products[1].op])
    later = after(products[2], lambda: fb.negative(total))
    assert "AddN" in joined([later], feeds)


def test_products_smaller_than_their_factors_stay():
    rows = [fb.placeholder(fb.float32, [50, 2]) for _ in range(3)]
    total = fb.add_n([fb.matmul(r, r, transpose_a=True) for r in rows])
    assert "AddN" in joined([total], rows)


def test_products_of_unknown_shape_stay():
    rows = [fb.placeholder(fb.float32, [None, 3]) for _ in range(3)]
    total = fb.add_n([fb.matmul(r, r, transpose_a=True) for r in rows])
    assert "AddN" in joined([total], rows)


ORDERS = {
    "transposed": (lambda a: a.T.copy(), fb.transpose),
    "backwards": (lambda a: a[::-1].copy(), lambda t: t[::-1]),
    "every second": (lambda a: a.repeat(2, 1), lambda t: t[:, ::2]),
}

ROUNDED = {
    "sum": fb.reduce_sum,
    "rows": lambda t: fb.reduce_sum(t, 1),
    "columns": lambda t: fb.reduce_sum(t, 0),
    "mean": fb.reduce_mean,
    "product": lambda t: fb.matmul(t, t, transpose_a=True),
    "softmax": fb.nn.softmax,
    "norm": fb.norm,
    "scan": fb.cumsum,
}


@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.parametrize("order", ORDERS)
def test_views_of_constants_are_rounded_as_in_the_run(name, order):
    values = np.random.default_rng(3).normal(size=(73, 219)).astype(np.float32)
    store, view = ORDERS[order]
    base = store(values)
    fed = fb.placeholder(fb.float32, base.shape)
    with fb.Session() as sess:
        folded = sess.run(ROUNDED[name](view(fb.constant(base))))
        run = sess.run(ROUNDED[name](view(fed)), {fed: base})
    assert np.asarray(folded).tobytes() == np.asarray(run).tobytes()
