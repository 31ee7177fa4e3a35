"""Random operations in sessions: seeds give the same numbers, and each run draws the next ones."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.resources.random_state import RandomState
from tests.exec.random_graphs import delayed
from tests.exec.state.executors import EXECUTORS, run_in

DRAWS: dict[str, Any] = {
    "uniform": lambda **k: fb.random_uniform([5], **k),
    "scaled": lambda **k: fb.random_uniform([5], -1, 3, **k),
    "normal": lambda **k: fb.random_normal([5], 2.0, 0.5, **k),
    "double": lambda **k: fb.random_normal([5], dtype=fb.float64, **k),
    "integers": lambda **k: fb.random_uniform([5], 0, 1000, dtype=fb.int32, **k),
}


def drawn(fetch: Any, runs: int = 4) -> list[Any]:
    with fb.Session() as sess:
        return [sess.run(fetch) for _ in range(runs)]


@pytest.mark.parametrize("kind", DRAWS)
def test_seed_gives_the_same_numbers_in_every_session(kind: str) -> None:
    x = DRAWS[kind](seed=7)
    np.testing.assert_array_equal(drawn(x), drawn(x))


@pytest.mark.parametrize("kind", DRAWS)
def test_sessions_without_seeds_differ(kind: str) -> None:
    x = DRAWS[kind]()
    assert not np.array_equal(drawn(x), drawn(x))


@pytest.mark.parametrize("kind", DRAWS)
def test_each_run_draws_other_numbers(kind: str) -> None:
    found = drawn(DRAWS[kind](seed=7), runs=6)
    assert len({tuple(f) for f in found}) == 6


def test_graph_seed_gives_operations_different_numbers_by_their_names() -> None:
    fb.set_random_seed(3)
    x, y = fb.random_uniform([5], name="x"), fb.random_uniform([5], name="y")
    first = drawn([x, y])
    assert not np.array_equal(first[0][0], first[0][1])
    np.testing.assert_array_equal(first, drawn([x, y]))
    with fb.Graph().as_default():
        fb.set_random_seed(3)
        fb.constant(0.0)
        y, x = fb.random_uniform([5], name="y"), fb.random_uniform([5], name="x")
        np.testing.assert_array_equal(first, drawn([x, y]))
    with fb.Graph().as_default():
        fb.set_random_seed(4)
        x, y = fb.random_uniform([5], name="x"), fb.random_uniform([5], name="y")
        assert not np.array_equal(first, drawn([x, y]))


def test_equal_operation_seeds_give_equal_numbers() -> None:
    x, y = fb.random_uniform([5], seed=3, name="x"), fb.random_uniform([5], seed=3, name="y")
    for a, b in drawn([x, y]):
        np.testing.assert_array_equal(a, b)


def test_seeds_mean_the_same_in_another_process_whatever_the_hash_seed_of_python() -> None:
    program = """
import flowbook as fb
fb.set_random_seed(11)
x = [fb.random_uniform([3], name="x"), fb.random_normal([3], seed=5)]
x.append(fb.random_uniform([3], 0, 99, fb.int64))
with fb.Session() as sess:
    for _ in range(3):
        print([v.tolist() for v in sess.run(x)])
"""
    found = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.splitlines()
        for seed in ("1", "2")
    ]
    fb.set_random_seed(11)
    x = [
        fb.random_uniform([3], name="x"),
        fb.random_normal([3], seed=5),
        fb.random_uniform([3], 0, 99, fb.int64),
    ]
    here = [str([v.tolist() for v in values]) for values in drawn(x, 3)]
    assert found == [here, here]


@pytest.mark.parametrize("kind", EXECUTORS)
def test_no_executor_draws_more_or_less(kind: str) -> None:
    x = fb.random_uniform([3], seed=5)
    y = x + fb.random_uniform([2, 3], seed=6)
    expected = drawn([x, y], 8)
    with fb.Session() as sess:
        for i in range(0, 8, 2):
            np.testing.assert_equal(run_in(kind, sess, [x, y]), expected[i])
            np.testing.assert_equal(sess.run([x, y]), expected[i + 1])


def test_first_second_and_third_run_draw_consecutive_numbers() -> None:
    state = RandomState("x", 1, 2, 0)
    fb.set_random_seed(1)
    x = fb.random_uniform([8], seed=2, name="x")
    with fb.Session() as sess:
        for _ in range(5):
            np.testing.assert_array_equal(sess.run(x), state.uniform(np.array([8]), fb.float32))


def test_signatures_share_one_counter() -> None:
    x = fb.random_uniform([4], seed=2)
    expected = drawn(x, 9)
    doubled, summed = x * 2.0, fb.reduce_sum(x)
    with fb.Session() as sess:
        for i in range(0, 9, 3):
            np.testing.assert_array_equal(sess.run(x), expected[i])
            np.testing.assert_array_equal(sess.run(doubled), expected[i + 1] * 2)
            np.testing.assert_allclose(sess.run(summed), expected[i + 2].sum(), rtol=1e-6)


def test_one_step_draws_once_for_all_its_uses() -> None:
    x = fb.random_uniform([4], seed=2)
    for a, b, c in drawn([x, x * 1.0, fb.identity(x)]):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_equal_random_operations_are_never_merged() -> None:
    x, y = fb.random_uniform([4]), fb.random_uniform([4])
    assert all(not np.array_equal(a, b) for a, b in drawn([x, y]))


def test_runs_that_do_not_need_an_operation_do_not_draw_from_it() -> None:
    x, y = fb.random_uniform([4], seed=2), fb.random_uniform([4], seed=3)
    both = x + y
    expected = drawn(x, 2)
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(x), expected[0])
        sess.run(y)
        sess.run(both, {x: np.zeros(4)})
        sess.extend()
        np.testing.assert_array_equal(sess.run(x), expected[1])


def test_initial_values_are_drawn_once() -> None:
    start = fb.random_uniform([4], seed=2)
    expected = drawn(start, 3)
    W = fb.Variable(start)
    with fb.Session() as sess:
        for _ in range(3):
            np.testing.assert_array_equal(sess.run(W), expected[0])
        np.testing.assert_array_equal(sess.run(start), expected[1])
        sess.run(W.initializer)
        np.testing.assert_array_equal(sess.run(W), expected[2])


def test_shapes_may_change_from_run_to_run() -> None:
    size = fb.placeholder(fb.int32, [1])
    x = fb.random_uniform(size, seed=4)
    whole = drawn(fb.random_uniform([16], seed=4), 1)[0]
    with fb.Session() as sess:
        parts = [sess.run(x, {size: [n]}) for n in (4, 8, 4)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_partial_run_draws_once() -> None:
    x = fb.random_uniform([4], seed=2)
    a = fb.placeholder(fb.float32, [])
    scaled = x * a
    expected = drawn(x, 2)
    with fb.Session() as sess:
        step = sess.partial_run([x, scaled], [a])
        np.testing.assert_array_equal(step.run(x), expected[0])
        np.testing.assert_array_equal(step.run(scaled, {a: 2.0}), expected[0] * 2)
        np.testing.assert_array_equal(sess.run(x), expected[1])


# Steps that do not come to their end


def _fail(value: Any, how: Any) -> Any:
    if how == 1:
        raise ValueError("as asked")
    if how == 2:
        raise KeyboardInterrupt
    return value


def checked(value: Any, how: Any) -> Any:
    """A value that is given on, unless the step is to fail (1) or to be interrupted (2)."""
    return fb.py_func(_fail, [value, how], fb.float32)


def waited_for(value: Any, how: Any) -> Any:
    return checked(delayed(fb.reduce_sum(value))[0], how)


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("through", [checked, waited_for])
@pytest.mark.parametrize("earlier_runs", [0, 1, 2])
def test_a_step_that_fails_spends_no_draws(kind: str, through: Any, earlier_runs: int) -> None:
    how = fb.placeholder(fb.int32, [])
    x = fb.cast(DRAWS[kind](seed=7), fb.float32)
    y = through(x, how)
    wanted = drawn(x, runs=6)
    with fb.Session() as sess:
        for number in range(earlier_runs):
            np.testing.assert_array_equal(sess.run([x, y], {how: 0})[0], wanted[number])
        for timeout in (None, 100.0):
            for failure, error in ((1, fb.errors.OpError), (2, KeyboardInterrupt)):
                with pytest.raises(error):
                    sess.run([x, y], {how: failure}, timeout=timeout)
        for number in range(earlier_runs, 6):
            np.testing.assert_array_equal(sess.run([x, y], {how: 0})[0], wanted[number])


def test_an_initialisation_that_is_interrupted_spends_no_draws() -> None:
    how = fb.placeholder_with_default(0, [])
    before = fb.random_normal([3], seed=1)
    W = fb.Variable(before, name="W")
    V = fb.Variable(checked(fb.random_normal([], seed=2), how), name="V")
    with fb.Session() as sess:
        wanted = sess.run([W, V])
    with fb.Session() as sess:
        for failure, error in ((1, fb.errors.OpError), (2, KeyboardInterrupt)):
            with pytest.raises(error):
                sess.run(V, {how: failure})
            with pytest.raises(error):
                sess.run([W.initializer, V.initializer], {how: failure})
        found = sess.run([W, V])
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_partial_run_that_fails_spends_no_draws() -> None:
    how, late = fb.placeholder(fb.int32, []), fb.placeholder(fb.float32, [])
    x = fb.random_uniform([], seed=5)
    y = checked(x + late, how)
    wanted = drawn(x, runs=1)
    with fb.Session() as sess:
        step = sess.partial_run([x, y], [how, late])
        assert step.run(x) == wanted[0]
        with pytest.raises(fb.errors.OpError):
            step.run(y, {how: 1, late: 0.0})
        step = sess.partial_run([x, y], [how, late])
        assert step.run(x) == wanted[0]
        step.run(y, {how: 0, late: 0.0})
        assert sess.run(x) != wanted[0]


def test_what_others_have_drawn_since_stays_drawn() -> None:
    """No two steps that come to their end get the same numbers."""
    x = fb.random_uniform([], seed=6)
    wanted = drawn(x, runs=3)
    found: list[Any] = []

    def other() -> None:
        found.append(sess.run(x))
        raise ValueError("as asked")

    with fb.control_dependencies([x]):
        y = fb.py_func(other, [], [])
    with fb.Session() as sess:
        with pytest.raises(fb.errors.OpError):
            sess.run([x, y])
        found.append(sess.run(x))
    assert found == wanted[1:]
