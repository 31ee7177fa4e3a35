"""The guard against NaN and infinities names the first operation that gave one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.instruments.guard import Guard
from flowbook.graph.model.registry import op_definitions, op_named
from tests.exec.random_graphs import delayed, examples
from tests.op_cases import CASES

NAN, INF = float("nan"), float("inf")


def failure(sess: fb.Session, fetches: Any, feeds: Any = None, **options: Any) -> Any:
    with pytest.raises(fb.errors.InvalidArgumentError) as caught:
        sess.run(fetches, feeds, **options)
    return caught.value


@pytest.mark.parametrize("runs", [0, 1, 3], ids=["reference", "second", "compiled"])
@pytest.mark.parametrize("timeout", [None, 100.0])
def test_it_names_the_operation_its_line_and_its_inputs(runs: int, timeout: float | None) -> None:
    x = fb.placeholder(fb.float32, [4], name="x")
    y = fb.reduce_sum(fb.nn.relu(fb.log(x, name="logs")), name="total")
    with fb.Session() as sess, sess.guard():
        for _ in range(runs):
            assert sess.run(y, {x: [1.0, 1.0, 1.0, 1.0]}, timeout=timeout) == 0.0
        error = failure(sess, y, {x: [1.0, -2.0, 0.0, 4.0]}, timeout=timeout)
    assert error.operation.name == "logs"
    assert "Log 'logs': it gave 1 NaN and 1 Inf among 4 values of shape [4], the first at [1]" in (
        error.message
    )
    text = str(error)
    assert "test_guard.py" in text
    assert "x:0, as it was fed: -2 to 4, mean 0.75" in text
    assert "the step changed no variable" in text
    assert "allow=['logs']" in text


def test_gradients_are_guarded_and_cite_the_forward_line() -> None:
    x = fb.Variable(0.0, name="x")
    y = fb.sqrt(x, name="root")
    train = fb.train.GradientDescentOptimizer(0.1).minimize(y)
    with fb.Session() as sess, sess.guard():
        error = failure(sess, train)
        assert error.operation.name.startswith("gradients/root_grad/")
        assert "1 Inf" in error.message
        assert sess.run(x) == 0.0


def test_a_failing_step_writes_nothing() -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    a, b = fb.Variable(1.0, name="a"), fb.Variable(1.0, name="b")
    first = fb.assign_add(a, 1.0)
    loss = fb.square(b) * fb.log(x)
    train = fb.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=[b])
    with fb.Session() as sess, sess.guard():
        for _ in range(3):
            sess.run([first, train], {x: 1.0})
        before = sess.run([a, b])
        error = failure(sess, [first, train], {x: -1.0})
        assert error.operation.type == "Log"
        assert sess.run([a, b]) == before
        sess.run([first, train], {x: 1.0})
        assert sess.run(a) == before[0] + 1


def test_what_an_earlier_write_of_the_step_changed_is_said() -> None:
    x = fb.placeholder(fb.float32, [])
    a, b = fb.Variable(1.0, name="a"), fb.Variable(1.0, name="b")
    logs = fb.log(x)
    with fb.control_dependencies([fb.assign(a, 5.0)]):
        second = fb.assign(b, logs)
    with fb.Session() as sess, sess.guard():
        error = failure(sess, second, {x: -1.0})
        # The logarithm needs no write: it is checked before both.
        assert "the step changed no variable" in str(error)
        assert sess.run([a, b]) == [1.0, 1.0]
    later = fb.assign(b, fb.log(fb.assign_add(a, -7.0)))
    with fb.Session() as sess, sess.guard():
        error = failure(sess, later)
        assert "the step had changed: a" in str(error)
        assert sess.run([a, b]) == [-6.0, 1.0]


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: fb.train.AdamOptimizer(0.1),
        lambda: fb.train.MomentumOptimizer(0.1, 0.9),
        lambda: fb.train.RMSPropOptimizer(0.1),
        lambda: fb.train.AdagradOptimizer(0.1),
    ],
    ids=["adam", "momentum", "rmsprop", "adagrad"],
)
def test_guarded_training_is_training(optimizer: Any) -> None:
    results = []
    for is_guarded in (False, True):
        graph = fb.Graph()
        with graph.as_default():
            x = fb.placeholder(fb.float32, [None, 3])
            W = fb.Variable(np.arange(3, dtype=np.float32)[:, None], name="W")
            loss = fb.reduce_mean(fb.square(fb.tanh(x @ W) - 0.5))
            train = optimizer().minimize(loss)
        with fb.Session(graph=graph) as sess:
            if is_guarded:
                sess.guard()
            feed = np.random.default_rng(0).normal(size=(5, 3))
            found = [sess.run([loss, train], {x: feed})[0] for _ in range(6)]
            if is_guarded:
                before = sess.run(W)
                failure(sess, [loss, train], {x: feed * NAN})
                np.testing.assert_array_equal(sess.run(W), before)
            results.append([*found, sess.run(W)])
    for plain, guarded in zip(*results, strict=True):
        np.testing.assert_array_equal(plain, guarded)


def test_a_division_by_zero_in_an_update_is_found() -> None:
    W = fb.Variable([1.0, 1.0], name="W")
    adam = fb.train.AdamOptimizer(0.1, epsilon=0.0)
    train = adam.minimize(fb.reduce_sum(W * [1.0, 0.0]))
    with fb.Session() as sess, sess.guard():
        error = failure(sess, train)
        assert error.operation.type == "Div"
        assert error.operation.name.startswith("Adam/update_W")
        assert "the step had changed: W/Adam/m, W/Adam/v" in str(error)
        np.testing.assert_array_equal(sess.run(W), [1.0, 1.0])


def test_fed_values_are_met_where_they_are_used() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    v = fb.Variable([0.0, 0.0], name="v")
    doubled = fb.multiply(x, 2.0, name="doubled")
    with fb.Session() as sess, sess.guard():
        assert failure(sess, doubled, {x: [NAN, 1.0]}).operation.name == "doubled"
        error = failure(sess, fb.assign(v, x, name="written"), {x: [INF, 1.0]})
        assert "Assign 'written': it was about to write 1 Inf" in error.message
        np.testing.assert_array_equal(sess.run(v), [0.0, 0.0])


def test_a_variable_that_holds_nan_already_is_named() -> None:
    v = fb.Variable([1.0, NAN], name="v")
    with fb.Session() as sess, sess.guard():
        error = failure(sess, fb.reduce_max(v * 2.0))
        assert error.operation.name == "v/read"
        assert "it found in the variable 1 NaN" in error.message


def test_random_values_are_those_that_were_drawn() -> None:
    x = fb.random_normal([1000], seed=1, name="noise")
    logs = fb.log(x, name="logs")
    with fb.Session() as plain, np.errstate(invalid="ignore"):
        expected = [np.isnan(np.log(v)).sum() for v in (plain.run(x) for _ in range(3))]
    with fb.Session() as sess, sess.guard():
        for count in expected:
            for _ in range(2):  # What fails spends no draws.
                assert f"it gave {count} NaN" in failure(sess, fb.reduce_max(logs)).message
            sess.run(x)


def test_what_is_allowed_may_be_infinite() -> None:
    x = fb.placeholder(fb.float32, [3], name="x")
    with fb.name_scope("mask"):
        masked = x + fb.constant([0.0, -INF, 0.0])
    y = fb.nn.softmax(masked)
    z = fb.log(y, name="logs")
    with fb.Session() as sess:
        with sess.guard(allow=["mask"]) as guard:
            np.testing.assert_allclose(sess.run(y, {x: [1.0, 1.0, 1.0]}), [0.5, 0, 0.5])
            assert failure(sess, z, {x: [1.0, 1.0, 1.0]}).operation.name == "logs"
            assert "mask" in repr(guard)
        with sess.guard(allow=masked):
            sess.run(y, {x: [1.0, 1.0, 1.0]})
        with sess.guard():
            assert failure(sess, y, {x: [1.0, 1.0, 1.0]}).operation is masked.op
        sess.run(z, {x: [1.0, 1.0, 1.0]})


def test_it_ends_and_is_replaced() -> None:
    x = fb.placeholder(fb.float32, [])
    y = fb.log(x)
    with fb.Session() as sess:
        assert isinstance(sess.guard(), Guard)
        sess.guard()
        failure(sess, y, {x: -1.0})
        assert sess.guard(nonfinite=False) is None
        assert np.isnan(sess.run(y, {x: -1.0}))
    with pytest.raises(fb.errors.FailedPreconditionError, match="closed"):
        sess.guard()


def test_what_is_allowed_is_named() -> None:
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidTypeError, match="allowed by name"):
        sess.guard(allow=[3])


@pytest.mark.parametrize("dtype", [fb.float16, fb.bfloat16, fb.float32, fb.float64, fb.complex64])
def test_every_dtype(dtype: Any) -> None:
    x = fb.placeholder(dtype, [2], name="x")
    v = fb.Variable(fb.zeros([2], dtype), name="v")
    changed = fb.assign_add(v, fb.exp(x))
    with fb.Session() as sess, sess.guard():
        sess.run(changed, {x: [1.0, 2.0]})
        before = sess.run(v)
        assert failure(sess, changed, {x: [NAN, 1.0]}).operation.type == "Exp"
        np.testing.assert_array_equal(sess.run(v), before)


def test_large_values_are_no_fault() -> None:
    x = fb.placeholder(fb.float32, [2, 2])
    v = fb.Variable(fb.zeros([2, 2]))
    with fb.Session() as sess, sess.guard():
        for _ in range(3):
            sess.run(fb.assign(v, fb.transpose(x * 2.0)), {x: np.full((2, 2), 1e38)})
        assert sess.run(v).max() == np.float32(2e38)


def test_a_sum_of_narrow_numbers_that_overflows_is_found_where_it_is_used() -> None:
    v = fb.Variable(np.float16(60000), name="v")
    added = fb.assign_add(v, np.float16(60000), name="added")
    with fb.Session() as sess, sess.guard():
        error = failure(sess, added * np.float16(0.5))
        assert "AssignAdd 'added': it wrote 1 Inf" in error.message
        assert "the step had changed: v" in str(error)


def test_asynchronous_steps_are_checked_operation_by_operation() -> None:
    x = fb.placeholder(fb.float32, [])
    v = fb.Variable(0.0, name="v")
    more, less = delayed(x)
    written = fb.assign(v, fb.log(less))
    with fb.Session() as sess, sess.guard():
        for _ in range(3):
            assert sess.run([more, written], {x: 2.0}) == [3.0, 0.0]
        assert failure(sess, [more, written], {x: 0.0}).operation.type == "Log"
        assert sess.run(v) == 0.0


def test_summaries_and_the_guard_go_together() -> None:
    x = fb.placeholder(fb.float32, [])
    v = fb.Variable(1.0)
    loss = v * fb.log(x)
    fb.summary.scalar("loss", loss)
    fb.summary.histogram("v", v)
    train = fb.train.GradientDescentOptimizer(0.1).minimize(loss)
    with fb.Session() as sess, sess.guard():
        kept = sess.summarize()
        sess.run(train, {x: 1.0})
        assert failure(sess, train, {x: -1.0}).operation.type == "Log"
        sess.run(train, {x: 1.0})
        assert [p.step for p in kept.history.points("loss")] == [0, 2]


# What definitions say

DEFINED = [d for d in op_definitions().values() if d.is_builtin]
# What takes its axis as an input says what the type says that has it as an attribute.
WITH_AXIS = {d.with_axis_input.type for d in DEFINED if d.with_axis_input is not None}
SPREADING = {d.type for d in DEFINED if d.spreads_nonfinite} - WITH_AXIS
KEEPING = {d.type for d in DEFINED if d.keeps_finite} - WITH_AXIS
TRIED = [c for c in CASES if c.type in SPREADING or c.type in KEEPING]


def _is_alone(case: Any) -> bool:
    """Whether a row builds nothing but the one operation, from all of its inputs."""
    with fb.Graph().as_default():
        tensors = [fb.constant(a) for a in case.inputs]
        output = case.build(*tensors)
        return (
            isinstance(output, fb.Tensor)
            and (output.dtype.is_floating or output.dtype.is_complex)
            and output.op.type == case.type
            and set(tensors) <= set(output.op.inputs)
        )


SPREADING_CASES = [
    case
    for case in TRIED
    if case.type in SPREADING
    and any(np.asarray(a).dtype == np.float64 for a in case.inputs)
    and _is_alone(case)
]
KEEPING_CASES = [c for c in TRIED if c.type in KEEPING and _is_alone(c)]


def _runs(case: Any, arrays: list[Any]) -> Any:
    graph = fb.Graph()
    with graph.as_default():
        tensors = [fb.constant(a) for a in arrays]
        outputs = case.build(*tensors)
    listed = outputs if isinstance(outputs, list | tuple) else [outputs]
    with fb.Session(graph=graph) as sess, np.errstate(all="ignore"):
        return [np.asarray(v) for v in sess.run(list(listed))]


def test_all_that_say_so_are_tried() -> None:
    assert {case.type for case in SPREADING_CASES} == SPREADING
    assert {case.type for case in KEEPING_CASES} == KEEPING
    assert SPREADING
    assert KEEPING


def _spread_places(case: Any) -> list[int]:
    """Which of a row's inputs are surely told by the output."""
    definition = op_named(case.type)
    if definition.inputs[0].is_list:
        return list(range(len(case.inputs)))
    names = [argument.name for argument in definition.inputs][: len(case.inputs)]
    return [place for place, name in enumerate(names) if name in definition.spreads_nonfinite]


@pytest.mark.parametrize("case", SPREADING_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("wrong", [NAN, INF, -INF])
def test_what_spreads_does(case: Any, wrong: float) -> None:
    arrays = [np.asarray(a) for a in case.inputs]
    tried = 0
    for k in _spread_places(case):
        if arrays[k].dtype != np.float64 or k in case.fixed:
            continue
        for element in np.ndindex(arrays[k].shape):
            changed = arrays[k].copy()
            changed[element] = wrong
            given = [*arrays[:k], changed, *arrays[k + 1 :]]
            [found] = _runs(case, given)
            tried += 1
            assert not np.isfinite(found).all(), (element, found)
    assert tried


@pytest.mark.parametrize("case", KEEPING_CASES, ids=lambda case: case.name)
def test_what_keeps_does(case: Any) -> None:
    for scale in (0.0, 1.0, 1e30, 1e-300):
        arrays = [
            a * scale if a.dtype == np.float64 and k not in case.fixed else a
            for k, a in enumerate(map(np.asarray, case.inputs))
        ]
        for found in _runs(case, arrays):
            if found.dtype.kind in "fc":
                assert np.isfinite(found).all()


# Against what a plain run gives


@settings(max_examples=60)
@given(examples())
def test_guarded_and_plain_runs_give_equal_results(example: Any) -> None:
    results = []
    for is_guarded in (False, True):
        with fb.Session(graph=example.graph) as sess:
            if is_guarded:
                sess.guard()
            results.append([sess.run([f, example.sends], d)[0] for f, d in example.steps * 3])
    for plain, guarded in zip(*results, strict=True):
        for a, b in zip(plain, guarded, strict=True):
            np.testing.assert_array_equal(a, b)


UNARY = [fb.log, fb.exp, fb.sqrt, fb.nn.relu, fb.tanh, fb.negative, fb.square, fb.reciprocal]
BINARY = [fb.add, fb.subtract, fb.multiply, fb.divide, fb.maximum, fb.minimum]


@settings(max_examples=150)
@given(st.data())
def test_it_finds_exactly_what_a_look_at_every_value_finds(data: st.DataObject) -> None:
    graph = fb.Graph()
    with graph.as_default():
        x = fb.placeholder(fb.float32, [2], name="x")
        tensors: list[Any] = [x]
        for _ in range(data.draw(st.integers(1, 8))):
            if data.draw(st.booleans()):
                made = data.draw(st.sampled_from(UNARY))(data.draw(st.sampled_from(tensors)))
            else:
                pair = [data.draw(st.sampled_from(tensors)) for _ in range(2)]
                made = data.draw(st.sampled_from(BINARY))(*pair)
            tensors.append(made)
    feed = {
        x: data.draw(st.lists(st.sampled_from([-2.0, 0.0, 0.5, 3.0, 60.0]), min_size=2, max_size=2))
    }
    with fb.Session(graph=graph) as plain, fb.Session(graph=graph) as sess:
        # Each alone, so that nothing merges.
        values = {t: plain.run(t, feed) for t in tensors[1:]}
        sess.guard()
        wrong = [t for t in tensors[1:] if not np.isfinite(values[t]).all()]
        for _ in range(3):
            if not wrong:
                np.testing.assert_array_equal(sess.run(tensors[1:], feed)[-1], values[tensors[-1]])
                continue
            error = failure(sess, tensors[1:], feed)
            assert error.operation in {t.op for t in wrong}
            # What it was given was finite.
            for tensor in error.operation.inputs:
                assert np.isfinite(values.get(tensor, np.float32(0))).all()


def test_the_gate_of_gelu_is_finite_wherever_its_features_are() -> None:
    x = fb.placeholder(fb.float32, [3])
    y = fb.nn.gelu(x, approximate=True)
    [slope] = fb.gradients(y, [x])
    with fb.Session() as sess, sess.guard():
        np.testing.assert_array_equal(sess.run(y, {x: [-300.0, -20.0, 20.0]}), [0, 0, 20])
        np.testing.assert_array_equal(sess.run(slope, {x: [-300.0, -20.0, 20.0]}), [0, 0, 1])
