"""What explains a model explains loops and branches too."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb


def model() -> tuple[fb.Tensor, fb.Variable, fb.Tensor]:
    """A branch in a loop, after a loop in it that multiplies by a variable."""
    x = fb.placeholder(fb.float32, [], name="x")
    W = fb.Variable(2.0, name="W")

    def body(i: Any, v: Any) -> Any:
        _, inner = fb.while_loop(lambda j, u: j < 2, lambda j, u: (j + 1, u * W), (0, v))
        return i + 1, fb.cond(inner > 100.0, lambda: inner / x, lambda: fb.log(inner + x))

    y = fb.while_loop(lambda i, v: i < 3, body, (0, x), name="loop")[1]
    return x, W, fb.identity(y, name="y")


def test_lint_finds_nothing_wrong_with_a_loop() -> None:
    _, _, y = model()
    assert not list(fb.lint(loss=y))
    fb.train.GradientDescentOptimizer(0.1).minimize(y)
    assert not list(fb.lint(loss=y))


def test_lint_finds_what_is_wrong_around_a_loop() -> None:
    W = fb.Variable(1.0, name="W")
    fb.Variable(1.0, name="unused")
    y = fb.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v + fb.stop_gradient(W)), (0, 0.0))[
        1
    ]
    found = [(f.rule, f.operation.name) for f in fb.lint(loss=y)]
    assert found == [("no gradient", "W"), ("unused variable", "unused")]


def test_observe_sees_what_loops_and_branches_give() -> None:
    x, W, y = model()
    (dW,) = fb.gradients(y, [W])
    with fb.Session() as sess:
        expected = sess.run([y, dW], {x: 1.5})
        for executor in ("reference", "compiled"):
            run = fb.observe(sess, [y, dW], {x: 1.5}, executor=executor)
            assert [run[y], run[dW]] == expected
            assert not [t for t in run.values if t.op.context is not None]
        wide = fb.observe(sess, [y, dW], {x: 1.5}, dtype=fb.float64)
        comparison = fb.compare(fb.observe(sess, [y, dW], {x: 1.5}), wide)
    assert wide[y].dtype == np.float64
    assert comparison.first_unexpected is None
    assert 0 < comparison["y"].error <= 8 * comparison["y"].predicted


def test_rounding_in_a_loop_is_predicted() -> None:
    x = fb.placeholder(fb.float32, [100], name="x")
    v = fb.while_loop(
        lambda i, v: i < 50, lambda i, v: (i + 1, fb.sin(v * 1.1 + x)), (0, fb.zeros([100]))
    )[1]
    feeds = {x: np.linspace(-1, 1, 100)}
    with fb.Session() as sess:
        runs = [fb.observe(sess, v, feeds, dtype=dtype) for dtype in (fb.float16, fb.float64)]
        assert fb.compare(*runs).first_unexpected is None
        other = fb.observe(sess, v, {x: np.linspace(-1, 1.1, 100)}, dtype=fb.float64)
        assert fb.compare(runs[1], other)[v.name].verdict == "MORE than rounding"


def test_forecast_counts_an_iteration_or_as_many_as_there_are() -> None:
    x = fb.placeholder(fb.float32, [None], name="x")

    def body(i: Any, v: Any) -> Any:
        return i + 1, fb.while_loop(lambda j, u: j < 4, lambda j, u: (j + 1, u * x), (0, v))[1]

    v = fb.while_loop(lambda i, v: i < 3, body, (0, x), name="loop")[1]
    once = fb.forecast(v, {x: (100,)})
    assert once.by_type()["Mul"].flops == 100
    assert once.trips == {"loop": 1, "loop/while": 1}
    assert "One iteration of the loop loop/while costs 102 FLOP; 1 of them" in str(once)
    assert "trips={'loop': 10} says it" in str(once)
    counted = fb.forecast(v, {x: (100,)}, trips={"loop": 3, "loop/while": 4})
    assert counted.by_type()["Mul"].flops == 100 * 3 * 4
    assert counted.per_iteration["loop/while"].flops == 102
    assert counted.per_iteration["loop"].flops == 102 * 4 + 2
    assert counted.total.flops == (102 * 4 + 2) * 3
    assert "says it" not in str(counted)
    assert fb.forecast(v, {x: (100,)}, trips=2).by_type()["Mul"].flops == 100 * 2 * 2


def test_forecast_shows_what_gradients_of_loops_keep() -> None:
    x = fb.placeholder(fb.float32, [None], name="x")
    v = fb.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * x), (0, x), name="loop")[1]
    (dx,) = fb.gradients(v, [x])
    assert fb.forecast(v, {x: (100,)}).stack_bytes == 0
    found = fb.forecast([v, dx], {x: (100,)}, trips=7)
    assert found.stack_bytes == 7 * 400
    assert "For gradients 2.80 kB are kept besides." in str(found)


def test_forecast_refuses_trips_of_no_loop() -> None:
    x, _, y = model()
    with pytest.raises(fb.errors.NotFoundError, match="no loop 'lop': there are 'loop', 'loop/wh"):
        fb.forecast(y, {x: ()}, trips={"lop": 3})
    for wrong in (-1, 2.5, True, {"loop": "3"}):
        with pytest.raises(fb.errors.InvalidArgumentError, match="trips are numbers of iterations"):
            fb.forecast(y, {x: ()}, trips=wrong)


def test_parameters_and_updates_are_counted_through_loops() -> None:
    x, W, y = model()
    assert fb.parameter_counts().total.parameters == 1
    moved = fb.Variable(0.0, trainable=False, name="moved")
    seen = fb.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, v + fb.exp(x)), (0, 0.0))[1]
    update = fb.mark_as_update(fb.assign(moved, seen))
    graph = fb.get_default_graph()
    assert graph.updates(of=y) == [getattr(update, "op", update)]
    assert W in graph.variables()
