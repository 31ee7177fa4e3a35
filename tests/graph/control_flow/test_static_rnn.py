"""Recurrent networks unrolled; `tests/op_cases/nn/networks.py` holds the cells' values."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate

RANDOM = np.random.default_rng(2)
KERNEL = RANDOM.normal(size=(5, 8)).astype(np.float32)
STEPS = RANDOM.normal(size=(4, 3, 3)).astype(np.float32)

Pair = namedtuple("Pair", "c h")


def cell(x: Any, state: Any) -> Any:
    return fb.nn.lstm_cell(x, state, KERNEL, None)


def test_steps_follow_each_other() -> None:
    zero = fb.zeros([3, 2])
    outputs, state = fb.nn.static_rnn(cell, list(STEPS), (zero, zero))
    wanted: Any = (zero, zero)
    by_hand = []
    for x in STEPS:
        output, wanted = cell(x, wanted)
        by_hand.append(output)
    found, expected = evaluate([*outputs, *state]), evaluate([*by_hand, *wanted])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("batch", [3, None])
def test_what_lies_behind_an_end_does_not_matter(batch: int | None) -> None:
    lengths = np.array([4, 2, 0])
    inputs = [fb.placeholder(fb.float32, [batch, 3]) for _ in STEPS]
    zero, one = fb.zeros([3, 2]), fb.ones([3, 2])
    outputs, (c, h) = fb.nn.static_rnn(cell, inputs, (zero, one), sequence_length=lengths)
    feeds = dict(zip(inputs, STEPS, strict=True))
    *found, c, h = evaluate([*outputs, c, h], feeds)
    whole, _ = fb.nn.static_rnn(cell, list(STEPS), (zero, one))
    whole = evaluate(whole)
    for step, (output, other) in enumerate(zip(found, whole, strict=True)):
        is_over = step >= lengths
        assert (output[is_over] == 0).all()
        np.testing.assert_array_equal(output[~is_over], other[~is_over])
    np.testing.assert_array_equal(h, [found[3][0], found[1][1], [1, 1]])
    assert (c[2] == 0).all()


def test_states_may_be_nested() -> None:
    def nested(x: Any, state: Any) -> Any:
        pair, count = state["pair"], state["counts"][0]
        output, (c, h) = cell(x, pair)
        return output, {"pair": Pair(c, h), "counts": [count + 1.0]}

    zero = fb.zeros([3, 2])
    start = {"pair": Pair(zero, zero), "counts": [fb.zeros([3])]}
    _, state = fb.nn.static_rnn(nested, list(STEPS), start, sequence_length=[4, 1, 0])
    assert isinstance(state["pair"], Pair)
    assert evaluate(state["counts"][0]).tolist() == [4, 1, 0]


def test_gradients_end_with_the_sequence() -> None:
    x = fb.constant(STEPS)
    zero = fb.zeros([3, 2])
    outputs, _ = fb.nn.static_rnn(cell, fb.unstack(x), (zero, zero), sequence_length=[4, 2, 0])
    slope = evaluate(fb.gradients(outputs, [x])[0])
    assert (slope[2:, 1] == 0).all()
    assert (slope[:, 2] == 0).all()
    assert (slope[:, 0] != 0).all()


class Counting:
    """A cell of structures: adds to a state, and gives the sum and how often it was called."""

    state_size = (3, fb.Shape([]))

    def __call__(self, x: Any, state: Any) -> Any:
        total, count = state
        total = total + x["value"] * x["scale"]
        return Pair(total, count), (total, count + 1.0)


@pytest.mark.parametrize("batch", [3, None])
def test_inputs_and_outputs_may_be_structures_and_a_cell_may_tell_its_sizes(
    batch: int | None,
) -> None:
    x = fb.placeholder(fb.float64, [batch, 3])
    inputs = [{"value": x, "scale": fb.ones_like(x) * k} for k in (1.0, 10.0, 100.0)]
    lengths = [3, 1, 0]
    outputs, (total, count) = fb.nn.static_rnn(
        Counting(), inputs, sequence_length=lengths, dtype=fb.float64
    )
    with fb.Session() as sess:
        found, total, count = sess.run([outputs, total, count], {x: np.ones((3, 3))})
    assert isinstance(outputs[0], Pair)
    assert [step.c[:, 0].tolist() for step in found] == [[1, 1, 0], [11, 0, 0], [111, 0, 0]]
    assert (total[:, 0].tolist(), count.tolist()) == ([111, 1, 0], [3, 1, 0])


@pytest.mark.parametrize("lengths", [None, [4, 2, 0]], ids=str)
def test_both_directions_as_in_a_loop(lengths: list[int] | None) -> None:
    zero, one = fb.zeros([3, 2]), fb.ones([3, 2])
    starts = (zero, one), (one, zero)
    outputs, last, first = fb.nn.static_bidirectional_rnn(cell, cell, list(STEPS), *starts, lengths)
    looped, (end, begin) = fb.nn.bidirectional_dynamic_rnn(
        cell, cell, fb.constant(STEPS), *starts, lengths, time_major=True
    )
    with fb.Session() as sess:
        found = sess.run([fb.stack(outputs), *last, *first])
        wanted = sess.run([fb.concat(looped, 2), *end, *begin])
    for one_way, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one_way, other, rtol=1e-6)


def test_both_directions_of_structures() -> None:
    inputs = [{"value": fb.fill([1, 3], k), "scale": fb.fill([1, 3], 1.0)} for k in (1.0, 2.0, 4.0)]
    outputs, *_ = fb.nn.static_bidirectional_rnn(
        lambda x, h: ([h + x["value"]], h + x["value"]),
        lambda x, h: ([h + x["value"]], h + x["value"]),
        inputs,
        fb.zeros([1, 3]),
        fb.zeros([1, 3]),
        sequence_length=[2],
    )
    with fb.Session() as sess:
        found = sess.run(outputs)
    assert [step[0].tolist() for [step] in found] == [
        [1, 1, 1, 3, 3, 3],
        [3, 3, 3, 2, 2, 2],
        [0] * 6,
    ]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: fb.nn.static_rnn(cell, [], fb.zeros([1])), "no steps"),
        (lambda: fb.nn.static_rnn(cell, fb.constant(STEPS), None), "unstack"),
        (lambda: fb.nn.static_rnn(cell, [1.0], None, sequence_length=[1.0]), "integer"),
        (
            lambda: fb.nn.static_rnn(
                cell, list(STEPS), (fb.zeros([3, 2]),) * 2, sequence_length=[4]
            ),
            "1 lengths for 3 examples",
        ),
        (lambda: fb.nn.static_rnn(cell, list(STEPS)), "no dtype is given"),
        (
            lambda: fb.nn.static_rnn(lambda x, h: (x, (h,)), list(STEPS), fb.zeros([3])),
            "tuple of 1",
        ),
        (
            lambda: fb.nn.static_bidirectional_rnn(
                lambda x, h: (x, h), lambda x, h: ([x], h), list(STEPS), STEPS[0], STEPS[0]
            ),
            "cell_bw a list of 1",
        ),
        (lambda: fb.nn.lstm_cell(STEPS[0], fb.zeros([3, 2]), KERNEL), "pair"),
    ],
)
def test_errors(build: Any, message: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=message) as caught:
        build()
    assert "test_static_rnn.py" in str(caught.value)


def test_lengths_are_counted_in_the_run() -> None:
    x = fb.placeholder(fb.float32, [None, 4, 3])
    lengths = fb.placeholder(fb.int32, [None])
    outputs, _ = fb.layers.lstm(x, 2, sequence_length=lengths)
    with fb.Session() as sess:
        assert sess.run(outputs, {x: np.ones((2, 4, 3)), lengths: [1, 4]}).shape == (2, 4, 2)
        with pytest.raises(fb.errors.InvalidArgumentError, match="Reshape"):
            sess.run(outputs, {x: np.ones((2, 4, 3)), lengths: [1]})
