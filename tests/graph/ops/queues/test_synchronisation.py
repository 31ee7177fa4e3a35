"""Accumulators and barriers: what is taken when enough has come."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.simulated import Simulated
from tests.graph.ops.queues.waiting import begun


@pytest.fixture
def sess() -> Iterator[fb.Session]:
    with fb.Session() as session:
        yield session


# Accumulators


@pytest.mark.parametrize(("reduction", "expected"), [("MEAN", [2.0, 4.0]), ("SUM", [6.0, 12.0])])
def test_gradients_are_added_up(sess: fb.Session, reduction: str, expected: list[float]) -> None:
    total = fb.ConditionalAccumulator(fb.float32, shape=[2], reduction_type=reduction)
    g = fb.placeholder(fb.float32, [2])
    put, taken, size = total.apply_grad(g), total.take_grad(3), total.num_accumulated()
    waiting = begun(sess, total, taken)
    for value in (1.0, 2.0):
        sess.run(put, {g: [value, 2 * value]})
    assert sess.run(size) == 2
    sess.run(put, {g: [3.0, 6.0]})
    assert waiting.result().tolist() == expected
    assert sess.run(size) == 0


@pytest.mark.parametrize(("reduction", "expected"), [("MEAN", [2.0, 4.0]), ("SUM", [6.0, 12.0])])
def test_gradients_are_added_up_where_they_are(reduction: str, expected: list[float]) -> None:
    g = fb.placeholder(fb.float32, [2])
    with fb.device("simulated:0"):
        total = fb.ConditionalAccumulator(fb.float32, shape=[2], reduction_type=reduction)
        put, taken = total.apply_grad(g * 1.0), total.take_grad(3) * 1.0
    size = total.num_accumulated()
    device = Simulated()
    with fb.Session(devices=["cpu:0", device]) as sess:
        assert sess.explain(put, {g: (2,)}).transferred_bytes == 8  # What is fed.
        waiting = begun(sess, total, taken)
        for value in (1.0, 2.0):
            sess.run(put, {g: [value, 2 * value]})
        assert device.used >= 8
        assert sess.run(size) == 2
        sess.run(put, {g: [3.0, 6.0]})
        assert waiting.result().tolist() == expected
        assert sess.run(size) == 0


def test_what_has_been_added_up_moves_along() -> None:
    g = fb.placeholder(fb.float32, [2])
    total = fb.ConditionalAccumulator(fb.float32, shape=[2])
    put, taken = total.apply_grad(g), total.take_grad(3)
    device = Simulated()
    with fb.Session(devices=["cpu:0", device]) as sess:
        for value, there in ((1.0, "simulated:0"), (2.0, "cpu:0"), (3.0, "simulated:0")):
            sess.replace({total.op: there}, timeout=60)
            sess.run(put, {g: [value, 2 * value]})
            assert (device.used >= 8) is (there == "simulated:0")
        assert sess.run(taken).tolist() == [2.0, 4.0]


def test_stale_gradients_are_dropped(sess: fb.Session) -> None:
    total = fb.ConditionalAccumulator(fb.float32, shape=[])
    step = fb.placeholder(fb.int32, [])
    put, size = total.apply_grad(1.0, step), total.num_accumulated()
    sess.run(put, {step: 0})
    sess.run(total.take_grad(1))
    sess.run(put, {step: 0})  # Of before it was taken.
    assert sess.run(size) == 0
    sess.run(put, {step: 1})
    assert sess.run(size) == 1
    sess.run(total.set_global_step(9))
    sess.run(put, {step: 8})
    assert sess.run(size) == 1
    sess.run(put, {step: 9})
    assert sess.run(size) == 2


def test_what_nobody_took_is_still_there(sess: fb.Session) -> None:
    total = fb.ConditionalAccumulator(fb.float32, shape=[])
    sess.run(total.apply_grad(4.0))
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run(total.take_grad(2), timeout=0.01)
    assert sess.run(total.take_grad(1)) == 4.0


def test_gradients_that_do_not_fit(sess: fb.Session) -> None:
    total = fb.ConditionalAccumulator(fb.float32, shape=[None], name="total")
    x = fb.placeholder(fb.float32)
    put = total.apply_grad(x)
    with pytest.raises(fb.errors.InvalidArgumentError, match="'total' of shape"):
        sess.run(put, {x: [[1.0]]})
    sess.run(put, {x: [1.0, 2.0]})
    with pytest.raises(fb.errors.InvalidArgumentError, match="'total' of shape"):
        sess.run(put, {x: [1.0]})
    with pytest.raises(fb.errors.InvalidArgumentError, match="does not fit 'total'") as caught:
        total.apply_grad([[1.0]])
    assert "total.apply_grad([[1.0]])" in str(caught.value)
    with pytest.raises(fb.errors.InvalidArgumentError, match="at least one gradient"):
        sess.run(total.take_grad(0))
    with pytest.raises(
        fb.errors.InvalidArgumentError, match="'reduction_type' is one of 'MEAN', 'SUM'"
    ):
        fb.ConditionalAccumulator(fb.float32, reduction_type="MAX")


def test_gradients_are_copied(sess: fb.Session) -> None:
    total = fb.ConditionalAccumulator(fb.float32, shape=[2], reduction_type="SUM")
    x = fb.placeholder(fb.float32, [2])
    fed = np.ones(2, np.float32)
    sess.run(total.apply_grad(x), {x: fed})
    fed[:] = 7.0
    assert sess.run(total.take_grad(1)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("reduction", ["MEAN", "SUM"])
def test_rows_are_added_up_each_for_itself(sess: fb.Session, reduction: str) -> None:
    total = fb.SparseConditionalAccumulator(fb.float32, shape=[None, 2], reduction_type=reduction)
    one = fb.IndexedSlices(fb.constant([[1.0, 2.0], [3.0, 4.0]]), fb.constant([4, 0]))
    two = fb.IndexedSlices(fb.constant([[5.0, 6.0]]), fb.constant([4]), fb.constant([9, 2]))
    for grad in (one, two):
        sess.run(total.apply_indexed_slices_grad(grad))
    assert sess.run(total.num_accumulated()) == 2
    found = sess.run(total.take_indexed_slices_grad(2))
    assert found.indices.tolist() == [0, 4]
    last = [3.0, 4.0] if reduction == "MEAN" else [6.0, 8.0]
    assert found.values.tolist() == [[3.0, 4.0], last]
    assert found.dense_shape.tolist() == [9, 2]
    # The same by their parts.
    for rows, values in (([4, 0], [[1.0, 2.0], [3.0, 4.0]]), ([4], [[5.0, 6.0]])):
        sess.run(total.apply_grad(rows, values, [9, 2], local_step=1))
    indices, values, shape = sess.run(total.take_grad(2))
    assert (indices.tolist(), values.tolist()) == ([0, 4], [[3.0, 4.0], last])
    assert shape.tolist() == [9, 2]
    sess.run(total.apply_grad([4], [[5.0, 6.0]], local_step=1))
    assert sess.run(total.num_accumulated()) == 0  # It is stale.
    wrong = fb.IndexedSlices(fb.constant([[1.0]]), fb.constant([0]))
    with pytest.raises(fb.errors.InvalidArgumentError, match="does not fit accumulator"):
        sess.run(total.apply_indexed_slices_grad(wrong))
    bounded = fb.SparseConditionalAccumulator(fb.float32, shape=[3, 1])
    for accumulator, index, shape in ((bounded, 3, None), (bounded, -1, None), (total, 9, [9, 2])):
        rows = np.ones((1, 1 if accumulator is bounded else 2), np.float32)
        with pytest.raises(fb.errors.InvalidArgumentError, match=f"index {index} lies outside"):
            sess.run(accumulator.apply_grad([index], rows, shape, local_step=1))
        assert sess.run(accumulator.num_accumulated()) == 0


# Barriers


def barrier_of_two() -> fb.Barrier:
    return fb.Barrier([fb.float32, fb.string], shapes=[[], [2]], name="b")


def test_elements_leave_when_complete_the_oldest_key_first(sess: fb.Session) -> None:
    barrier = barrier_of_two()
    sess.run(barrier.insert_many(0, ["a", "b", "c"], [1.0, 2.0, 3.0]))
    assert sess.run([barrier.ready_size(), barrier.incomplete_size()]) == [0, 3]
    sess.run(barrier.insert_many(1, ["c"], [["x", "y"]]))
    waiting = begun(sess, barrier, barrier.take_many(2))
    sess.run(barrier.insert_many(1, ["a"], [["u", "v"]]))
    numbers, keys, (values, texts) = waiting.result()
    assert numbers[0] < numbers[1]
    assert keys.tolist() == [b"a", b"c"]
    assert values.tolist() == [1.0, 3.0]
    assert texts.tolist() == [[b"u", b"v"], [b"x", b"y"]]
    assert sess.run([barrier.ready_size(), barrier.incomplete_size()]) == [0, 1]


def test_a_component_comes_once(sess: fb.Session) -> None:
    barrier = barrier_of_two()
    sess.run(barrier.insert_many(0, ["a"], [1.0]))
    for keys in (["b", "a"], ["c", "c"]):
        with pytest.raises(fb.errors.InvalidArgumentError, match="has a value for component 0"):
            sess.run(barrier.insert_many(0, keys, [1.0, 2.0]))
    assert sess.run(barrier.incomplete_size()) == 1  # All of them, or none.


def test_a_closed_barrier_completes_what_it_has(sess: fb.Session) -> None:
    barrier = barrier_of_two()
    sess.run(barrier.insert_many(0, ["a", "b"], [1.0, 2.0]))
    sess.run(barrier.close())
    with pytest.raises(fb.errors.CancelledError, match="'b' is closed, and b'new' is new"):
        sess.run(barrier.insert_many(0, ["new"], [1.0]))
    waiting = begun(sess, barrier, barrier.take_many(3, allow_small_batch=True))
    sess.run(barrier.insert_many(1, ["b"], [["x", "y"]]))
    assert sess.run(barrier.ready_size()) == 1
    sess.run(barrier.insert_many(1, ["a"], [["x", "y"]]))
    assert waiting.result()[1].tolist() == [b"a", b"b"]
    with pytest.raises(fb.errors.OutOfRangeError, match=r"\(requested 1, total size 0\)"):
        sess.run(barrier.take_many(1, allow_small_batch=True))


def test_a_barrier_that_is_closed_for_good(sess: fb.Session) -> None:
    barrier = barrier_of_two()
    sess.run(barrier.insert_many(0, ["a"], [1.0]))
    waiting = begun(sess, barrier, barrier.take_many(1))
    sess.run(barrier.close(cancel_pending_enqueues=True))
    with pytest.raises(fb.errors.OutOfRangeError, match="requested 1, total size 0"):
        waiting.result()
    with pytest.raises(fb.errors.CancelledError, match="'b' is closed"):
        sess.run(barrier.insert_many(1, ["a"], [["x", "y"]]))


def test_elements_that_are_given_up_stay(sess: fb.Session) -> None:
    barrier = barrier_of_two()
    sess.run(barrier.insert_many(0, ["a"], [1.0]))
    sess.run(barrier.insert_many(1, ["a"], [["x", "y"]]))
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run(barrier.take_many(2), timeout=0.01)
    assert sess.run(barrier.take_many(1))[1].tolist() == [b"a"]
    assert sess.run(barrier.take_many(0))[1].tolist() == []


def test_what_does_not_fit_a_barrier(sess: fb.Session) -> None:
    barrier = barrier_of_two()
    with pytest.raises(fb.errors.InvalidArgumentError, match="there is no component 2") as caught:
        barrier.insert_many(2, ["a"], [1.0])
    assert 'barrier.insert_many(2, ["a"], [1.0])' in str(caught.value)
    with pytest.raises(fb.errors.InvalidArgumentError, match="do not fit values"):
        sess.run(barrier.insert_many(0, ["a", "b"], [1.0]))
    for values in (["x"], "x", [["x", "y", "z"]]):
        with pytest.raises(fb.errors.InvalidArgumentError, match=r"component 1 is of shape \[2\]"):
            barrier.insert_many(1, ["a"], values)
    unknown = fb.placeholder(fb.string)
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"is of shape \[\], and barrier 'b'"):
        sess.run(barrier.insert_many(1, ["a"], unknown), {unknown: ["x"]})
    with pytest.raises(fb.errors.InvalidArgumentError, match="no fewer than 0"):
        sess.run(barrier.take_many(-1))
    with pytest.raises(fb.errors.InvalidArgumentError, match="1 shape cannot fit 2"):
        fb.Barrier([fb.int32, fb.int32], shapes=[[]])
    with pytest.raises(fb.errors.InvalidArgumentError, match="have to be known"):
        fb.Barrier([fb.int32], shapes=[[None]])
