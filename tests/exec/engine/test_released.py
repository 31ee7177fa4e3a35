"""What a step took is gone with it, and not only when the collector looks for cycles."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.graph.ops.queues.waiting import begun

_ROWS = 1 << 17
_BYTES = 8 * _ROWS
_STEPS = 12

Step = Callable[[fb.Session], object]


@pytest.fixture(autouse=True)
def nobody_looks_for_cycles() -> Iterator[None]:
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


def _queue(kind: Any = fb.FIFOQueue) -> Any:
    return kind(4, fb.float64, shapes=[[_ROWS]])


def _put(queue: Any) -> fb.Operation:
    return queue.enqueue(fb.fill([_ROWS], fb.constant(1.0, fb.float64)))  # type: ignore[no-any-return]


def _at_once() -> Step:
    queue = _queue()
    put, total = _put(queue), fb.reduce_sum(queue.dequeue())
    return lambda sess: (sess.run(put), sess.run(total))


def _many() -> Step:
    queue = _queue(fb.PaddingFIFOQueue)
    put, total = _put(queue), fb.reduce_sum(queue.dequeue_many(1))
    return lambda sess: (sess.run(put), sess.run(total))


def _waiting() -> Step:
    queue = _queue()
    put, total = _put(queue), fb.reduce_sum(queue.dequeue())

    def step(sess: fb.Session) -> None:
        run = begun(sess, queue, total)
        sess.run(put)
        run.result()

    return step


def _of_two() -> Step:
    """Takes of one queue, and waits at another."""
    first, second = _queue(), _queue()
    puts, total = [_put(first), _put(second)], fb.reduce_sum(first.dequeue() + second.dequeue())

    def step(sess: fb.Session) -> None:
        sess.run(puts[0])
        run = begun(sess, second, total)
        sess.run(puts[1])
        run.result()

    return step


def _in_vain() -> Step:
    first, second = _queue(), _queue()
    put, take, total = _put(first), first.dequeue(), fb.reduce_sum(first.dequeue())
    both = [total, second.dequeue()]

    def step(sess: fb.Session) -> None:
        sess.run(put)
        with pytest.raises(fb.errors.DeadlineExceededError):
            sess.run(both, timeout=0.005)
        sess.run(take.op)

    return step


def _failing() -> Step:
    queue = _queue()
    put, total = _put(queue), fb.reduce_sum(queue.dequeue())
    with fb.control_dependencies([fb.Assert(total < 0.0, ["it is not"])]):
        failing = fb.identity(total)

    def step(sess: fb.Session) -> None:
        sess.run(put)
        with pytest.raises(fb.errors.InvalidArgumentError, match="it is not"):
            sess.run(failing)

    return step


def _in_a_loop() -> Step:
    queue = _queue()

    def body(i: Any, total: Any) -> Any:
        with fb.control_dependencies([_put(queue)]):
            return i + 1, total + fb.reduce_sum(queue.dequeue())

    _, total = fb.while_loop(lambda i, total: i < 10, body, [0, fb.constant(0.0, fb.float64)])
    return lambda sess: sess.run(total)


def _writing() -> Step:
    queue = _queue()
    total = fb.Variable(fb.zeros([], fb.float64))
    put, add = _put(queue), fb.assign_add(total, fb.reduce_sum(queue.dequeue()))
    return lambda sess: (sess.run(put), sess.run(add))


def _from_queue_to_queue() -> Step:
    first, second = _queue(), _queue()
    put, move = _put(first), second.enqueue(first.dequeue())
    total = fb.reduce_sum(second.dequeue())
    return lambda sess: (sess.run(put), sess.run(move), sess.run(total))


def _accumulated() -> Step:
    sums = fb.ConditionalAccumulator(fb.float64, [_ROWS])
    put = sums.apply_grad(fb.fill([_ROWS], fb.constant(1.0, fb.float64)), local_step=1000)
    total = fb.reduce_sum(sums.take_grad(1))
    return lambda sess: (sess.run(put), sess.run(total))


def _gathered(**how: Any) -> Step:
    rows = np.ones([4, _ROWS])
    total = fb.reduce_sum(fb.train.batches(rows, 1, epochs=None, **how))
    return lambda sess: sess.run(total)


def _generated() -> Step:
    made = fb.train.from_generator(lambda: (np.ones(_ROWS) for _ in range(100)))
    total = fb.reduce_sum(made)
    return lambda sess: sess.run(total)


@pytest.mark.parametrize(
    ("build", "held"),
    [
        (_at_once, 0),
        (_many, 0),
        (_waiting, 0),
        (_of_two, 0),
        (_in_vain, 0),
        (_failing, 0),
        (_in_a_loop, 0),
        (_writing, 0),
        (_from_queue_to_queue, 0),
        (_accumulated, 1),
        (lambda: _gathered(prefetch=0), 1),
        (lambda: _gathered(prefetch=0, shuffle=1), 2),
        (lambda: _gathered(prefetch=1, shuffle=1), 4),
        (_generated, 6),
    ],
)
def test_what_a_step_took_is_gone_with_it(build: Callable[[], Step], held: int) -> None:
    step = build()
    with fb.Session() as sess:
        for _ in range(3):
            step(sess)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(_STEPS):
            step(sess)
        assert tracemalloc.get_traced_memory()[0] - before < (held + 1) * _BYTES
        assert gc.collect() < _STEPS
