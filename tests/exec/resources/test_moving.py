"""What a checkpoint has of an input, taken at every point of a step that moves elements on."""

from __future__ import annotations

import base64
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.resources.waiting import moving
from flowbook.graph.model.origin.site import is_internal


@pytest.fixture
def sess() -> Iterator[fb.Session]:
    with fb.Session() as session:
        yield session


def at_every_point(function: Callable[[], Any], look: Callable[[], None], locks: Any) -> int:
    """Call a function, and another one wherever that has got to; how often it did.

    Where the first holds a lock that the other needs, nobody could look.
    """
    looks = 0

    def pass_by(frame: FrameType, event: str, _: Any) -> None:
        nonlocal looks
        if event not in ("call", "c_return") or not is_internal(frame.f_code.co_filename):
            return
        if not any(lock.locked() for lock in (moving, *locks)):
            looks += 1
            other = threading.Thread(target=look)
            other.start()
            other.join()

    gc.disable()
    sys.setprofile(pass_by)
    try:
        function()
    finally:
        sys.setprofile(None)
        gc.enable()
    return looks


def resource(sess: fb.Session, owner: Any) -> Any:
    return sess._master.stores.find(owner.op.key)


def numbers_in(state: Any) -> list[int]:
    return np.frombuffer(base64.b64decode(state), np.int32).tolist()


class Looks:
    """Looks at what a checkpoint would have."""

    def __init__(self, sess: fb.Session) -> None:
        self._sess = sess
        self.seen: list[Any] = []
        self.errors: list[BaseException] = []

    def __call__(self) -> None:
        try:
            snapshot = self._sess.snapshot(timeout=0.0)
            self.seen.append(self.described(snapshot))
        except fb.errors.DeadlineExceededError:
            pass  # The step is inside of the gate: who saves waits until it is through.
        except BaseException as error:
            self.errors.append(error)

    def described(self, snapshot: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("timeout", [None, 60])
@pytest.mark.parametrize("is_there", [True, False])
def test_an_element_is_in_its_queue_or_has_been_handed_on(
    sess: fb.Session, is_there: bool, timeout: float | None
) -> None:
    """With what waits at a second queue, too."""
    numbers = fb.train.range_input_producer(4, num_epochs=1, shuffle=False)
    second = fb.FIFOQueue(10, fb.int32, shapes=[[]])
    filled = fb.FIFOQueue(10, fb.int32, shapes=[[]])
    moved = filled.enqueue(numbers.dequeue() + second.dequeue())
    for _ in range(3):
        sess.run(second.enqueue(0))
        sess.run(moved)
    assert sess.run(filled.dequeue_many(3)).tolist() == [0, 1, 2]

    class Seen(Looks):
        def described(self, snapshot: Any) -> Any:
            held = numbers_in(snapshot.states[numbers.op.name].state)
            return held, [int(value) for (value,) in resource(sess, filled).elements]

    look = Seen(sess)
    if is_there:
        sess.run(second.enqueue(0))
    locks = [resource(sess, queue)._lock for queue in (numbers, second, filled)]

    def run() -> None:
        if is_there:
            sess.run(moved, timeout=timeout)
        else:
            with pytest.raises(fb.errors.DeadlineExceededError):
                sess.run(moved, timeout=0.001)

    assert at_every_point(run, look, locks) > 50
    assert not look.errors
    wanted = [([3], []), ([], [3])] if is_there else [([3], [])]
    assert all(each in wanted for each in look.seen)
    assert {str(each) for each in look.seen} == {*map(str, wanted)}


def test_pairs_stay_pairs(sess: fb.Session) -> None:
    first = fb.train.range_input_producer(4, num_epochs=1, shuffle=False)
    second = fb.train.range_input_producer(4, num_epochs=1, shuffle=False)
    filled = fb.FIFOQueue(10, [fb.int32, fb.int32], shapes=[[], []])
    moved = filled.enqueue([first.dequeue(), second.dequeue()])
    for _ in range(3):
        sess.run(moved)

    class Seen(Looks):
        def described(self, snapshot: Any) -> Any:
            return [numbers_in(snapshot.states[each.op.name].state) for each in (first, second)]

    look = Seen(sess)
    locks = [resource(sess, queue)._lock for queue in (first, second, filled)]
    at_every_point(lambda: sess.run(moved, timeout=60), look, locks)
    assert not look.errors
    assert all(one == other for one, other in look.seen)
    assert [[3], [3]] in look.seen
    assert [[], []] in look.seen


def test_what_waits_for_room_does_not_come_beside_what_is_restored(sess: fb.Session) -> None:
    """As the checkpoint has it, too."""
    numbers = fb.train.range_input_producer(6, num_epochs=1, shuffle=False, capacity=2)
    taken = numbers.dequeue()
    assert sess.run(taken) == 0
    queue = resource(sess, numbers)
    while not queue._putting:
        time.sleep(0)
    state = queue.state()
    assert numbers_in(state) == [1, 2, 3, 4, 5]
    queue.set_state(state)
    assert [int(number) for number in fb.train.until_end(sess, taken)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("timeout", [None, 60])
@pytest.mark.parametrize("is_batch", [False, True])
def test_a_record_comes_again_until_it_has_been_handed_on(
    sess: fb.Session, tmp_path: Path, is_batch: bool, timeout: float | None
) -> None:
    (tmp_path / "a").write_text("a0\na1\n")
    (tmp_path / "b").write_text("b0\nb1\n")
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    names = fb.train.string_input_producer(paths, num_epochs=1, shuffle=False)
    reader = fb.TextLineReader()
    filled = fb.FIFOQueue(10, fb.string, shapes=[[]])
    if is_batch:
        moved = filled.enqueue_many(reader.read_up_to(names, 2)[1])
    else:
        moved = filled.enqueue(reader.read(names)[1])
    sess.run(filled.size())
    owner = reader.op.name
    seen_states: list[Any] = []

    class Seen(Looks):
        def described(self, snapshot: Any) -> Any:
            given = [value.item() for (value,) in resource(sess, filled).elements]
            seen_states.append((given, snapshot))
            return given

    look = Seen(sess)
    sess.run(moved)
    locks = [resource(sess, each)._lock for each in (names, filled)]

    def run() -> None:
        for _ in range(1 if is_batch else 3):
            sess.run(moved, timeout=timeout)

    at_every_point(run, look, locks)
    assert not look.errors
    assert owner in seen_states[0][1].states
    with fb.Session() as other:
        line = reader.read(names)[1]
        known: dict[str, list[bytes]] = {}
        for given, snapshot in seen_states:
            states = {name: state.state for name, state in snapshot.states.items()}
            rest = known.get(str(states))
            if rest is None:
                other._master.resources.put(snapshot, None)
                rest = known[str(states)] = list(fb.train.until_end(other, line))
            assert given + rest == [b"a0", b"a1", b"b0", b"b1"]


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("timeout", [None, 60])
def test_a_training_that_is_saved_at_any_point_has_used_what_does_not_come_again(
    sess: fb.Session, timeout: float | None, prefetch: int
) -> None:
    total = fb.Variable(0)
    batch = fb.train.batches(np.arange(1, 9, dtype=np.int32), 1, shuffle=False, prefetch=prefetch)
    second = fb.FIFOQueue(10, fb.int32, shapes=[[]])
    train = fb.assign_add(total, batch[0] + second.dequeue())
    sess.run(total.initializer)
    for _ in range(3):
        sess.run(second.enqueue(0))
        sess.run(train)
    source = batch.op.inputs[0].op
    sess.run(second.enqueue(0))

    class Seen(Looks):
        def described(self, snapshot: Any) -> Any:
            (state,) = [each.state for name, each in snapshot.states.items() if name == source.name]
            return state, int(snapshot.values[total.op])

    look = Seen(sess)
    lock = sess._master.stores.find(source.key)._lock
    at_every_point(
        lambda: sess.run(train, timeout=timeout), look, [lock, resource(sess, second)._lock]
    )
    assert not look.errors
    assert {*look.seen} == {(3, 6), (4, 10)}
