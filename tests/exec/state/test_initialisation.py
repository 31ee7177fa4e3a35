"""Variables get their initial values once, on first use, in the order of their dependencies."""

import threading
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.state.executors import EXECUTORS, run_in
from tests.exec.state.threads import run_together


class Counter:
    """An initial value that counts how often it is computed."""

    def __init__(self, value: Any = 1.0) -> None:
        self.calls = 0
        self.value = value

    def __call__(self) -> Any:
        self.calls += 1
        return np.asarray(self.value, np.float32)

    def tensor(self) -> fb.Tensor:
        return fb.reshape(fb.py_func(self, [], fb.float32), np.shape(self.value))


def test_initial_value_is_computed_once_on_first_use() -> None:
    counter = Counter([1.0, 2.0])
    W = fb.Variable(counter.tensor())
    with fb.Session() as sess:
        assert counter.calls == 0
        for _ in range(4):
            np.testing.assert_array_equal(sess.run(W), [1.0, 2.0])
            sess.run(fb.assign_add(W, [0.0, 0.0]))
        assert counter.calls == 1


def test_chain_and_diamond_are_initialised_in_order() -> None:
    A = fb.Variable(2.0, name="A")
    B = fb.Variable(A * 3.0, name="B")
    C = fb.Variable(A + 5.0, name="C")
    D = fb.Variable(B * C, name="D")
    with fb.Session() as sess:
        assert sess.run(D) == 42.0
        assert sess.run([A, B, C]) == [2.0, 6.0, 7.0]


def test_long_chain_is_initialised() -> None:
    V = fb.Variable(0)
    for _ in range(1500):
        V = fb.Variable(V + 1)
    with fb.Session() as sess:
        assert sess.run(V) == 1500


def test_variables_of_one_random_tensor_start_equal() -> None:
    value = fb.random_uniform([3])
    A, B = fb.Variable(value), fb.Variable(value)
    with fb.Session() as sess:
        a, b = sess.run([A, B])
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", EXECUTORS)
def test_fed_read_does_not_initialise(kind: str) -> None:
    counter = Counter()
    W = fb.Variable(counter.tensor())
    with fb.Session() as sess:
        assert run_in(kind, sess, W + 1.0, {W: np.float32(5.0)}) == 6.0
        assert sess.run(W.value + 1.0, {W.value: 7.0}) == 8.0
        assert counter.calls == 0
        assert not sess.run(fb.is_variable_initialized(W))
        assert not sess.run(fb.is_variable_initialized(W), {W: 3.0})


def test_dependent_of_a_fed_variable_starts_from_what_is_fed() -> None:
    counter = Counter()
    W = fb.Variable(counter.tensor(), name="W")
    V = fb.Variable(W * 2.0, name="V")
    with fb.Session() as sess:
        assert sess.run(V, {W: 5.0}) == 10.0
        assert counter.calls == 0
        assert sess.run([W, V]) == [1.0, 10.0]


def test_fed_tensor_cuts_what_an_initial_value_needs() -> None:
    counter = Counter()
    W = fb.Variable(counter.tensor(), name="W")
    between = W * 2.0
    V = fb.Variable(between + 1.0, name="V")
    with fb.Session() as sess:
        assert sess.run(V, {between: 5.0}) == 6.0
        assert counter.calls == 0


def test_update_of_a_fed_variable_needs_its_own_value() -> None:
    W = fb.Variable(1.0)
    add = fb.assign_add(W, 1.0)
    with fb.Session() as sess:
        assert sess.run([W, add], {W: 5.0}) == [5.0, 2.0]


def test_asking_and_plain_assignment_do_not_initialise() -> None:
    counter = Counter()
    W = fb.Variable(counter.tensor())
    asked = fb.is_variable_initialized(W)
    with fb.Session() as sess:
        assert not sess.run(asked)
        assert sess.run(fb.assign(W, 5.0)) == 5.0
        assert sess.run(asked)
        assert sess.run(W) == 5.0
        assert counter.calls == 0


def test_what_surely_follows_a_plain_assignment_does_not_initialise() -> None:
    counter = Counter()
    W = fb.Variable(counter.tensor())
    assigned = fb.assign(W, 5.0)
    with fb.control_dependencies([assigned]):
        seen = W * 2.0
    added = fb.assign_add(W, 1.0)
    with fb.Session(auto_initialize=False) as sess:
        assert sess.run([seen, added]) == [10.0, 6.0]
    with fb.Session() as sess:
        assert sess.run([seen, added]) == [10.0, 6.0]
        assert counter.calls == 0


def test_read_beside_an_assignment_initialises() -> None:
    W = fb.Variable(1.0)
    assigned = fb.assign(W, 5.0)
    with fb.Session() as sess:
        assert sess.run([assigned, W]) == [5.0, 1.0]


@pytest.mark.parametrize("update", [fb.assign_add, fb.assign_sub])
def test_dependents_are_initialised_before_the_first_update(update: Any) -> None:
    W = fb.Variable(1.0, name="W")
    V = fb.Variable(W * 10.0, name="V")
    changed = update(W, 1.0)
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(changed)
        assert sess.run(V) == 10.0


def test_dependents_are_initialised_before_a_scatter() -> None:
    W = fb.Variable([1.0, 2.0], name="W")
    V = fb.Variable(fb.gather(W, [1]), name="V")
    with fb.Session() as sess:
        sess.run(fb.scatter_add(W, [1], [5.0]))
        np.testing.assert_array_equal(sess.run(V), [2.0])


def test_dependent_built_later_is_initialised_before_the_next_update() -> None:
    W = fb.Variable(1.0, name="W")
    add = fb.assign_add(W, 1.0)
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(add)
        V = fb.Variable(W * 10.0, name="V")
        for _ in range(3):
            sess.run(add)
        assert sess.run([W, V]) == [7.0, 40.0]


def test_plain_assignment_leaves_dependents_alone() -> None:
    W = fb.Variable(1.0, name="W")
    V = fb.Variable(W * 10.0, name="V")
    with fb.Session() as sess:
        sess.run(fb.assign(W, 2.0))
        assert sess.run(V) == 20.0


def test_initialising_step_sees_the_feeds_of_its_run() -> None:
    x = fb.placeholder(fb.float32, [None], name="x")
    W = fb.Variable(x * 2.0, name="W")
    with fb.Session() as sess:
        with pytest.raises(fb.errors.InvalidArgumentError, match="'x'"):
            sess.run(W)
        np.testing.assert_array_equal(sess.run(W, {x: [1.0, 2.0]}), [2.0, 4.0])
        np.testing.assert_array_equal(sess.run(W), [2.0, 4.0])
        np.testing.assert_array_equal(sess.run(W, {x: [5.0]}), [2.0, 4.0])


def test_partial_run_initialises_but_not_what_will_be_fed() -> None:
    counter = Counter()
    W, V = fb.Variable(counter.tensor()), fb.Variable(3.0)
    with fb.Session() as sess:
        step = sess.partial_run([W, V], [W])
        assert step.run(V) == 3.0
        assert step.run(W, {W: 8.0}) == 8.0
        assert counter.calls == 0


def test_initializer_starts_over() -> None:
    counter = Counter()
    W = fb.Variable(counter.tensor())
    with fb.Session() as sess:
        sess.run(fb.assign_add(W, 5.0))
        counter.value = 100.0
        sess.run(W.initializer)
        assert sess.run(W) == 100.0
        assert counter.calls == 2


def test_initializer_initialises_what_it_reads_first() -> None:
    W = fb.Variable(2.0)
    V = fb.Variable(W * W)
    with fb.Session() as sess:
        sess.run(V.initializer)
        assert sess.run(V) == 4.0


@pytest.mark.parametrize("automatic", [False, True])
def test_global_initializer_goes_in_the_order_of_dependencies(automatic: bool) -> None:
    counter = Counter(2.0)
    A = fb.Variable(counter.tensor(), name="A")
    B = fb.Variable(A * 3.0, name="B")
    C = fb.Variable(fb.gather(fb.stack([A, B]), 1) + A, name="C")
    init = fb.global_variables_initializer()
    with fb.Session(auto_initialize=automatic) as sess:
        for calls, value in enumerate([2.0, 5.0], start=1):
            counter.value = value
            sess.run(init)
            assert counter.calls == calls
            assert sess.run([A, B, C]) == [value, value * 3, value * 4]


def test_without_automatic_initialisation_use_is_an_error_that_names_variable_and_line() -> None:
    W = fb.Variable(1.0, name="weights")  # built here
    with fb.Session(auto_initialize=False) as sess:
        for use in (W + 1.0, fb.assign_add(W, 1.0)):
            for _ in range(3):
                with pytest.raises(fb.errors.FailedPreconditionError) as caught:
                    sess.run(use)
                assert "Attempting to use uninitialized value 'weights'" in str(caught.value)
                assert "test_initialisation.py" in str(caught.value)
        with pytest.raises(fb.errors.FailedPreconditionError) as caught:
            sess.run(W)
        assert "# built here" in str(caught.value)
        assert not sess.run(fb.is_variable_initialized(W))
        sess.run(fb.global_variables_initializer())
        assert sess.run(W + 1.0) == 2.0


def test_failing_initial_value_leaves_the_variable_without_one() -> None:
    answers: list[Any] = [ValueError("not yet"), ValueError("nor now"), 3.0]

    def initial() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return np.float32(answer)

    W = fb.Variable(fb.py_func(initial, [], fb.float32), name="W")
    other = fb.Variable(1.0, name="other")
    with fb.Session() as sess:
        for message in ("not yet", "nor now"):
            with pytest.raises(fb.errors.InvalidArgumentError, match=message):
                sess.run([W, other])
            assert not sess.run(fb.is_variable_initialized(W))
            assert sess.run(other) == 1.0
        assert sess.run(W) == 3.0


def test_concurrent_first_runs_initialise_once() -> None:
    for _ in range(5):
        began = threading.Barrier(8)

        class Slow(Counter):
            def __call__(self) -> Any:
                # Whoever would initialise a second time has begun by then, or soon will.
                threading.Event().wait(0.02)
                return super().__call__()

        with fb.Graph().as_default() as graph:
            counters = [Slow(float(i)) for i in range(4)]
            variables = [fb.Variable(c.tensor()) for c in counters]
            sums = fb.Variable(fb.add_n([v.value for v in variables]))
            fetches = [[v, variables[(i + 1) % 4], sums] for i, v in enumerate(variables)]
        with fb.Session(graph) as sess:

            def first_run(
                which: int, sess: Any = sess, fetches: Any = fetches, began: Any = began
            ) -> None:
                began.wait(60)
                found = sess.run(fetches[which % 4])
                assert found == [which % 4, (which + 1) % 4, 6.0]

            run_together(*[lambda i=i: first_run(i) for i in range(8)])
        assert [c.calls for c in counters] == [1, 1, 1, 1]


def test_an_initial_value_that_runs_what_needs_it_is_an_error() -> None:
    W = fb.Variable(fb.py_func(lambda: sess.run(W) + 1, [], fb.float32), name="W")
    with fb.Session() as sess:
        with pytest.raises(fb.errors.OpError, match="needs the variable itself"):
            sess.run(W)
        assert sess.run(fb.constant(1.0)) == 1.0


def test_an_initial_value_may_wait_for_a_thread_that_initialises_a_sibling() -> None:
    def of_sibling() -> Any:
        found: list[Any] = []
        other = threading.Thread(target=lambda: found.append(sess.run(B)), daemon=True)
        other.start()
        other.join(60)
        return np.float32(found[0] + 1)

    A = fb.Variable(fb.py_func(of_sibling, [], fb.float32), name="A")
    B = fb.Variable(3.0, name="B")
    with fb.Session() as sess:
        assert sess.run([A, B]) == [4.0, 3.0]


def test_sessions_start_fresh() -> None:
    W = fb.Variable(1.0)
    add = fb.assign_add(W, 1.0)
    with fb.Session() as first, fb.Session() as second:
        assert [first.run(add) for _ in range(3)] == [2.0, 3.0, 4.0]
        assert second.run(W) == 1.0


def test_variables_built_after_the_session_started() -> None:
    with fb.Session() as sess:
        A = fb.Variable(1.0)
        assert sess.run(A) == 1.0
        B = fb.Variable(A + 1.0)
        assert sess.run([A, B]) == [1.0, 2.0]


def test_variable_of_partial_shape_takes_values_that_fit() -> None:
    x = fb.placeholder(fb.float32, [None, 2])
    W = fb.Variable(x)
    y = fb.placeholder(fb.float32, [None, 2])
    z = fb.placeholder(fb.float32, None)
    grown, unsure = fb.assign(W, y), fb.assign(W, z)
    with fb.Session() as sess:
        assert sess.run(W, {x: np.zeros((3, 2))}).shape == (3, 2)
        assert sess.run(grown, {y: np.ones((5, 2))}).shape == (5, 2)
        assert sess.run(unsure, {z: np.ones((1, 2))}).shape == (1, 2)
        for _ in range(3):
            with pytest.raises(fb.errors.InvalidArgumentError, match=r"\[2, 3\]"):
                sess.run(unsure, {z: np.ones((2, 3))})
        assert sess.run(W).shape == (1, 2)


def test_value_given_up_by_redefinition_is_initialised_again() -> None:
    counter = Counter(1.0)
    W = fb.Variable(counter.tensor())
    with fb.Session() as sess:
        for _ in range(3):
            assert sess.run(W) == 1.0
        assert sess.graph.values.has_value(W.op)
        counter.value = 2.0
        sess.graph.members.forget(W.op)
        assert sess.run(W) == 2.0
        assert counter.calls == 2
    assert not fb.get_default_graph().values.has_value(W.op)


def test_nothing_waits_for_the_deadline_of_another_steps_initialisation() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def initial() -> Any:
        begun.set()
        assert go_on.wait(60)
        return np.float32(1.0)

    W = fb.Variable(fb.py_func(initial, [], fb.float32))
    with fb.Session() as sess:

        def first() -> None:
            assert sess.run(W) == 1.0

        def second() -> None:
            assert begun.wait(60)
            try:
                with pytest.raises(fb.errors.DeadlineExceededError):
                    sess.run(W, timeout=0.05)
            finally:
                go_on.set()

        run_together(first, second)
        assert sess.run(W) == 1.0


def test_a_variable_that_joins_late_is_noted_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread may begin a variable before, and register it after, another thread's."""
    graph = fb.get_default_graph()
    base = fb.Variable(1.0)
    with monkeypatch.context() as patch:
        patch.setattr(graph.members, "register_variable", lambda *_, **__: None)
        late = fb.Variable(base * 10.0)
    update = fb.assign_add(base, 1.0)
    fb.Variable(0.0)
    with fb.Session() as sess:
        sess.extend()
        graph.members.register_variable(late)
        fb.constant(0.0)
        sess.run(update)
        assert sess.run(late) == 10.0
