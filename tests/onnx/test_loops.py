"""Loops as ONNX's Scan and Loop: which of them, and that each is what the loop is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from tests.onnx.exchange import exchanged, types


@pytest.fixture(autouse=True)
def graph() -> Any:
    with fb.Graph().as_default() as graph:
        yield graph


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


def loops(made: Any) -> Counter[str]:
    """How many there are of what loops and their arrays are written as."""
    return Counter(t for t in types(made.graph) if t in ("Loop", "Scan", "ScatterND"))


# Which form


def test_what_maps_elements_is_a_scan_without_states() -> None:
    x = fb.placeholder(fb.float32, [3, 2])
    made = exchanged([fb.map_fn(lambda row: fb.sin(row) * 2.0, x)], {x: numbers(3, 2)})
    assert loops(made) == {"Scan": 1}
    [scan] = [node for node in made.graph.node if node.op_type == "Scan"]
    assert (len(scan.input), len(scan.output)) == (1, 1)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("initializer", [None, 0.0])
def test_what_accumulates_elements_is_a_scan(reverse: bool, initializer: Any) -> None:
    x = fb.placeholder(fb.float32, [4, 2])
    first = None if initializer is None else fb.zeros([2])
    found = fb.scan(lambda a, row: a * 0.5 + row, x, first, reverse=reverse)
    made = exchanged([found], {x: numbers(4, 2)})
    # Without an initializer the first element is in the array already.
    assert loops(made) == ({"Scan": 1} if first is not None else {"Scan": 1, "ScatterND": 1})


def cell(x: fb.Tensor, state: fb.Tensor) -> tuple[fb.Tensor, fb.Tensor]:
    w = fb.constant(numbers(3, 4))
    state = fb.tanh(x @ w + state)
    return state * 2.0, state


@pytest.mark.parametrize("lengths", [None, [2, 4]])
def test_a_recurrent_network_for_any_batch_is_a_scan(lengths: Any) -> None:
    x = fb.placeholder(fb.float32, [None, 4, 3])
    state = fb.zeros([fb.shape(x)[0], 4])
    found = fb.nn.dynamic_rnn(cell, x, state, lengths)
    made = exchanged(list(found), {x: numbers(2, 4, 3)})
    # As many steps as the longest sequence has, which might be none.
    assert loops(made) == ({"Scan": 1} if lengths is None else {"Loop": 1})


def test_a_recurrent_network_in_both_directions() -> None:
    x, lengths = fb.placeholder(fb.float32, [2, 4, 3]), fb.placeholder(fb.int32, [2])
    state = fb.zeros([2, 4])
    outputs, _ = fb.nn.bidirectional_dynamic_rnn(cell, cell, x, state, state, lengths)
    made = exchanged(list(outputs), {x: numbers(2, 4, 3), lengths: [2, 4]}, gradients_of=x)
    assert loops(made) == {"Loop": 2}


def test_a_loop_over_as_many_elements_as_there_are_is_one_of_a_counted_number() -> None:
    """Onnxruntime has no Scan over no elements."""
    x = fb.placeholder(fb.float32, [None, 2, 3])
    outputs, last = fb.nn.dynamic_rnn(cell, x, fb.zeros([2, 4]), time_major=True)
    empty = np.zeros([0, 2, 3], np.float32)
    made = exchanged([outputs, last], {x: numbers(4, 2, 3)}, {x: numbers(1, 2, 3)}, {x: empty})
    assert loops(made) == {"Loop": 1}
    [loop] = [node for node in made.graph.node if node.op_type == "Loop"]
    assert loop.input[0]
    # The state, and what is collected; the counter is needed in each iteration to read at.
    assert len(loop.output) == 3


def test_a_scan_in_a_scan() -> None:
    x = fb.placeholder(fb.float32, [3, 4])
    found = fb.map_fn(lambda row: fb.scan(lambda a, e: a * e + row[0], row, 1.0), x)
    made = exchanged([found], {x: numbers(3, 4)}, gradients_of=x)
    assert loops(made) == {"Scan": 2}


def test_an_array_with_place_for_more_than_is_in_it() -> None:
    x = fb.placeholder(fb.float32, [3])
    elements = fb.TensorArray(fb.float32, 5, clear_after_read=False).unstack(x)
    _, y = fb.while_loop(
        lambda i, _: i < 2, lambda i, y: (i + 1, y * 2.0 + elements.read(i + 1)), (0, x[0])
    )
    made = exchanged([y, elements.size()], {x: numbers(3)}, gradients_of=x)
    assert loops(made)["Scan"] == 1


def test_what_only_some_iterations_read_is_no_scans() -> None:
    x = fb.placeholder(fb.float32, [3])
    elements = fb.TensorArray(fb.float32, 3).unstack(x)
    _, y = fb.while_loop(
        lambda i, _: i < 5,
        lambda i, y: (i + 1, fb.cond(i < 3, lambda: y * 2.0 + elements.read(i), lambda: y)),
        (0, 1.0),
    )
    assert loops(exchanged([y], {x: numbers(3)}, gradients_of=x))["Loop"] == 1


def test_a_state_that_grows_is_no_scans() -> None:
    x, first = fb.placeholder(fb.float32, [3]), fb.placeholder(fb.float32, [None])
    found = fb.foldl(lambda a, e: fb.concat([a, [e]], 0), x, first)
    made = exchanged([found], {x: numbers(3), first: []}, {x: numbers(3), first: [1, 2]})
    assert loops(made) == {"Loop": 1}


def test_an_array_of_what_a_loop_gives_is_collected_whatever_ends_it() -> None:
    x = fb.placeholder(fb.float32, [2])
    array = fb.TensorArray(fb.float32, dynamic_size=True)
    *_, found = fb.while_loop(
        lambda i, y, _: fb.reduce_sum(y) < 100.0,
        lambda i, y, array: (i + 1, y * 2.0, array.write(i, y)),
        (0, x, array),
    )
    made = exchanged([found.stack(), found.size()], {x: [1, 2]}, {x: [50, 1]})
    assert loops(made) == {"Loop": 1}


def test_what_a_loop_did_not_come_to_stays_as_it_was() -> None:
    x, n = fb.placeholder(fb.float32, [2]), fb.placeholder(fb.int32, [])
    array = fb.TensorArray(fb.float32, 5, element_shape=[2]).grad()
    _, found = fb.while_loop(
        lambda i, _: i < n, lambda i, array: (i + 1, array.write(i, x)), (0, array)
    )
    made = exchanged([found.stack()], {x: [1, 2], n: 3}, {x: [1, 2], n: 0}, {x: [1, 2], n: 5})
    assert loops(made) == {"Loop": 1}


@pytest.mark.parametrize("kind", ["twice", "gathered", "conditional", "before", "after"])
def test_an_array_that_is_used_otherwise_goes_round_whole(kind: str) -> None:
    x = fb.placeholder(fb.float32, [2])

    def body(i: fb.Tensor, total: fb.Tensor, array: fb.TensorArray) -> Any:
        value = x * fb.cast(i, fb.float32)
        if kind == "twice":
            return i + 1, total, array.write(i, value).write(i + 3, x)
        if kind == "gathered":
            return i + 1, total, array.write(fb.gather([2, 0, 1, 3, 4, 5], i), value)
        if kind == "conditional":
            written = fb.cond(i < 9, lambda: array.write(i, value), lambda: array.write(0, x))
            return i + 1, total, written
        written = array.write(i, value)
        seen = array.size() if kind == "before" else written.read(i)[0]
        return i + 1, total + fb.cast(seen, fb.float32), written

    count = 3 if kind == "twice" else 6
    array = fb.TensorArray(fb.float32, 6, clear_after_read=False)
    *_, total, found = fb.while_loop(lambda i, *_: i < count, body, (0, 0.0, array))
    made = exchanged([total, found.stack()], {x: [1, 2]})
    assert loops(made)["ScatterND"]
    [loop] = [node for node in made.graph.node if node.op_type == "Loop"]
    assert len(loop.output) == 3


def test_a_loop_over_no_elements() -> None:
    x = fb.placeholder(fb.float32, [0, 2])
    assert loops(exchanged([fb.map_fn(fb.sin, x)], {x: numbers(0, 2)})) == {"Loop": 1}


def test_elements_of_open_shapes() -> None:
    x = fb.placeholder(fb.float32, [None, None])
    mapped = fb.map_fn(lambda row: row * 2.0, x)
    exchanged([mapped], {x: numbers(2, 3)}, {x: numbers(1, 0)})


def test_the_gradients_of_a_scan_keep_what_they_need_as_it_goes() -> None:
    x = fb.placeholder(fb.float32, [4, 2])
    y = fb.scan(lambda a, row: fb.sin(a) * row, x, fb.ones([2]))
    made = exchanged([y, *fb.gradients(y, x)], {x: numbers(4, 2)})
    # What is kept of each step is stacked by the Scan; the gradient's array goes round.
    assert loops(made)["Scan"] == 1


# Loops of all kinds


@dataclass(frozen=True)
class Kind:
    """A loop over the elements of a vector.

    Attributes:
        is_open: whether only the run knows how many there are.
        is_down: whether the counter goes down.
        reads: where the iteration that counts to i reads: "i" or "mirrored"; None reads nothing.
        writes: where it writes, one array for each: "i", "mirrored" or "behind", an index more.
        counts: whether it computes with the counter.
        limit: whether a second condition may end the loop.
    """

    is_open: bool
    is_down: bool
    reads: str | None
    writes: tuple[str, ...]
    counts: bool
    limit: bool


places = st.sampled_from(["i", "mirrored", "behind"])
kinds = st.builds(
    Kind,
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, "i", "mirrored"]),
    st.lists(places, max_size=3).map(tuple),
    st.booleans(),
    st.booleans(),
)


def looped(kind: Kind, x: fb.Tensor, limit: fb.Tensor) -> list[fb.Tensor]:
    """The state at last, the last counter, and the arrays."""
    count: Any = fb.shape(x)[0] if kind.is_open else x.shape[0]
    elements = fb.TensorArray(fb.float32, count).unstack(x)
    step = -1 if kind.is_down else 1

    def index(where: str, i: fb.Tensor) -> Any:
        return {"i": i, "mirrored": count - 1 - i, "behind": 1 + i}[where]

    def cond(i: fb.Tensor, y: fb.Tensor, *_: Any) -> fb.Tensor:
        goes = i > -1 if kind.is_down else i < count
        return fb.logical_and(goes, y < limit) if kind.limit else goes

    def body(i: fb.Tensor, y: fb.Tensor, arrays: Any) -> Any:
        element = fb.reduce_mean(x) if kind.reads is None else elements.read(index(kind.reads, i))
        y = fb.sin(y * element) + element
        y = y * fb.cast(i, fb.float32) if kind.counts else y
        written = [a.write(index(w, i), y * 2.0) for a, w in zip(arrays, kind.writes, strict=True)]
        return i + step, y, written

    arrays = [fb.TensorArray(fb.float32, count + 1, element_shape=[]).grad() for _ in kind.writes]
    begin = count - 1 if kind.is_down else 0
    i, y, arrays = fb.while_loop(cond, body, (begin, fb.reduce_sum(x), arrays))
    return [i, y, *[array.stack() for array in arrays]]


@settings(max_examples=25, deadline=None)
@given(kinds, st.integers(1, 4), st.sampled_from([0.3, 9.0]))
def test_random_loops_go_there_and_back_with_their_gradients(
    kind: Kind, count: int, most: float
) -> None:
    with fb.Graph().as_default():
        x = fb.placeholder(fb.float32, [None if kind.is_open else count])
        limit = fb.placeholder(fb.float32, [])
        found = looped(kind, x, limit)
        made = exchanged(found, {x: numbers(count), limit: most}, gradients_of=x)
        # Nothing goes round but the state and, where it is needed, the counter.
        assert loops(made)["ScatterND"] == 0
        is_scan = not (kind.is_open or kind.limit) and kind.reads is not None
        assert bool(loops(made)["Scan"]) == is_scan
        slopes = fb.gradients(found[1:], x)
        exchanged(slopes, {x: numbers(count), limit: most})
