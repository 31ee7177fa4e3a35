"""Functions with a gradient of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb


@fb.custom_gradient
def clipped(x: Any) -> Any:
    return x * x, lambda dy: fb.clip_by_value(dy, -1.0, 1.0)


@pytest.fixture
def x() -> fb.Tensor:
    return fb.placeholder(fb.float64, [], name="x")


def test_takes_the_place_of_the_true_one(x: fb.Tensor) -> None:
    y = clipped(x) * 5.0
    with fb.Session() as sess:
        assert sess.run([y, *fb.gradients(y, [x])], {x: 3.0}) == [45, 1]


def test_several_arguments_and_results(x: fb.Tensor) -> None:
    @fb.custom_gradient
    def both(a: Any, b: Any) -> Any:
        return {"sum": a + b, "product": a * b}, lambda dproduct, dsum: (10 * dsum, dproduct)

    found = both(x, fb.constant(2.0, fb.float64))
    assert sorted(found) == ["product", "sum"]
    da = fb.gradients([found["sum"], found["product"]], [x], [1.0, 100.0])
    with fb.Session() as sess:
        assert sess.run([found, da], {x: 3.0}) == [{"sum": 5, "product": 6}, [10]]


def test_in_loops_and_branches(x: fb.Tensor) -> None:
    def body(i: Any, t: Any) -> Any:
        return i + 1, fb.cond(i < 2, lambda: clipped(t) * 3.0, lambda: t * x)

    _, t = fb.while_loop(lambda i, _: i < 4, body, (0, x))
    [dx] = fb.gradients(t, [x])
    with fb.Session() as sess:
        at = 1.1
        value, wanted = at, [0.0, 1.0]
        steps = []
        for i in range(4):
            steps.append(value)
            value = value * value * 3 if i < 2 else value * at
        through, direct = 1.0, 0.0
        for i, before in reversed(list(enumerate(steps))):
            if i < 2:
                through = float(np.clip(through * 3, -1, 1))
            else:
                direct += through * before
                through *= at
        wanted = value, through + direct
        for _ in range(2):
            assert np.allclose(sess.run([t, dx], {x: at}), wanted)


def test_a_second_derivative_is_that_of_the_gradient(x: fb.Tensor) -> None:
    @fb.custom_gradient
    def cube(x: Any) -> Any:
        return x**3, lambda dy: dy * 3 * x**2

    [dx] = fb.gradients(cube(x), [x])
    [ddx] = fb.gradients(dx, [x])
    with fb.Session() as sess:
        assert np.allclose(sess.run([dx, ddx], {x: 2.0}), [12, 12])


def test_what_does_not_fit(x: fb.Tensor) -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="its result and a function"):
        fb.custom_gradient(lambda x: x)(x)
    y = fb.custom_gradient(lambda x: (x, lambda dy: (dy, dy)))(x)
    with pytest.raises(fb.errors.InvalidArgumentError, match="gives 2 values, and the function t"):
        fb.gradients(y, [x])
