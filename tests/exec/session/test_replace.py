"""Operations that run elsewhere from now on, and what moves with them."""

import signal
import threading

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.simulated import Simulated
from flowbook.exec.resources.gate import Gate
from flowbook.exec.resources.store import Store
from flowbook.graph.ops.state.variables import read_variable

CPU = "/job:localhost/task:0/device:cpu:"


@pytest.fixture
def x():
    return fb.placeholder(fb.float32, [2], name="x")


@pytest.fixture
def sess():
    with fb.Session(cpus=3) as sess:
        yield sess


def device_of(sess, fetch, feeds=None):
    return sess.explain(fetch, feeds).device(fetch)[-1]


def test_operations_run_where_they_are_put(sess, x):
    y = fb.exp(x, name="y")
    z = fb.negative(y, name="z")
    feeds = {x: [0.0, 1.0]}
    before = sess.run(z, feeds)
    moved = sess.replace({y: "cpu:2", "z": "cpu:1"})
    assert moved.operations == {"y": CPU + "2", "z": CPU + "1"}
    assert (moved.state, moved.dropped) == ([], 1)
    with sess.trace() as trace:
        np.testing.assert_array_equal(sess.run(z, feeds), before)
    ran = {call.operation: call.device for call in trace.calls if not call.key}
    assert ran == {"y": CPU + "2", "z": CPU + "1"}
    assert sess.explain(z, feeds).reason(y) == "sess.replace put 'y' there"


def test_variables_keep_their_values_and_what_is_tied_to_them_goes_along(sess):
    W = fb.Variable(np.arange(4.0, dtype=np.float32), name="W")
    step = fb.assign_add(W, np.ones(4, np.float32))
    sess.run(step)
    moved = sess.replace({W: "cpu:1"})
    assert [(s.name, s.source, s.destination, s.bytes) for s in moved.state] == [
        ("W", CPU + "0", CPU + "1", 16)
    ]
    assert moved.dropped == 2  # The step, and what has initialised W.
    assert sess.run(step).tolist() == [2.0, 3.0, 4.0, 5.0]
    assert device_of(sess, step) == "1"
    # What is built later goes where the variable is.
    assert device_of(sess, fb.assign_sub(W, [1.0] * 4)) == "1"
    assert not sess.replace({W: "cpu:1"}).state


def test_a_write_takes_its_variable_along(sess):
    W = fb.Variable(1.0, name="W")
    step = fb.assign_add(W, 1.0, name="step")
    sess.run(step)
    moved = sess.replace({step: "cpu:2"})
    assert [each.name for each in moved.state] == ["W"]
    assert (sess.run(step), device_of(sess, W.value)) == (3.0, "2")


def test_random_numbers_and_queues_go_on(sess):
    drawn = fb.random_uniform([3], seed=5, name="drawn")
    queue = fb.FIFOQueue(4, [fb.float32], [[]], name="queue")
    put, taken = queue.enqueue(1.0), queue.dequeue()
    with fb.Session(cpus=3) as other:
        expected = [other.run(drawn) for _ in range(2)]
    first = sess.run(drawn)
    sess.run(put)
    moved = sess.replace({drawn: "cpu:1", taken: "cpu:2"})
    assert {each.name for each in moved.state} >= {"queue"}
    np.testing.assert_array_equal([first, sess.run(drawn)], expected)
    assert sess.run(taken, timeout=60) == 1.0


def test_a_plan_that_is_better_is_taken():
    x = fb.placeholder(fb.float32, [None, 256], name="x")
    y = fb.add_n([fb.reduce_sum(fb.exp(x * float(i))) for i in range(4)], name="y")
    feeds = {x: np.ones((4096, 256), np.float32)}
    with fb.Session(cpus=2) as sess:
        before = sess.run(y, feeds)
        plan = sess.explain(y, feeds)
        assert plan.better.better is None
        sess.replace(plan.better)
        now = sess.explain(y, feeds)
        assert now.seconds == pytest.approx(plan.better.seconds)
        assert now.better is None
        assert {p.device for p in now.operations.values()} == {CPU + "0", CPU + "1"}
        np.testing.assert_allclose(sess.run(y, feeds), before, rtol=1e-5)
        sess.replace(plan)  # And back.
        assert sess.explain(y, feeds).seconds == pytest.approx(plan.seconds)


def test_it_lasts_and_callables_and_new_operations_follow(sess, x):
    y = fb.exp(x, name="y")
    call = sess.make_callable(y, [x])
    call([0.0, 0.0])
    sess.replace({y: "cpu:1"})
    z = fb.add(y, 1.0, name="z")
    with sess.trace() as trace:
        call([0.0, 0.0])
        sess.run(z, {x: [0.0, 0.0]})
    assert [call.device for call in trace.calls if call.operation == "y"] == [CPU + "1"] * 2


@pytest.mark.parametrize(
    ("placement", "message"),
    [
        ({"asked": "cpu:1"}, r"cannot be put on .*cpu:1, only on .*cpu:0: 'asked' asks for"),
        ({"step": "cpu:1", "W": "cpu:2"}, "cannot be put on"),
        ({"asked": "gpu:0"}, "this session has no device 'gpu:0'"),
        ({"asked": 3}, "a device is named by a string"),
        ({"nowhere": "cpu:1"}, "nowhere"),
        (None, "better is None where nothing better is known"),
        ([("asked", "cpu:1")], "a placement is a plan"),
    ],
)
def test_what_cannot_be_had_changes_nothing(sess, x, placement, message):
    with fb.device("cpu:0"):
        asked = fb.exp(x, name="asked")
    W = fb.Variable(1.0, name="W")
    step = fb.assign_add(W, fb.reduce_sum(asked), name="step")
    feeds = {x: [0.0, 0.0]}
    assert sess.run(step, feeds) == 3.0
    before = str(sess.explain(step, feeds))
    with pytest.raises((ValueError, TypeError, KeyError), match=message):
        sess.replace(placement)
    assert str(sess.explain(step, feeds)) == before
    assert sess.run(step, feeds) == 5.0


def test_a_plan_of_something_else_is_refused(sess, x):
    y = fb.exp(x)
    product = fb.matmul(fb.ones([4096, 4096]), fb.ones([4096, 4096]))
    with pytest.raises(ValueError, match=r"devices that this session does not have: .*gpu:0"):
        sess.replace(sess.explain(product, devices=["gpu:0"]))
    with fb.Graph().as_default() as graph, fb.Session(graph) as other:
        plan = other.explain(
            fb.exp(fb.ones([2]) * fb.placeholder(fb.float32, [2], name="p")), {"p:0": (2,)}
        )
    with pytest.raises(ValueError, match="another graph"):
        sess.replace(plan)
    assert sess.run(y, {x: [0.0, 0.0]}).tolist() == [1.0, 1.0]


def test_it_waits_for_steps_that_write():
    W = fb.Variable(1.0, name="W")
    begun, go_on = threading.Event(), threading.Event()

    def wait(value):
        begun.set()
        assert go_on.wait(60)
        return value

    slow = fb.assign_add(W, fb.py_func(wait, [fb.constant(1.0)], fb.float32), name="slow")
    with fb.Session(cpus=2) as sess:
        sess.run(W)
        thread = threading.Thread(target=sess.run, args=(slow,))
        thread.start()
        assert begun.wait(60)
        with pytest.raises(fb.errors.DeadlineExceededError, match="under way"):
            sess.replace({W: "cpu:1"}, timeout=0.05)
        assert device_of(sess, W.value) == "0"
        go_on.set()
        moved = sess.replace({W: "cpu:1"}, timeout=60)
        thread.join()
        assert (len(moved.state), sess.run(W)) == (1, 2.0)


def test_steps_go_on_meanwhile():
    """Writers lose nothing while their variable moves to and fro."""
    W = fb.Variable(0.0, name="W")
    step = fb.assign_add(W, 1.0)
    with fb.Session(cpus=2) as sess:
        sess.run(step)

        def train():
            for _ in range(100):
                sess.run(step)

        threads = [threading.Thread(target=train) for _ in range(2)]
        for thread in threads:
            thread.start()
        for number in range(20):
            sess.replace({W: f"cpu:{number % 2}"})
        for thread in threads:
            thread.join()
        assert sess.run(W) == 201.0


def test_what_was_measured_decides_what_is_better(sess, x):
    def slowly(xp, value):
        threading.Event().wait(0.01)
        return xp.exp(value)

    # Nothing tells before a run that they take long.
    op = fb.OpDef("Slow", "x: float32 -> y: float32", kernel=slowly)
    slow = [op(x * float(i), name=f"slow{i}") for i in (2, 3)]
    y = fb.add(*slow, name="y")
    feeds = {x: [1.0, 1.0]}
    assert sess.explain(y, feeds).better is None
    with sess.trace():
        for _ in range(5):  # The fastest counts: others may have the processor in one of them.
            before = sess.run(y, feeds)
    plan = sess.explain(y, feeds)
    assert plan.operations[slow[0].op].is_measured
    assert plan.seconds > 0.02
    # Side by side they take as long as the longer one, and each waits for a hundredth of a second.
    assert plan.better.seconds < plan.seconds - 0.009
    assert "operations take was measured" in str(plan)
    sess.replace(plan.better)
    np.testing.assert_array_equal(sess.run(y, feeds), before)
    with sess.trace() as trace:
        sess.run(y, feeds)
    ran = {call.device for call in trace.calls if call.type == "Slow"}
    assert len(ran) == 2


def test_what_was_measured_holds_for_the_same_sizes_alone():
    x = fb.placeholder(fb.float32, [None], name="x")
    y = fb.exp(x, name="y")
    with fb.Session() as sess:
        unknown = sess.explain(y, {x: (1000,)}).seconds
        with sess.trace():
            sess.run(y, {x: np.zeros(10, np.float32)})
        assert sess.explain(y, {x: (10,)}).operations[y.op].is_measured
        plan = sess.explain(y, {x: (1000,)})
        assert not plan.operations[y.op].is_measured
        assert plan.seconds == unknown


def test_the_trips_of_loops_are_measured():
    n = fb.placeholder(fb.int32, [], name="n")
    last = fb.while_loop(lambda i: i < n, lambda i: fb.add(i, 1, name="next"), [0], name="count")
    with fb.Session() as sess:
        with sess.trace() as trace:
            sess.run(last, {n: 50})
        plan = sess.explain(last, {n: ()})
    took = {op.name: each.end - each.begin for op, each in plan.operations.items()}
    [added] = [name for name in took if name.endswith("next")]
    fastest = min(call.duration for call in trace.calls if call.operation == added)
    assert took[added] == pytest.approx(50 * fastest * 1e-9)


def test_the_report(sess):
    W = fb.Variable(np.zeros(250, np.float32), name="W")
    sess.run(W)
    text = str(sess.replace({W: "cpu:1"}))
    assert "1 resource of 1.00 kB" in text
    assert f"W         {CPU}0  {CPU}1  1.00 kB" in text


ACCELERATED = ["cpu:0", "simulated:0"]


def test_a_variable_moves_to_an_accelerator_and_back():
    W = fb.Variable(np.arange(4.0, dtype=np.float32), name="W")
    step = fb.assign_add(W, np.ones(4, np.float32))
    with fb.Session(devices=ACCELERATED) as sess:
        sess.replace({W: "cpu:0"})
        sess.run(step)
        for number, name in enumerate(["simulated:0", "cpu:0", "simulated:0"], 2):
            moved = sess.replace({W: name})
            assert [(each.name, each.bytes) for each in moved.state] == [("W", 16)]
            assert sess.explain(step).device(step).endswith(name)
            assert sess.run(step).tolist() == [number + i for i in range(4)]


def test_where_there_is_no_room_nothing_moves():
    small, large = fb.Variable(np.ones(4, np.float32)), fb.Variable(np.ones(1000, np.float32))
    steps = [fb.assign_add(each, each.value) for each in (small, large)]
    device = Simulated(0, memory_limit=2048)
    with fb.Session(devices=["cpu:0", device]) as sess:
        sess.replace(dict.fromkeys((small, large), "cpu:0"))
        sess.run(steps)
        before = str(sess.explain(steps))
        with pytest.raises(fb.errors.ResourceExhaustedError):
            sess.replace(dict.fromkeys((small, large), "simulated:0"))
        assert str(sess.explain(steps)) == before
        assert sess.run(steps)[1].tolist() == [4.0] * 1000


def test_what_a_container_shares_stays_in_the_memory_that_others_use():
    with fb.container("shared_by_replace"):
        W = fb.Variable(1.0, name="W")
    step = fb.assign_add(W, 1.0)
    try:
        with fb.Session(devices=["cpu:0", "cpu:1", "simulated:0"]) as sess:
            with fb.Session() as other:
                assert other.run(step) == 2.0
            sess.run(step)
            with pytest.raises(fb.errors.InvalidArgumentError, match="sessions share it"):
                sess.replace({W: "simulated:0"})
            sess.replace({W: "cpu:1"})
            assert sess.run(step) == 4.0
    finally:
        fb.reset_container("shared_by_replace")


class _Held:
    """A step that waits in an operation without effects, and what became of it."""

    def __init__(self) -> None:
        self.is_there, self._goes_on = threading.Event(), threading.Event()
        self.is_awaited = False
        self.calls = 0

    def kernel(self, xp, x):
        self.calls += 1
        if self.is_awaited:
            self.is_there.set()
            assert self._goes_on.wait(60)
        return x

    def run_beside(self, sess, fetch, feeds, then):
        """What a run gives, or raises, that something happens in the middle of."""
        found = []

        def run():
            try:
                found.append(sess.run(fetch, feeds))
            except fb.errors.OpError as error:
                found.append(error)

        self.is_awaited = True
        thread = threading.Thread(target=run)
        thread.start()
        assert self.is_there.wait(60)
        self.is_awaited = False
        then()
        self._goes_on.set()
        thread.join(60)
        return found[0]


@pytest.mark.parametrize("runs", [1, 4])
def test_a_step_that_reads_what_is_moved_to_another_kind_of_device_runs_once_more(runs, x):
    held = _Held()
    wait = fb.OpDef(
        f"HeldStep{runs}", "x: T -> y: T", T=fb.FLOATS, infer=lambda x: x.shape, kernel=held.kernel
    )
    W = fb.Variable(np.arange(2.0, dtype=np.float32), name="W")
    with fb.device("cpu:0"):
        first = wait(x)
    with fb.control_dependencies([first.op]):
        y = W * 2.0
    with fb.Session(devices=ACCELERATED) as sess:
        sess.replace({W: "cpu:0"})
        for _ in range(runs):
            sess.run([first, y], {x: [1.0, 2.0]})
        calls = held.calls
        moving = lambda: sess.replace({W: "simulated:0"}, timeout=60)  # noqa: E731
        _, found = held.run_beside(sess, [first, y], {x: [1.0, 2.0]}, moving)
        assert found.tolist() == [0.0, 2.0]
        assert held.calls - calls == 2


def test_a_step_that_may_have_done_something_is_aborted_by_a_move(x):
    held = _Held()
    W = fb.Variable(np.arange(2.0, dtype=np.float32), name="W")
    first = fb.py_func(lambda x: held.kernel(np, x), [x], fb.float32)
    with fb.control_dependencies([first.op]):
        y = W * 2.0
    with fb.Session(devices=ACCELERATED) as sess:
        sess.replace({W: "cpu:0"})
        sess.run([first, y], {x: [1.0, 2.0]})
        moving = lambda: sess.replace({W: "simulated:0"}, timeout=60)  # noqa: E731
        error = held.run_beside(sess, [first, y], {x: [1.0, 2.0]}, moving)
        assert isinstance(error, fb.errors.AbortedError)
        assert "was put on another device while it was under way" in str(error)
        assert isinstance(error.__cause__, fb.errors.OpError)
        assert sess.run(W).tolist() == [0.0, 1.0]


@pytest.fixture
def at_gates(monkeypatch):
    """Events: a gate is being closed, and after that a step has found it closed."""
    closing, waiting = threading.Event(), threading.Event()
    await_empty, is_closed_to = Gate._await_empty, Gate._is_closed_to

    def noticed_empty(*arguments):
        closing.set()
        await_empty(*arguments)

    def noticed_closed(*arguments):
        is_closed = is_closed_to(*arguments)
        if is_closed and closing.is_set():
            waiting.set()
        return is_closed

    monkeypatch.setattr(Gate, "_await_empty", noticed_empty)
    monkeypatch.setattr(Gate, "_is_closed_to", noticed_closed)
    return closing, waiting


def _begin(threads, function, event):
    """Call a function on one more thread, and wait until an event has happened there."""
    event.clear()  # It may have happened before.
    threads.append(threading.Thread(target=function))
    threads[-1].start()
    assert event.wait(60)


@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("kind", ["fed", "queue", "parts", "outside"])
def test_a_step_that_waits_for_a_move_has_written_nothing_yet(kind, runs, x, at_gates):
    held, found, threads = _Held(), [], []
    queue = fb.FIFOQueue(8, [fb.float32], [[2]])
    fill = queue.enqueue([1.0, 2.0])
    W, V = fb.Variable([0.0, 0.0], name="W"), fb.Variable(0.0, name="V")
    with fb.device("cpu:1" if kind == "parts" else None):
        given = (queue.dequeue() if kind == "queue" else x) * 2.0
    if kind == "outside":  # It is at the gate before it does anything.
        given = fb.reshape(fb.py_func(lambda x: x, [given], fb.float32), [2])
    write = fb.assign_add(W, given)
    called = fb.py_func(lambda: held.kernel(np, np.float32(1.0)), [], fb.float32)
    blocking = fb.assign(V, fb.reshape(called, []))
    feeds = {} if kind == "queue" else {x: [1.0, 2.0]}

    def then():
        _begin(threads, lambda: sess.replace({W: "simulated:0"}), at_gates[0])
        _begin(threads, lambda: found.append(sess.run(write, feeds)), at_gates[1])

    with fb.Session(devices=["cpu:0", "cpu:1", "simulated:0"]) as sess:
        sess.replace({W: "cpu:0", V: "cpu:0"})
        for _ in range(runs):
            sess.run(fill)
            sess.run(write, feeds)
        sess.run(fill)
        sess.run(blocking)
        held.run_beside(sess, blocking, {}, then)
        for thread in threads:
            thread.join(60)
        wanted = [2.0 * (runs + 1), 4.0 * (runs + 1)]
        assert [each.tolist() for each in found] == [wanted]
        assert device_of(sess, W.value) == "0"
        assert sess.run(W).tolist() == wanted
        assert sess.run(queue.size()) == (0 if kind == "queue" else runs + 1)


def test_a_step_that_acts_outside_before_it_waits_for_a_move_is_aborted(x, at_gates):
    held, found, threads, said = _Held(), [], [], []
    queue = fb.FIFOQueue(8, [fb.float32], [[2]])
    W, V = fb.Variable([0.0, 0.0], name="W"), fb.Variable(0.0, name="V")
    with fb.control_dependencies([fb.py_func(lambda: said.append(1), [], [])]):
        write = fb.assign_add(W, queue.dequeue())
    called = fb.py_func(lambda: held.kernel(np, np.float32(1.0)), [], fb.float32)
    blocking = fb.assign(V, fb.reshape(called, []))

    def run():
        with pytest.raises(fb.errors.AbortedError, match="was put on another device") as caught:
            sess.run(write)
        found.append(caught.value)

    def then():
        _begin(threads, lambda: sess.replace({W: "simulated:0"}), at_gates[0])
        _begin(threads, run, at_gates[1])

    with fb.Session(devices=["cpu:0", "simulated:0"]) as sess:
        sess.replace({W: "cpu:0", V: "cpu:0"})
        sess.run([W, blocking])
        sess.run(queue.enqueue([1.0, 2.0]))
        held.run_beside(sess, blocking, {}, then)
        for thread in threads:
            thread.join(60)
        assert len(found) == 1
        assert (len(said), sess.run(queue.size())) == (1, 1)
        assert sess.run(write).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("destination", ["simulated:0", "cpu:1"])
def test_an_interrupt_waits_until_all_has_moved(place, destination, monkeypatch):
    W, V = fb.Variable([1.0, 2.0], name="W"), fb.Variable([3.0, 4.0], name="V")
    step = [fb.assign_add(W, [1.0, 1.0]), V * 1.0]
    hand_over, places = Store.hand_over, []

    def interrupted(*arguments):
        for call in (lambda: None, lambda: hand_over(*arguments)):
            call()
            if len(places) == place:
                signal.raise_signal(signal.SIGINT)
            places.append(destination)

    with fb.Session(devices=["cpu:0", "cpu:1", "simulated:0"]) as sess:
        sess.replace({W: "cpu:0", V: "cpu:0"})
        sess.run(step)
        monkeypatch.setattr(Store, "hand_over", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sess.replace({W: destination, V: destination})
        monkeypatch.undo()
        assert len(places) == 4
        for variable in (W, V):
            home = sess._master.stores.find(variable.op.key).device
            assert home.name.endswith(destination)
            assert sess.explain(variable).device(variable.value).endswith(destination)
        assert [value.tolist() for value in sess.run(step)] == [[3.0, 4.0], [3.0, 4.0]]


def _outcome(sess, fetch, **how):
    """What a run gives or raises."""
    try:
        return sess.run(fetch, **how)
    except fb.errors.OpError as error:
        return error


def _waiting(sess, *arguments, **how):
    """A thread on which a step waits, and where its outcome will be."""
    found = []
    thread = threading.Thread(target=lambda: found.append(_outcome(sess, *arguments, **how)))
    thread.start()
    while not sess._master.monitor.waiters():
        assert thread.is_alive()
    return thread, found


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_step_that_has_come_to_its_end_does_not_run_once_more(is_moved):
    """It has taken from a queue what a second one would not find there."""
    queue = fb.FIFOQueue(8, [fb.float32], [[2]])
    with fb.container("shared_by_replace"):
        C = fb.Variable([0.0, 0.0], name="C")
    total, fill = C + queue.dequeue(), queue.enqueue([1.0, 1.0])
    container, device = fb.container("shared_by_replace"), fb.device("simulated:0")
    with fb.Graph().as_default() as graph, container, device:
        there = fb.Variable([5.0, 5.0], name="C") * 1.0
    sess, other = fb.Session(devices=ACCELERATED), fb.Session(graph, devices=ACCELERATED)
    try:
        sess.run(C)
        thread, found = _waiting(sess, total)
        if is_moved:
            fb.reset_container("shared_by_replace")
            other.run(there)
        else:
            with pytest.raises(fb.errors.InvalidArgumentError, match="'C' stays on"):
                sess.replace({C: "simulated:0"})
        sess.run(fill)
        thread.join(60)
        assert not thread.is_alive()
        assert found[0].tolist() == [1.0, 1.0]
    finally:
        sess.close()
        other.close()
        fb.reset_container("shared_by_replace")


def test_a_step_that_has_read_what_lies_elsewhere_now_gives_no_array_of_there():
    """It has taken from a queue, so that it cannot run once more."""
    queue = fb.FIFOQueue(8, [fb.float32], [[2]])
    with fb.container("shared_by_replace"):
        C = fb.Variable([0.0, 0.0], name="C")
    taken, fill = queue.dequeue(), queue.enqueue([1.0, 1.0])
    with fb.control_dependencies([taken]):
        read = read_variable(C.handle, dtype=C.dtype, shape=C.shape)
    container, device = fb.container("shared_by_replace"), fb.device("simulated:0")
    with fb.Graph().as_default() as graph, container, device:
        there = fb.Variable([5.0, 5.0], name="C") * 1.0
    sess, other = fb.Session(devices=["cpu:0"]), fb.Session(graph, devices=ACCELERATED)
    try:
        for _ in range(4):  # Only first runs look at what the system's own kernels give.
            sess.run(fill)
            assert sess.run([taken, read])[1].tolist() == [0.0, 0.0]
        thread, found = _waiting(sess, [taken, read])
        fb.reset_container("shared_by_replace")
        other.run(there)
        sess.run(fill)
        thread.join(60)
        assert not thread.is_alive()
        assert isinstance(found[0], fb.errors.AbortedError)
    finally:
        sess.close()
        other.close()
        fb.reset_container("shared_by_replace")


@pytest.mark.parametrize("end", ["close", "timeout"])
def test_what_ends_a_step_that_waits_is_told_though_its_variable_has_moved(end):
    queue = fb.FIFOQueue(8, [fb.float32], [[2]])
    V = fb.Variable([0.0, 0.0], name="V")
    write, close = fb.assign_add(V, queue.dequeue()), queue.close()
    with fb.Session(cpus=2) as sess:
        sess.run(V)
        thread, found = _waiting(sess, write, **({"timeout": 0.3} if end == "timeout" else {}))
        sess.replace({V: "cpu:1"})
        if end == "close":
            sess.run(close)
        thread.join(60)
        wanted = {"close": fb.errors.OutOfRangeError, "timeout": fb.errors.DeadlineExceededError}
        assert isinstance(found[0], wanted[end])
