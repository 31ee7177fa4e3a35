"""Random histories of sessions whose state is spread over devices, beside a model in plain Python.

A history runs drawn programs that write variables, queues and tables, train, and fail, whole or bit
by bit, saves meanwhile, and goes on in new sessions from what was saved.
"""

from __future__ import annotations

import copy
import tempfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from tests.exec.engine.code.test_lowering import Failed, refuse
from tests.exec.engine.test_joint import DEVICES, scatter

STATE = 3
MODULUS = 1009
CAPACITY = 6
KEYS = 4
MISSING = -1
DEVICE_COUNT = 3


@dataclass
class Held:
    """What a session holds, in plain Python."""

    counters: list[int] = field(default_factory=lambda: [1, 2])
    weights: list[float] = field(default_factory=lambda: [0.0, 0.0])
    velocity: list[float] = field(default_factory=lambda: [0.0, 0.0])
    queue: list[int] = field(default_factory=list)
    is_closed: bool = False
    table: dict[int, int] = field(default_factory=dict)

    def beside(self, queue: list[int], is_closed: bool) -> Held:
        """The same with a queue as it is: checkpoints hold none that the program fills itself."""
        again = copy.deepcopy(self)
        again.queue, again.is_closed = queue, is_closed
        return again


class Blocks(Exception):
    """What a program in plain Python does where an operation would wait for ever."""


def interpret(statements: Any, state: list[int], held: Held) -> None:
    """What a program means, in plain Python: one statement after the other."""
    for statement in statements:
        match statement:
            case ("set", target, left, right, constant):
                state[target] = (state[left] * 3 + state[right] + constant) % MODULUS
            case ("read", target, which):
                state[target] = held.counters[which] % MODULUS
            case ("add", target, source, which):
                held.counters[which] += state[source]
                state[target] = held.counters[which] % MODULUS
            case ("assign", source, which):
                held.counters[which] = state[source]
            case ("enqueue", source, count):
                if held.is_closed:
                    raise Failed
                if len(held.queue) + count > CAPACITY:
                    raise Blocks
                held.queue += [state[source] + i for i in range(count)]
            case ("dequeue", target, count):
                if len(held.queue) < count:
                    raise Failed if held.is_closed else Blocks
                taken = [held.queue.pop(0) for _ in range(count)]
                state[target] = sum(taken) % MODULUS
            case ("size", target):
                state[target] = len(held.queue)
            case ("insert", key, value):
                held.table[state[key] % KEYS] = state[value]
            case ("remove", key):
                held.table.pop(state[key] % KEYS, None)
            case ("lookup", target, key):
                state[target] = held.table.get(state[key] % KEYS, MISSING) % MODULUS
            case ("train", source):
                rate = 1 + state[source] % 3
                for place in range(2):
                    held.velocity[place] = held.velocity[place] * 0.5 + rate * (place + 1)
                    held.weights[place] -= held.velocity[place]
            case ("weigh", target):
                state[target] = int(np.floor(sum(held.weights))) % MODULUS
            case ("refuse", source, limit):
                if state[source] > limit:
                    raise Failed
            case ("on", _, body) | ("call", _, body):
                interpret(body, state, held)
            case ("if", a, b, yes, no):
                interpret(yes if state[a] < state[b] else no, state, held)
            case ("while", counter, limit, body):
                count = 0
                while count < state[counter] % 4 and state[limit] < 900:
                    interpret(body, state, held)
                    count += 1
            case ("map", target, source):
                state[target] = sum((state[source] + i) * 2 % 7 for i in range(3))
            case ("slope", target, source, trips):
                state[target] = (1 + trips * state[source]) % MODULUS


class Resources:
    """The same state as a graph has it, and programs as operations."""

    def __init__(self, devices: list[str]) -> None:
        self.devices = devices
        with self.on(0):
            first = fb.Variable(1, name="first", trainable=False)
        with self.on(1):
            second = fb.Variable(2, name="second", trainable=False)
        with self.on(2):
            self.weights = fb.Variable([0.0, 0.0], name="weights")
        self.counters = [first, second]
        self.queue = fb.FIFOQueue(CAPACITY, fb.int32, shapes=[[]], name="queue")
        self.table = fb.lookup.MutableHashTable(fb.int64, fb.int32, MISSING, name="table")
        self.optimizer = fb.train.MomentumOptimizer(1.0, 0.5)
        self.given = fb.placeholder(fb.int32, [None], name="given")
        self.put = self.queue.enqueue_many(self.given)
        self.take = self.queue.dequeue()
        self.size = self.queue.size()
        self.close = self.queue.close()
        self.export = self.table.export()

    def on(self, number: int) -> Any:
        """A scope whose operations are asked for on one of the devices."""
        return fb.device(self.devices[number])

    def build(self, statements: Any, state: list[Any]) -> list[Any]:
        """A program as operations, each statement behind what the former ones do."""
        for statement in statements:
            with fb.control_dependencies([tensor.op for tensor in state]):
                state = self._following(statement, state)
        return state

    def _following(self, statement: Any, state: list[Any]) -> list[Any]:
        state = list(state)
        done: Any = None
        match statement:
            case ("set", target, left, right, constant):
                state[target] = (state[left] * 3 + state[right] + constant) % MODULUS
            case ("read", target, which):
                state[target] = fb.identity(self.counters[which]) % MODULUS
            case ("add", target, source, which):
                state[target] = fb.assign_add(self.counters[which], state[source]) % MODULUS
            case ("assign", source, which):
                done = fb.assign(self.counters[which], state[source])
            case ("enqueue", source, 1):
                done = self.queue.enqueue(state[source])
            case ("enqueue", source, count):
                done = self.queue.enqueue_many(state[source] + fb.range(count))
            case ("dequeue", target, 1):
                state[target] = self.queue.dequeue() % MODULUS
            case ("dequeue", target, count):
                state[target] = fb.reduce_sum(self.queue.dequeue_many(count)) % MODULUS
            case ("size", target):
                state[target] = self.queue.size()
            case ("insert", key, value):
                done = self.table.insert(fb.cast(state[key] % KEYS, fb.int64), state[value])
            case ("remove", key):
                done = self.table.remove(fb.cast(state[key] % KEYS, fb.int64))
            case ("lookup", target, key):
                found = self.table.lookup(fb.cast(state[key] % KEYS, fb.int64))
                state[target] = found % MODULUS
            case ("train", source):
                rate = fb.cast(1 + state[source] % 3, fb.float32)
                loss = fb.reduce_sum(self.weights * rate * [1.0, 2.0])
                done = self.optimizer.minimize(loss)
            case ("weigh", target):
                whole = fb.cast(fb.floor(fb.reduce_sum(fb.identity(self.weights))), fb.int32)
                state[target] = whole % MODULUS
            case ("refuse", source, limit):
                done = refuse(state[source], limit=limit)
            case ("on", number, body):
                with self.on(number):
                    state = self.build(body, state)
            case ("call", inline, body):
                called = fb.function(lambda *state: self.build(body, list(state)), inline=inline)
                state = list(called(*state))
            case ("if", a, b, yes, no):
                state = fb.cond(
                    state[a] < state[b],
                    lambda state=state: self._ended(yes, state),
                    lambda state=state: self._ended(no, state),
                )
            case ("while", counter, limit, body):
                state = fb.while_loop(
                    lambda count, state: fb.logical_and(
                        count < state[counter] % 4, state[limit] < 900
                    ),
                    lambda count, state: (count + 1, self.build(body, state)),
                    (0, state),
                )[1]
            case ("map", target, source):
                each = fb.map_fn(lambda v: v * 2 % 7, state[source] + fb.range(3))
                state[target] = fb.reduce_sum(each)
            case ("slope", target, source, trips):
                x = fb.cast(state[source], fb.float32)
                _, y = fb.while_loop(
                    lambda i, _: i < trips, lambda i, y: (i + 1, y + x * x), (0, x)
                )
                [slope] = fb.gradients(y, x)
                state[target] = fb.cast((slope - 1.0) / 2.0 + 1.0, fb.int32) % MODULUS
        if done is None:
            return list(state)
        with fb.control_dependencies([done]):
            return [fb.identity(tensor) for tensor in state]

    def _ended(self, statements: Any, state: list[Any]) -> list[Any]:
        return [fb.identity(tensor) for tensor in self.build(statements, state)]

    def held(self, sess: fb.Session) -> tuple[Any, ...]:
        """What a session holds, but the queue's elements: their number."""
        first, second, weights, (keys, values), size = sess.run(
            [*self.counters, self.weights, self.export, self.size]
        )
        table = dict(zip(keys.tolist(), values.tolist(), strict=True))
        return [int(first), int(second)], weights.tolist(), table, int(size)

    def elements(self, sess: fb.Session) -> list[int]:
        """The queue's elements, which are taken."""
        return [int(sess.run(self.take)) for _ in range(sess.run(self.size))]


places = st.integers(0, STATE - 1)
numbers = st.integers(0, DEVICE_COUNT - 1)
plain = st.one_of(
    st.tuples(st.just("set"), places, places, places, st.integers(0, 9)),
    st.tuples(st.just("read"), places, st.integers(0, 1)),
    st.tuples(st.just("add"), places, places, st.integers(0, 1)),
    st.tuples(st.just("assign"), places, st.integers(0, 1)),
    st.tuples(st.just("enqueue"), places, st.integers(1, 3)),
    st.tuples(st.just("dequeue"), places, st.integers(1, 2)),
    st.tuples(st.just("size"), places),
    st.tuples(st.just("insert"), places, places),
    st.tuples(st.just("remove"), places),
    st.tuples(st.just("lookup"), places, places),
    st.tuples(st.just("train"), places),
    st.tuples(st.just("weigh"), places),
    st.tuples(st.just("refuse"), places, st.integers(300, 1000)),
    st.tuples(st.just("map"), places, places),
    st.tuples(st.just("slope"), places, places, st.integers(0, 3)),
)
programs = st.recursive(
    st.lists(plain, max_size=4),
    lambda inner: st.lists(
        st.one_of(
            plain,
            st.tuples(st.just("on"), numbers, inner),
            st.tuples(st.just("call"), st.booleans(), inner),
            st.tuples(st.just("if"), places, places, inner, inner),
            st.tuples(st.just("while"), places, places, inner),
        ),
        max_size=4,
    ),
    max_leaves=6,
)
starts = st.lists(st.integers(0, 50), min_size=STATE, max_size=STATE)
events = st.one_of(
    st.tuples(st.just("run"), st.integers(0, 1), starts, st.sampled_from(["whole", "parts"])),
    st.tuples(st.just("run"), st.integers(0, 1), starts, st.just("whole")),
    st.tuples(st.just("put"), st.lists(st.integers(0, 99), min_size=1, max_size=3)),
    st.just(("save",)),
    st.just(("restore",)),
    st.just(("anew",)),
    st.just(("close",)),
)


class History:
    """Sessions one after the other, and the model beside them."""

    def __init__(self, drawn: Any, devices: list[str], folder: str) -> None:
        self.devices = devices
        self.folder = folder
        self.resources = Resources(devices)
        self.feeds = [fb.placeholder(fb.int32, []) for _ in range(STATE)]
        self.programs = drawn
        self.built = [self.resources.build(program, self.feeds) for program in drawn]
        self.held = Held()
        self.saved: tuple[str, Held] | None = None
        self.sess = fb.Session(devices=devices, soft_placement=True)

    def follow(self, event: Any) -> None:
        """One event, and what is held after it."""
        match event:
            case ("run", which, start, how):
                self.run(which, start, how)
            case ("put", values) if not self.held.is_closed:
                if len(self.held.queue) + len(values) <= CAPACITY:
                    self.held.queue += values
                    self.sess.run(self.resources.put, {self.resources.given: values}, timeout=60)
            case ("close",):
                self.held.is_closed = True
                self.sess.run(self.resources.close)
            case ("save",):
                path = fb.train.Saver().save(self.sess, f"{self.folder}/model", timeout=60)
                self.saved = path, copy.deepcopy(self.held)
            case ("restore",) if self.saved is not None:
                path, held = self.saved
                fb.train.Saver().restore(self.sess, path)
                self.held = held.beside(self.held.queue, self.held.is_closed)
            case ("anew",) if self.saved is not None:
                self.sess.close()
                path, held = self.saved
                self.sess = fb.Session(devices=self.devices, checkpoint=path, soft_placement=True)
                self.held = held.beside([], is_closed=False)
        held = self.held
        wanted = held.counters, held.weights, held.table, len(held.queue)
        found = self.resources.held(self.sess)
        assert found == wanted

    def run(self, which: int, start: list[int], how: str) -> None:
        state, held = list(start), copy.deepcopy(self.held)
        try:
            interpret(self.programs[which], state, held)
        except Blocks:
            return
        except Failed:
            with pytest.raises(fb.errors.OpError) as caught:
                self.values(which, start, how)
            assert not isinstance(caught.value, fb.errors.DeadlineExceededError)
        else:
            assert self.values(which, start, how) == state
        self.held = held

    def values(self, which: int, start: list[int], how: str) -> list[int]:
        """What a program gives."""
        feeds = dict(zip(self.feeds, start, strict=True))
        if how == "whole":
            found = self.sess.run(self.built[which], feeds, timeout=60)
        else:
            step = self.sess.partial_run(self.built[which], self.feeds)
            for tensor, value in feeds.items():
                step.run([], {tensor: value})
            found = step.run(self.built[which])
        return [int(value) for value in found]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(programs, min_size=2, max_size=2),
    st.lists(events, min_size=1, max_size=8),
    DEVICES,
    st.integers(0, 1000),
)
def test_histories_across_devices(
    drawn: Any, history: list[Any], devices: list[str], seed: int
) -> None:
    with (
        pytest.MonkeyPatch.context() as patch,
        fb.Graph().as_default(),
        tempfile.TemporaryDirectory() as folder,
    ):
        scatter(patch, seed)
        following = History(drawn, devices, folder)
        try:
            for event in history:
                following.follow(event)
            assert following.resources.elements(following.sess) == following.held.queue
        finally:
            following.sess.close()


def test_a_segment_waits_for_no_other_device_that_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What one assertion waits for on another device is told behind what the segment makes."""
    scatter(monkeypatch, 97)
    program = [("map", 0, 2), ("train", 2), ("refuse", 1, 700), ("refuse", 1, 700)]
    devices = ["cpu:0", "cpu:1", "cpu:2"]
    resources = Resources(devices)
    feeds = [fb.placeholder(fb.int32, []) for _ in range(STATE)]
    state = resources.build(program, feeds)
    resources.build(program, feeds)
    with fb.Session(devices=devices) as sess:
        given = dict(zip(feeds, [2, 0, 0], strict=True))
        for _ in range(3):
            assert sess.run(state, given, timeout=20) == [6, 0, 0]
