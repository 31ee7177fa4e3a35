"""A guard looks into loops and branches, and tells the iteration."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb


@pytest.fixture
def sess() -> Any:
    with fb.Session() as session:
        session.guard(nonfinite=True)
        yield session


def nested(x: fb.Tensor, W: fb.Variable) -> fb.Tensor:
    def body(i: Any, v: Any) -> Any:
        _, inner = fb.while_loop(lambda j, u: j < 2, lambda j, u: (j + 1, u * W), (0, v))
        return i + 1, fb.cond(
            inner > 100.0, lambda: inner / x, lambda: fb.log(inner + x, name="logarithm")
        )

    return fb.while_loop(lambda i, v: i < 3, body, (0, x), name="loop")[1]


def test_what_is_finite_runs_as_without(sess: Any) -> None:
    x, W = fb.placeholder(fb.float32, [], name="x"), fb.Variable(2.0, name="W")
    y = nested(x, W)
    dW = fb.gradients(y, [W])
    train = fb.train.GradientDescentOptimizer(0.1).minimize(y)
    with fb.Session() as plain:
        for _ in range(3):
            assert sess.run([y, dW, train], {x: 1.5}) == plain.run([y, dW, train], {x: 1.5})
        assert sess.run(W) == plain.run(W)


def test_the_iteration_of_the_first_value_that_is_not_finite(sess: Any) -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    total = fb.while_loop(
        lambda i, v: i < 6,
        lambda i, v: (i + 1, v + fb.log(x - fb.cast(i, fb.float32), name="logarithm")),
        (0, 0.0),
    )[1]
    for _ in range(2):
        with pytest.raises(fb.errors.InvalidArgumentError, match="Log 'while/logarithm'") as caught:
            sess.run(total, {x: 3.0})
        assert "it gave 1 Inf" in str(caught.value)
        assert "in iteration 3 of the loop 'while' (the first is 0)" in caught.value.details
        assert "the step changed no variable" in caught.value.details


def test_a_branch_of_a_loop_in_a_loop(sess: Any) -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    y = nested(x, fb.Variable(2.0, name="W"))
    with pytest.raises(fb.errors.InvalidArgumentError, match="logarithm'") as caught:
        sess.run(y, {x: -1.5})
    assert "in iteration 0 of the loop 'loop' (the first is 0)" in caught.value.details


def test_only_the_taken_branch_is_looked_at(sess: Any) -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    y = fb.cond(x > 0, lambda: fb.log(x), lambda: fb.log(-x, name="other"))
    assert sess.run(y, {x: 1.0}) == sess.run(y, {x: -1.0}) == 0
    with pytest.raises(fb.errors.InvalidArgumentError, match="cond/other"):
        sess.run(y, {x: 0.0})


def test_what_is_about_to_be_written_in_a_body(sess: Any) -> None:
    v = fb.Variable(1.0, name="v")

    def body(i: Any) -> Any:
        with fb.control_dependencies([fb.assign(v, fb.log(2.0 - fb.cast(i, fb.float32)))]):
            return i + 1

    last = fb.while_loop(lambda i: i < 5, body, [0])
    with pytest.raises(fb.errors.InvalidArgumentError, match="Log") as caught:
        sess.run(last)
    assert "in iteration 2 of the loop 'while' (the first is 0)" in caught.value.details
    assert "the step may have changed: v" in caught.value.details
    assert sess.run(v) == 0.0  # log 1, of the iteration before


def test_what_is_allowed_inside(sess: Any) -> None:
    v = fb.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, fb.log(v, name="l")), (0, 1.0))[1]
    with pytest.raises(fb.errors.InvalidArgumentError, match="allow=\\['while/l'\\]"):
        sess.run(v)
    sess.guard(nonfinite=True, allow=["while"])
    assert np.isnan(sess.run(v))


def test_a_partial_run_through_a_loop(sess: Any) -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    y = fb.placeholder(fb.float32, [], name="y")
    v = fb.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, fb.log(v)), (0, x))[1]
    with sess.partial_run([v, v + y], [x, y]) as step:
        assert step.run(v, {x: 1e30}) == pytest.approx(np.log(np.log(np.log(1e30))))
    with sess.partial_run([v, v + y], [x, y]) as step, pytest.raises(fb.errors.OpError) as caught:
        step.run(v, {x: 1.0})
    assert "in iteration 1 of the loop 'while' (the first is 0)" in caught.value.details
