"""Queues: what goes in comes out, in which order, and who waits for whom."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.ops.queues.queue import Queue
from tests.exec.state.executors import EXECUTORS, run_in
from tests.exec.state.threads import run_together
from tests.graph.ops.queues.waiting import begun, given_up, waiters
from tests.interrupts import interrupted_at


@pytest.fixture
def sess() -> Iterator[fb.Session]:
    with fb.Session() as session:
        yield session


# One after the other


@pytest.mark.parametrize("kind", EXECUTORS)
def test_elements_leave_in_the_order_in_which_they_came(sess: fb.Session, kind: str) -> None:
    queue = fb.FIFOQueue(10, fb.float32, shapes=[[]])
    x = fb.placeholder(fb.float32, [])
    put, taken = queue.enqueue(x), queue.dequeue()
    for value in (10.0, 20.0, 30.0):
        run_in(kind, sess, put, {x: np.float32(value)})
    assert [run_in(kind, sess, taken) for _ in range(3)] == [10.0, 20.0, 30.0]


@pytest.mark.parametrize("kind", EXECUTORS)
def test_a_step_that_puts_in_what_it_takes_out(sess: fb.Session, kind: str) -> None:
    queue = fb.FIFOQueue(1, fb.float32)
    taken, put = queue.dequeue(), queue.enqueue(7.0)
    assert run_in(kind, sess, [taken * 2.0, put]) == [14.0, None]


def test_two_threads_meet(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(1, fb.int32, shapes=[[]])
    x = fb.placeholder(fb.int32, [])
    put, taken = queue.enqueue(x), queue.dequeue()
    found = []

    def put_all() -> None:
        for value in range(200):
            sess.run(put, {x: value})
        sess.run(queue.close())

    def take_all() -> None:
        with suppress(fb.errors.OutOfRangeError):
            while True:
                found.append(int(sess.run(taken)))

    run_together(put_all, take_all)
    assert found == [*range(200)]


def test_what_waits_goes_on_when_an_element_comes(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, fb.float32)
    taken = begun(sess, queue, queue.dequeue() + 1.0)
    sess.run(queue.enqueue(2.0))
    assert taken.result() == 3.0


def test_what_waits_for_room_goes_on_when_an_element_leaves(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(1, fb.float32)
    sess.run(queue.enqueue(1.0))
    put = begun(sess, queue, queue.enqueue(2.0))
    assert sess.run(queue.dequeue()) == 1.0
    put.result()
    assert sess.run(queue.dequeue()) == 2.0


def test_a_closed_queue_admits_nothing_and_gives_what_it_has(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, fb.float32, name="q")
    sess.run(queue.enqueue(1.0))
    assert not sess.run(queue.is_closed())
    sess.run(queue.close())
    assert sess.run(queue.is_closed())
    with pytest.raises(fb.errors.CancelledError, match="QueueEnqueue 'late': queue 'q' is closed"):
        sess.run(queue.enqueue(2.0, name="late"))
    assert sess.run(queue.dequeue()) == 1.0
    with pytest.raises(fb.errors.OutOfRangeError, match=r"\(requested 1, current size 0\)"):
        sess.run(queue.dequeue())


@pytest.mark.parametrize("kind", EXECUTORS)
def test_what_asks_after_an_operation_has_the_queue_too(sess: fb.Session, kind: str) -> None:
    """Nobody lets go of a queue's handle while something else of the step takes it."""
    queue = fb.FIFOQueue(10, fb.float32)
    with fb.control_dependencies([queue.enqueue(1.0)]):
        size = queue.size()
    with fb.control_dependencies([size, queue.dequeue()]):
        empty = queue.size() + 0
    for _ in range(3):
        assert run_in(kind, sess, empty) in (0, 1)


# Several at once


def test_an_enqueue_larger_than_the_capacity_fills_waits_and_goes_on(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(4, fb.int32, shapes=[[]])
    put = begun(sess, queue, queue.enqueue_many(np.arange(10, dtype=np.int32)))
    assert sess.run(queue.size()) == 4
    assert [int(sess.run(queue.dequeue())) for _ in range(10)] == [*range(10)]
    put.result()


def test_a_batch_larger_than_the_capacity_is_taken_as_elements_come(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(2, fb.int32, shapes=[[]])
    taken = begun(sess, queue, queue.dequeue_many(6))
    sess.run(queue.enqueue_many(np.arange(6, dtype=np.int32)))
    assert taken.result().tolist() == [0, 1, 2, 3, 4, 5]


def test_batches_of_nothing(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(2, [fb.int32, fb.float32], shapes=[[], [3]])
    n = fb.placeholder(fb.int32, [])
    many, up_to = queue.dequeue_many(n), queue.dequeue_up_to(0)
    assert [v.shape for v in sess.run(many, {n: 0})] == [(0,), (0, 3)]
    assert [v.shape for v in sess.run(up_to)] == [(0,), (0, 3)]
    sess.run(queue.enqueue_many([np.zeros(0, np.int32), np.zeros((0, 3), np.float32)]))
    assert sess.run(queue.size()) == 0
    with pytest.raises(
        fb.errors.InvalidArgumentError, match="no fewer than 0 elements, and not -1"
    ):
        sess.run(many, {n: -1})


def test_components_go_together(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, [fb.int32, fb.string], shapes=[[], [2]])
    sess.run(queue.enqueue((1, ["a", "b"])))
    sess.run(queue.enqueue_many(([2, 3], [["c", "d"], ["e", "f"]])))
    number, text = queue.dequeue()
    assert (number.shape, text.shape) == (fb.Shape([]), fb.Shape([2]))
    found = sess.run([number, text])
    assert found[0] == 1
    assert found[1].tolist() == [b"a", b"b"]
    numbers, texts = queue.dequeue_many(2)
    assert (numbers.shape, texts.shape) == (fb.Shape([2]), fb.Shape([2, 2]))
    found = sess.run([numbers, texts])
    assert found[0].tolist() == [2, 3]
    assert found[1].tolist() == [[b"c", b"d"], [b"e", b"f"]]


def test_the_only_component_may_be_in_a_list(sess: fb.Session) -> None:
    """As in TensorFlow 1, where it always is; ranks tell it from a list that is the component."""
    numbers, rows = fb.FIFOQueue(9, fb.int32, shapes=[[]]), fb.FIFOQueue(9, fb.int32, shapes=[[1]])
    puts = [numbers.enqueue([1]), numbers.enqueue((2,)), numbers.enqueue([fb.constant(3)])]
    puts += [numbers.enqueue_many(vals) for vals in ([4], [[5, 6]], ([7],), [np.array([8])])]
    for put in puts:
        sess.run(put)
    assert sess.run(numbers.dequeue_many(8)).tolist() == [*range(1, 9)]
    for put in (rows.enqueue([1]), rows.enqueue([[2]]), rows.enqueue_many([[3]])):
        sess.run(put)
    assert sess.run(rows.dequeue_many(3)).tolist() == [[1], [2], [3]]
    unknown = fb.FIFOQueue(9, fb.int32)
    for vals in ((1,), [fb.constant(2)], [np.array([3, 4])], [5]):
        sess.run(unknown.enqueue(vals))
    taken = unknown.dequeue()
    assert [sess.run(taken).tolist() for _ in range(4)] == [1, 2, [3, 4], [5]]


def test_named_components_are_dicts(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, [fb.int32, fb.float32], shapes=[[], []], names=["i", "f"])
    sess.run(queue.enqueue({"i": 1, "f": 2.0}))
    sess.run(queue.enqueue_many({"f": [3.0, 4.0], "i": [5, 6]}))
    assert sess.run(queue.dequeue()) == {"i": 1, "f": 2.0}
    found = sess.run(queue.dequeue_many(2))
    assert {k: v.tolist() for k, v in found.items()} == {"i": [5, 6], "f": [3.0, 4.0]}
    with pytest.raises(fb.errors.InvalidArgumentError, match="a dict with 'i', 'f', not 'i'"):
        queue.enqueue({"i": 1})
    with pytest.raises(fb.errors.InvalidArgumentError, match="a dict with"):
        queue.enqueue((1, 2.0))
    plain = fb.FIFOQueue(10, fb.int32)
    with pytest.raises(fb.errors.InvalidArgumentError, match="have no names"):
        plain.enqueue({"i": 1})


# What is refused


def test_what_no_queue_can_be() -> None:
    for wrong in (
        lambda: fb.FIFOQueue(0, fb.int32),
        lambda: fb.FIFOQueue(-2, fb.int32),
        lambda: fb.FIFOQueue(True, fb.int32),
        lambda: fb.FIFOQueue(2, []),
        lambda: fb.FIFOQueue(2, [fb.int32, fb.int32], shapes=[[]]),
        lambda: fb.FIFOQueue(2, [fb.int32, fb.int32], names=["a"]),
        lambda: fb.FIFOQueue(2, [fb.int32, fb.int32], names=["a", "a"]),
        lambda: fb.PaddingFIFOQueue(2, fb.int32, shapes=None),
        lambda: fb.RandomShuffleQueue(4, 4, fb.int32),
        lambda: fb.RandomShuffleQueue(4, -1, fb.int32),
    ):
        with pytest.raises(fb.errors.InvalidArgumentError):
            wrong()


def test_elements_that_do_not_fit_are_refused_where_they_are_built() -> None:
    queue = fb.FIFOQueue(10, [fb.int32, fb.float32], shapes=[[], [2]], name="q")
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"1 component .* 'q', which has 2"):
        queue.enqueue(1)
    with pytest.raises(fb.errors.InvalidTypeError, match="is float32 where int32 is wanted"):
        queue.enqueue((fb.constant(1.0), [1.0, 2.0]))
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"float32 \[3\], and 'q' takes"):
        queue.enqueue((1, [1.0, 2.0, 3.0]))
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"int32 \[\], and 'q' takes int32"):
        queue.enqueue_many((1, [[1.0, 2.0]]))
    with pytest.raises(fb.errors.InvalidArgumentError, match="have 1 and 2 rows"):
        queue.enqueue_many(([1, 2], [[1.0, 2.0]]))


def test_elements_that_do_not_fit_are_refused_in_the_run(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, [fb.float32, fb.float32], shapes=[[2], []], name="q")
    x, y = fb.placeholder(fb.float32), fb.placeholder(fb.float32)
    put, put_many = queue.enqueue((x, 1.0)), queue.enqueue_many((x, y))
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"shape \[3\], and queue 'q' takes"):
        sess.run(put, {x: [1.0, 2.0, 3.0]})
    with pytest.raises(fb.errors.InvalidArgumentError, match="the components have 1 and 2 rows"):
        sess.run(put_many, {x: [[1.0, 2.0]], y: [1.0, 2.0]})
    assert sess.run(queue.size()) == 0


def test_batches_need_shapes() -> None:
    queue = fb.FIFOQueue(10, fb.float32)
    for method in (queue.dequeue_many, queue.dequeue_up_to):
        with pytest.raises(fb.errors.InvalidArgumentError, match="hint: give the queue `shapes`"):
            method(2)


# Closing


def test_a_blocked_enqueue_survives_a_plain_close(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(2, fb.int32, shapes=[[]])
    put = begun(sess, queue, queue.enqueue_many(np.arange(5, dtype=np.int32)))
    sess.run(queue.close())
    assert sess.run(queue.dequeue_many(5)).tolist() == [*range(5)]
    put.result()
    with pytest.raises(fb.errors.OutOfRangeError):
        sess.run(queue.dequeue())


def test_a_blocked_enqueue_can_be_cancelled_with_the_close(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(2, fb.int32, shapes=[[]], name="q")
    put = begun(sess, queue, queue.enqueue_many(np.arange(5, dtype=np.int32)))
    sess.run(queue.close(cancel_pending_enqueues=True))
    with pytest.raises(fb.errors.CancelledError, match="queue 'q' is closed"):
        put.result()
    assert sess.run(queue.dequeue_many(2)).tolist() == [0, 1]  # What had been put in stays.


def test_closing_ends_the_waits_for_what_will_not_come(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, fb.int32, shapes=[[]])
    sess.run(queue.enqueue_many([1, 2, 3]))
    many = begun(sess, queue, queue.dequeue_many(4))
    one = begun(sess, queue, queue.dequeue())
    assert sess.run(queue.size()) == 0  # The batch has them all.
    sess.run(queue.close())
    with pytest.raises(fb.errors.OutOfRangeError, match=r"\(requested 4, current size 3\)"):
        many.result()
    # They were put back in order, for those who had waited behind.
    assert one.result() == 1
    assert sess.run(queue.dequeue_up_to(10)).tolist() == [2, 3]
    with pytest.raises(fb.errors.OutOfRangeError, match="requested 10, current size 0"):
        sess.run(queue.dequeue_up_to(10))


def test_those_that_are_left_are_enough_when_it_is_closed(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, fb.int32, shapes=[[]])
    sess.run(queue.enqueue_many([1, 2, 3]))
    taken = begun(sess, queue, queue.dequeue_up_to(4))
    sess.run(queue.close())
    assert taken.result().tolist() == [1, 2, 3]


def test_closing_twice_is_harmless(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, fb.int32)
    sess.run(queue.close())
    sess.run(queue.close(cancel_pending_enqueues=True))
    assert sess.run(queue.is_closed())


def test_closing_the_session_cancels_what_waits() -> None:
    sess = fb.Session()
    full, empty = fb.FIFOQueue(1, fb.int32), fb.FIFOQueue(1, fb.int32, shapes=[[]])
    sess.run(full.enqueue(1))
    runs = [
        begun(sess, full, full.enqueue(2)),
        begun(sess, empty, empty.dequeue()),
        begun(sess, empty, empty.dequeue_many(2)),
    ]
    sess.close()
    for run in runs:
        with pytest.raises(fb.errors.CancelledError, match="session was closed"):
            run.result()


# Giving up


@pytest.mark.parametrize("kind", ["one", "many", "up to"])
def test_a_timeout_leaves_the_queue_as_it_was(sess: fb.Session, kind: str) -> None:
    queue = fb.FIFOQueue(10, fb.int32, shapes=[[]], name="q")
    elements = [] if kind == "one" else [1, 2]
    sess.run(queue.enqueue_many(np.array(elements, np.int32)))
    methods = {
        "one": queue.dequeue,
        "many": lambda: queue.dequeue_many(3),
        "up to": lambda: queue.dequeue_up_to(3),
    }
    taken = methods[kind]()
    with pytest.raises(fb.errors.DeadlineExceededError, match="longer than its timeout"):
        sess.run(taken, timeout=0.01)
    assert sess.run(queue.size()) == len(elements)
    sess.run(queue.enqueue_many([7, 8, 9]))
    assert sess.run(queue.dequeue_many(len(elements) + 3)).tolist() == [*elements, 7, 8, 9]


def test_a_blocked_enqueue_that_is_given_up_puts_in_nothing_more(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(2, fb.int32, shapes=[[]])
    given_up(sess, queue.enqueue_many([1, 2, 3]), "waits for room")
    assert sess.run(queue.dequeue_up_to(0)).tolist() == []
    assert sess.run(queue.dequeue_many(2)).tolist() == [1, 2]
    assert sess.run(queue.size()) == 0


def test_who_gives_up_lets_those_behind_go_on(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, fb.int32, shapes=[[]])
    sess.run(queue.enqueue_many([1, 2]))
    many = begun(sess, queue, queue.dequeue_many(3), timeout=0.5)
    one = begun(sess, queue, queue.dequeue())
    with pytest.raises(fb.errors.DeadlineExceededError):
        many.result()
    assert one.result() == 1
    assert sess.run(queue.dequeue()) == 2


def test_a_step_that_fails_gives_back_what_waited_in_it(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, fb.int32, shapes=[[]])
    sess.run(queue.enqueue_many([1, 2]))
    x = fb.placeholder(fb.float32, [])
    failing = fb.check_numerics(x, "wrong")
    many = queue.dequeue_many(3)
    for _ in range(3):
        with pytest.raises(fb.errors.InvalidArgumentError, match="wrong"):
            sess.run([many, failing], {x: np.nan})
        assert sess.run(queue.size()) == 2
    assert sess.run(queue.dequeue_many(2)).tolist() == [1, 2]


@pytest.mark.parametrize("batch", [False, True])
def test_an_interrupt_anywhere_leaves_every_element_in_one_place(batch: bool) -> None:
    """Of a step that takes out what another has put in, each at each of its calls."""
    queue = fb.FIFOQueue(4, fb.int32, shapes=[[]])
    x = fb.placeholder(fb.int32, [2])
    put = queue.enqueue_many(x)
    taken = queue.dequeue_many(2) if batch else fb.stack([queue.dequeue(), queue.dequeue()])
    size, both, one = queue.size(), queue.dequeue_many(2), queue.dequeue()
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(put, {x: [1, 2]})
            sess.run(taken)
        for number in itertools.count(1):
            had = int(sess.run(size))
            stopped = interrupted_at(number, lambda: sess.run(put, {x: [1, 2]}))
            left = int(sess.run(size))
            assert left in (had, had + 2), number
            if left == 4:
                assert sess.run(both).tolist() == [1, 2], number
            if stopped is None:
                break
        while int(sess.run(size)):
            sess.run(taken)
        for number in itertools.count(1):
            sess.run(put, {x: [3, 4]})
            found: list[Any] = []
            stopped = interrupted_at(number, lambda to=found: to.append(sess.run(taken)))
            left = int(sess.run(size))
            # Two that take one each may have come to different ends.
            assert left in ((0, 2) if batch else (0, 1, 2)), number
            while int(sess.run(size)):
                sess.run(one)
            assert waiters(sess, queue) == 0
            if stopped is None:
                assert sorted(found[0].tolist()) == [3, 4]
                break


def test_an_interrupt_of_who_serves_others_does_not_forget_them() -> None:
    queue = fb.FIFOQueue(4, fb.int32, shapes=[[]])
    put, taken, size = queue.enqueue(5), queue.dequeue(), queue.size()
    with fb.Session() as sess:
        for _ in range(3):
            sess.run([put, taken])
        for number in itertools.count(1):
            waiting = begun(sess, queue, taken)
            stopped = interrupted_at(number, lambda: sess.run(put))
            if int(sess.run(size)) == 0 and waiters(sess, queue):
                sess.run(put)  # It came before the element did.
            assert waiting.result() == 5, number
            while int(sess.run(size)):
                sess.run(taken)
            if stopped is None:
                break


def test_ten_thousand_that_wait_hold_no_threads(sess: fb.Session) -> None:
    count = 10_000
    queue = fb.FIFOQueue(-1, fb.int32, shapes=[[]])
    total = fb.add_n([queue.dequeue() for _ in range(count)])
    before = set(threading.enumerate())
    run = begun(sess, queue, total)
    while waiters(sess, queue) < count:
        threading.Event().wait(0.001)
    assert len(set(threading.enumerate()) - before) == 1
    sess.run(queue.enqueue_many(np.ones(count, np.int32)))
    assert run.result() == count
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run(total, timeout=0.01)
    assert waiters(sess, queue) == 0


# Memory


def test_elements_have_memory_of_their_own(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, fb.float32, shapes=[[2]])
    x = fb.placeholder(fb.float32, [2])
    v = fb.Variable([1.0, 2.0])
    fed = np.array([5.0, 6.0], np.float32)
    rows = np.array([[7.0, 8.0], [9.0, 10.0]], np.float32)
    many = fb.placeholder(fb.float32, [2, 2])
    sess.run(queue.enqueue(x), {x: fed})
    sess.run(queue.enqueue_many(many), {many: rows})
    sess.run(queue.enqueue(v))
    y = x * 2.0
    [shown, _] = sess.run([y, queue.enqueue(y)], {x: [1.0, 1.0]})
    fed[:], rows[:], shown[:] = 0.0, 0.0, 0.0
    sess.run(fb.assign(v, [0.0, 0.0]))
    constant = fb.constant([3.0, 4.0])
    sess.run(queue.enqueue(constant))
    found = [sess.run(queue.dequeue()) for _ in range(6)]
    assert [f.tolist() for f in found] == [[5, 6], [7, 8], [9, 10], [1, 2], [2, 2], [3, 4]]
    found[-1][:] = 0.0
    assert sess.run(constant).tolist() == [3.0, 4.0]


def test_elements_go_with_the_session() -> None:
    sess = fb.Session()
    queue = fb.FIFOQueue(10, fb.float32, shapes=[[1000]])
    x = fb.placeholder(fb.float32, [1000])
    sess.run(queue.enqueue(x), {x: np.ones(1000, np.float32)})
    resource = weakref.ref(sess._master.stores.find(queue.op.key))
    sess.close()
    gc.collect()
    assert resource() is None


# Other kinds


def test_shapes_that_differ_are_filled_up(sess: fb.Session) -> None:
    queue = fb.PaddingFIFOQueue(10, [fb.int32, fb.string], shapes=[[None, 2], [None]])
    x, t = fb.placeholder(fb.int32, [None, 2]), fb.placeholder(fb.string, [None])
    put = queue.enqueue((x, t))
    sess.run(put, {x: [[1, 2]], t: ["a", "b"]})
    sess.run(put, {x: [[3, 4], [5, 6]], t: []})
    numbers, texts = queue.dequeue_many(2)
    assert (numbers.shape, texts.shape) == (fb.Shape([2, None, 2]), fb.Shape([2, None]))
    found = sess.run([numbers, texts])
    assert found[0].tolist() == [[[1, 2], [0, 0]], [[3, 4], [5, 6]]]
    assert found[1].tolist() == [[b"a", b"b"], [b"", b""]]
    assert [v.shape for v in sess.run(queue.dequeue_many(0))] == [(0, 0, 2), (0, 0)]


def test_a_shuffled_queue_gives_all_elements_in_another_order(sess: fb.Session) -> None:
    queue = fb.RandomShuffleQueue(200, 0, fb.int32, shapes=[[]], seed=7)
    sess.run(queue.enqueue_many(np.arange(100, dtype=np.int32)))
    found = sess.run(queue.dequeue_many(100)).tolist()
    assert found != [*range(100)]
    assert sorted(found) == [*range(100)]


def test_a_shuffled_queue_keeps_a_choice_until_it_is_closed(sess: fb.Session) -> None:
    queue = fb.RandomShuffleQueue(10, 3, fb.int32, shapes=[[]])
    sess.run(queue.enqueue_many([1, 2, 3, 4]))
    first = int(sess.run(queue.dequeue()))
    waiting = begun(sess, queue, queue.dequeue())
    assert sess.run(queue.size()) == 3
    sess.run(queue.close())
    rest = [int(waiting.result()), *sess.run(queue.dequeue_up_to(9)).tolist()]
    assert sorted([first, *rest]) == [1, 2, 3, 4]


def test_the_seed_decides_the_order() -> None:
    orders = []
    for seed in (5, 5, 6):
        with fb.Graph().as_default(), fb.Session() as sess:
            queue = fb.RandomShuffleQueue(100, 0, fb.int32, shapes=[[]], seed=seed)
            sess.run(queue.enqueue_many(np.arange(50, dtype=np.int32)))
            orders.append(sess.run(queue.dequeue_many(50)).tolist())
    assert orders[0] == orders[1] != orders[2]


def test_every_place_of_a_shuffled_queue_is_as_likely(sess: fb.Session) -> None:
    queue = fb.RandomShuffleQueue(10, 0, fb.int32, shapes=[[]], seed=11)
    put, taken = queue.enqueue_many([0, 1, 2, 3]), queue.dequeue_many(4)
    first = [0, 0, 0, 0]
    for _ in range(400):
        sess.run(put)
        first[sess.run(taken)[0]] += 1
    # Chi-squared with 3 degrees of freedom: 16.3 in one case of a thousand.
    assert sum((n - 100) ** 2 / 100 for n in first) < 16.3


@pytest.mark.parametrize("kind", EXECUTORS)
def test_the_latest_leaves_a_stack_first(sess: fb.Session, kind: str) -> None:
    stack = fb.Stack(3, fb.int32, shapes=[[]])
    sess.run(stack.enqueue_many([1, 2, 3]))
    more = begun(sess, stack, stack.enqueue(4))
    assert run_in(kind, sess, stack.dequeue()) == 3
    more.result()
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run(stack.dequeue_many(4), timeout=0.01)
    assert run_in(kind, sess, stack.dequeue_many(3)).tolist() == [4, 2, 1]
    with pytest.raises(AttributeError, match=r"Stack has no pop: use stack.dequeue\(\)"):
        stack.pop()  # type: ignore[attr-defined]
    assert type(fb.Queue.of(stack.op)) is fb.Stack


def test_priorities_decide_and_of_equals_the_first(sess: fb.Session) -> None:
    queue = fb.PriorityQueue(10, fb.string, shapes=[[]])
    sess.run(queue.enqueue_many(([2, 1, 2, -5], ["c", "b", "d", "a"])))
    sess.run(queue.enqueue((1, "z")))
    priorities, texts = sess.run(queue.dequeue_many(5))
    assert priorities.tolist() == [-5, 1, 1, 2, 2]
    assert texts.tolist() == [b"a", b"b", b"z", b"c", b"d"]


def test_a_priority_queue_takes_back_in_order(sess: fb.Session) -> None:
    queue = fb.PriorityQueue(10, fb.int32, shapes=[[]])
    sess.run(queue.enqueue_many(([1, 1, 1], [7, 8, 9])))
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run(queue.dequeue_many(4), timeout=0.01)
    assert sess.run(queue.dequeue_many(3))[1].tolist() == [7, 8, 9]


def test_a_priority_is_an_int64_scalar() -> None:
    queue = fb.PriorityQueue(10, fb.string, shapes=[[]])
    assert queue.dtypes == (fb.int64, fb.string)
    with pytest.raises(fb.errors.InvalidTypeError):
        queue.enqueue((1.5, "a"))


# Which queue


def test_the_run_chooses_one_of_several(sess: fb.Session) -> None:
    queues = [fb.FIFOQueue(10, fb.float32, shapes=[[]], name=name) for name in "ab"]
    index = fb.placeholder(fb.int32, [])
    chosen = fb.Queue.from_list(index, queues)
    put, taken = chosen.enqueue(fb.cast(index, fb.float32)), chosen.dequeue()
    for kind in EXECUTORS:
        for number in (0, 1):
            run_in(kind, sess, put, {index: np.int32(number)})
        assert sess.run([queue.size() for queue in queues]) == [1, 1]
        assert [run_in(kind, sess, taken, {index: np.int32(i)}) for i in (1, 0)] == [1.0, 0.0]
    with pytest.raises(fb.errors.InvalidArgumentError, match="there is no queue 2"):
        sess.run(put, {index: 2})
    with pytest.raises(fb.errors.InvalidTypeError, match="differ in dtypes or names"):
        fb.Queue.from_list(0, [queues[0], fb.FIFOQueue(1, fb.int32)])
    with pytest.raises(fb.errors.InvalidTypeError, match="a list of queues"):
        fb.Queue.from_list(0, [])


passed = fb.OpDef(
    "QueuePassed",
    "handle: resource -> same: resource",
    infer=lambda handle: handle.shape,
    kernel=lambda xp, handle: handle,
    aliases={0: 0},
)


def through(handle: fb.Tensor, queue: Any) -> Any:
    """A queue by another handle of it."""
    other = fb.Queue.__new__(type(queue))
    other.op, other.handle = queue.op, handle
    return other


@pytest.mark.parametrize("hand_on", [passed, lambda handle: passed(passed(handle))])
def test_a_handle_that_is_handed_on_is_no_choice(sess: fb.Session, hand_on: Any) -> None:
    """What the step itself puts there is found."""
    queue = fb.FIFOQueue(5, fb.float32, shapes=[[]])
    value = fb.Variable(1.0)
    put = fb.assign(value, through(hand_on(queue.handle), queue).dequeue())
    added = fb.assign_add(value, 1.0)
    for kind in EXECUTORS:
        sess.run(value.initializer)
        assert run_in(kind, sess, [put, added, queue.enqueue(added)])[:2] == [2.0, 2.0]


def test_a_handle_of_a_queue_that_nobody_can_trace_is_an_error(sess: fb.Session) -> None:
    hidden = fb.OpDef(
        "QueueHidden",
        "handle: resource -> some: resource",
        infer=lambda handle: handle.shape,
        kernel=lambda xp, handle: handle,
    )
    queue = fb.FIFOQueue(5, fb.float32, shapes=[[]])
    with pytest.raises(fb.errors.InvalidArgumentError, match="does not say whose it is"):
        sess.run(through(hidden(queue.handle), queue).size())


def test_the_run_chooses_among_what_is_handed_on_and_chosen(sess: fb.Session) -> None:
    queues = [fb.FIFOQueue(9, fb.int32, shapes=[[]], name=name) for name in "abc"]
    which = fb.placeholder(fb.int32, [])
    first = fb.Queue.from_list(0, [through(passed(queues[0].handle), queues[0])])
    rest = fb.Queue.from_list(which - 1, queues[1:])
    chosen = fb.Queue.from_list(fb.minimum(which, 1), [first, rest])
    put = through(passed(chosen.handle), chosen).enqueue(which)
    in_branch = fb.cond(which > 1, lambda: held_by(chosen.enqueue(which)), lambda: fb.constant(0))
    sizes = [queue.size() for queue in queues]
    for kind in EXECUTORS:
        for number in (1, 2):
            run_in(kind, sess, put, {which: np.int32(number)})
        run_in(kind, sess, in_branch, {which: np.int32(2)})
        assert sess.run(sizes) == [0, 1, 2]
        sess.run([queues[1].dequeue(), queues[2].dequeue_many(2)])
        sess.run(first.enqueue(7))
        assert sess.run(queues[0].dequeue()) == 7


def held_by(operation: fb.Operation) -> fb.Tensor:
    with fb.control_dependencies([operation]):
        return fb.constant(1)


def test_operations_share_a_queue_by_its_name(sess: fb.Session) -> None:
    one = fb.FIFOQueue(10, fb.float32, shapes=[[]], shared_name="s")
    other = fb.FIFOQueue(10, fb.float32, shapes=[[]], shared_name="s", name="other")
    sess.run(one.enqueue(3.0))
    assert sess.run(other.dequeue()) == 3.0
    with fb.Session() as another:
        assert another.run(other.size()) == 0


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: fb.FIFOQueue(9, fb.float32, shapes=[[]], shared_name="s"), "capacity 10, not 9"),
        (
            lambda: fb.FIFOQueue(10, fb.int32, shapes=[[]], shared_name="s"),
            r"dtypes \[float32\], not \[int32\]",
        ),
        (
            lambda: fb.FIFOQueue(10, fb.float32, shapes=[[2]], shared_name="s"),
            r"shapes \[\[\]\], not \[\[2\]\]",
        ),
        (
            lambda: fb.PaddingFIFOQueue(10, fb.float32, shapes=[[]], shared_name="s"),
            "a fifo_queue, not a padding_fifo_queue",
        ),
    ],
)
def test_what_differs_is_named(sess: fb.Session, make: Any, what: str) -> None:
    one = fb.FIFOQueue(10, fb.float32, shapes=[[]], shared_name="s")
    sess.run(one.enqueue(3.0))
    another = make()
    with pytest.raises(fb.errors.InvalidArgumentError, match=what) as caught:
        sess.run(another.size())
    assert caught.value.operation is another.op
    assert "defined at " in str(caught.value)


def test_a_capacity_may_be_a_number_of_numpys(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(np.int64(2), fb.int32, shapes=[[]])
    assert type(queue.op.attributes["capacity"]) is int
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run(queue.enqueue_many([1, 2, 3]), timeout=0.01)


def test_sessions_share_a_queue_in_a_named_container() -> None:
    with fb.container("queues of a test"):
        queue = fb.FIFOQueue(10, fb.float32, shapes=[[]], shared_name="shared")
    put, taken = queue.enqueue(4.0), queue.dequeue()
    with fb.Session() as one, fb.Session() as other:
        one.run(put)
        assert other.run(taken) == 4.0
    fb.reset_container("queues of a test")


def test_a_variable_and_a_queue_do_not_share_a_name() -> None:
    with fb.container("kinds of a test"):
        v = fb.Variable(1.0, name="thing")
        queue = fb.FIFOQueue(10, fb.float32, shared_name="thing")
    with fb.Session() as sess:
        sess.run(v)
        with pytest.raises(fb.errors.InvalidArgumentError, match="a variable, not a fifo_queue"):
            sess.run(queue.size())


# Branches and loops


def test_a_loop_fills_and_another_empties(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(100, fb.int32, shapes=[[]])

    def fill(i: Any) -> Any:
        with fb.control_dependencies([queue.enqueue(i * i)]):
            return i + 1

    filled = fb.while_loop(lambda i: i < 5, fill, (0,))
    _, total = fb.while_loop(
        lambda i, t: i < 5, lambda i, t: (i + 1, t + queue.dequeue()), (0, 0), parallel_iterations=1
    )
    for kind in EXECUTORS:
        run_in(kind, sess, filled)
        assert run_in(kind, sess, queue.size()) == 5
        assert run_in(kind, sess, total) == 30
        # They meet in one step too.
        assert run_in(kind, sess, [filled, total])[1] == 30


def test_a_branch_that_is_not_taken_takes_nothing(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, fb.int32, shapes=[[]])
    p = fb.placeholder(fb.bool, [])
    y = fb.cond(p, queue.dequeue, lambda: fb.constant(-1))
    sess.run(queue.enqueue_many([4, 5]))
    for kind in EXECUTORS:
        assert run_in(kind, sess, y, {p: np.bool_(False)}) == -1
    assert sess.run(y, {p: True}) == 4
    assert sess.run(queue.size()) == 1


def test_a_loop_waits_in_the_middle(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, fb.int32, shapes=[[]])
    _, total = fb.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t + queue.dequeue()), (0, 0))
    run = begun(sess, queue, total)
    sess.run(queue.enqueue(1))
    sess.run(queue.enqueue_many([20, 300]))
    assert run.result() == 321


def test_a_partial_run_takes_elements(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, fb.float32, shapes=[[]])
    x = fb.placeholder(fb.float32, [])
    y = queue.dequeue() + x
    sess.run(queue.enqueue(1.0))
    step = sess.partial_run([y], [x])
    assert step.run(y, {x: 2.0}) == 3.0


# Graphs


def test_a_stored_graph_has_its_queues() -> None:
    queue = fb.PaddingFIFOQueue(10, [fb.int32, fb.string], shapes=[[None], []], names=["n", "t"])
    queue.enqueue({"n": [1, 2], "t": "a"}, name="put")
    loaded = fb.Graph.from_bytes(fb.get_default_graph().to_bytes())
    again = Queue.of(loaded.get_operation_by_name(queue.name))
    assert type(again) is fb.PaddingFIFOQueue
    assert (again.dtypes, again.shapes, again.names) == (queue.dtypes, queue.shapes, queue.names)
    with loaded.as_default(), fb.Session() as sess:
        sess.run("put")
        found = sess.run(again.dequeue_many(1))
        assert (found["n"].tolist(), found["t"].tolist()) == ([[1, 2]], [b"a"])
    with pytest.raises(fb.errors.InvalidTypeError, match="makes no queue"):
        Queue.of(loaded.get_operation_by_name("put"))


def test_peeking_takes_nothing(sess: fb.Session) -> None:
    queue = fb.FIFOQueue(10, fb.float32, shapes=[[]])
    sess.run(queue.enqueue(1.0))
    assert sess.peek(queue.size()) == 1
    with pytest.raises(fb.errors.FailedPreconditionError, match="takes from a queue or puts into"):
        sess.peek(queue.dequeue())
    assert sess.run(queue.size()) == 1


def test_what_a_queue_is_not() -> None:
    queue = fb.FIFOQueue(10, fb.float32, name="q")
    with pytest.raises(fb.errors.InvalidTypeError, match="queue 'q' is no tensor"):
        fb.square(queue)
    with pytest.raises(fb.errors.InvalidTypeError, match="cannot be iterated over"):
        list(queue)
    assert repr(queue) == "<FIFOQueue 'q' of float32 <unknown>>"


@pytest.mark.parametrize("kind", [fb.FIFOQueue, fb.PaddingFIFOQueue])
def test_strings_of_a_batch_are_bytes(kind: Any) -> None:
    queue = kind(5, fb.string, shapes=[[]])
    put, taken = queue.enqueue_many(["a", "b"]), queue.dequeue_many(2)
    with fb.Session() as sess:
        sess.run(put)
        assert [type(word) for word in sess.run(taken)] == [bytes, bytes]
