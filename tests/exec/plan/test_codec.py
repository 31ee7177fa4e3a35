"""Programs as bytes: the same program, the same values in a process that never saw the graph."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.plan import codec
from flowbook.exec.plan.codec import decode, decode_failure, encode, encode_failure
from flowbook.exec.plan.failure import Failure, Summary
from flowbook.exec.plan.program import Program
from flowbook.exec.signature.fetches import flatten
from flowbook.graph.model import registry
from flowbook.graph.model.retag import DEAD
from tests.exec.plan.elsewhere import prepared_for, run_elsewhere
from tests.exec.random_graphs import examples


def same(one: Program, other: Program) -> bool:
    """Whether two programs say the same, their arrays bit for bit; `==` may have no answer."""
    return _plain(one) == _plain(other)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        items = value.tolist() if value.dtype.hasobject else value.tobytes()
        return value.dtype.str, value.shape, items
    if isinstance(value, np.generic):
        return _plain(np.asarray(value))
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    # A number of another type is another one, and NaN is the same.
    return (type(value), repr(value)) if isinstance(value, int | float | complex) else value


def test_a_training_in_a_process_that_never_saw_the_graph() -> None:
    fb.set_random_seed(7)
    x = fb.placeholder(fb.float32, [None, 4], name="x")
    W = fb.Variable(fb.random_normal([4, 3]), name="W")
    noise = fb.nn.dropout(x, rate=0.5)
    loss = fb.reduce_mean(fb.square(fb.nn.relu(noise @ W) - [1.0, 2.0, 3.0]))
    optimizer = fb.train.AdamOptimizer(0.1)
    train = optimizer.minimize(loss)
    made = [W, *optimizer.variables()]
    begin = prepared_for([], [v.initializer for v in made])
    step = prepared_for([loss, W.value], [train], [x])
    end = prepared_for([v.value for v in made])
    data = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)
    steps = [(begin, []), *[(step, [data])] * 4, (end, [])]
    found = run_elsewhere(steps)
    with fb.Session() as sess:
        sess.run([v.initializer for v in made])
        expected: list[Any] = [[]]
        expected += [sess.run([loss, W, train], {x: data})[:2] for _ in range(4)]
        expected.append(sess.run(made))
    assert [[v.tobytes() for v in values] for values in found] == [
        [np.asarray(v).tobytes() for v in values] for values in expected
    ]


@settings(max_examples=50, deadline=None)
@given(examples(feed_variables=True))
def test_programs_come_back_the_same(example: Any) -> None:
    for fetches, feeds in example.steps:
        flat = flatten(example.graph, fetches)
        keys = [getattr(key, "handle", key) for key in feeds]
        program = prepared_for(flat.tensors, flat.targets, keys).program
        if any(node.type.startswith("PyFunc") for node in program.parts[0].nodes):
            with pytest.raises(fb.errors.UnimplementedError, match="func"):
                encode(program)
            continue
        data = encode(program)
        again = decode(data)
        assert same(again, program)
        assert encode(again) == data


def test_programs_of_other_constants_are_others() -> None:
    one, other, again = (prepared_for([fb.constant(v)]).program for v in (0.0, -0.0, 0.0))
    assert same(one, again)
    assert encode(one) == encode(again)
    assert not same(one, other)
    assert encode(one) != encode(other)


def test_every_kind_of_attribute_and_constant() -> None:
    fetches = [
        fb.constant([b"a", b"\xff"]),
        fb.strings.join([fb.constant(["x"]), fb.constant(["y"])], "-"),
        fb.cast(fb.constant([1.5], fb.bfloat16), fb.float16),
        fb.constant(1 + 2j),
        fb.random_uniform([2, 3], seed=4),
        fb.zeros([0, 3]),
    ]
    program = prepared_for(fetches).program
    data = encode(program)
    assert same(decode(data), program)
    assert encode(decode(data)) == data


def test_a_type_that_was_defined_again_is_the_same_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def define() -> fb.OpDef:
        return fb.OpDef(
            "Elsewhere",
            "x: T -> y: T",
            T=fb.FLOATS,
            infer=lambda x: x.shape,
            kernel=lambda xp, x: x,
        )

    x = fb.placeholder(fb.float32, [2])
    old = prepared_for([define()(x)], (), [x]).program
    new = prepared_for([define()(x)], (), [x]).program
    data = encode(new)
    assert same(decode(data), new)
    with pytest.raises(
        fb.errors.FailedPreconditionError, match="'Elsewhere' has been defined again"
    ):
        encode(old)
    # As in a process that defined it once.
    monkeypatch.setattr(registry, "_definitions", registry.op_definitions())
    del registry._definitions["Elsewhere"]
    definition = define()
    [node] = [node for node in decode(data).parts[0].nodes if "Elsewhere" in node.type]
    assert registry.op_keyed(node.type) is definition


def test_what_is_dead_is_so_elsewhere() -> None:
    for again in (copy.copy(DEAD), copy.deepcopy([DEAD])[0], pickle.loads(pickle.dumps(DEAD))):
        assert again is DEAD


@cache
def messages() -> list[tuple[bytes, Callable[[bytes], Any]]]:
    """A program and a failure as bytes, and what reads each."""
    with fb.Graph().as_default():
        W = fb.Variable([1.0, 2.0])
        looped = fb.while_loop(lambda i: i < 3, lambda i: i + 1, 0)
        program = prepared_for([W + fb.random_uniform([2]), looped, fb.constant(["a"])]).program
    failure = Failure(fb.errors.AbortedError("stop", hint="go"), 1, (Summary("[2]", "NaN"),))
    return [(encode(program), decode), (encode_failure(failure), decode_failure)]


def test_every_flipped_bit_and_every_cut_is_noticed() -> None:
    for data, read in messages():
        read(data)
        for bit in range(8 * len(data)):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            with pytest.raises(fb.errors.DataLossError, match=r"not a whole .*: the checksum"):
                read(bytes(flipped))
        for length in range(len(data)):
            with pytest.raises(fb.errors.DataLossError, match=f"these {length} bytes are not"):
                read(data[:length])


@given(st.data())
def test_other_damage_is_noticed(drawn: st.DataObject) -> None:
    data, read = drawn.draw(st.sampled_from(messages()))
    places = st.integers(0, len(data))
    start, end = sorted(drawn.draw(st.tuples(places, places)))
    # What is put in a part's place: it is cut out, or others are inserted or appended.
    damaged = data[:start] + drawn.draw(st.binary()) + data[end:]
    assume(damaged != data)
    with pytest.raises(fb.errors.DataLossError):
        read(damaged)


def test_what_is_whole_and_no_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data, failed = (message for message, _ in messages())
    with pytest.raises(fb.errors.DataLossError):
        decode(failed)
    monkeypatch.setattr(codec, "VERSION", 7)
    with pytest.raises(fb.errors.DataLossError, match=r"is in format 1; .* reads format 7"):
        decode(data)


def test_failures_come_back_whole() -> None:
    error = fb.errors.ResourceExhaustedError("full", hint="less")
    error.details.append("in the gradient of Exp")
    failure = Failure(error, 3, (Summary("[2]", "all NaN"), None), ("changed: W",))
    found = decode_failure(encode_failure(failure))
    assert found[1:] == failure[1:]
    assert type(found.error) is type(error)
    assert str(found.error) == str(error)
    # A class that is none of Flowbook's is not looked for anywhere.
    foreign = Failure(type("os", (fb.errors.OpError,), {})("none"), 0, ())
    assert type(decode_failure(encode_failure(foreign)).error) is fb.errors.InternalError


def test_loops_and_branches_in_a_process_that_never_saw_the_graph() -> None:
    x, W = fb.placeholder(fb.float32, [], name="x"), fb.Variable(2.0, name="W")

    def body(i: Any, v: Any) -> Any:
        _, inner = fb.while_loop(lambda j, u: j < 2, lambda j, u: (j + 1, u * W), (0, v))
        return i + 1, fb.cond(inner > 20.0, lambda: inner / x, lambda: inner + x)

    y = fb.while_loop(lambda i, v: i < 3, body, (0, x))[1]
    fetches = [y, *fb.gradients(y, [x, W])]
    step = prepared_for(fetches, [], [x])
    assert same(decode(encode(step.program)), step.program)
    begin = prepared_for([], [W.initializer])
    _, found = run_elsewhere([(begin, []), (step, [np.float32(1.5)])])
    with fb.Session() as sess:
        expected = sess.run(fetches, {x: 1.5})
    assert [v.tobytes() for v in found] == [np.asarray(v).tobytes() for v in expected]
