"""L-BFGS finds minima, keeps bounds, and leaves the variables at the best values found."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb


def rosenbrock(x: Any) -> Any:
    return fb.reduce_sum(100.0 * fb.square(x[1:] - fb.square(x[:-1])) + fb.square(1.0 - x[:-1]))


def test_rosenbrocks_valley() -> None:
    x = fb.Variable(np.full(10, -1.2))
    optimizer = fb.train.LBFGSOptimizer(rosenbrock(x))
    with fb.Session() as sess:
        found = optimizer.minimize(sess)
        np.testing.assert_allclose(sess.run(x), np.ones(10), atol=1e-6)
        assert found.converged
        assert found.loss == pytest.approx(0.0, abs=1e-12)
        assert sess.run(optimizer.loss) == found.loss
        assert 10 < found.iterations <= found.evaluations < 200


def test_several_variables_and_feeds_in_float32() -> None:
    random = np.random.default_rng(0)
    data = random.normal(size=(50, 3)).astype(np.float32)
    wanted = data @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 3.0
    x = fb.placeholder(fb.float32, [None, 3])
    y = fb.placeholder(fb.float32, [None, 1])
    W, b = fb.Variable(fb.zeros([3, 1])), fb.Variable(0.0)
    unused = fb.Variable(7.0)
    optimizer = fb.train.LBFGSOptimizer(fb.reduce_mean(fb.square(x @ W + b - y)))
    with fb.Session() as sess:
        found = optimizer.minimize(sess, {x: data, y: wanted})
        assert found.converged
        np.testing.assert_allclose(sess.run(W)[:, 0], [1.0, -2.0, 0.5], atol=1e-3)
        assert sess.run([b, unused]) == pytest.approx([3.0, 7.0], abs=1e-3)


def test_rows_of_a_table() -> None:
    table = fb.Variable(np.zeros((4, 2)))
    loss = fb.reduce_sum(fb.square(fb.gather(table, [1, 1, 3]) - 2.0))
    with fb.Session() as sess:
        fb.train.LBFGSOptimizer(loss).minimize(sess)
        np.testing.assert_allclose(sess.run(table)[:, 0], [0.0, 2.0, 0.0, 2.0], atol=1e-6)


def test_bounds_are_kept() -> None:
    x, y = fb.Variable(np.zeros(2)), fb.Variable(np.zeros(()))
    loss = fb.reduce_sum(fb.square(x - 3.0)) + fb.square(y - 3.0)
    optimizer = fb.train.LBFGSOptimizer(loss, var_to_bounds={x: (None, [2.0, 5.0])})
    with fb.Session() as sess:
        optimizer.minimize(sess)
        np.testing.assert_allclose(sess.run(x), [2.0, 3.0], atol=1e-6)
        assert sess.run(y) == pytest.approx(3.0)


def test_only_listed_variables_change_and_the_search_goes_on_where_it_ended() -> None:
    x, y = fb.Variable(np.full(4, -1.0)), fb.Variable(np.ones(()))
    optimizer = fb.train.LBFGSOptimizer(rosenbrock(x) * y, [x], max_iterations=5)
    with fb.Session() as sess:
        first = optimizer.minimize(sess)
        assert not first.converged
        assert first.iterations == 5
        second = optimizer.minimize(sess)
        assert second.loss < first.loss
        assert sess.run(y) == 1.0


def test_callbacks_see_the_losses_fall() -> None:
    x = fb.Variable(np.full(4, -1.0))
    seen: list[tuple[int, float]] = []
    optimizer = fb.train.LBFGSOptimizer(rosenbrock(x))
    with fb.Session() as sess:
        found = optimizer.minimize(sess, callback=lambda n, loss: seen.append((n, loss)))
    assert [n for n, _ in seen] == list(range(1, found.iterations + 1))
    losses = [loss for _, loss in seen]
    assert losses == sorted(losses, reverse=True)


def test_an_interrupted_search_keeps_what_it_has() -> None:
    x = fb.Variable(np.full(4, -1.0))
    optimizer = fb.train.LBFGSOptimizer(rosenbrock(x))
    seen: list[float] = []

    def stop(count: int, loss: float) -> None:
        seen.append(loss)
        if count == 3:
            raise KeyboardInterrupt

    with fb.Session() as sess:
        with pytest.raises(KeyboardInterrupt):
            optimizer.minimize(sess, callback=stop)
        assert sess.run(optimizer.loss) == pytest.approx(seen[-1])


def test_a_search_that_begins_where_the_loss_is_not_finite_changes_nothing() -> None:
    x = fb.Variable(np.array([1.0, 2.0]))
    optimizer = fb.train.LBFGSOptimizer(fb.reduce_sum(fb.log(-x)))
    with fb.Session() as sess:
        found = optimizer.minimize(sess)
        assert not found.converged
        assert "the loss, nan, or its gradient is not finite" in found.message
        np.testing.assert_array_equal(sess.run(x), [1.0, 2.0])


@pytest.mark.parametrize("start", [0.01, 1e-4, 30.0])
def test_steps_to_where_the_loss_is_not_finite_are_taken_back(start: float) -> None:
    x = fb.Variable(np.full(3, start))
    loss = fb.reduce_sum([1.0, 10.0, 100.0] * x - fb.log(x))
    optimizer = fb.train.LBFGSOptimizer(loss)
    with fb.Session() as sess:
        found = optimizer.minimize(sess)
        assert found.converged
        assert np.isfinite(found.loss)
        np.testing.assert_allclose(sess.run(x), [1.0, 0.1, 0.01], rtol=1e-4)


def test_two_searches_are_equal() -> None:
    found = []
    for _ in range(2):
        x = fb.Variable(np.full(5, -1.0))
        with fb.Session() as sess:
            fb.train.LBFGSOptimizer(rosenbrock(x), [x]).minimize(sess)
            found.append(sess.run(x))
    np.testing.assert_array_equal(*found)


def test_errors() -> None:
    x, n = fb.Variable([1.0]), fb.Variable(1, trainable=False)
    for loss, arguments, said in (
        (3.0, {}, "a tensor"),
        (fb.square(x), {}, "no scalar"),
        (fb.constant(1.0), {}, "depends on none"),
        (fb.reduce_sum(x), {"var_list": [n]}, "floating-point"),
        (fb.reduce_sum(x), {"max_iterations": 0}, "max_iterations is at least 1"),
        (fb.reduce_sum(x), {"history": 0}, "history is at least 1"),
        (fb.reduce_sum(x), {"var_to_bounds": {n: (0, 1)}}, "not changed"),
        (fb.reduce_sum(x), {"var_to_bounds": {x: 0}}, "a least and a largest value"),
        (fb.reduce_sum(x), {"var_to_bounds": {x: ([0, 1], 2)}}, r"for \[1\], not"),
        (fb.reduce_sum(x), {"var_to_bounds": {x: (1, 0)}}, "not below"),
        (fb.reduce_sum(x), {"var_to_bounds": {x: (np.nan, 0)}}, "not below"),
    ):
        with pytest.raises((fb.errors.InvalidArgumentError, TypeError), match=said):
            fb.train.LBFGSOptimizer(loss, **arguments)


def test_how_small_a_loss_is_does_not_matter() -> None:
    """The tolerance is a part of the loss, also where that is far below 1."""
    x = fb.Variable([-1.2, 1.0], name="x")
    optimizer = fb.train.LBFGSOptimizer(1e-6 * rosenbrock(x), gradient_tolerance=1e-12)
    with fb.Session() as sess:
        result = optimizer.minimize(sess)
        np.testing.assert_allclose(sess.run(x), 1.0, atol=0.01)
    assert result.converged
