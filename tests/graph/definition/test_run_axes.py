"""Axes that only the run knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb

X = np.arange(18, dtype=np.float32).reshape(2, 3, 3)


@pytest.fixture
def axis() -> fb.Tensor:
    return fb.placeholder(fb.int32, [], name="axis")


@pytest.fixture
def x() -> fb.Tensor:
    return fb.placeholder(fb.float32, [2, 3, 3], name="x")


def test_what_is_known_of_shapes_is_so_along_every_axis(x: fb.Tensor, axis: fb.Tensor) -> None:
    axes = fb.placeholder(fb.int32, [None])
    assert fb.reduce_sum(x, axis).shape == fb.Shape([None, 3])
    assert fb.reduce_sum(x, [axis, 2]).shape == fb.Shape([None])
    assert fb.reduce_sum(x, axes).shape.dims is None
    assert fb.reduce_sum(x, axes, keepdims=True).shape == fb.Shape([None] * 3)
    assert fb.reverse(x, axes).shape == x.shape
    assert fb.transpose(x, axes).shape == fb.Shape([None] * 3)
    # The new dimension may be the last.
    assert fb.expand_dims(x, axis).shape == fb.Shape([None] * 4)
    assert [t.shape for t in fb.split(x, 3, axis)] == [fb.Shape([2, None, None])] * 3
    # Another axis would be an error.
    assert fb.squeeze(fb.ones([2, 1]), axis).shape == fb.Shape([2])
    unknown = fb.placeholder(fb.float32)
    assert fb.concat([unknown, x], axis).shape.dims is None


def test_what_is_wrong_along_every_axis_is_refused_when_it_is_built(axis: fb.Tensor) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="is 3: only 1 can be squeezed"):
        fb.squeeze(fb.ones([2, 3]), axis)
    with pytest.raises(fb.errors.InvalidArgumentError, match="'axis' is a scalar, not of shape"):
        fb.concat([fb.ones([2]), fb.ones([2])], fb.placeholder(fb.int32, [1]))
    with pytest.raises(fb.errors.InvalidArgumentError, match="'axis' is a scalar or a vector"):
        fb.reduce_sum(fb.ones([2]), fb.placeholder(fb.int32, [1, 1]))
    with pytest.raises(fb.errors.InvalidTypeError, match="'axis' is one of int32, int64"):
        fb.reduce_sum(fb.ones([2]), fb.placeholder(fb.float32, []))


@pytest.mark.parametrize(
    ("_", "build"),
    [
        ("reduce_sum", fb.reduce_sum),
        ("argmax", fb.argmax),
        ("cumsum", fb.cumsum),
        ("expand_dims", fb.expand_dims),
        ("reverse", fb.reverse),
        ("concat", lambda x, axis: fb.concat([x, x], axis)),
        ("gather", lambda x, axis: fb.gather(x, [0], axis=axis)),
        ("of a variable", lambda _, axis: fb.gather(fb.Variable(X), [0], axis=axis)),
        ("split", lambda x, axis: fb.split(x, [1, -1], axis)[1]),
        ("transpose", lambda x, axis: fb.transpose(x, [axis, 1, 2])),
        ("unique", lambda x, axis: fb.unique(x, axis=axis).y),
        ("moments", lambda x, axis: fb.nn.moments(x, axis)[1]),
        ("l2_normalize", lambda x, axis: fb.nn.l2_normalize(x, axis)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_axis_that_there_is_not(x: fb.Tensor, axis: fb.Tensor, _: str, build: Any) -> None:
    y = build(x, axis)
    with fb.Session() as sess:
        for known in (0, -3):
            expected = sess.run(build(x, known), {x: X})
            np.testing.assert_array_equal(sess.run(y, {x: X, axis: known}), expected)
        with pytest.raises(fb.errors.InvalidArgumentError, match=r"axis|perm") as caught:
            sess.run(y, {x: X, axis: 7})
        assert "7" in caught.value.message
        assert caught.value.operation is not None


def test_gradients_in_loops(x: fb.Tensor) -> None:
    """Along one axis after the other, in a loop whose counter is the axis."""

    def body(k: fb.Tensor, y: fb.Tensor) -> tuple[fb.Tensor, fb.Tensor]:
        return k + 1, fb.cumsum(y, k) * fb.reduce_max(y, k, keepdims=True)

    looped = fb.while_loop(lambda k, y: k < 3, body, (0, x))[1]
    by_hand: Any = x
    for k in range(3):
        by_hand = fb.cumsum(by_hand, k) * fb.reduce_max(by_hand, k, keepdims=True)
    with fb.Session() as sess:
        found = sess.run([looped, fb.gradients(looped, x)], {x: X})
        expected = sess.run([by_hand, fb.gradients(by_hand, x)], {x: X})
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_a_variable_may_be_an_axis(x: fb.Tensor) -> None:
    axis = fb.Variable(1)
    total = fb.reduce_sum(x, [axis, 0])
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(total, {x: X}), X.sum((0, 1)))
        sess.run(fb.assign(axis, 2))
        np.testing.assert_array_equal(sess.run(total, {x: X}), X.sum((0, 2)))


def test_a_default_that_runs_replace(x: fb.Tensor) -> None:
    axis = fb.placeholder_with_default(0, [])
    total = fb.reduce_sum(x, axis)
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(total, {x: X}), X.sum(0))
        np.testing.assert_array_equal(sess.run(total, {x: X, axis: 1}), X.sum(1))


def test_a_stored_graph_takes_the_axis(x: fb.Tensor, axis: fb.Tensor) -> None:
    fb.reduce_sum(x, axis, name="total")
    graph = fb.Graph.from_bytes(x.graph.to_bytes())
    with fb.Session(graph=graph) as sess:
        np.testing.assert_array_equal(sess.run("total:0", {"x:0": X, "axis:0": 2}), X.sum(2))


def test_a_users_own_type() -> None:
    largest = fb.OpDef(
        "LargestAlong",
        "x: T -> y: T",
        T=fb.FLOATS,
        attributes={"axis": 0},
        # Of an axis that there is not this is an IndexError.
        infer=lambda x, axis: fb.Shape([d for d in x.shape if d != x.shape[axis]]),
        kernel=lambda xp, x, axis: xp.max(x, axis),
        axis="axis",
    )
    axis = fb.placeholder(fb.int32, [])
    x = fb.zeros([2, 3, 4]) + np.arange(3.0)[:, None]
    y = largest(x, axis=axis)
    assert y.shape == fb.Shape([None, None])
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(y, {axis: 1}), np.full([2, 4], 2.0))
