"""The operations of variables, on a plain resource; `tests/exec` tests the real one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import Interpreter, evaluate


def rows() -> Any:
    return fb.Variable(np.arange(6.0).reshape(3, 2), name="rows")


def test_assignments_give_the_value_afterwards() -> None:
    v = fb.Variable([1.0, 2.0])
    run = Interpreter().run
    assert run(fb.assign_add(v, [1.0, 1.0])).tolist() == [2, 3]
    assert run(fb.assign_sub(v, [0.5, 0.5])).tolist() == [1.5, 2.5]
    assert run(fb.assign(v, [7.0, 8.0])).tolist() == [7, 8]
    assert run(v).tolist() == [7, 8]


def test_a_read_sees_the_value_from_before_writes_that_nothing_orders_before_it() -> None:
    v = fb.Variable(1.0)
    write = fb.assign_add(v, 1.0)
    assert Interpreter().run([write, v]) == [2, 1]
    with fb.control_dependencies([write]):
        after = fb.identity(v)
    assert Interpreter().run([v, after]) == [1, 2]


def test_initialisation_can_be_asked_about_and_repeated() -> None:
    v = fb.Variable(3.0)
    interpreter = Interpreter()
    asked = fb.is_variable_initialized(v)
    assert not interpreter.run(asked)
    assert interpreter.run(fb.assign_add(v, 1.0)) == 4
    assert interpreter.run(asked)
    interpreter.run(v.initializer)
    assert interpreter.run(v) == 3


@pytest.mark.parametrize(
    ("scatter", "expected"),
    [
        (fb.scatter_add, [[30, 41], [2, 3], [14, 25]]),
        (fb.scatter_sub, [[-30, -39], [2, 3], [-6, -15]]),
        (fb.scatter_update, [[20, 20], [2, 3], [10, 20]]),
    ],
)
def test_scatter(scatter: Any, expected: Any) -> None:
    updates = [[10.0, 20.0], [10.0, 20.0], [20.0, 20.0]]
    result = evaluate(scatter(rows(), [2, 0, 0], updates))
    assert result.tolist() == expected


def test_what_does_not_fit_is_an_error() -> None:
    v = rows()
    with pytest.raises(fb.errors.InvalidArgumentError, match="does not fit the variable"):
        fb.assign(v, np.zeros(2))
    with pytest.raises(fb.errors.InvalidArgumentError, match="do not fit indices"):
        fb.scatter_add(v, [0], np.zeros((2, 2)))
    with pytest.raises(fb.errors.InvalidTypeError):
        fb.assign(v, fb.constant(np.zeros((3, 2), np.float32)))
    with pytest.raises(fb.errors.InvalidTypeError, match="only a variable"):
        fb.assign(fb.constant(1.0), 2.0)


def test_gather_reads_rows_of_a_variable_in_one_operation() -> None:
    v = rows()
    y = fb.gather(v, [[2, 0]])
    assert y.op.type == "VariableGather"
    assert y.op.inputs[0] is v.handle
    assert y.shape == [1, 2, 2]
    assert evaluate(y).tolist() == [[[4, 5], [0, 1]]]
    assert fb.gather(v, [1], axis=1).op.type == "Gather"


def test_the_gradient_of_gathered_rows_is_sparse() -> None:
    v = rows()
    y = fb.gather(v, [[2, 0], [2, 2]])
    [gradient] = fb.gradients(y * 2.0, [v])
    assert isinstance(gradient, fb.IndexedSlices)
    indices, values, dense = evaluate([gradient.indices, gradient.values, gradient.as_tensor()])
    assert indices.tolist() == [2, 0, 2, 2]
    assert values.shape == (4, 2)
    assert dense.tolist() == [[2, 2], [0, 0], [6, 6]]


def test_gathered_and_whole_gradients_add_up() -> None:
    v = rows()
    loss = fb.reduce_sum(fb.gather(v, [1])) + fb.reduce_sum(v * v)
    [gradient] = fb.gradients(loss, [v])
    assert evaluate(gradient).tolist() == [[0, 2], [5, 7], [8, 10]]


def test_two_gathers_stay_sparse() -> None:
    v = rows()
    loss = fb.reduce_sum(fb.gather(v, [1])) + fb.reduce_sum(fb.gather(v, [0, 1]))
    [gradient] = fb.gradients(loss, [v])
    assert isinstance(gradient, fb.IndexedSlices)
    assert evaluate(gradient.as_tensor()).tolist() == [[1, 1], [2, 2], [0, 0]]


def test_a_gather_from_a_variable_of_unknown_shape() -> None:
    initial = fb.placeholder(fb.float64, [None, 2])
    v = fb.Variable(initial)
    [gradient] = fb.gradients(fb.gather(v, [1, 1]), [v])
    feeds = {initial: np.ones((3, 2))}
    assert evaluate(gradient.as_tensor(), feeds).tolist() == [[0, 0], [2, 2], [0, 0]]


def test_a_variable_read_twice_sums_its_gradients() -> None:
    v = fb.Variable(3.0)
    with fb.control_dependencies([fb.no_op()]):
        y = v * v
    [gradient] = fb.gradients(y + v, [v])
    assert evaluate(gradient) == 7


def test_a_retired_variable_is_read_and_initialised() -> None:
    W = fb.Variable(2.0, name="W")
    V = fb.Variable(W * 3.0, name="V")
    for variable in (V, W):
        for op in variable.graph.operations:
            if op.name.startswith(variable.op.name):
                op.graph.members.retire(op)
    with fb.control_dependencies([fb.no_op()]):
        read = W + 1.0
    assert evaluate(read) == 3.0
    run = Interpreter().run
    run(fb.variables_initializer([W, V]))
    assert run(V) == 6.0


def test_a_variable_lies_in_the_graph_of_its_initial_value() -> None:
    with fb.Graph().as_default() as graph:
        initial = fb.constant(1.0, name="one")
        other = fb.Variable(2.0, name="other")
        wait = fb.no_op()
    W, V = fb.Variable(initial, name="W"), fb.Variable(other, name="V")
    with graph.as_default(), fb.control_dependencies([wait]):
        U = fb.Variable(initial)
    assert {v.graph for v in (W, V, U)} == {graph}
    assert [op.name for op in (W.op, W.initializer, W.value.op)] == ["W", "W/Assign", "W/read"]
    assert U.value.op.control_inputs == U.initializer.control_inputs == ()
    assert fb.get_default_graph().operations == []
    with pytest.raises(fb.errors.InvalidArgumentError, match="different graphs"):
        fb.Variable(lambda: initial)


def test_initial_values_are_built_under_the_variables_name() -> None:
    array = fb.Variable([1.0], name="a")
    called = fb.Variable(lambda: fb.zeros([2]) + 1.0, name="c")
    value = fb.Variable(lambda: [1, 2], name="v")
    assert array.initial_value.op.name == "a/initial_value"
    assert called.initial_value.op.name == "c/Add"
    assert value.initial_value.op.name == "v/initial_value"
    assert (value.dtype, fb.Variable(1, dtype=fb.float64).dtype) == (fb.int32, fb.float64)


@pytest.mark.parametrize(
    ("initial", "dtype"), [(None, None), ([[1.0], [1.0, 2.0]], None), (1.5, fb.int32)]
)
def test_a_refused_initial_value_takes_no_name(initial: Any, dtype: Any) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"^Variable: "):
        fb.Variable(initial, name="W", dtype=dtype)
    with pytest.raises(fb.errors.InvalidTypeError, match="not int32"):
        fb.Variable(fb.constant(1.0), name="W", dtype=fb.int32)
    assert fb.Variable(1.0, name="W").op.name == "W"


def test_a_variable_found_by_its_name_is_used_as_one() -> None:
    fb.Variable([1.0, 2.0], name="W")
    W = fb.get_default_graph().get_tensor_by_name("W:0")
    doubled = fb.concat([W * 2.0, W], 0)
    copy = fb.Variable(W)
    update = fb.assign_add(W, [1.0, 1.0])
    with fb.control_dependencies([update]):
        later = fb.identity(W)
    [gradient] = fb.gradients(fb.reduce_sum(fb.square(W)), W)
    with fb.Session() as sess:
        assert sess.run(doubled).tolist() == [2.0, 4.0, 1.0, 2.0]
        assert sess.run([W, copy, later])[2].tolist() == [2.0, 3.0]
        assert sess.run(copy).tolist() == [1.0, 2.0]
        assert sess.run(gradient).tolist() == [4.0, 6.0]
        assert sess.run(W, {W: [5.0, 6.0]}).tolist() == [5.0, 6.0]
    assert fb.convert_to_tensor(W).dtype is fb.float32


# What a variable may be told to do


def test_a_part_of_a_variable_is_assigned() -> None:
    v = fb.Variable([[1, 2], [3, 4]])
    row = fb.placeholder(fb.int32, [])
    with fb.Session() as sess:
        assert sess.run(fb.assign(v[0, 1:], [7])).tolist() == [[1, 7], [3, 4]]
        assert sess.run(fb.assign(v[row], [5, 6]), {row: 1}).tolist() == [[1, 7], [5, 6]]
        assert sess.run(v).tolist() == [[1, 7], [5, 6]]
    with pytest.raises(fb.errors.InvalidTypeError, match="only a variable can be written to"):
        fb.assign(fb.zeros([2])[0], 1.0)


def test_counting_up_to_a_limit() -> None:
    v = fb.Variable(0)
    count = fb.count_up_to(v, 3)
    with fb.Session() as sess:
        for expected in range(3):
            assert sess.run(count) == expected
        for _ in range(2):
            with pytest.raises(fb.errors.OutOfRangeError, match="has reached 3"):
                sess.run(count)
            assert sess.run(v) == 3
    with pytest.raises(fb.errors.InvalidTypeError, match="int32 or int64, not float32"):
        fb.count_up_to(fb.Variable(0.0), 3)
    with pytest.raises(fb.errors.InvalidArgumentError, match="a scalar"):
        fb.count_up_to(fb.Variable([0]), 3)


def test_a_count_that_was_fetched_stays_what_it_was() -> None:
    v = fb.Variable(0)
    count = fb.count_up_to(v, 100)
    with fb.Session() as sess:
        assert [int(c) for c in [sess.run(count) for _ in range(50)]] == list(range(50))


def test_a_variable_of_changing_shape() -> None:
    v = fb.Variable([1.0, 2.0], validate_shape=False)
    assert v.shape.dims is None
    value = fb.placeholder(fb.float32)
    change, twice = fb.assign(v, value), v * 2.0
    with fb.Session() as sess:
        assert sess.run(twice).tolist() == [2.0, 4.0]
        for given in ([[1.0], [3.0]], 5.0, [1.0, 2.0, 3.0]):
            sess.run(change, {value: given})
            np.testing.assert_array_equal(sess.run(twice), np.multiply(given, 2.0))


def test_the_device_that_a_variable_is_read_on() -> None:
    v = fb.Variable(1.0, caching_device="/device:cpu:0")
    assert (v.value.device, v.device) == ("/device:cpu:0", "")
    with fb.control_dependencies([fb.no_op()]):
        assert (v + 1.0).op.inputs[0].device == "/device:cpu:0"
    with fb.Session() as sess:
        assert sess.run(v + 1.0) == 2.0


def test_a_read_for_later_asks_for_nothing_of_what_is_around_it() -> None:
    with fb.device("cpu:1"):
        v = fb.Variable([1.0, 2.0], name="v")
    w = fb.Variable(3.0, name="w")
    with fb.device("cpu:0"), fb.colocate_with(w), fb.control_dependencies([fb.no_op()]):
        doubled, tripled = v * 2.0, w * 3.0
    with fb.device(lambda op: "cpu:0"), fb.control_dependencies([doubled]):
        trained = fb.train.MomentumOptimizer(1.0, 0.5).minimize(fb.reduce_sum(v * [1.0, 2.0]))
    read, other = doubled.op.inputs[0].op, tripled.op.inputs[0].op
    assert (read.device, read.colocation) == ("", ())
    assert (other.device, other.colocation) == ("", ())
    with fb.Session(cpus=2) as sess:
        sess.run(trained)
        assert sess.run(v).tolist() == [0.0, 0.0]


def test_what_is_not_initialized_is_reported() -> None:
    v, w = fb.Variable(1.0, name="v"), fb.Variable(2.0, name="w")
    missing = fb.report_uninitialized_variables()
    with fb.Session(auto_initialize=False) as sess:
        assert sess.run(missing).tolist() == [b"v", b"w"]
        sess.run(v.initializer)
        assert sess.run(missing).tolist() == [b"w"]
        assert sess.run(fb.report_uninitialized_variables([v])).tolist() == []
        assert sess.run(fb.report_uninitialized_variables([])).tolist() == []
        sess.run(w.initializer)
        assert sess.run(missing).tolist() == []
