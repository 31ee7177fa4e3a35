from __future__ import annotations

import numpy as np
import pytest

import flowbook as fb
from tests.explain.models import classifier


@pytest.fixture
def sess() -> fb.Session:
    return fb.Session()


def test_observing_leaves_no_trace(sess: fb.Session) -> None:
    model = classifier()
    variables = model.loss.graph.variables()
    before = sess.run([v.value for v in variables])
    operations = len(model.loss.graph.operations)
    fb.observe(sess, [model.loss, model.train], model.feeds, dtype=fb.float64)
    assert len(model.loss.graph.operations) == operations
    for value, expected in zip(sess.run([v.value for v in variables]), before, strict=True):
        np.testing.assert_array_equal(value, expected)


def test_it_sees_what_a_run_gives(sess: fb.Session) -> None:
    x = fb.placeholder(fb.float32, [3], name="x")
    w = fb.Variable([1.0, 2.0, 3.0], name="w")
    y = fb.reduce_sum(x * w, name="y")
    step = fb.assign_add(w, x, name="step")
    seen = fb.observe(sess, [y, step], {x: [1, 1, 1]})
    assert seen["y"] == seen[y] == 6.0
    np.testing.assert_array_equal(seen["step:0"], [2, 3, 4])
    with pytest.raises(KeyError):
        seen["nothing"]


def test_it_starts_from_the_session_s_values(sess: fb.Session) -> None:
    w = fb.Variable(1.0, name="w")
    grow = fb.assign_add(w, 1.0)
    y = fb.multiply(w, 10.0, name="y")
    sess.run(grow)
    sess.run(grow)
    assert fb.observe(sess, y)["y"] == 30.0
    assert fb.observe(sess, y, {w: 5.0})["y"] == 50.0


@pytest.mark.parametrize("dtype", [fb.float64, fb.bfloat16, fb.float16])
def test_rounding_explains_another_dtype(sess: fb.Session, dtype: fb.DType) -> None:
    model = classifier()
    one = fb.observe(sess, [model.loss, model.train], model.feeds)
    other = fb.observe(sess, [model.loss, model.train], model.feeds, dtype=dtype)
    found = fb.compare(one, other)
    assert found.first_unexpected is None
    assert found["loss"].error > 0
    assert not found.missing
    assert other["loss"].dtype == dtype.numpy


def test_executors_are_equal(sess: fb.Session) -> None:
    model = classifier()
    runs = [
        fb.observe(sess, [model.loss, model.train], model.feeds, executor=executor)
        for executor in ("reference", "compiled")
    ]
    found = fb.compare(*runs)
    assert {d.error for d in found.differences} == {0.0}
    assert "equal" in repr(found)


def test_no_learning_rate_changes_only_the_updates(sess: fb.Session) -> None:
    model = classifier()
    one = fb.observe(sess, [model.loss, model.train], model.feeds)
    other = fb.observe(sess, [model.loss, model.train], {**model.feeds, model.rate: 0.0})
    found = fb.compare(one, other)
    assert found["loss"].error == 0
    assert found.first_unexpected is not None
    assert found.first_unexpected.name == "rate:0"
    assert "MORE than rounding" in repr(found)


def test_a_loss_of_digits_is_predicted(sess: fb.Session) -> None:
    """Two nearly equal numbers are subtracted: rounding alone makes this error."""
    x = fb.placeholder(fb.float32, [], name="x")
    y = fb.subtract(fb.exp(x), 1.0, name="y")
    feeds = {x: 1e-4}
    found = fb.compare(
        fb.observe(sess, y, feeds), fb.observe(sess, y, {x: np.float32(1e-4)}, dtype=fb.float64)
    )
    assert found["y"].error > 1e-5 * found["y"].scale
    assert found["y"].is_expected


def test_a_wrong_operation_is_found(sess: fb.Session) -> None:
    """The same names, one operation off by far less than anyone would notice in the loss."""
    runs = []
    for factor in (1.0, 1.00002):
        with fb.Graph().as_default() as graph, fb.Session(graph=graph) as inner:
            x = fb.placeholder(fb.float32, [64], name="x")
            h = fb.multiply(fb.tanh(x), factor, name="h")
            y = fb.reduce_mean(fb.square(h), name="y")
            runs.append(fb.observe(inner, y, {x: np.linspace(-1, 1, 64)}))
    found = fb.compare(*runs)
    assert found.first_unexpected is not None
    assert found.first_unexpected.name in ("h/y:0", "h:0")


def test_random_operations_draw_the_same(sess: fb.Session) -> None:
    x = fb.random_uniform([100], name="x")
    y = fb.reduce_sum(x, name="y")
    one, other = (fb.observe(sess, y, dtype=dtype) for dtype in (None, fb.float64))
    np.testing.assert_array_equal(one["x"], other["x"])
    assert fb.compare(one, other).first_unexpected is None


def test_intermediate_feeds(sess: fb.Session) -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    h = fb.exp(x, name="h")
    y = fb.add(h, 1.0, name="y")
    seen = fb.observe(sess, y, {h: [1.0, 2.0]})
    np.testing.assert_array_equal(seen["y"], [2.0, 3.0])


def test_other_shapes_and_strings(sess: fb.Session) -> None:
    x = fb.placeholder(fb.float32, [None], name="x")
    s = fb.constant(["a", "b"], name="s")
    t = fb.identity(s, name="t")
    y = fb.multiply(x, 2.0, name="y")
    one = fb.observe(sess, [y, t], {x: [1.0]})
    other = fb.observe(sess, [y, t], {x: [1.0, 2.0]})
    found = fb.compare(one, other)
    assert found["t"].verdict == "equal"
    assert found["y"].verdict.startswith("other shapes")


def test_what_makes_no_sense_is_refused(sess: fb.Session) -> None:
    x = fb.constant(1.0, name="x")
    y = fb.constant(1.0, name="y")
    with pytest.raises(fb.errors.InvalidArgumentError, match="executor"):
        fb.observe(sess, x, executor="fast")
    with pytest.raises(fb.errors.InvalidTypeError, match="floating"):
        fb.observe(sess, x, dtype=fb.int32)
    with pytest.raises(fb.errors.InvalidTypeError, match=r"fb\.observe"):
        fb.compare(1.0, 2.0)  # type: ignore[arg-type]
    with pytest.raises(fb.errors.InvalidArgumentError, match="no tensor"):
        fb.compare(fb.observe(sess, x), fb.observe(sess, y))


@pytest.mark.parametrize("name", ["Mul", "Add", "x_0_fed"])
def test_what_is_built_beside_copies_takes_no_name_of_theirs(sess: fb.Session, name: str) -> None:
    x = fb.placeholder(fb.float32, [3], name="x")
    total = fb.reduce_sum(fb.divide(x, 3.0, name=name), name="total")
    first = fb.observe(sess, total, {x: [1.0, 2.0, 4.0]})
    second = fb.observe(sess, total, {x: [1.0, 2.0, 4.0]}, dtype=fb.float64)
    found = fb.compare(first, second)
    assert found.first_unexpected is None
    assert found[name].error > 0
