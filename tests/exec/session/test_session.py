"""The session's life: running, extending, closing; and what the white paper's figures promise."""

import threading

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.simulated import Simulated


def noting(calls, name, *inputs):
    """A float scalar operation that notes that it ran."""

    def note(*values):
        calls.append(name)
        return np.float32(sum(values, start=1.0))

    return fb.py_func(note, list(inputs), fb.float32, name=name)


@pytest.fixture
def sess():
    with fb.Session() as session:
        yield session


def test_figure_6_of_the_white_paper(sess):
    """With b:0 fed and f:0 fetched, d and e do not run (section 4.2)."""
    calls = []
    a = noting(calls, "a")
    b = noting(calls, "b")
    c = noting(calls, "c", a, b)
    d = noting(calls, "d", b)
    noting(calls, "e", d)
    f = noting(calls, "f", c)
    for _ in range(3):  # In the reference executor, and as generated code.
        calls.clear()
        assert sess.run("f:0", {"b:0": 10.0}) == 13.0
        assert calls == ["a", "c", "f"]
    assert sess.run(f) == 4.0
    assert calls[3:] == ["a", "b", "c", "f"]


def test_figure_1_of_the_white_paper(sess):
    """One layer, with the shapes that fit."""
    W = fb.Variable(fb.random_uniform([784, 100], -1, 1, seed=3), name="W")
    b = fb.Variable(fb.zeros([100]), name="b")
    x = fb.placeholder(fb.float32, [None, 784], name="x")
    relu = fb.nn.relu(x @ W + b)
    images = np.random.default_rng(0).random((5, 784), np.float32)
    for _ in range(3):
        out, weights = sess.run([relu, W], {x: images})
        np.testing.assert_allclose(out, np.maximum(images @ weights, 0), rtol=1e-4, atol=1e-4)


def test_a_run_takes_what_the_graph_gained(sess):
    a = fb.constant(2.0, name="a")
    assert sess.run(a) == 2.0
    b = a * 3
    assert sess.run(b) == 6.0
    sess.extend()
    sess.extend()
    assert sess.run([a, b + 1]) == [2.0, 7.0]


def test_growing_leaves_prepared_runs_as_they_are(sess):
    calls = []
    counted = noting(calls, "counted")
    for count in range(1, 5):
        assert sess.run(counted) == 1.0
        noting(calls, "other")
        assert calls == ["counted"] * count


def test_a_finalized_graph_runs(sess):
    x = fb.placeholder(fb.float32, [2])
    w = fb.Variable([1.0, 2.0])
    y = x * w
    update = fb.assign_add(w, x)
    fb.get_default_graph().finalize()
    assert sess.run(y, {x: [3.0, 4.0]}).tolist() == [3.0, 8.0]
    sess.run(update, {x: [1.0, 1.0]})
    assert sess.run(w).tolist() == [2.0, 3.0]
    step = sess.partial_run([y], [x])
    assert step.run(y, {x: [1.0, 1.0]}).tolist() == [2.0, 3.0]
    with pytest.raises(RuntimeError, match="finalized"):
        fb.constant(1.0)


def test_a_session_of_a_given_graph():
    with fb.Graph().as_default() as graph:
        a = fb.constant(1.0, name="a")
    fb.constant(2.0, name="a")
    with fb.Session(graph) as by_position, fb.Session(graph=graph) as by_name:
        assert by_position.run("a:0") == by_name.run(a) == 1.0
        assert by_name.graph is graph
    with fb.Session() as of_default:
        assert of_default.run("a:0") == 2.0
    with pytest.raises(TypeError, match=r"graph is an fb\.Graph, not 'graph'"):
        fb.Session("graph")


def test_sessions_have_their_own_state():
    w = fb.Variable(1.0)
    add = fb.assign_add(w, 1.0)
    with fb.Session() as one, fb.Session() as other:
        assert one.run(add) == 2.0
        assert one.run(add) == 3.0
        assert other.run(w) == 1.0


def test_a_closed_session_runs_nothing():
    a = fb.constant(1.0)
    sess = fb.Session()
    assert sess.run(a) == 1.0
    call = sess.make_callable(a)
    step = sess.partial_run([a], [])
    assert not sess.closed
    sess.close()
    sess.close()
    assert sess.closed
    assert "closed" in repr(sess)
    for use in (
        lambda: sess.run(a),
        lambda: sess.run([]),
        call,
        sess.extend,
        sess.__enter__,
        lambda: sess.make_callable(a),
        lambda: sess.partial_run([a], []),
    ):
        with pytest.raises(fb.errors.FailedPreconditionError, match="session is closed") as caught:
            use()
        assert "fb.Session()" in str(caught.value)
    with pytest.raises(fb.errors.CancelledError, match="session was closed"):
        step.run(a)


def test_the_end_of_a_block_closes_the_session():
    with fb.Session() as sess:
        assert not sess.closed
    assert sess.closed
    with pytest.raises(KeyError), fb.Session() as sess:
        raise KeyError
    assert sess.closed


def test_closing_ends_a_run_that_waits():
    started = threading.Event()
    cancelled = threading.Event()

    def wait(context):
        context.on_cancel(cancelled.set)
        started.set()

    forever = fb.OpDef("WaitsForClose", "-> y: float32", kernel=wait, is_async=True)
    sess = fb.Session()
    y = forever() + 1.0
    for _ in range(2):
        errors = []

        def run(sess=sess, errors=errors):
            try:
                sess.run(y)
            except fb.errors.OpError as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        assert started.wait(60)
        sess.close()
        thread.join(60)
        assert [type(e) for e in errors] == [fb.errors.CancelledError]
        assert cancelled.wait(60)
        sess = fb.Session()
        with pytest.raises(fb.errors.DeadlineExceededError):
            sess.run(y, timeout=0.0)  # From now on regions run.
        started.clear()
        cancelled.clear()


def test_names_from_tensorflow_say_what_to_write(sess):
    a = fb.constant(1.0)
    with pytest.raises(AttributeError, match=r"sess\.run"):
        sess.as_default()
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = sess.nothing
    with pytest.raises(TypeError, match="feed"):
        sess.run(a, feed_dict={a: 2.0})


def test_devices_are_listed(sess):
    (device,) = sess.list_devices()
    assert device[:2] == ("/job:localhost/task:0/device:cpu:0", "cpu")
    assert 1 << 28 < device.memory < 1 << 48
    assert (device.used, device.peak) == (None, None)


def test_what_arrays_take_of_an_accelerator_is_counted_all_the_time():
    x = fb.placeholder(fb.float32, [1000], name="x")
    with fb.device("simulated:0"):
        W = fb.Variable(np.zeros(500, np.float32), name="W")
        y = fb.reduce_sum(fb.exp(x)) + fb.reduce_sum(W)
    with fb.Session(devices=["cpu:0", Simulated()]) as sess:
        for _ in range(3):
            sess.run(y, {x: np.ones(1000)})
        (_, there) = sess.list_devices()
        assert there.used == 2000
        assert 2000 + 4000 + 4000 <= there.peak <= 2000 + 4000 + 4000 + 100


def test_control_dependencies_run(sess):
    calls = []
    first = noting(calls, "first")
    with fb.control_dependencies([first]):
        second = fb.constant(5.0) * 1.0
        third = fb.identity(second)
    for _ in range(2):
        calls.clear()
        assert sess.run(second) == 5.0
        assert calls == ["first"]
        assert sess.run(third) == 5.0
        assert calls == ["first", "first"]


def test_a_constant_waits_for_its_control_dependencies(sess):
    calls = []
    with fb.control_dependencies([noting(calls, "before")]):
        five = fb.constant(5.0)
    for count in (1, 2, 3):
        assert sess.run(five) == 5.0
        assert len(calls) == count


def test_a_feed_stands_for_a_value_and_not_for_an_effect(sess):
    calls = []
    a = noting(calls, "a")
    pure = fb.identity(fb.placeholder(fb.float32, []))
    with fb.control_dependencies([a, pure]):
        b = fb.constant(1.0) + 1.0
    assert sess.run(b, {a: 0.0, pure: 0.0}) == 2.0
    assert calls == ["a"]
    assert sess.run(a * 2.0, {a: 1.0}) == 2.0
    assert calls == ["a"]


def test_a_fed_write_happens_where_something_waits_for_it(sess):
    W = fb.Variable(1.0)
    written = fb.assign(W, 2.0)
    with fb.control_dependencies([written]):
        y = fb.constant(3.0) * 1.0
    assert sess.run([y, written + 0.0], {written: 7.0}) == [3.0, 7.0]
    assert sess.run(W) == 2.0


def test_many_signatures_are_remembered_within_bounds(sess, monkeypatch):
    monkeypatch.setattr("flowbook.exec.session.calls.MOST_REMEMBERED", 3)
    tensors = [fb.constant(float(i)) for i in range(8)]
    for _ in range(3):
        assert [sess.run(t) for t in tensors] == list(range(8))
        assert len(sess._calls.known) <= 3


def test_a_wide_and_a_deep_graph(sess):
    x = fb.placeholder(fb.float32, [])
    deep = x
    for _ in range(3000):
        deep = deep + 1.0
    wide = fb.add_n([x * float(i) for i in range(500)])
    for _ in range(2):
        assert sess.run([deep, wide], {x: 1.0}) == [3001.0, sum(range(500))]


def test_a_name_redefined_while_it_is_looked_up_is_looked_up_again(monkeypatch):
    graph = fb.get_default_graph()
    old = fb.constant(1.0, name="z")
    sess = fb.Session()
    prepare = sess._master.prepare

    def redefining(*args):
        if not old.op.retired:
            graph.members.retire(old.op)
            fb.constant(2.0, name="z")
            sess.extend()
        return prepare(*args)

    monkeypatch.setattr(sess._master, "prepare", redefining)
    with pytest.warns(fb.errors.StaleDefinitionWarning):
        assert sess.run("z:0") == 1.0
    assert sess.run("z:0") == 2.0


def test_a_guard_that_begins_while_a_run_is_prepared_holds_for_the_next(sess, monkeypatch):
    logs = fb.log(fb.placeholder(fb.float32, [], name="x"))
    prepare = sess._master.prepare

    def guarding(*args):
        monkeypatch.undo()
        prepared = prepare(*args)
        sess.guard()
        return prepared

    monkeypatch.setattr(sess._master, "prepare", guarding)
    assert np.isnan(sess.run(logs, {"x:0": -1.0}))
    with pytest.raises(fb.errors.InvalidArgumentError, match="NaN"):
        sess.run(logs, {"x:0": -1.0})


def test_what_a_block_builds_joins_the_graph_of_its_session():
    before = fb.get_default_graph()
    graph = fb.Graph()
    with fb.Session(graph) as sess:
        assert fb.get_default_graph() is graph
        x = fb.constant(2.0) * 3.0
        with fb.Session(fb.Graph()) as other:
            assert fb.get_default_graph() is other.graph
        assert sess.run(x) == 6.0
    assert fb.get_default_graph() is before
    with pytest.raises(ZeroDivisionError), fb.Session(graph):
        _ = 1 / 0
    assert fb.get_default_graph() is before
    with fb.Session():
        fb.reset_default_graph()  # Of the default graph itself nothing changes.


def test_a_float_too_large_for_its_dtype_is_fed_as_infinity(sess):
    x = fb.placeholder(fb.float32, [])
    assert sess.run(x + 1.0, {x: 1e300}) == np.inf
