"""What an error says of an operation in a loop or a branch: its line, and the iteration."""

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.plan.codec import decode_failure, encode_failure
from flowbook.exec.plan.failure import Failure, LoopPlace
from tests.exec.plan.elsewhere import prepared_for, run_elsewhere


def errors_of(fetches, feeds=None):
    """The errors of the first run, of a later one, and of one with a timeout."""
    found = []
    with fb.Session() as sess:
        for timeout in (None, None, 100.0):
            with pytest.raises(fb.errors.OpError) as caught:
                sess.run(fetches, feeds, timeout=timeout)
            found.append(caught.value)
    assert len({str(error) for error in found}) == 1
    return found


def counting(limit, body, name=None):
    """A loop that counts to a limit, and adds up what its body makes of the count."""
    return fb.while_loop(
        lambda i, total: i < limit, lambda i, total: (i + 1, total + body(i)), (0, 0), name=name
    )[1]


def test_the_iteration_and_the_line_of_what_failed_in_a_body():
    x = fb.placeholder(fb.int32, [2], name="x")
    total = counting(5, lambda i: fb.gather(x, i, name="taken"))
    for error in errors_of(total, {x: [1, 2]}):
        assert error.operation.name == "while/taken"
        assert "in iteration 2 of the loop 'while' (the first is 0)" in error.details
        assert 'total = counting(5, lambda i: fb.gather(x, i, name="taken"))' in str(error)


def test_both_iterations_where_loops_are_nested():
    def inner(i):
        return counting(3, lambda j: fb.gather([1, 1, 1, 1], i * j), name="inner")

    for error in errors_of(counting(3, inner, name="outer")):
        assert (
            "in iteration 2 of the loop 'outer/inner', in iteration 2 of the loop 'outer' "
            "(the first is 0)"
        ) in error.details


def test_a_condition_and_a_branch_that_fail():
    x = fb.placeholder(fb.int32, [2], name="x")
    found = fb.while_loop(lambda i: fb.gather(x, i) > 0, lambda i: i + 1, [0])
    (error, *_) = errors_of(found, {x: [1, 1]})
    assert "in iteration 2 of the loop 'while' (the first is 0)" in error.details
    total = counting(
        5, lambda i: fb.cond(fb.equal(i, 3), lambda: fb.gather(x, i), lambda: fb.constant(0))
    )
    (error, *_) = errors_of(total, {x: [1, 1]})
    assert "in iteration 3 of the loop 'while_1' (the first is 0)" in error.details


def test_outside_of_loops_no_iteration_is_told():
    total = fb.gather([1, 2], counting(5, lambda i: i))
    (error, *_) = errors_of(total)
    assert "iteration" not in str(error)


def test_users_functions_tell_the_iteration_too():
    def fail(i):
        if i == 4:
            raise ValueError("four")
        return np.int32(i)

    def called(i):
        return fb.reshape(fb.py_func(fail, [i], fb.int32, name="called"), [])

    for error in errors_of(counting(9, called)):
        assert error.operation.name == "while/called"
        assert "in iteration 4 of the loop 'while' (the first is 0)" in error.details


def _refuse_two(context, x):
    if x == 2:
        context.fail(ValueError("two"))
    else:
        context.complete((x,))


refuse_two = fb.OpDef(
    "RefuseTwoInLoops",
    "x: T -> y: T",
    T=(fb.int32,),
    infer=lambda x: x.shape,
    kernel=_refuse_two,
    is_async=True,
)


def test_what_waits_in_a_loop_tells_its_iteration():
    for error in errors_of(counting(5, lambda i: refuse_two(i, name="waiting"))):
        assert error.operation.name == "while/waiting"
        assert "in iteration 2 of the loop 'while' (the first is 0)" in error.details


def test_a_partial_run_tells_the_iteration():
    x = fb.placeholder(fb.int32, [2], name="x")
    total = counting(5, lambda i: fb.gather(x, i))
    with (
        fb.Session() as sess,
        sess.partial_run([total], [x]) as step,
        pytest.raises(fb.errors.OpError) as caught,
    ):
        step.run(total, {x: [1, 2]})
    assert "in iteration 2 of the loop 'while' (the first is 0)" in caught.value.details


def test_the_iteration_is_told_by_another_process():
    x = fb.placeholder(fb.int32, [2], name="x")
    total = counting(5, lambda i: fb.gather(x, i, name="taken"))
    (error,) = run_elsewhere([(prepared_for([total], [], [x]), [np.array([1, 2], np.int32)])])
    assert "in iteration 2 of the loop 'while' (the first is 0)" in error.details
    assert error.operation.name == "while/taken"


def test_failures_in_loops_come_back_whole():
    error = fb.errors.OutOfRangeError("far")
    failure = Failure(error, 3, (), (), (LoopPlace("a/b", 7), LoopPlace("a", 0)))
    assert decode_failure(encode_failure(failure)).loops == failure.loops


def test_of_several_iterations_that_fail_the_first_is_told():
    """What only the counter decides could be far ahead: iterations may overlap."""

    def body(i, t):
        far = fb.gather([1, 2, 3], i)
        return i + 1, fb.gather([1, 2, 5], t) * 2 + 0 * far

    _, t = fb.while_loop(lambda i, _: i < 9, body, (0, 0))
    with fb.Session() as sess:
        for _ in range(4):
            with pytest.raises(fb.errors.InvalidIndexError) as info:
                sess.run(t)
            assert "in iteration 2 of the loop 'while' (the first is 0)" in info.value.details
