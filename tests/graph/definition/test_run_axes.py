"""Axes that only the run knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.registry import op_named

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


def _total(type: str, **given: Any) -> Any:
    return fb.OpDef(
        type,
        "x: T -> y: T",
        T=fb.FLOATS,
        **{
            "attributes": {"scale": 1.0, "axis": 0},
            "infer": lambda x, scale, axis: fb.Shape(None),
            "kernel": lambda xp, x, scale, axis: xp.float32(scale) * xp.sum(x, axis),
            "axis": "axis",
            **given,
        },
    )


def test_what_a_type_says_of_itself_it_says_where_a_tensor_is_the_axis(axis: fb.Tensor) -> None:
    calls = []

    def kernel(xp: Any, x: Any, axis: int) -> Any:
        calls.append(axis)
        return xp.sum(x, axis)

    outside = fb.Touch(fb.Access.OUTSIDE)
    given = {"touches": outside, "runs_users_code": True, "runs_early": True, "keeps_finite": True}
    noisy = _total("TestNoisyTotal", kernel=kernel, aliases={}, **given)
    y, z = noisy(X, axis=axis), noisy(X, axis=axis)
    assert {name: getattr(y.op.op_def, name) for name in given} == given
    assert y.op.op_def.aliases == {}
    with fb.Session() as sess:
        sess.run([y, z], {axis: 1})
    assert calls == [1, 1]


def test_a_kernel_that_waits_waits_along_a_tensor_too(axis: fb.Tensor) -> None:
    def kernel(call: Any, x: Any, axis: int) -> None:
        call.complete((call.xp.sum(x, axis),))

    y = _total("TestWaitingTotal", kernel=kernel, is_async=True)(X, axis=axis)
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(y, {axis: 2}), X.sum(2))


def test_a_registered_kernel_runs_where_a_tensor_is_the_axis(axis: fb.Tensor) -> None:
    total = _total("TestRegisteredTotal")
    # It takes another part of the attributes than the type's own.
    fb.register_kernel("TestRegisteredTotal", "cpu")(lambda xp, x, axis: xp.sum(x, axis) + 1)
    with fb.Session() as sess:
        found = sess.run([total(X, axis=axis), total(X, axis=1)], {axis: 1})
        np.testing.assert_array_equal(found, [X.sum(1) + 1] * 2)


def test_choices_are_those_of_the_type_where_a_tensor_is_the_axis(axis: fb.Tensor) -> None:
    total = _total(
        "TestChoosingTotal",
        attributes={"mode": "sum", "axis": "first"},
        choices={"mode": ("sum", "max"), "axis": ("first", "last")},
        infer=lambda x, mode, axis: fb.Shape(None),
        kernel=lambda xp, x, mode, axis: getattr(xp, mode)(x, axis),
    )
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(total(X, "max", axis), {axis: 1}), X.max(1))
    with pytest.raises(fb.errors.InvalidArgumentError, match="'mode' is one of 'sum', 'max'"):
        total(X, "min", axis)


def test_a_tensor_may_be_given_as_an_axis_by_place(axis: fb.Tensor) -> None:
    total = _total("TestPlacedTotal", after_name=("scale",))
    built = [
        total(X, axis, "placed", 2.0),
        total(X, axis, name="named", scale=2.0),
        total(x=X, axis=axis, name="both", scale=2.0),
    ]
    assert [y.op.name for y in built] == ["placed", "named", "both"]
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(built, {axis: 1}), [2 * X.sum(1)] * 3)
    behind = _total("TestPlacedBehind", after_name=("axis",))
    assert behind(X, 2.0, "first", axis=axis).op.name == "first"
    assert behind(X, 2.0, "last", axis).op.op_def.after_name == ()
    with pytest.raises(fb.errors.InvalidTypeError, match="'axis' twice"):
        total(X, 0, axis=axis)
    with pytest.raises(fb.errors.InvalidTypeError, match="'name' twice"):
        total(X, axis, "a", name="b")
    with pytest.raises(fb.errors.InvalidTypeError, match="5 given"):
        total(X, axis, "a", 2.0, 3.0)


def test_a_gradient_is_told_what_is_used(x: fb.Tensor, axis: fb.Tensor) -> None:
    told = []

    def gradient(op: fb.Operation, dy: fb.Tensor, dz: fb.Tensor, *, used: Any) -> fb.Tensor:
        told.append(list(used))
        return fb.cumsum(dy, op.attributes["axis"])

    twice = fb.OpDef(
        "TestTwiceAlong",
        "x: float32 -> y: float32, z: float32",
        attributes={"axis": 0},
        infer=lambda x, axis: [x.shape, x.shape],
        kernel=lambda xp, x, axis: (xp.cumsum(x, axis), x),
        grad=gradient,
        axis="axis",
    )
    (slope,) = fb.gradients(twice(x, axis=axis)[0], [x])
    assert told == [[True, False]]
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(slope, {x: X, axis: 1}), np.ones_like(X).cumsum(1))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"axis": "dimension"}, "it has no attribute 'dimension', which is its axis"),
        ({"kernel": None}, "without a kernel it has no axis"),
        ({"sees_dead": True}, "what routes or must be fed has no axis"),
    ],
)
def test_what_can_have_no_axis(given: dict[str, Any], message: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=message):
        _total("TestNoAxis", **given)
    with pytest.raises(fb.errors.NotFoundError):
        op_named("TestNoAxis")
