"""Mutexes: one step at a time, whatever becomes of it."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from tests.exec.state.executors import EXECUTORS, run_in
from tests.exec.state.threads import run_together
from tests.graph.ops.queues.waiting import begun, waiters
from tests.interrupts import interrupted_at


def guarded() -> tuple[fb.Mutex, fb.Variable, Any]:
    """A read and a write that follows it, which no other step may come between."""
    mutex, v = fb.Mutex(name="m"), fb.Variable(0, name="v")
    with mutex.scope():
        changed = fb.assign(v, fb.py_func(lambda x: x + np.int32(1), [v], fb.int32))
    return mutex, v, changed


def test_no_step_comes_between() -> None:
    _, v, changed = guarded()
    with fb.Session() as sess:
        sess.run(changed)
        run_together(*[lambda: [sess.run(changed) for _ in range(50)]] * 4)
        assert sess.run(v) == 201


@pytest.mark.parametrize("kind", EXECUTORS)
def test_it_is_held_until_the_end_of_the_step(kind: str) -> None:
    mutex, v, changed = guarded()
    with fb.Session() as sess:
        for number in (1, 2):
            run_in(kind, sess, changed)
            assert sess.run(v) == number
        assert sess._master.stores.find(mutex.op.key).holder is None


@pytest.mark.parametrize("kind", EXECUTORS)
def test_what_is_executed_is_done_before_the_step_is(kind: str) -> None:
    """A second holder in the same step would wait for ever for one that waits for the end."""
    mutex, v = fb.Mutex(), fb.Variable(1)
    first, none = mutex.execute(lambda: [fb.assign(v, v + 1), fb.no_op()])
    with fb.control_dependencies([first, none]):
        second = mutex.execute(lambda: fb.assign(v, v * 10))
        nothing = mutex.execute(fb.no_op)
    with fb.Session() as sess:
        assert run_in(kind, sess, [second, nothing]) == [20, None]
        assert sess.run([second, nothing]) == [210, None]


def test_it_is_held_while_what_is_executed_runs() -> None:
    mutex, v = fb.Mutex(), fb.Variable(0)
    changed = mutex.execute(lambda: fb.assign(v, fb.py_func(lambda x: x + 1, [v], fb.int32)))
    with fb.Session() as sess:
        sess.run(changed)
        run_together(*[lambda: [sess.run(changed) for _ in range(50)]] * 4)
        assert sess.run(v) == 201
    with pytest.raises(fb.errors.InvalidTypeError):
        mutex.execute(lambda: None)


def test_it_is_held_until_all_that_is_executed_has_run() -> None:
    mutex, queue = fb.Mutex(), fb.FIFOQueue(1, fb.int32, shapes=[[]])
    first, taken = mutex.execute(lambda: [fb.constant(1), queue.dequeue()])
    with fb.Session() as sess:
        run = begun(sess, queue, [first, taken])
        assert sess._master.stores.find(mutex.op.key).holder is not None
        sess.run(queue.enqueue(2))
        assert run.result() == [1, 2]
        assert sess._master.stores.find(mutex.op.key).holder is None


def test_who_releases_lets_the_next_go_on_in_the_same_step() -> None:
    mutex = fb.Mutex()
    first = mutex.acquire()
    with fb.control_dependencies([first]):
        second = mutex.acquire()
    released = mutex.release(first)
    with fb.control_dependencies([mutex.release(second)]):
        done = fb.constant(1.0) + 1.0
    with fb.Session() as sess:
        assert sess.run([done, released]) == [2.0, None]


def test_it_is_released_once() -> None:
    mutex = fb.Mutex(name="m")
    holding = mutex.acquire()
    released = mutex.release(holding)
    with fb.control_dependencies([released]):
        again = mutex.release(holding)
    with (
        fb.Session() as sess,
        pytest.raises(fb.errors.FailedPreconditionError, match="released already"),
    ):
        sess.run(again)


def test_a_step_that_fails_or_is_given_up_holds_it_no_longer() -> None:
    mutex = fb.Mutex()
    x = fb.placeholder(fb.float32, [])
    queue = fb.FIFOQueue(1, fb.float32, shapes=[[]])
    with mutex.scope():
        checked = fb.check_numerics(x, "wrong") + 0.0
        late = queue.dequeue()
    with fb.Session() as sess:
        for _ in range(3):
            with pytest.raises(fb.errors.InvalidArgumentError, match="wrong"):
                sess.run(checked, {x: np.nan})
            with pytest.raises(fb.errors.DeadlineExceededError):
                sess.run(late, timeout=0.01)
            assert sess.run(checked, {x: 1.0}) == 1.0


def test_who_waits_for_it_goes_on_in_order_or_gives_up() -> None:
    mutex = fb.Mutex(name="m")
    queue = fb.FIFOQueue(1, fb.float32, shapes=[[]])
    with mutex.scope():
        slow = queue.dequeue()
    with mutex.scope():
        other = fb.constant(3.0) + 1.0
    with fb.Session() as sess:
        first = begun(sess, queue, slow)
        second = begun(sess, mutex, other)
        with pytest.raises(fb.errors.DeadlineExceededError):
            sess.run(other, timeout=0.2)
        assert waiters(sess, mutex) == 1
        sess.run(queue.enqueue(2.0))
        assert (first.result(), second.result()) == (2.0, 4.0)


def test_an_interrupt_anywhere_leaves_it_free() -> None:
    mutex, _, changed = guarded()
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(changed)
        for number in itertools.count(1):
            stopped = interrupted_at(number, lambda: sess.run(changed))
            assert sess._master.stores.find(mutex.op.key).holder is None, number
            if stopped is None:
                break


# One step that asks for it several times: one after the other, as they were built


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]])
@pytest.mark.parametrize("kind", EXECUTORS)
def test_what_one_step_executes_goes_in_the_order_of_construction(
    kind: str, order: list[int]
) -> None:
    mutex, v = fb.Mutex(), fb.Variable(1)
    changed = [mutex.execute(lambda k=k: fb.assign(v, v * 2 + k)) for k in range(4)]
    with fb.Session() as sess:
        wanted = [2, 5, 12, 27]
        assert run_in(kind, sess, [changed[k] for k in order]) == [wanted[k] for k in order]


def test_so_it_does_on_several_devices() -> None:
    with fb.device("cpu:0"):
        v = fb.Variable(1)
    with fb.device("cpu:1"):
        mutex, w = fb.Mutex(), fb.Variable(0)
    changed = [mutex.execute(lambda: [fb.assign(v, v * 2), fb.assign_add(w, 1)]) for _ in range(5)]
    with fb.Session(cpus=2) as sess:
        for turn in range(3):
            wanted = [[2 ** (5 * turn + k + 1), 5 * turn + k + 1] for k in range(5)]
            assert sess.run(changed) == wanted


def test_so_it_does_in_loops_functions_and_branches() -> None:
    mutex, v = fb.Mutex(), fb.Variable(0)
    is_taken = fb.placeholder(fb.bool, [])

    @fb.function
    def add(x: fb.Tensor) -> fb.Tensor:
        return mutex.execute(lambda: fb.assign_add(v, x))

    added = add(1)
    _, within = fb.while_loop(
        lambda i, _: i < 3, lambda i, _: (i + 1, mutex.execute(lambda: fb.assign(v, v * 2))), [0, 0]
    )
    chosen = fb.cond(is_taken, lambda: add(10), lambda: fb.constant(0))
    last = mutex.execute(lambda: fb.assign(v, v * 10))
    with fb.Session() as sess:
        assert sess.run([last, chosen, within, added], {is_taken: True}) == [180, 18, 8, 1]
        assert sess.run([last, chosen, within, added], {is_taken: False}) == [14480, 0, 1448, 181]


def test_what_is_read_in_a_later_turn_has_been_written() -> None:
    mutex, v = fb.Mutex(), fb.Variable(1)
    written = mutex.execute(lambda: fb.assign(v, 5))
    read = mutex.execute(lambda: v + 0)
    with fb.Session() as sess:
        assert sess.run([read, written]) == [5, 5]


def test_who_has_to_go_first_goes_first() -> None:
    """The first to be built writes later, and so holds it later."""
    mutex, v = fb.Mutex(), fb.Variable(1)
    one, other = mutex.acquire(), mutex.acquire()
    with fb.control_dependencies([other]):
        before = fb.assign(v, v * 2)
    with fb.control_dependencies([before]):
        mutex_free = mutex.release(other)
    with fb.control_dependencies([one]):
        after = fb.assign(v, v + 5)
    with fb.control_dependencies([after]):
        free = mutex.release(one)
    with fb.Session() as sess:
        assert sess.run([free, mutex_free, after, before]) == [None, None, 7, 2]


def test_two_are_held_in_whatever_order() -> None:
    one, other, v = fb.Mutex(), fb.Mutex(), fb.Variable(1)
    first = one.execute(lambda: other.execute(lambda: fb.assign(v, v * 2)))
    second = other.execute(lambda: one.execute(lambda: fb.assign(v, v + 5)))
    with fb.Session() as sess:
        assert sess.run([second, first]) == [7, 2]


class Section(NamedTuple):
    """What a step executes: how it changes a variable, holding some mutexes."""

    mutexes: list[int]
    variable: int
    factor: int
    term: int


# All hold the first of them, and so exclude each other.
HELD = [[*held] for n in (1, 2, 3) for held in itertools.permutations(range(3), n) if 0 in held]
SECTIONS = st.lists(
    st.builds(
        Section,
        *[st.sampled_from(HELD), st.integers(0, 1), st.integers(0, 3), st.integers(-3, 3)],
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60)
@given(SECTIONS, st.randoms(use_true_random=False), st.booleans())
def test_any_sections_of_a_step_end(
    sections: list[Section], random: Random, on_two_devices: bool
) -> None:
    with fb.Graph().as_default():
        mutexes, variables = [fb.Mutex() for _ in range(3)], [fb.Variable(1) for _ in range(2)]

        def built(section: Section, left: list[int]) -> fb.Tensor:
            if left:
                return mutexes[left[0]].execute(lambda: built(section, left[1:]))
            v = variables[section.variable]
            return fb.assign(v, v * section.factor + section.term)

        fetches, wanted, values = [], [], [1, 1]
        for section in sections:
            fetches.append(built(section, section.mutexes))
            place = section.variable
            values[place] = values[place] * section.factor + section.term
            wanted.append(values[place])
        order = random.sample(range(len(sections)), len(sections))
        with fb.Session(cpus=1 + on_two_devices) as sess:
            found = sess.run([fetches[i] for i in order], timeout=60)
            assert found == [wanted[i] for i in order]


def within_itself(mutex: fb.Mutex) -> fb.Operation:
    first = mutex.acquire()
    with fb.control_dependencies([first]):
        second = mutex.acquire(name="second")
    with fb.control_dependencies([second]):
        return mutex.release(first)


def executed_within_itself(mutex: fb.Mutex) -> fb.Tensor:
    def inside() -> fb.Tensor:
        with fb.control_dependencies([mutex.acquire(name="second")]):
            return fb.constant(1) + 1

    return mutex.execute(inside)


def in_a_scope_within_another(mutex: fb.Mutex) -> fb.Tensor:
    with mutex.scope(), fb.control_dependencies([mutex.acquire(name="second")]):
        return fb.constant(1) + 1


def after_a_scope(mutex: fb.Mutex) -> list[fb.Tensor]:
    with mutex.scope():
        first = fb.constant(1) + 1
    with fb.control_dependencies([mutex.acquire(name="second")]):
        return [fb.constant(2) + 1, first]


@pytest.mark.parametrize(
    "built", [within_itself, executed_within_itself, in_a_scope_within_another, after_a_scope]
)
@pytest.mark.parametrize("kind", EXECUTORS)
def test_a_step_that_asks_for_what_it_holds_itself_fails(kind: str, built: Any) -> None:
    mutex = fb.Mutex(name="m")
    asking = built(mutex)
    with fb.Session() as sess:
        with pytest.raises(fb.errors.FailedPreconditionError) as caught:
            run_in(kind, sess, asking)
        assert "'second': it waits for mutex 'm', which is held by its own step" in str(
            caught.value
        )
        assert sess._master.stores.find(mutex.op.key).holder is None


def test_it_does_not_fail_where_that_is_in_a_branch_not_taken() -> None:
    mutex, v, is_taken = fb.Mutex(), fb.Variable(0), fb.placeholder(fb.bool, [])
    changed = mutex.execute(
        lambda: fb.cond(
            is_taken,
            lambda: mutex.execute(lambda: fb.assign_add(v, 10)),
            lambda: fb.assign_add(v, 1),
        )
    )
    last = mutex.execute(lambda: fb.assign(v, v * 2))
    with fb.Session() as sess:
        assert sess.run([last, changed], {is_taken: False}) == [2, 1]
        with pytest.raises(fb.errors.FailedPreconditionError):
            sess.run([last, changed], {is_taken: True})
        assert sess.run(v) == 2
        assert sess.run([last, changed], {is_taken: False}) == [6, 3]
