"""Recurrent cells and their unrolling; `tests/op_cases/nn/networks.py` holds the cells' values."""

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
        (lambda: fb.nn.lstm_cell(STEPS[0], fb.zeros([3, 2]), KERNEL), "pair"),
    ],
)
def test_errors(build: Any, message: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=message) as caught:
        build()
    assert "test_recurrent.py" in str(caught.value)


def test_lengths_are_counted_in_the_run() -> None:
    x = fb.placeholder(fb.float32, [None, 4, 3])
    lengths = fb.placeholder(fb.int32, [None])
    outputs, _ = fb.layers.lstm(x, 2, sequence_length=lengths)
    with fb.Session() as sess:
        assert sess.run(outputs, {x: np.ones((2, 4, 3)), lengths: [1, 4]}).shape == (2, 4, 2)
        with pytest.raises(fb.errors.InvalidArgumentError, match="Reshape"):
            sess.run(outputs, {x: np.ones((2, 4, 3)), lengths: [1]})
