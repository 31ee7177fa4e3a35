"""Temporary variables: what a step makes, writes and forgets."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb


def test_each_step_begins_anew() -> None:
    total = fb.temporary_variable([1, 2], fb.float32, var_name="total")
    total = fb.assign(total, [[4.0, 5.0]])
    total = fb.assign_sub(fb.assign_add(total, [[6.0, 7.0]]), [[1.0, 1.0]])
    final = fb.destroy_temporary_variable(total, "total")
    with fb.Session() as sess:
        for _ in range(3):
            assert sess.run(final).tolist() == [[9.0, 11.0]]
        assert sess.run(fb.temporary_variable([2], fb.int32)).tolist() == [0, 0]


def test_what_is_read_may_still_be_written() -> None:
    first = fb.temporary_variable([2], fb.float32)
    before = first + 1.0
    after = fb.assign_add(first, [1.0, 2.0])
    with fb.Session() as sess:
        found = sess.run([before, after])
    assert [value.tolist() for value in found] == [[1.0, 1.0], [1.0, 2.0]]


def test_two_of_one_name_are_two() -> None:
    finals = []
    for value in (1, 2):
        state = fb.temporary_variable([], fb.int32, var_name="same")
        finals.append(fb.destroy_temporary_variable(fb.assign_add(state, value), "same"))
    with fb.Session() as sess:
        assert sess.run(finals) == [1, 2]


def test_gradients_flow_through_what_is_written() -> None:
    x = fb.constant([1.0, 2.0])
    state = fb.assign_sub(fb.assign(fb.temporary_variable([2], fb.float32), x * 3), x * x)
    (dx,) = fb.gradients(state, [x])
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(dx), [1.0, -1.0])


def test_a_state_that_has_ended_is_refused() -> None:
    first = fb.temporary_variable([2], fb.float32, var_name="x")
    second = fb.assign(first, [1.0, 2.0])
    ended = pytest.raises(fb.errors.FailedPreconditionError, match="before 'WriteTemporary'")
    with ended:
        fb.assign_add(first, [1.0, 2.0])
    with ended:
        fb.destroy_temporary_variable(first, "x")
    fb.destroy_temporary_variable(second, "x")
    with pytest.raises(fb.errors.FailedPreconditionError, match="DestroyTemporaryVariable"):
        fb.destroy_temporary_variable(second, "x")


def test_a_loop_cannot_change_one_from_outside() -> None:
    state = fb.temporary_variable([], fb.int32)
    with pytest.raises(fb.errors.FailedPreconditionError, match="outside of the loop"):
        fb.while_loop(lambda i: i < 3, lambda i: [fb.assign_add(state, i)], [0])


@pytest.mark.parametrize(
    "make",
    [
        fb.constant,
        fb.Variable,
        float,
        lambda value: fb.temporary_variable([], fb.float32, var_name="y"),
    ],
    ids=["tensor", "variable", "number", "another name"],
)
def test_only_one_of_that_name_is_destroyed(make: Any) -> None:
    with pytest.raises(fb.errors.NotFoundError, match="no temporary variable 'x'"):
        fb.destroy_temporary_variable(make(1.0), "x")


def test_shapes_fit_and_are_known() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="has one shape"):
        fb.temporary_variable([None], fb.float32)
    with pytest.raises(fb.errors.InvalidArgumentError, match="does not fit"):
        fb.assign(fb.temporary_variable([2], fb.float32), [1.0])
    x = fb.placeholder(fb.float32)
    late = fb.assign_add(fb.temporary_variable([2], fb.float32), x)
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError, match="does not fit"):
        sess.run(late, {x: [1.0]})
