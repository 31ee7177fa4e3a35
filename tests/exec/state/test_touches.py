"""Kinds of resources that users define: what touches one runs each time it is built, as it comes.

A queue's touches have no order of their own: whoever takes from it waits there for whoever puts.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.resources.kinds import Birth, makes
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.touch import Access, Order, Touch, define_resource_kind, resource_kind
from tests.exec.plan.elsewhere import prepared_for
from tests.exec.state.executors import EXECUTORS, everywhere, run_in
from tests.exec.state.threads import run_together

QUEUE = define_resource_kind("touches_queue", Order.FREE, is_shared=False)
UNMADE = define_resource_kind("touches_unmade", Order.FREE, is_shared=False)


class Queue:
    """Elements, and who waits for one, in the order in which they came."""

    def __init__(self, key: ResourceKey) -> None:
        self.key = key
        self.lock = threading.Lock()
        self.elements: deque[Any] = deque()
        self.waiting: deque[Any] = deque()
        self.served = 0

    def enqueue(self, context: Any, element: Any) -> None:
        with self.lock:
            taker = self.waiting.popleft() if self.waiting else None
            if taker is None:
                self.elements.append(element)
        if taker is not None:
            taker.complete((element,))
        context.complete()

    def dequeue(self, context: Any) -> None:
        context.on_cancel(lambda: self.waiting.remove(context))
        with self.lock:
            if not self.elements:
                self.waiting.append(context)
                return
            element = self.elements.popleft()
        context.complete((element,))

    def count(self) -> Any:
        self.served += 1
        return np.int32(self.served)


made: dict[ResourceKey, Queue] = {}


@makes(QUEUE)
def _queue(birth: Birth) -> Queue:
    queue = made[birth.key] = Queue(birth.key)
    return queue


@pytest.fixture(autouse=True)
def no_queues() -> None:
    made.clear()


def scalar(*_: Any, **__: Any) -> fb.Shape:
    return fb.Shape([])


queue_op = fb.OpDef("TouchesQueue", "-> handle: resource", infer=scalar, owns=QUEUE.name)
enqueue = fb.OpDef(
    "TouchesEnqueue",
    "queue: resource, element: float32 ->",
    infer=lambda queue, element: [],
    kernel=lambda context, queue, element: queue.enqueue(context, element),
    touches=Touch(Access.WAIT, 0),
    is_async=True,
)
dequeue = fb.OpDef(
    "TouchesDequeue",
    "queue: resource -> element: float32",
    infer=scalar,
    kernel=lambda context, queue: queue.dequeue(context),
    touches=Touch(Access.WAIT, 0),
    is_async=True,
    aliases={},
)
# A synchronous read of it: what it gives another time is another.
count = fb.OpDef(
    "TouchesCount",
    "queue: resource -> served: int32",
    infer=scalar,
    kernel=lambda xp, queue: queue.count(),
    touches=Touch(Access.READ, 0),
    aliases={},
)


def test_a_dequeue_built_before_the_enqueue_of_its_step_gets_the_element() -> None:
    queue = queue_op()
    taken = dequeue(queue)
    put = enqueue(queue, 7.0)
    for kind, _, found in everywhere(fb.get_default_graph(), [taken, put]):
        assert found == [7.0, None], kind


@pytest.mark.parametrize("is_first", [True, False])
def test_twins_are_two(is_first: bool) -> None:
    """Two that take from one queue get two elements, and two that put the same put two."""
    queue = queue_op()
    puts = [] if is_first else [enqueue(queue, 3.0), enqueue(queue, 3.0)]
    taken = [dequeue(queue), dequeue(queue)]
    puts = puts or [enqueue(queue, 3.0), enqueue(queue, 3.0)]
    total = fb.add_n(taken)
    for kind, _, found in everywhere(fb.get_default_graph(), [total, taken, puts]):
        assert found[:2] == [6.0, [3.0, 3.0]], kind
        left = [q for q in made.values() if q.elements or q.waiting]
        assert not left, kind


def test_different_elements_all_arrive() -> None:
    queue = queue_op()
    taken = [dequeue(queue) for _ in range(4)]
    puts = [enqueue(queue, float(i)) for i in range(4)]
    for kind, _, found in everywhere(fb.get_default_graph(), [taken, puts]):
        assert sorted(found[0]) == [0.0, 1.0, 2.0, 3.0], kind


@pytest.mark.parametrize("kind", EXECUTORS)
def test_elements_stay_from_step_to_step_and_between_threads(kind: str) -> None:
    queue = queue_op()
    x = fb.placeholder(fb.float32, [])
    put, taken = enqueue(queue, x), dequeue(queue)
    with fb.Session() as sess:
        run_in(kind, sess, put, {x: np.float32(1.0)})
        run_in(kind, sess, put, {x: np.float32(2.0)})
        assert [run_in(kind, sess, taken) for _ in range(2)] == [1.0, 2.0]
        run_together(
            lambda: run_in(kind, sess, taken),
            lambda: run_in(kind, sess, put, {x: np.float32(3.0)}),
        )


def test_reads_without_an_order_are_neither_merged_nor_folded() -> None:
    queue = queue_op()
    counts = [count(queue), count(queue)]
    for kind, _, found in everywhere(fb.get_default_graph(), counts):
        assert sorted(found) == [1, 2], kind


def test_what_writes_to_a_queue_is_not_put_after_what_reads_it() -> None:
    """The order of touches is a policy of the kind, not of how it is touched."""
    put = fb.OpDef(
        "TouchesPut",
        "queue: resource, element: float32 ->",
        infer=lambda queue, element: [],
        kernel=lambda context, queue, element: queue.enqueue(context, element),
        touches=Touch(Access.WRITE, 0),
        is_async=True,
    )
    take = fb.OpDef(
        "TouchesTake",
        "queue: resource -> element: float32",
        infer=scalar,
        kernel=lambda context, queue: queue.dequeue(context),
        touches=Touch(Access.READ, 0),
        is_async=True,
        aliases={},
    )
    queue = queue_op()
    taken, given = take(queue), put(queue, 8.0)
    nodes = prepared_for([taken], [given]).program.parts[0].nodes
    assert [node.after for node in nodes] == [()] * 3
    with fb.Session() as sess:
        assert [sess.run([taken, given])[0] for _ in range(3)] == [8.0] * 3


def test_a_dequeue_that_is_given_up_waits_no_more() -> None:
    queue = queue_op()
    taken, put = dequeue(queue), enqueue(queue, 5.0)
    with fb.Session() as sess:
        for _ in range(2):
            with pytest.raises(fb.errors.DeadlineExceededError):
                sess.run(taken, timeout=0.02)
        sess.run(put)
        assert sess.run(taken) == 5.0


def test_a_guard_and_a_partial_run_make_a_dequeue_wait_for_nothing_more() -> None:
    queue = queue_op()
    x = fb.placeholder(fb.float32, [])
    taken = fb.log(dequeue(queue), name="logs")
    put = enqueue(queue, x)
    with fb.Session() as sess, sess.guard():
        for _ in range(3):
            assert sess.run([taken, put], {x: 1.0})[0] == 0.0
            with pytest.raises(fb.errors.InvalidArgumentError, match="'logs'"):
                sess.run([taken, put], {x: -1.0})
        step = sess.partial_run([taken, put], [x])
        assert step.run([taken, put], {x: 1.0})[0] == 0.0


@pytest.mark.parametrize("access", [Access.OUTSIDE, Access.WAIT, Access.WRITE, Access.READ])
def test_nothing_is_folded_or_merged_that_touches_something(access: Access) -> None:
    calls: list[float] = []
    argument = None if access is Access.OUTSIDE else 0
    inputs = "x: float32" if argument is None else "queue: resource, x: float32"
    noted = fb.OpDef(
        "TouchesNoted",
        f"{inputs} -> y: float32",
        infer=lambda *given: given[-1].shape,
        kernel=lambda xp, *given: calls.append(float(given[-1])) or given[-1] + 1,
        touches=Touch(access, argument),
    )
    before = [] if argument is None else [queue_op()]
    twins = [noted(*before, 2.0), noted(*before, 2.0)]
    for kind, _, found in everywhere(fb.get_default_graph(), twins):
        assert found == [3.0, 3.0], kind
        assert calls == [2.0, 2.0], kind
        calls.clear()


def test_what_draws_from_what_it_owns_is_not_merged() -> None:
    drawn = fb.OpDef(
        "TouchesDrawn",
        "-> y: int32",
        infer=scalar,
        kernel=lambda xp, queue: queue.count(),
        owns=QUEUE.name,
        touches=Touch(Access.DRAW),
        aliases={},
    )
    twins = [drawn(), drawn()]
    for kind, _, found in everywhere(fb.get_default_graph(), twins):
        assert found == [1, 1], kind
        # Each has drawn from a queue of its own.
        assert len(made) == 2, kind
        made.clear()


def test_pure_operations_of_the_same_form_are_merged() -> None:
    """What the tests above would see if touching were no matter."""
    calls: list[float] = []
    pure = fb.OpDef(
        "TouchesNothing",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda xp, x: calls.append(float(x)) or x + 1,
    )
    x = fb.placeholder(fb.float32, [])
    with fb.Session() as sess:
        assert sess.run([pure(x), pure(x)], {x: 2.0}) == [3.0, 3.0]
        assert calls == [2.0]


def test_a_plan_has_the_keys_of_what_it_touches_and_no_edges_of_a_queue() -> None:
    queue = queue_op(name="jobs")
    taken, put = dequeue(queue), enqueue(queue, 1.0)
    nodes = prepared_for([taken], [put]).program.parts[0].nodes
    assert [node.key for node in nodes] == [ResourceKey("", "jobs", 1)] * 3
    assert [node.after for node in nodes] == [()] * 3


def test_a_kind_is_defined_once_and_made_by_someone() -> None:
    assert resource_kind(QUEUE.name) is QUEUE
    with pytest.raises(fb.errors.AlreadyExistsError, match="touches_queue"):
        define_resource_kind(QUEUE.name, Order.NUMBERED, is_shared=True)
    assert resource_kind(QUEUE.name).order is Order.FREE
    with pytest.raises(fb.errors.NotFoundError, match="touches_queue"):
        resource_kind("no such kind")
    unmade = fb.OpDef("TouchesUnmade", "-> handle: resource", infer=scalar, owns=UNMADE.name)
    with (
        fb.Session() as sess,
        pytest.raises(fb.errors.UnimplementedError, match="'touches_unmade'"),
    ):
        sess.run(dequeue(unmade()))


def test_queues_of_sessions_are_apart_and_go_with_them() -> None:
    queue = queue_op()
    put, taken = enqueue(queue, 4.0), dequeue(queue)
    with fb.Session() as first, fb.Session() as second:
        first.run(put)
        with pytest.raises(fb.errors.DeadlineExceededError):
            second.run(taken, timeout=0.02)
        assert first.run(taken) == 4.0


def test_what_acts_outside_acts_in_each_run_whatever_it_is_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed = fb.print(fb.constant("here"))
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(printed)
    out, err = capsys.readouterr()
    assert (out + err).count("here") == 3
