from __future__ import annotations

import numpy as np
import pytest

import flowbook as fb
from tests.explain.models import classifier


def test_products_are_counted_by_hand() -> None:
    x = fb.placeholder(fb.float32, [None, 784], name="x")
    w = fb.Variable(fb.zeros([784, 10]), name="w")
    y = fb.matmul(x, w)
    found = fb.forecast(y, {x: (100, 784)})
    assert found.total.flops == 2 * 100 * 784 * 10
    assert found.by_type()["MatMul"].bytes == 100 * 10 * 4
    assert found.variable_bytes == 784 * 10 * 4
    assert not found.unsized
    assert found.by_operation[y.op].flops == found.total.flops


def test_values_may_stand_for_their_shapes() -> None:
    model = classifier()
    feeds = {k: np.asarray(v) for k, v in model.feeds.items()}
    shapes = {k: np.shape(v) for k, v in model.feeds.items()}
    by_values = fb.forecast([model.loss, model.train], feeds)
    assert by_values.total == fb.forecast([model.loss, model.train], shapes).total
    assert set(by_values.by_scope()) >= {"hidden", "output", "gradients"}


def test_the_graph_does_not_grow() -> None:
    model = classifier()
    before = len(model.loss.graph.operations)
    fb.forecast(model.train, {k: np.shape(v) for k, v in model.feeds.items()})
    assert len(model.loss.graph.operations) == before


def test_memory_is_that_of_what_is_alive() -> None:
    x = fb.placeholder(fb.float32, [250], name="x")
    y = x
    for _ in range(6):
        y = y + 1.0
    found = fb.forecast(y, {x: (250,)})
    # A value lives until its one consumer has run: two at once, and the constants.
    assert 2000 <= found.peak_bytes <= 2000 + 4 * 6
    assert found.peak_at is not None


def test_views_take_no_memory() -> None:
    x = fb.placeholder(fb.float32, [100], name="x")
    y = fb.broadcast_to(fb.reshape(x, [100, 1]), [100, 1000])
    assert fb.forecast(y, {x: (100,)}).peak_bytes < 100


def test_a_value_lives_as_long_as_views_of_it() -> None:
    x = fb.placeholder(fb.float32, [1000], name="x")
    view = fb.reshape(x + 1.0, [10, 100])
    other = fb.exp(fb.exp(fb.exp(x)))
    found = fb.forecast([view, other], {x: (1000,)})
    assert found.peak_bytes >= 3 * 4000


def test_unknown_sizes_are_said() -> None:
    x = fb.placeholder(fb.float32, [None], name="x")
    found = fb.forecast(x * 2.0, {x: fb.Shape([None])})
    assert [t.name for t in found.unsized] == ["x:0", "Mul:0"]
    assert repr(found).startswith("at least")


def test_unknown_sizes_of_what_is_fed_are_said() -> None:
    x = fb.placeholder(fb.float32, [None], name="x")
    fb.placeholder(fb.float32, [None], name="unused")
    found = fb.forecast(fb.reduce_sum(x), {x: fb.Shape([None]), "unused": fb.Shape([None])})
    assert [t.name for t in found.unsized] == ["x:0"]
    assert fb.forecast(fb.reduce_sum(x), {x: (3,)}).unsized == []


def test_what_does_not_fit_is_refused() -> None:
    x = fb.placeholder(fb.float32, [None, 3], name="x")
    with pytest.raises(fb.errors.InvalidArgumentError, match="shape"):
        fb.forecast(x * 2.0, {x: (2, 4)})
    with pytest.raises(fb.errors.InvalidArgumentError, match="fed"):
        fb.forecast(x * 2.0)
    with pytest.raises(fb.errors.InvalidArgumentError, match="as a tuple"):
        fb.forecast(x * 2.0, {x: "many"})


def test_the_graph_is_that_of_the_fetches() -> None:
    with fb.Graph().as_default():
        x = fb.placeholder(fb.float32, [3], name="x")
        y = x * 2.0
    assert fb.forecast({"y": [y]}, {x: (3,)}).total.flops == 3


def test_a_loop_is_forecast() -> None:
    x = fb.placeholder(fb.float32, [None, 4])
    _, y = fb.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x))
    assert "Mul" in str(fb.forecast(y, {x: (2, 4)}))
    slope = fb.gradients(y, x)[0]
    assert "Mul" in str(fb.forecast(slope, {x: (2, 4)}))
