"""Steps that ask first for the one thing that they may have to wait for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.state.executors import runner_of
from tests.graph.ops.queues.waiting import begun, waiters
from tests.interrupts import interrupted_at


@pytest.fixture
def sess() -> Iterator[fb.Session]:
    with fb.Session() as session:
        yield session


def asks_first(sess: fb.Session, fetches: Any) -> bool:
    """Whether the step that runs these is one that asks first."""
    return runner_of(sess, fetches)[1]._asking is not None


@pytest.fixture
def queue() -> fb.FIFOQueue:
    return fb.FIFOQueue(100, fb.float32, shapes=[[]])


def filled(sess: fb.Session, queue: fb.FIFOQueue, count: int) -> None:
    sess.run(queue.enqueue_many(np.arange(1.0, count + 1)))


def test_what_is_there_is_taken_at_once_and_in_order(sess: fb.Session, queue: Any) -> None:
    filled(sess, queue, 6)
    taken = queue.dequeue()
    ten = taken * 10.0
    found = [sess.run([ten, taken]) for _ in range(5)]
    assert asks_first(sess, [ten, taken])
    assert found == [[10.0 * n, n] for n in range(1, 6)]
    assert sess.run(taken, {taken: 7.0}) == 7.0
    assert sess.run(queue.size()) == 1


def test_what_is_not_there_is_waited_for(sess: fb.Session, queue: Any) -> None:
    taken, put = queue.dequeue() * 2.0, queue.enqueue(4.0)
    for _ in range(4):
        sess.run(put)
        sess.run(taken)
    assert asks_first(sess, taken)
    run = begun(sess, queue, taken)
    assert waiters(sess, queue) == 1
    sess.run(put)
    assert run.result() == 8.0
    assert waiters(sess, queue) == 0
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run(taken, timeout=0.01)
    sess.run(queue.close())
    with pytest.raises(fb.errors.OutOfRangeError, match="requested 1, current size 0"):
        sess.run(taken)
    with pytest.raises(fb.errors.CancelledError, match="closed"):
        sess.run(put)


def test_a_batch_that_is_not_whole_is_put_back(sess: fb.Session, queue: Any) -> None:
    many, one = queue.dequeue_many(3), queue.dequeue()
    filled(sess, queue, 12)
    for _ in range(4):
        sess.run(many)
    assert asks_first(sess, many)
    filled(sess, queue, 2)
    run = begun(sess, queue, many)
    after = begun(sess, queue, one)
    filled(sess, queue, 2)
    assert run.result().tolist() == [1.0, 2.0, 1.0]
    assert after.result() == 2.0


def test_what_fails_afterwards_is_named(sess: fb.Session, queue: Any) -> None:
    filled(sess, queue, 6)
    x = fb.placeholder(fb.float32, [])
    checked = fb.check_numerics(queue.dequeue() + x, "wrong", name="checked")
    for _ in range(4):
        sess.run(checked, {x: 1.0})
    with pytest.raises(fb.errors.InvalidArgumentError, match="wrong") as caught:
        sess.run(checked, {x: np.nan})
    assert caught.value.operation is checked.op
    assert sess.run(queue.size()) == 1


def test_a_training_step_takes_its_batch_first_and_draws_the_same_numbers(queue: Any) -> None:
    v = fb.Variable(0.0, name="v")
    noise = fb.random_uniform([], seed=5)
    train = fb.assign_add(v, queue.dequeue() + noise)
    found = []
    for has_to_wait in (False, True):
        with fb.Session() as sess:
            filled(sess, queue, 4)
            values = [sess.run(train) for _ in range(4)]
            if has_to_wait:
                with pytest.raises(fb.errors.DeadlineExceededError):
                    sess.run(train, timeout=0.01)
                run = begun(sess, queue, train)
                filled(sess, queue, 1)
                values.append(run.result())
            else:
                filled(sess, queue, 1)
                values.append(sess.run(train))
            assert asks_first(sess, train)
            found.append(values)
    assert found[0] == found[1]


def test_others_wait_as_before(sess: fb.Session, queue: Any) -> None:
    """What comes after a write, on one side of a branch, or is held until the step's end."""
    mutex, v = fb.Mutex(), fb.Variable(1.0)
    filled(sess, queue, 60)
    with fb.control_dependencies([fb.assign_add(v, 1.0)]):
        after = queue.dequeue()
    with mutex.scope():
        held = fb.assign_add(v, 1.0)
    through = fb.cond(v > 0.0, lambda: queue.dequeue(), lambda: fb.constant(0.0))
    put_first = [queue.enqueue(1.0), fb.FIFOQueue(100, fb.float32).enqueue(2.0)]
    for fetches in (after, through, put_first):
        for _ in range(4):
            sess.run(fetches)
        assert not asks_first(sess, fetches)
    for number in range(4):
        assert sess.run(held) == 6.0 + number


def test_of_several_all_are_put_back_if_one_is_not_there(sess: fb.Session, queue: Any) -> None:
    other = fb.FIFOQueue(100, fb.float32, shapes=[[]])
    both = queue.dequeue() + 10.0 * other.dequeue()
    filled(sess, queue, 6)
    filled(sess, other, 4)
    assert [sess.run(both) for _ in range(4)] == [11.0, 22.0, 33.0, 44.0]
    assert asks_first(sess, both)
    run = begun(sess, other, both)
    # Who waits has taken it again.
    assert sess.run(queue.size()) == 1
    sess.run(other.enqueue(5.0))
    assert run.result() == 55.0
    sess.run(other.close())
    with pytest.raises(fb.errors.OutOfRangeError):
        sess.run(both)


def test_what_is_taken_is_put_back_where_there_is_no_room(sess: fb.Session, queue: Any) -> None:
    small = fb.FIFOQueue(2, fb.float32, shapes=[[]])
    with fb.control_dependencies([queue.size()]):
        moved = small.enqueue(-queue.dequeue() + fb.random_uniform([], 0.0, 0.5, seed=1))
    taken, noise = small.dequeue(), []
    filled(sess, queue, 9)
    for number in range(1, 6):
        sess.run(moved)
        noise.append(float(sess.run(taken)) + number)
    assert asks_first(sess, moved)
    for _ in range(2):
        sess.run(moved)
    run = begun(sess, small, moved)
    assert sess.run(queue.size()) == 1
    for number in range(6, 9):
        noise.append(float(sess.run(taken)) + number)
    assert run.result() is None
    # Nothing was drawn for what was put back.
    with fb.Session() as again:
        filled(again, queue, 8)
        for number in range(1, 9):
            again.run(moved)
            assert float(again.run(taken)) + number == noise[number - 1]
    sess.run(moved)
    filled(sess, queue, 1)
    sess.run(small.close())
    with pytest.raises(fb.errors.CancelledError):
        sess.run(moved)
    assert sess.run(queue.dequeue(), timeout=60) == 1.0


def test_several_elements_are_put_in_once_where_not_all_have_room(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(5, fb.int32, shapes=[[]])
    put, first, taken = queue.enqueue_many(range(4)), queue.enqueue_many([7, 7, 7]), queue.dequeue()
    for _ in range(3):
        sess.run(put)
        assert [sess.run(taken) for _ in range(4)] == [0, 1, 2, 3]
    assert asks_first(sess, put)
    sess.run(first)
    run = begun(sess, queue, put)
    assert [sess.run(taken, timeout=60) for _ in range(7)] == [7, 7, 7, 0, 1, 2, 3]
    assert run.result() is None
    assert sess.run(queue.size()) == 0


@pytest.mark.parametrize(("to_wait", "tries"), [(1e9, 7), (1e-9, 1)])
def test_a_try_in_vain_that_took_long_is_not_made_again_soon(
    sess: fb.Session,
    queue: Any,
    monkeypatch: pytest.MonkeyPatch,
    to_wait: float,
    tries: int,
) -> None:
    """Where it is cheap, it is made again behind the next step; where it is not, much later."""
    monkeypatch.setattr("flowbook.exec.engine.runner._TO_WAIT", to_wait)
    small = fb.FIFOQueue(1, fb.float32, shapes=[[]])
    moved, taken = small.enqueue(queue.dequeue() * 2.0), small.dequeue()
    filled(sess, queue, 12)
    found = []
    for _ in range(3):
        sess.run(moved)
        found.append(sess.run(taken))
    runner = runner_of(sess, moved)[1]
    made, try_it = [], runner._run_asking
    monkeypatch.setattr(runner, "_run_asking", lambda feeds: made.append(feeds) or try_it(feeds))
    sess.run(small.enqueue(0.0))
    run = begun(sess, small, moved)
    found += [sess.run(taken, timeout=60) for _ in range(2)]
    assert run.result() is None
    for _ in range(7):
        sess.run(moved)
        found.append(sess.run(taken))
    assert found == [2.0, 4.0, 6.0, 0.0, *np.arange(8.0, 24.0, 2.0)]
    assert len(made) == tries


def test_an_interrupt_anywhere_moves_an_element_or_leaves_it(sess: fb.Session, queue: Any) -> None:
    other = fb.FIFOQueue(100, fb.float32, shapes=[[]])
    moved, put = other.enqueue(queue.dequeue()), queue.enqueue(7.0)
    sizes, taken = [queue.size(), other.size()], [queue.dequeue(), other.dequeue()]
    filled(sess, queue, 3)
    for _ in range(3):
        sess.run(moved)
        sess.run(taken[1])
    assert asks_first(sess, moved)
    for number in itertools.count(1):
        sess.run(put)
        stopped = interrupted_at(number, lambda: sess.run(moved))
        found = [int(size) for size in sess.run(sizes)]
        assert sorted(found) == [0, 1], number
        assert sess.run(taken[found.index(1)]) == 7.0
        if stopped is None:
            break


def test_an_interrupt_anywhere_takes_an_element_or_leaves_it(sess: fb.Session, queue: Any) -> None:
    taken = queue.dequeue() * 2.0
    size, put, one = queue.size(), queue.enqueue_many([1.0, 2.0]), queue.dequeue()
    filled(sess, queue, 3)
    for _ in range(3):
        sess.run(taken)
    for number in itertools.count(1):
        sess.run(put)
        found: list[Any] = []
        stopped = interrupted_at(number, lambda to=found: to.append(sess.run(taken)))
        left = int(sess.run(size))
        assert left in (1, 2), number
        assert waiters(sess, queue) == 0
        assert [sess.run(one) for _ in range(left)] == [1.0, 2.0][-left:], number
        if stopped is None:
            assert found == [2.0]
            break
    assert asks_first(sess, taken)
