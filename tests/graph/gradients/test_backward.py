"""The backward pass: where it goes, where it stops, and what it waits for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate


def test_what_is_built_waits_for_control_dependencies() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    y = fb.exp(x) + x
    update = fb.no_op(name="update")
    before = len(fb.get_default_graph().operations)
    with fb.control_dependencies([update]):
        fb.gradients(y, x)
    built = fb.get_default_graph().operations[before:]
    assert built
    assert all(op.control_inputs == (update,) for op in built)


def test_a_gradient_read_after_an_update_sees_it() -> None:
    W = fb.Variable(3.0)
    with fb.control_dependencies([fb.assign_add(W, 1.0)]):
        y = W * W
        [dy] = fb.gradients(y, W)
    assert evaluate(dy) == 8.0


def sums() -> tuple[Any, Any, Any]:
    a = fb.constant(1.0, name="a")
    b = fb.multiply(2.0, a, name="b")
    return a, b, a + b + 3.0 * b


def test_nothing_flows_through_a_stopped_tensor_that_gets_its_own_gradient() -> None:
    a, b, y = sums()
    assert evaluate(fb.gradients(y, [a, b], stop_gradients=[b])) == [1.0, 4.0]
    assert evaluate(fb.gradients(y, [a, b])) == [9.0, 4.0]
    assert evaluate(fb.gradients(a + b, [a, b], stop_gradients=[a, b])) == [1.0, 1.0]


def test_only_paths_from_the_xs_are_followed() -> None:
    a, b, y = sums()
    assert evaluate(fb.gradients(y, a, stop_gradients=b)) == [1.0]
    assert fb.gradients(b * 2.0, a, stop_gradients=b) == [None]
    assert evaluate(fb.gradients(b, b, stop_gradients=b)) == [1.0]


def test_a_stopped_variable_gets_its_partial_derivative() -> None:
    W, U = fb.Variable(2.0), fb.Variable(3.0)
    y = W * U + W * W
    assert evaluate(fb.gradients(y, [W, U], stop_gradients=[W])) == [7.0, 2.0]
    assert fb.gradients(W * 2.0, U, stop_gradients=[W]) == [None]


def test_what_is_unconnected_gets_none_or_zeros() -> None:
    x, unused = fb.constant([1.0, 2.0]), fb.constant([[3, 4]], fb.int64)
    table, W = fb.Variable(fb.ones([3, 2])), fb.Variable(fb.ones([2]))
    y = fb.reduce_sum(fb.gather(table, [1])) + fb.reduce_sum(fb.stop_gradient(x) * 2.0)
    assert fb.gradients(y, [x, W]) == [None, None]
    xs = [x, W, unused, table]
    *zeros, rows = fb.gradients(y, xs, name="g", unconnected_gradients="zero")
    assert isinstance(rows, fb.IndexedSlices)
    for x, zero in zip(xs, zeros, strict=False):
        assert (zero.dtype, zero.shape) == (x.dtype, x.shape)
        assert zero.name.startswith("g/")
    assert [z.tolist() for z in evaluate(zeros)] == [[0.0, 0.0], [0.0, 0.0], [[0, 0]]]
    with pytest.raises(fb.errors.InvalidArgumentError, match="one of 'none', 'zero', not 'ones'"):
        fb.gradients(y, x, unconnected_gradients="ones")


def test_what_has_no_gradient_contributes_nothing_beside_what_has() -> None:
    x = fb.constant(2.0)
    loop = fb.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t * x), (0, x))
    with fb.Session() as sess:
        assert sess.run(fb.gradients(loop, x)) == [32.0]
    assert evaluate(fb.gradients([x > 0, x * x], x, grad_ys=[None, 10.0])) == [40.0]
    with pytest.raises(fb.errors.InvalidTypeError, match="is int32, which has no gradient"):
        fb.gradients([loop[0]], x)
    with pytest.raises(fb.errors.InvalidTypeError, match="is bool, which has no gradient"):
        fb.gradients([x > 0, x * x], x, grad_ys=[True, None])


def test_slices_are_scaled_without_the_whole() -> None:
    table = fb.Variable(fb.ones([4, 2]))
    [rows] = fb.gradients(fb.gather(table, [1, 3, 1]) * 3.0, table)
    rate = fb.constant(0.5)
    whole = np.array([[0.0] * 2, [6.0] * 2, [0.0] * 2, [3.0] * 2])
    for found, factor in (
        (-rows, -1.0),
        (rows * 2, 2.0),
        (np.float32(2.0) * rows, 2.0),
        (rows * rate, 0.5),
        (rows / rate, 2.0),
    ):
        assert isinstance(found, fb.IndexedSlices)
        assert evaluate(found.as_tensor()).tolist() == (whole * factor).tolist()
    assert evaluate(rows * [1.0, 2.0]).tolist() == (whole * [1.0, 2.0]).tolist()
    assert evaluate(rows * rows).tolist() == (whole**2).tolist()
    unknown = fb.placeholder_with_default(fb.ones([4, 1]), None)
    assert evaluate(rows * unknown).tolist() == whole.tolist()
    with pytest.raises(fb.errors.InvalidTypeError):
        rows * fb.constant(2)


def test_moments_have_second_derivatives() -> None:
    array = np.random.default_rng(0).normal(3, 2, 5)
    x = fb.constant(array)
    _, variance = fb.nn.moments(x, [0])
    [first] = fb.gradients(variance, x)
    np.testing.assert_allclose(evaluate(first), 2 * (array - array.mean()) / 5)
    # The second derivatives are 2/n (delta_ij - 1/n).
    [second] = fb.gradients(first[0], x)
    np.testing.assert_allclose(evaluate(second), 0.4 * (np.eye(5)[0] - 0.2))


def test_of_a_complex_tensor_the_start_is_given() -> None:
    x = fb.constant(7 + 3j, fb.complex64)
    y = fb.square(x)
    with pytest.raises(fb.errors.InvalidTypeError, match="starts from") as caught:
        fb.gradients(y, x)
    assert "fb.real(y)" in str(caught.value)
    [given] = fb.gradients(y, x, fb.constant(1 + 0j, fb.complex64))
    [real] = fb.gradients(fb.real(y), x)
    with fb.Session() as sess:
        assert sess.run(given) == sess.run(real)


def test_writes_count_as_constants() -> None:
    kept, x = fb.Variable(1.0), fb.Variable(3.0)
    written = fb.assign(kept, x**2)
    assert fb.gradients(written, x) == [None]
    [gradient] = fb.gradients(x * written, x)
    with fb.Session() as sess:
        assert sess.run(gradient) == 9.0


def test_slices_without_a_shape_pass_where_slices_pass() -> None:
    x = fb.Variable([[1.0], [2.0]])
    rows = fb.IndexedSlices(fb.constant([[5.0]]), fb.constant([1]))
    [gradient] = fb.gradients(fb.identity(x), x, [rows])
    with fb.Session() as sess:
        value = sess.run(gradient)
    assert value.values.tolist() == [[5.0]]
    assert value.dense_shape is None


def test_slices_are_made_of_values_too() -> None:
    rows = fb.IndexedSlices([[1.0, 2.0]], np.array([1]), (3, 2))
    with fb.Session() as sess:
        assert sess.run(fb.convert_to_tensor(rows)).tolist() == [[0, 0], [1, 2], [0, 0]]
    with pytest.raises(fb.errors.InvalidTypeError, match="indices are int32 or int64"):
        fb.IndexedSlices(fb.constant([1.0]), [0.5])
    other = fb.constant([0])
    with (
        fb.Graph().as_default(),
        pytest.raises(fb.errors.InvalidArgumentError, match="different graphs"),
    ):
        fb.IndexedSlices(fb.constant([1.0]), other)


def test_a_gradient_function_is_told_which_outputs_are_used() -> None:
    told: list[list[bool]] = []

    def gradient(op: fb.Operation, *dys: fb.Tensor, used: list[bool]) -> Any:
        told.append(used)
        return fb.add_n(list(dys))

    pair = fb.OpDef(
        "TestPair",
        "x: T -> y: T, z: T",
        T=fb.FLOATS,
        infer=lambda x: [x.shape] * 2,
        kernel=lambda xp, x: (x + 0, x + 1),
        grad=gradient,
    )
    x = fb.placeholder(fb.float32, [])
    y, z = pair(x)
    # Zeros that someone takes the gradient of are none that stand in for one.
    fetches = [
        fb.gradients(y, x)[0],
        fb.gradients(z, x)[0],
        fb.gradients([y, z], x, grad_ys=[fb.zeros_like(y), 1.0])[0],
    ]
    assert told == [[True, False], [False, True], [True, True]]
    assert evaluate(fetches, {x: 1.0}) == [1.0, 1.0, 1.0]


def test_one_output_may_be_stopped_and_another_not() -> None:
    x = fb.constant([2.0, 3.0])
    first, second = fb.unstack(x)
    [found] = fb.gradients(first * second, x, stop_gradients=[first])
    with fb.Session() as sess:
        assert sess.run(found).tolist() == [0.0, 2.0]


def test_gradients_run_where_what_they_are_of_does() -> None:
    x = fb.placeholder(fb.float32, [2])
    with fb.device("/device:gpu"):
        y = fb.exp(x)
    z = fb.square(y)
    with fb.device("/device:cpu:0"):
        fb.gradients(z, x)
    built = [op for op in x.graph.operations if op.name.startswith("gradients/")]
    of = {name: [op for op in built if f"/{name}_grad/" in op.name] for name in ("Exp", "Square")}
    # The request admits every GPU, and means one of them.
    assert {(op.device, op.colocation) for op in of["Exp"]} == {("/device:gpu", (y.op,))}
    assert {(op.device, op.colocation) for op in of["Square"]} == {("", ())}
