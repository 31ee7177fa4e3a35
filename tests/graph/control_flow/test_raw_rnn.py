"""Recurrent networks whose steps a function decides, held against `dynamic_rnn`."""

from __future__ import annotations

import numpy as np
import pytest

import flowbook as fb
from tests.graph.control_flow.test_dynamic_rnn import (
    BATCH,
    CELLS,
    LENGTHS,
    STEPS,
    UNITS,
    WIDTH,
    Summing,
    X,
    flat,
    simple,
    zeros,
)


def reading(x, start, lengths, emitted=None):
    """A `loop_fn` that reads sequences as `dynamic_rnn` does: x is [steps, batch, ...]."""
    inputs = fb.TensorArray(fb.float64, STEPS, clear_after_read=False).unstack(x)

    def loop_fn(time, output, state, loop_state):
        finished = time >= fb.constant(lengths)
        following = fb.cond(
            fb.reduce_all(finished), lambda: fb.zeros_like(x[0]), lambda: inputs.read(time)
        )
        if output is None:
            return finished, following, start, emitted, None
        return finished, following, state, output, None

    return loop_fn


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("lengths", [LENGTHS, [1, 2, 0], [STEPS] * BATCH], ids=str)
def test_as_dynamic_rnn(cell, lengths):
    x = fb.placeholder(fb.float64, [STEPS, BATCH, WIDTH])
    function, start = CELLS[cell]()
    wanted, last = fb.nn.dynamic_rnn(function, x, start, lengths, time_major=True)
    emitted = fb.zeros(wanted.shape[2:], fb.float64)
    array, state, nothing = fb.nn.raw_rnn(function, reading(x, start, lengths, emitted))
    assert nothing is None
    found, expected = [array.stack(), *flat(state)], [wanted[: max(lengths)], *flat(last)]
    assert found[0].shape == [None, BATCH, *wanted.shape[2:]]
    for ys in (found, expected):
        loss = fb.add_n([fb.reduce_sum(t * t * (i + 1.0)) for i, t in enumerate(ys)])
        ys += fb.gradients(loss, x)
    with fb.Session() as sess:
        for _ in range(2):
            feeds = {x: np.moveaxis(X, 0, 1)}
            for one, other in zip(*sess.run([found, expected], feeds), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_a_cell_may_tell_what_is_emitted():
    x = fb.constant(np.moveaxis(X, 0, 1))
    cell, start = Summing(), (zeros(BATCH, WIDTH), zeros(BATCH))
    wanted, (total, count) = fb.nn.dynamic_rnn(cell, x, start, LENGTHS, time_major=True)
    arrays, state, _ = fb.nn.raw_rnn(cell, reading(x, start, LENGTHS))
    stacked = {"sum": arrays["sum"].stack(), "both": tuple([a.stack() for a in arrays["both"]])}
    with fb.Session() as sess:
        (found, ends), (expected, last) = sess.run([(stacked, state), (wanted, (total, count))])
    for one, other in zip(
        [found["sum"], *found["both"]], [expected["sum"], *expected["both"]], strict=True
    ):
        np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(ends[0], last[0])
    assert ends[1].tolist() == LENGTHS


def test_a_decoder_takes_what_it_gave_and_ends_itself():
    """Each example counts up to its goal; what it emits is a structure of other dtypes."""
    goals = fb.constant([3, 0, 5])

    def loop_fn(time, output, state, loop_state):
        if output is None:
            first = fb.zeros([3], fb.int32)
            emitted = {"n": fb.constant(0), "text": fb.constant("")}
            return goals <= 0, first, first, emitted, (fb.constant(0), fb.constant("_"))
        calls, text = loop_state
        emitted = {"n": output, "text": fb.strings.as_string(output)}
        noted = (calls + 1, fb.strings.join([text, fb.strings.as_string(time)]))
        return output >= goals, output, state, emitted, noted

    arrays, state, (calls, text) = fb.nn.raw_rnn(lambda x, s: (x + 1, s + 1), loop_fn)
    with fb.Session() as sess:
        n, texts, last, count, times = sess.run(
            [arrays["n"].stack(), arrays["text"].stack(), state, calls, text]
        )
    assert n.T.tolist() == [[1, 2, 3, 0, 0], [0] * 5, [1, 2, 3, 4, 5]]
    assert [t.decode() for t in texts[:, 0]] == ["1", "2", "3", "", ""]
    assert last.tolist() == [3, 0, 5]
    assert (count, times) == (5, b"_12345")


def test_arrays_and_scalars_of_the_state_belong_to_no_example():
    seen = fb.TensorArray(fb.int32, dynamic_size=True)
    # What is finished stays so, whatever is said of it later.
    over = fb.constant([[False, False], [True, False], [False, False], [True, True]])

    def loop_fn(time, output, state, loop_state):
        finished = over[time]
        if output is None:
            state = (seen, fb.constant(0), fb.zeros([2], fb.int32))
            return finished, fb.zeros([2], fb.int32), state, fb.constant(0), None
        return finished, output, state, output, None

    def cell(x, state):
        array, count, each = state
        return x + 1, (array.write(count, x), count + 1, each + 1)

    _, (array, count, each), _ = fb.nn.raw_rnn(cell, loop_fn)
    with fb.Session() as sess:
        found = sess.run([array.stack(), count, each])
    assert found[0].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert (found[1], found[2].tolist()) == (3, [1, 3])


def test_no_later_loop_state_leaves_it_as_it_is_and_none_at_first_stays_none():
    told = []

    def begins(loop_state):
        def loop_fn(time, output, state, noting):
            told.append(noting)
            state = zeros(2, 3) if output is None else state
            return (
                time >= [1, 2],
                state,
                state,
                zeros(3) if output is None else output,
                (loop_state if output is None else None),
            )

        return fb.nn.raw_rnn(lambda x, s: (x, s), loop_fn)

    *_, kept = begins(fb.constant(7))
    assert begins(None)[2] is None
    assert told[0] is None
    assert told[1].dtype is fb.int32
    assert told[2:] == [None, None]
    with fb.Session() as sess:
        assert sess.run(kept) == 7


def test_nothing_is_emitted_where_all_are_finished_before():
    x = fb.constant(np.moveaxis(X, 0, 1))
    start = fb.ones([BATCH, UNITS], fb.float64)
    array, state, _ = fb.nn.raw_rnn(simple(), reading(x, start, [0] * BATCH, zeros(UNITS)))
    with fb.Session() as sess:
        stacked, last = sess.run([array.stack(), state])
    assert stacked.shape == (0, BATCH, UNITS)
    assert last.all()


def test_what_cannot_be_is_refused():
    wrong_type, wrong = fb.errors.InvalidTypeError, fb.errors.InvalidArgumentError
    state = zeros(2, 3)

    def giving(*first, then=None):
        answers = iter([first, then or first])
        return lambda *_: next(answers)

    def attempt(loop_fn, cell=lambda x, s: (x, s)):
        fb.nn.raw_rnn(cell, loop_fn)

    over = fb.constant([True, False])
    with pytest.raises(wrong_type, match="a cell is a function"):
        attempt(giving(over, state, state, zeros(3), None), cell=None)
    with pytest.raises(wrong_type, match="loop_fn is a function"):
        attempt(None)
    with pytest.raises(wrong_type, match=r"loop_fn gives \(finished, next_input"):
        attempt(giving(over, state))
    with pytest.raises(wrong_type, match=r"finished is bool .*, not int32"):
        attempt(giving([1, 0], state, state, zeros(3), None))
    with pytest.raises(wrong, match=r"finished is bool \[batch\]; its shape is \[\]"):
        attempt(giving(True, state, state, zeros(3), None))
    with pytest.raises(wrong, match="a state is a tensor"):
        attempt(giving(over, state, (), zeros(3), None))
    with pytest.raises(wrong_type, match="the cell has no output_size"):
        attempt(giving(over, state, state, None, None))
    first = (over, state, state, zeros(3), None)
    with pytest.raises(wrong_type, match="an output and the next state"):
        attempt(giving(*first), cell=lambda x, s: s)
    with pytest.raises(wrong_type, match=r"emit_output first gives .*, but loop_fn then a tuple"):
        attempt(giving(*first, then=(over, state, state, (state, state), None)))
    with pytest.raises(wrong_type, match=r"loop_fn first gives .*, but loop_fn then a tuple"):
        attempt(giving(*first, then=(over, state, (state, state), state, None)))
    with pytest.raises(wrong, match=r"emitted.*shape"):
        attempt(giving(*first, then=(over, state, state, zeros(2, 4), None)))
