"""Cells with variables of their own: the first call makes them, all others use them."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb

X = np.random.default_rng(0).normal(size=[2, 4, 3]).astype(np.float32)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_cell_in_a_loop_is_the_layer(kind: str) -> None:
    cell = getattr(fb.layers, f"{kind}_cell")(5)
    outputs, state = fb.nn.dynamic_rnn(cell, fb.constant(X), dtype=fb.float32)
    variables = fb.get_default_graph().variables()
    names = ["kernel", "bias"]
    if kind == "gru":
        names = ["gate_kernel", "gate_bias", "candidate_kernel", "candidate_bias"]
    shared: dict[str, Any] = dict(zip(names, variables, strict=True))
    expected = getattr(fb.layers, kind)(X, 5, **shared)
    with fb.Session() as sess:
        (found, last), (wanted, wanted_last) = sess.run([(outputs, state), expected])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    for mine, theirs in zip(np.atleast_3d(last), np.atleast_3d(wanted_last), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_all_calls_of_a_cell_share_its_variables() -> None:
    cell = fb.layers.rnn_cell(2, name="cell")
    state = fb.nn.zero_state(cell, 2)
    first, state = cell(X[:, 0], state)
    cell(X[:, 1], state)
    assert [v.op.name for v in fb.get_default_graph().variables()] == ["cell/kernel", "cell/bias"]
    kernel, bias = fb.get_default_graph().variables()
    with fb.Session() as sess:
        values = sess.run([first, kernel, bias])
    np.testing.assert_allclose(values[0], np.tanh(X[:, 0] @ values[1][:3]), rtol=1e-5)
    assert values[2].tolist() == [0.0, 0.0]
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"\[6, 2\]"):
        cell(fb.ones([2, 4]), state)


def test_a_stack_goes_on_from_the_state_that_it_was_left_in() -> None:
    cell = fb.nn.stacked_cell(
        [fb.nn.dropout_cell(fb.layers.lstm_cell(4), output_rate=0.0) for _ in range(2)]
    )
    x = fb.placeholder(fb.float32, [2, None, 3])
    start = fb.nn.zero_state(cell, 2)
    outputs, end = fb.nn.dynamic_rnn(cell, x, start)
    assert len(fb.get_default_graph().variables()) == 4
    with fb.Session() as sess:
        whole = sess.run(outputs, {x: X})
        state: Any = sess.run(start)
        for t in range(4):
            feeds = {x: X[:, t : t + 1]}
            for (c, h), value in zip(start, state, strict=True):
                feeds |= {c: value.c, h: value.h}
            part, state = sess.run([outputs, end], feeds)
            np.testing.assert_allclose(part[:, 0], whole[:, t], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(state[1].h, whole[:, -1], rtol=1e-5, atol=1e-6)


def test_a_pair_will_do_for_a_state() -> None:
    cell = fb.layers.lstm_cell(4)
    zeros = fb.zeros([2, 4])
    assert type(cell(X[:, 0], (zeros, zeros))[1]) is tuple
    assert type(cell(X[:, 0], fb.nn.LSTMState(zeros, zeros))[1]) is fb.nn.LSTMState


def test_what_tells_no_size_has_no_zeros() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="does not tell the size"):
        fb.nn.zero_state(lambda x, h: (x, h), 3)
    batch = fb.placeholder(fb.int32, [])
    assert fb.nn.zero_state(fb.layers.gru_cell(3), batch, fb.float64).shape == [None, 3]
    with pytest.raises(fb.errors.InvalidArgumentError, match="units"):
        fb.layers.lstm_cell(0)
