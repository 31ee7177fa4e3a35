"""Which updates belong to which loss."""

from typing import Any

import pytest

import flowbook as fb


def layer(x: Any, name: str) -> tuple[Any, Any, Any]:
    """A layer that keeps a moving mean, as batch normalisation does: output, update, mean."""
    with fb.name_scope(name):
        mean = fb.Variable(0.0, trainable=False, name="mean")
        batch = fb.reduce_mean(x)
        moved = fb.mark_as_update(fb.assign_sub(mean, (mean - batch) * 0.5))
        return x - batch, moved, mean


def test_marked_operations_are_updates_in_the_order_of_construction() -> None:
    v = fb.Variable(0.0)
    one, two = fb.assign(v, 1.0), fb.assign(v, 2.0)
    both = fb.group(one, two)
    graph = fb.get_default_graph()
    assert graph.updates() == []
    assert fb.mark_as_update(both) is both
    assert fb.mark_as_update(one) is one
    fb.mark_as_update(one.op)
    assert graph.updates() == [one.op, both]


def test_an_update_belongs_to_losses_that_share_its_data() -> None:
    x, y = fb.placeholder(fb.float32, [None]), fb.placeholder(fb.float32, [None])
    w = fb.Variable(2.0)
    (out_x, moved_x, _), (out_y, moved_y, _) = layer(x * w, "a"), layer(y * w, "b")
    losses = [fb.reduce_sum(fb.square(out)) for out in (out_x, out_y)]
    graph = fb.get_default_graph()
    assert graph.updates(of=losses[0]) == [moved_x.op]
    assert graph.updates(of=losses[1]) == [moved_y.op]
    assert graph.updates(of=losses) == [moved_x.op, moved_y.op]
    assert graph.updates(of=losses[0] + losses[1]) == [moved_x.op, moved_y.op]
    assert graph.updates(of=w * w) == []
    assert graph.updates(of=losses[0].name) == [moved_x.op]


def test_variables_and_constants_connect_nothing() -> None:
    v, w = fb.Variable(1.0), fb.Variable(2.0)
    shared = fb.constant(3.0)
    fb.mark_as_update(fb.assign(v, w * shared))
    fb.mark_as_update(fb.assign(v, w))
    graph = fb.get_default_graph()
    assert graph.updates(of=fb.square(w) * shared) == []
    # What is computed from variables alone does.
    squared = fb.square(w)
    moved = fb.mark_as_update(fb.assign(v, squared))
    assert graph.updates(of=squared * 2.0) == [moved.op]


def test_rows_connect_by_their_indices_not_by_their_table() -> None:
    table, mean = fb.Variable(fb.zeros([4, 2])), fb.Variable(fb.zeros([2]), trainable=False)
    some, others = fb.placeholder(fb.int32, [None]), fb.placeholder(fb.int32, [None])
    moved = fb.mark_as_update(fb.assign(mean, fb.reduce_mean(fb.gather(table, some), 0)))
    graph = fb.get_default_graph()
    assert graph.updates(of=fb.reduce_sum(fb.gather(table, others))) == []
    assert graph.updates(of=fb.reduce_sum(fb.gather(table, some))) == [moved.op]


def test_a_group_belongs_by_what_it_waits_for() -> None:
    x = fb.placeholder(fb.float32, [])
    v = fb.Variable(0.0)
    moved = fb.mark_as_update(fb.group(fb.assign(v, x)))
    assert fb.get_default_graph().updates(of=x * 2.0) == [moved]


def test_waiting_connects_nothing() -> None:
    x, y = fb.placeholder(fb.float32, []), fb.placeholder(fb.float32, [])
    v = fb.Variable(0.0)
    with fb.control_dependencies([fb.square(x)]):
        moved = fb.mark_as_update(fb.assign(v, fb.square(y)))
    graph = fb.get_default_graph()
    assert graph.updates(of=x * 2.0) == []
    assert graph.updates(of=y * 2.0) == [moved.op]


def test_reads_after_writes_do_not_connect_through_them() -> None:
    x = fb.placeholder(fb.float32, [])
    v, mean = fb.Variable(0.0), fb.Variable(0.0)
    with fb.control_dependencies([fb.assign(v, x)]):
        after = fb.identity(v)
    # The read waits for a write of x; what the loss shares is a variable all the same.
    fb.mark_as_update(fb.assign(mean, v))
    assert fb.get_default_graph().updates(of=after * 2.0) == []


def test_minimize_runs_the_updates_of_its_loss() -> None:
    x, y = fb.placeholder(fb.float32, [None]), fb.placeholder(fb.float32, [None])
    w = fb.Variable(2.0)
    (out, _, mean), (other, _, unmoved) = layer(x * w, "a"), layer(y * w, "b")
    step = fb.Variable(0, trainable=False)
    optimizer = fb.train.GradientDescentOptimizer(0.0)
    train = optimizer.minimize(fb.reduce_sum(fb.square(out)), step)
    both = optimizer.minimize(fb.reduce_sum(fb.square(out)) + fb.reduce_sum(fb.square(other)))
    with fb.control_dependencies([train]):
        after = fb.identity(mean)
    with fb.Session() as sess:
        assert sess.run([after, mean], {x: [1.0, 3.0]}) == [2.0, 0.0]
        assert sess.run([mean, unmoved, step]) == [2.0, 0.0, 1]
        sess.run(both, {x: [1.0, 3.0], y: [1.0]})
        assert sess.run([mean, unmoved]) == [3.0, 1.0]


def test_apply_gradients_runs_no_updates() -> None:
    x = fb.placeholder(fb.float32, [None])
    w = fb.Variable(2.0)
    out, moved, mean = layer(x * w, "a")
    loss = fb.reduce_sum(fb.square(out))
    optimizer = fb.train.GradientDescentOptimizer(0.0)
    train = optimizer.apply_gradients(optimizer.compute_gradients(loss))
    grouped = fb.group(train, *fb.get_default_graph().updates(of=loss))
    assert fb.get_default_graph().updates(of=loss) == [moved.op]
    with fb.Session() as sess:
        sess.run(train, {x: [2.0]})
        assert sess.run(mean) == 0.0
        sess.run(grouped, {x: [2.0]})
        assert sess.run(mean) == 2.0


def test_marks_are_stored() -> None:
    x = fb.placeholder(fb.float32, [None], name="x")
    out, moved, _ = layer(x, "a")
    loss = fb.reduce_sum(fb.square(out), name="loss")
    graph = fb.Graph.from_bytes(fb.get_default_graph().to_bytes())
    assert [op.name for op in graph.updates(of="loss")] == [moved.op.name]
    assert loss.name == "loss:0"


def test_marks_do_not_take_part_in_what_surrounds_them() -> None:
    v, w = fb.Variable(0.0), fb.Variable(0.0)
    with fb.control_dependencies([fb.assign(w, 5.0)]):
        moved = fb.assign(v, 1.0)
    with fb.control_dependencies([fb.assign(w, 6.0)]):
        fb.mark_as_update(moved)
    assert fb.get_default_graph().updates() == [moved.op]


@pytest.mark.parametrize("what", ["v/Assign", 3, None])
def test_what_is_marked_is_an_operation(what: Any) -> None:
    fb.Variable(0.0, name="v")
    with pytest.raises(TypeError, match="operation"):
        fb.mark_as_update(what)


def test_an_update_belongs_to_a_loss_through_a_loop() -> None:
    x = fb.placeholder(fb.float32, [])
    mean = fb.Variable(0.0, trainable=False)
    move = fb.mark_as_update(fb.assign(mean, x * 2.0))
    _, loss = fb.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t + x), (0, 0.0))
    assert fb.get_default_graph().updates(of=loss) == [move.op]


def test_what_is_updated_in_a_loop_or_a_branch_is_nobody_elses_business() -> None:
    x = fb.placeholder(fb.float32, [])
    w = fb.Variable(1.0)
    seen = fb.Variable(0.0, trainable=False)

    def marked() -> fb.Tensor:
        fb.mark_as_update(fb.assign_add(seen, x))
        return w * x

    _, looped = fb.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t + marked()), (0, 0.0))
    loss = fb.cond(x > 0, marked, lambda: w) + looped
    assert fb.get_default_graph().updates(of=loss) == []
    train = fb.train.GradientDescentOptimizer(0.1).minimize(loss)
    with fb.Session() as sess:
        sess.run(train, {x: 1.0})
        assert sess.run(seen) == 4
