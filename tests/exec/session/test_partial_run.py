"""Steps whose feeds arrive bit by bit."""

import functools
import gc
import itertools
import threading

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.engine.parts import threads
from tests.exec.engine.test_joint import scatter
from tests.interrupts import interrupted_at


@pytest.fixture(params=[["cpu:0"], ["cpu:0", "cpu:1"], ["simulated:0", "cpu:0", "simulated:1"]])
def sess(request, monkeypatch):
    """A session; of several devices one that places operations by chance."""
    scatter(monkeypatch, seed=3)
    with fb.Session(devices=request.param) as session:
        yield session


@pytest.fixture
def x():
    return fb.placeholder(fb.float32, [], name="x")


@pytest.fixture
def y():
    return fb.placeholder(fb.float32, [], name="y")


def test_a_step_goes_on_with_more_feeds(sess, x, y):
    a = fb.add(x, 1.0, name="a")
    b = fb.multiply(a, y, name="b")
    for _ in range(3):
        step = sess.partial_run([a, b, b.op], [x, "y:0"])
        assert step.run(a, {x: 1.0}) == 2.0
        assert step.run({"b": [b], "op": b.op}, {"y:0": 10.0}) == {"b": [20.0], "op": None}


def test_what_ran_does_not_run_again(sess, x, y):
    calls = []

    def note(value):
        calls.append(float(value))
        return value

    a = fb.py_func(note, [x], fb.float32)
    b = a + y
    step = sess.partial_run([a, b], [x, y])
    assert calls == []
    assert step.run(a, {x: 3.0}) == 3.0
    assert step.run(b, {y: 4.0}) == 7.0
    assert calls == [3.0]


def test_feeds_may_come_before_the_fetches_that_need_them(sess, x, y):
    total = x + y
    step = sess.partial_run(total, [x, y])
    assert step.run([], {x: 1.0}) == []
    assert step.run([], {y: 2.0}) == []
    assert step.run(total) == 3.0


def test_variables_are_read_once_per_step(sess, x):
    v = fb.Variable(1.0)
    first, second = v + 0.0, v * x
    step = sess.partial_run([first, second], [x])
    assert step.run(first) == 1.0
    sess.run(fb.assign(v, 100.0))
    assert step.run(second, {x: 2.0}) == 2.0


def test_variables_may_be_fed(sess, x):
    v = fb.Variable(fb.placeholder(fb.float32, []), name="v")
    y = v * x
    step = sess.partial_run([v, y], [v, x])
    assert step.run(v, {v: 3.0}) == 3.0
    assert step.run(y, {x: 2.0}) == 6.0


def test_several_steps_at_once(sess, x, y):
    total = x * 10.0 + y
    steps = [sess.partial_run(total, [x, y]) for _ in range(3)]
    for i, step in enumerate(steps):
        step.run([], {x: float(i)})
    assert [step.run(total, {y: 5.0}) for step in reversed(steps)] == [25.0, 15.0, 5.0]


def test_each_feed_and_fetch_once(sess, x, y):
    a, b = x + 1.0, x + y
    step = sess.partial_run([a, b], [x, y])
    with pytest.raises(ValueError, match="needs 'x:0', not fed yet"):
        step.run(a)
    assert step.run(a, {x: 1.0}) == 2.0
    with pytest.raises(ValueError, match="'x:0' has already been fed"):
        step.run(b, {x: 1.0, y: 1.0})
    with pytest.raises(ValueError, match="already been fetched"):
        step.run(a)
    with pytest.raises(ValueError, match="needs 'y:0', not fed yet"):
        step.run(b)
    with pytest.raises(ValueError, match="already been fed"):
        step.run(b, {y: 1.0, "y:0": 1.0})
    assert step.run(b, {y: 5.0}) == 6.0
    with pytest.raises(fb.errors.FailedPreconditionError, match="everything was fetched"):
        step.run(b)


def test_what_was_not_announced_is_refused(sess, x, y):
    a, b = x + 1.0, x + y
    step = sess.partial_run([a], [x])
    with pytest.raises(ValueError, match="not among the fetches"):
        step.run(b, {x: 1.0})
    with pytest.raises(ValueError, match="not among the fetches"):
        step.run(b.op, {x: 1.0})
    with pytest.raises(ValueError, match="not among the feeds"):
        step.run(a, {x: 1.0, y: 1.0})
    with pytest.raises(ValueError, match="feeds is a dict"):
        step.run(a, [x])
    assert step.run(a, {x: 1.0}) == 2.0


def test_the_whole_signature_is_checked_at_the_beginning(sess, x, y):
    with pytest.raises(ValueError, match=r"'y'.*must be fed"):
        sess.partial_run([x + y], [x])
    with pytest.raises(ValueError, match="fed twice"):
        sess.partial_run([x], [x, "x:0"])
    with pytest.raises(TypeError, match="feeds is a list"):
        sess.partial_run([x], x)


def test_values_are_checked_and_the_step_goes_on(sess, x):
    a = x + 1.0
    step = sess.partial_run(a, [x])
    with pytest.raises(ValueError, match="dimension instead"):
        step.run(a, {x: [1.0, 2.0]})
    assert step.run(a, {x: 1.0}) == 2.0


def test_an_error_ends_the_step(sess, x, y):
    a = fb.py_func(lambda v: 1 / v, [x], fb.float32, name="a")
    b = a + y
    step = sess.partial_run([a, b], [x, y])

    def fail(value):
        raise KeyError("no")

    failing = fb.py_func(fail, [x], fb.float32, name="failing")
    step = sess.partial_run([failing, b], [x, y])
    with pytest.raises(fb.errors.UnknownError, match="PyFunc 'failing': KeyError: 'no'"):
        step.run(failing, {x: 1.0})
    with pytest.raises(fb.errors.FailedPreconditionError, match="has ended"):
        step.run(b, {y: 1.0})
    assert sess.run(b, {x: 1.0, y: 1.0}) == 2.0


def test_close_gives_the_rest_up(sess, x):
    a = x + 1.0
    with sess.partial_run(a, [x]) as step:
        pass
    step.close()
    with pytest.raises(fb.errors.FailedPreconditionError, match="it was closed"):
        step.run(a, {x: 1.0})


@pytest.mark.parametrize("is_cyclic", [False, True])
def test_one_that_nobody_holds_gives_back_what_it_has_taken(sess, x, y, is_cyclic):
    queue = fb.FIFOQueue(4, fb.float32, shapes=[[]])
    put, taken = queue.enqueue(7.0), queue.dequeue()
    total, other = taken + x, y * 2.0
    sess.run(put)
    for _ in range(3):
        step = sess.partial_run([total, other], [x, y])
        assert step.run(other, {y: 1.0}) == 2.0
        assert sess.run(queue.size()) == 0
        if is_cyclic:
            step.itself = step
        # Whoever drops it may hold a lock that is needed to put the element back.
        with sess._master.stores.find(queue.op.key)._lock:
            del step
            gc.collect()
        assert sess.run(taken, timeout=60.0) == 7.0
        sess.run(put)


def test_one_that_has_ended_is_dropped_without_ado(sess, x, monkeypatch):
    begun = []
    monkeypatch.setattr(threads, "begin", lambda *call: begun.append(call))
    for fetched in (True, False):
        a = x + 1.0
        step = sess.partial_run(a, [x])
        if fetched:
            step.run(a, {x: 1.0})
        step.close()
        del step
    assert begun == []


def test_effects_keep_their_order(sess, x, y):
    """What was built first runs first; what waits for that is not passed off as done."""
    calls = []

    def note(name):
        return lambda *_: calls.append(name)

    first = fb.py_func(note("first"), [x], [], name="first")
    second = fb.py_func(note("second"), [], [], name="second")
    valued = fb.py_func(lambda: np.float32(len(calls)), [], fb.float32)
    step = sess.partial_run([first, second, valued], [x])
    for fetch in (second, valued):
        with pytest.raises(fb.errors.FailedPreconditionError, match="need feeds not given yet"):
            step.run(fetch)
    assert calls == []
    assert step.run([first, second, valued], {x: 1.0}) == [None, None, 2.0]
    assert calls == ["first", "second"]


def test_reads_precede_later_writes(sess, x, y):
    v = fb.Variable(1.0)
    before = v * x
    update = fb.assign_add(v, y)
    step = sess.partial_run([before, update], [x, y])
    with pytest.raises(ValueError, match="needs 'y:0'"):
        step.run(update)
    assert step.run(before, {x: 3.0}) == 3.0
    assert step.run(update, {y: 5.0}) == 6.0


def test_asynchronous_operations(sess, x, y):
    def kernel(context, value):
        threading.Thread(target=context.complete, args=((value + np.float32(1),),)).start()

    increment = fb.OpDef(
        "PartialIncrement",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=kernel,
        is_async=True,
    )
    a = increment(x)
    b = increment(a * y)
    for _ in range(3):
        step = sess.partial_run([a, b], [x, y])
        assert step.run(a, {x: 1.0}) == 2.0
        assert step.run(b, {y: 10.0}) == 21.0


def test_arrays_are_the_callers_again(sess):
    x = fb.placeholder(fb.float32, [3])
    y = fb.placeholder(fb.float32, [3])
    view = fb.reshape(x, [3, 1])
    late = fb.reduce_sum(view) + y
    step = sess.partial_run([x, view, late], [x, y])
    given = np.ones(3, np.float32)
    fetched, viewed = step.run([x, view], {x: given})
    given[:] = 100.0
    fetched[:] = 200.0
    viewed[:] = 300.0
    assert step.run(late, {y: np.zeros(3)}).tolist() == [3.0] * 3


def test_without_feeds(sess):
    y = fb.constant(3.0) * 2
    assert sess.partial_run([y]).run(y) == 6.0


@pytest.mark.parametrize("trips", [0, 2])
def test_what_leaves_a_loop_is_run(sess, x, trips):
    last = fb.while_loop(lambda i: i < trips, lambda i: i + 1, [0])[0]
    step = sess.partial_run([last.op, x + 1.0], [x])
    assert step.run(last.op) is None


def test_something_is_fetched(sess, x):
    with pytest.raises(fb.errors.InvalidArgumentError, match="fetches something"):
        sess.partial_run([], [x])


def test_a_call_that_is_interrupted_anywhere_has_not_begun_or_ends_the_step():
    x, y = fb.placeholder(fb.float32, [], name="x"), fb.placeholder(fb.float32, [], name="y")
    total, product = x + y, x * y
    outcomes = set()
    with fb.Session() as sess:
        sess.partial_run([total, product], [x, y]).close()
        for number in itertools.count(1):
            step = sess.partial_run([total, product], [x, y])
            call = functools.partial(step.run, total, {x: 2.0, y: 3.0})
            if not interrupted_at(number, call):
                break
            try:
                found = call()
            except (fb.errors.FailedPreconditionError, fb.errors.InvalidArgumentError) as error:
                outcomes.add(error.message)
            else:
                assert found == 5.0
                outcomes.add("had not begun")
            if not step.closed:
                assert step.run(product) == 6.0
    assert outcomes == {
        "had not begun",
        "this partial run has ended: an error or an interrupt stopped it",
        "'x:0' has already been fed",  # It came on the way back to the caller.
    }


def test_what_is_not_asked_for_is_not_waited_for(sess, x):
    queue = fb.FIFOQueue(3, [fb.float32], [[]])
    y = fb.add(x, 1.0, name="y")
    z = fb.add(queue.dequeue(), y, name="z")
    v = fb.Variable(0.0)
    total = fb.assign_add(v, z)
    for k in range(1, 4):
        step = sess.partial_run([y, z, total], [x])
        assert step.run(y, {x: 1.0}) == 2.0  # Of an element that nobody has put yet.
        sess.run(queue.enqueue(10.0))
        assert step.run(z) == 12.0
        assert step.run(total) == 12.0 * k
        assert step.closed

    step = sess.partial_run([y, z], [x])
    assert step.run([], {x: 1.0}) == []
    assert step.run(y) == 2.0
    sess.run(queue.enqueue(3.0))
    step.close()
    assert sess.run(queue.size()) == 1  # What it took and has not used is there again.

    step = sess.partial_run([y, z], [x])
    assert step.run(y, {x: 1.0}) == 2.0
    assert step.run(z) == 5.0

    step = sess.partial_run([y, z], [x])
    assert step.run(y, {x: 1.0}) == 2.0
    sess.run(queue.close())
    with pytest.raises(fb.errors.OutOfRangeError):
        step.run(z)
    assert step.closed


def test_what_another_operation_runs_for_has_not_run_before_that(sess):
    queue = fb.FIFOQueue(1, [fb.float32], shapes=[[]])
    element, put = queue.dequeue(), queue.enqueue([2.0])
    double = fb.function(lambda x: x * 2.0)
    operations = [fb.exp(element).op, fb.exp(element).op, fb.identity(element).op]
    operations.append(double(element).op)
    step = sess.partial_run([element, operations], [])
    assert not any(step._step.has_run(op) for op in operations)
    sess.run(put)
    assert step.run(operations) == [None] * 4
    assert all(step._step.has_run(op) for op in operations)
    assert step.run(element) == 2.0


def test_parts_on_several_devices_take_turns():
    """What one part receives may depend on feeds that are still to come."""
    x, y = fb.placeholder(fb.float32, [2], name="x"), fb.placeholder(fb.float32, [2], name="y")
    queue = fb.FIFOQueue(2, [fb.float32], [[]])
    with fb.device("simulated:0"):
        w = fb.Variable([1.0, 2.0], name="w")
        a = fb.multiply(x, w, name="a")
    with fb.device("cpu:1"):
        b = fb.add(fb.reduce_sum(a), queue.dequeue(), name="b")
    with fb.device("simulated:0"):
        c = fb.multiply(b, y, name="c")
        grown = fb.assign_add(w, c)
    with fb.Session(devices=["cpu:0", "cpu:1", "simulated:0"]) as sess:
        for start in ([1.0, 2.0], [12.0, 24.0]):
            sess.run(queue.enqueue(6.0))
            step = sess.partial_run([a, b, c, grown], [x, y])
            first = np.array(start)
            np.testing.assert_array_equal(step.run(a, {x: [1.0, 1.0]}), first)
            total = first.sum() + 6
            assert step.run(b) == total
            with pytest.raises(fb.errors.InvalidArgumentError, match="needs 'y:0', not fed yet"):
                step.run(c)
            given = np.array([11.0, 22.0]) / total
            found = step.run([c, grown], {y: given})
            np.testing.assert_allclose(found, [[11, 22], first + np.array([11, 22])], rtol=1e-6)
            assert step.closed
        plan = sess.explain(grown, {x: (2,), y: (2,)})
        assert {plan.device(t)[-11:] for t in (a, c, grown)} == {"simulated:0"}


def test_a_failure_on_another_device_ends_the_step():
    x, y = fb.placeholder(fb.int32, [1], name="x"), fb.placeholder(fb.float32, [2], name="y")
    with fb.device("cpu:1"):
        rows = fb.gather(y, x, name="rows")
    with fb.device("simulated:0"):
        total = fb.reduce_sum(rows, name="total")
    with fb.Session(devices=["cpu:0", "cpu:1", "simulated:0"]) as sess:
        step = sess.partial_run([total, rows], [x, y])
        with pytest.raises(fb.errors.InvalidIndexError, match="index 5 is out of range") as caught:
            step.run(total, {x: [5], y: [1.0, 2.0]})
        assert caught.value.operation is rows.op
        with pytest.raises(fb.errors.FailedPreconditionError, match="ended: an error"):
            step.run(rows)


@pytest.mark.parametrize("devices", [["cpu:0"], ["cpu:0", "cpu:1"]])
def test_what_its_loops_did_is_told(devices):
    n = fb.placeholder(fb.int32, [], name="n")
    with fb.device(devices[-1]):
        last = fb.while_loop(lambda i: i < n, lambda i: i + 1, [0], name="count")
    with fb.device("cpu:0"):
        more = last + n
    with fb.Session(devices=devices) as sess:
        assert sess.run(more, {n: 3}) == 6
        assert sess.trips == {"count": 3}
        step = sess.partial_run([more], [n])
        assert step.run(more, {n: 5}) == 10
        assert sess.trips == {"count": 5}


@pytest.mark.parametrize("automatic", [True, False])
def test_a_reset_in_between_is_told_as_that(automatic, x):
    value = fb.Variable(2.0, name="V")
    product = value * x
    with fb.Session(auto_initialize=automatic) as sess:
        sess.run(value.initializer)
        for _ in range(2):
            step = sess.partial_run([product], [x])
            sess.reset()
            told = "lost its value while it was under way" if automatic else "uninitialized value"
            with pytest.raises(fb.errors.OpError, match=told) as caught:
                step.run(product, {x: 1.0})
            assert (type(caught.value) is fb.errors.AbortedError) == automatic
            with pytest.raises(fb.errors.FailedPreconditionError, match="ended: an error"):
                step.run(product)
            sess.run(value.initializer)
            assert sess.run(product, {x: 1.0}) == 2.0


def test_a_step_goes_on_where_its_variable_was_when_it_began(x, y):
    value = fb.Variable(2.0, name="V")
    total = fb.assign_add(value, x + y)
    with fb.Session(cpus=2) as sess:
        sess.run(value)
        for _ in range(2):
            step = sess.partial_run([x + 1.0, total], [x, y])
            step.run([], {x: 1.0})
            sess.replace({value: "cpu:1"})
            assert step.run(total, {y: 2.0}) == sess.run(value)
        assert sess.run(value) == 8.0
