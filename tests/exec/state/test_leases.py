"""Who holds a value keeps it as it was; what nobody holds is updated in place."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.held import held
from tests.exec.state.executors import EXECUTORS, run_in
from tests.exec.state.threads import run_together


def buffer(sess: fb.Session, variable: fb.Variable) -> int:
    return id(held(sess, variable)._buffer)


def test_training_updates_in_place() -> None:
    W = fb.Variable(np.ones((50, 40), np.float32))
    x = fb.placeholder(fb.float32, [None, 50])
    loss = fb.reduce_sum(fb.square(x @ W))
    train = fb.train.GradientDescentOptimizer(1e-6).minimize(loss)
    with fb.Session() as sess:
        feeds = {x: np.ones((3, 50), np.float32)}
        sess.run([train, loss], feeds)
        for _ in range(3):
            before = buffer(sess, W)
            sess.run([train, loss], feeds)
            assert buffer(sess, W) == before


@pytest.mark.parametrize("kind", ["generated", "timed", "regions"])
def test_several_writes_of_one_step_are_in_place(kind: str) -> None:
    W = fb.Variable(np.zeros(100))
    writes = [fb.assign_add(W, np.ones(100)).op for _ in range(4)]
    with fb.Session() as sess:
        sess.run(W)
        before = buffer(sess, W)
        run_in(kind, sess, writes)
        assert buffer(sess, W) == before
        np.testing.assert_array_equal(sess.run(W), np.full(100, 4.0))


def test_step_that_still_needs_the_old_value_swaps() -> None:
    W = fb.Variable(np.zeros(100))
    train = fb.assign_add(W, np.ones(100))
    with fb.Session() as sess:
        for i in range(5):
            old, new = sess.run([W, train])
            np.testing.assert_array_equal(old, np.full(100, i))
            np.testing.assert_array_equal(new, np.full(100, i + 1))


def test_failed_steps_give_their_leases_back() -> None:
    W = fb.Variable(np.zeros(100))

    def fail(value: Any) -> Any:
        raise ValueError("as asked")

    failing = fb.py_func(fail, [W], fb.float64)
    add = fb.assign_add(W, np.ones(100)).op
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(add)
            with pytest.raises(fb.errors.InvalidArgumentError, match="as asked"):
                sess.run(failing)
            before = buffer(sess, W)
            sess.run(add)
            assert buffer(sess, W) == before


@pytest.mark.parametrize("kind", EXECUTORS)
def test_fetched_values_never_change(kind: str) -> None:
    W = fb.Variable(np.arange(6.0).reshape(2, 3), name="W")
    views = [W, fb.reshape(W, [3, 2]), fb.identity(W), fb.transpose(W), W[0], W[:, 1]]
    write = fb.assign_add(W, np.ones((2, 3)))
    whole = fb.assign(W, fb.reshape(fb.range(6.0, dtype=fb.float64), [2, 3]) + W)
    with fb.Session() as sess:
        held = [run_in(kind, sess, views), [run_in(kind, sess, write)], [run_in(kind, sess, whole)]]
        kept = [[np.array(v) for v in values] for values in held]
        for _ in range(3):
            sess.run([write, whole])
        for values, copies in zip(held, kept, strict=True):
            for value, copy in zip(values, copies, strict=True):
                np.testing.assert_array_equal(value, copy)
        # What the caller owns may be written without a trace in the variable.
        before = sess.run(W)
        for value in held[0]:
            value[...] = -1
        np.testing.assert_array_equal(sess.run(W), before)


def test_what_a_py_func_keeps_never_changes() -> None:
    W = fb.Variable(np.zeros(50))
    kept: list[np.ndarray] = []
    keep = fb.py_func(lambda value: kept.append(value), [W], [])
    with fb.control_dependencies([keep]):
        add = fb.assign_add(W, np.ones(50)).op
    with fb.Session() as sess:
        for _ in range(4):
            sess.run(add)
    for i, value in enumerate(kept):
        np.testing.assert_array_equal(value, np.full(50, i))


def test_fed_array_that_is_assigned_stays_its_owners() -> None:
    x = fb.placeholder(fb.float64, [20])
    W = fb.Variable(np.zeros(20))
    store, add = fb.assign(W, x), fb.assign_add(W, np.ones(20))
    value = np.full(20, 7.0)
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(store, {x: value})
            sess.run(add)
            np.testing.assert_array_equal(value, np.full(20, 7.0))
            value[0] = 8.0
            np.testing.assert_array_equal(sess.run(W), np.full(20, 8.0))
            value[0] = 7.0


def test_one_variable_assigned_to_another_is_copied() -> None:
    A, B = fb.Variable(np.zeros(20)), fb.Variable(np.ones(20))
    copy, add = fb.assign(A, B), fb.assign_add(B, np.ones(20))
    with fb.Session() as sess:
        for i in range(3):
            sess.run(copy)
            sess.run(add)
            np.testing.assert_array_equal(sess.run(A), np.full(20, i + 1.0))


def test_scatter_outside_writes_nothing_in_any_executor() -> None:
    W = fb.Variable([1.0, 2.0, 3.0])
    indices = fb.placeholder(fb.int32, [2])
    updates = [
        s(W, indices, [1.0, 1.0]) for s in (fb.scatter_add, fb.scatter_sub, fb.scatter_update)
    ]
    updates += [
        s(W, indices[:, None], [1.0, 1.0]) for s in (fb.scatter_nd_add, fb.scatter_nd_update)
    ]
    updates.append(fb.assign_slice(W, indices[1], 7.0))
    with fb.Session() as sess:
        for kind in EXECUTORS:
            for update in updates:
                with pytest.raises(fb.errors.InvalidIndexError, match="3"):
                    run_in(kind, sess, update, {indices: np.array([0, 3], np.int32)})
        np.testing.assert_array_equal(sess.run(W), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("kind", EXECUTORS)
def test_parts_are_written_in_place_only_where_nobody_looks(kind: str) -> None:
    W = fb.Variable([1.0, 2.0, 3.0, 4.0])
    swap = fb.assign_slice(W, np.s_[:2], W[2:])
    mark = fb.scatter_nd_update(W, [[3]], [9.0])
    with fb.Session() as sess:
        before = run_in(kind, sess, W, {})
        after = run_in(kind, sess, swap, {})
        last = run_in(kind, sess, mark, {})
        scaled = run_in(kind, sess, fb.scatter_mul(W, [0, 2, 0], 2.0), {})
        np.testing.assert_array_equal(before, [1, 2, 3, 4])
        np.testing.assert_array_equal(after, [3, 4, 3, 4])
        np.testing.assert_array_equal(last, [3, 4, 3, 9])
        np.testing.assert_array_equal(scaled, [12, 4, 6, 9])


# Between concurrent steps


SIZE = 200_000  # large enough that NumPy lets other threads run while it writes


def test_reads_are_never_torn() -> None:
    W = fb.Variable(np.zeros(SIZE, np.float32))
    x = fb.placeholder(fb.float32, [])
    whole = fb.fill([SIZE], x)
    writes = [fb.assign(W, whole), fb.assign_add(W, whole)]
    reads = [fb.identity(W), W + 0.0, fb.gather(W, np.arange(0, SIZE, 7)), W]
    left = [40] * 4
    with fb.Session() as sess:
        sess.run(W)

        def write(which: int) -> None:
            for i in range(40):
                sess.run(writes[which % 2].op, {x: float(i + 1)})
                left[which] -= 1

        def read(which: int) -> None:
            while any(left):
                found = sess.run(reads[which])
                assert found.min() == found.max()

        run_together(
            *[lambda i=i: write(i) for i in range(4)], *[lambda i=i: read(i) for i in range(4)]
        )


def test_value_read_in_a_step_is_one_value_throughout() -> None:
    W = fb.Variable(np.zeros(SIZE, np.float32))
    early = fb.reduce_sum(W)
    with fb.control_dependencies([early]):
        late = fb.reduce_sum(W.value)
    add = fb.assign_add(W, np.ones(SIZE, np.float32)).op
    done = [False]
    with fb.Session() as sess:
        sess.run(W)

        def write() -> None:
            for _ in range(100):
                sess.run(add)
            done[0] = True

        def read() -> None:
            while not done[0]:
                first, second = sess.run([early, late])
                assert first == second

        run_together(write, read, read)


@pytest.mark.parametrize("kind", ["add", "sub", "scatter", "nd", "matrix"])
def test_no_concurrent_update_is_lost(kind: str) -> None:
    W = fb.Variable(np.zeros((8, 1000)), name="W")
    ones = np.ones((8, 1000))
    update = {
        "add": lambda: fb.assign_add(W, ones),
        "sub": lambda: fb.assign_sub(W, -ones),
        "scatter": lambda: fb.scatter_add(W, np.arange(8), ones),
        "nd": lambda: fb.scatter_nd_add(W, np.arange(8)[:, None], ones),
        "matrix": lambda: fb.assign_add(W, fb.matmul(np.eye(8), ones)),
    }[kind]().op
    with fb.Session() as sess:

        def add() -> None:
            for _ in range(200):
                sess.run(update)

        def read() -> None:
            for _ in range(100):
                sess.run(W)

        run_together(*[add] * 10, read, read)
        np.testing.assert_array_equal(sess.run(W), np.full((8, 1000), 2000.0))
