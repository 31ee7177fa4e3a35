"""Recurrent networks in a loop, held against unrolled ones."""

from __future__ import annotations

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.control_flow.over_elements import Elements

BATCH, STEPS, WIDTH, UNITS = 3, 4, 2, 5
RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(BATCH, STEPS, WIDTH))
LENGTHS = [2, 0, 4]


def weight(*shape):
    return fb.constant(RANDOM.normal(size=shape))


def zeros(*shape):
    return fb.zeros(shape, fb.float64)


def lstm(width=WIDTH, outputs=UNITS, **options):
    kernel, bias = weight(width + outputs, 4 * UNITS), weight(4 * UNITS)
    return lambda x, state: fb.nn.lstm_cell(x, state, kernel, bias, **options)


def simple(width=WIDTH):
    kernel = weight(width + UNITS, UNITS)
    return lambda x, h: fb.nn.rnn_cell(x, h, kernel)


def peeking():
    peepholes = (weight(UNITS), weight(UNITS), weight(UNITS))
    return lstm(outputs=3, peepholes=peepholes, projection=weight(UNITS, 3), cell_clip=0.8)


def gru():
    gates, candidate = weight(WIDTH + UNITS, 2 * UNITS), weight(WIDTH + UNITS, UNITS)
    return lambda x, h: fb.nn.gru_cell(x, h, gates, None, candidate, None)


def pair(outputs=UNITS):
    return zeros(BATCH, UNITS), zeros(BATCH, outputs)


CELLS = {
    "simple": lambda: (simple(), zeros(BATCH, UNITS)),
    "lstm": lambda: (lstm(), pair()),
    "lstm-peepholes-projection": lambda: (peeking(), pair(3)),
    "gru": lambda: (gru(), zeros(BATCH, UNITS)),
    "stacked": lambda: (
        fb.nn.stacked_cell([lstm(), fb.nn.residual_cell(simple(UNITS))]),
        (pair(), zeros(BATCH, UNITS)),
    ),
}


def flat(state):
    return [t for s in state for t in flat(s)] if isinstance(state, tuple) else [state]


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("lengths", [None, LENGTHS, [1, 2, 0], [0, 0, 0]])
@pytest.mark.parametrize("shape", [[BATCH, STEPS, WIDTH], [BATCH, None, WIDTH]], ids=str)
def test_as_unrolled(cell, lengths, shape):
    x = fb.placeholder(fb.float64, shape)
    function, start = CELLS[cell]()
    outputs, state = fb.nn.dynamic_rnn(function, x, start, lengths)
    wanted, last = fb.nn.static_rnn(function, fb.unstack(x, STEPS, 1), start, lengths)
    found = [outputs, *flat(state)]
    expected = [fb.stack(wanted, 1), *flat(last)]
    losses = [
        fb.add_n([fb.reduce_sum(t * t * (i + 1.0)) for i, t in enumerate(ys)])
        for ys in (found, expected)
    ]
    found += fb.gradients(losses[0], x)
    expected += fb.gradients(losses[1], x)
    with fb.Session() as sess:
        values = sess.run(expected, {x: X})
        for _ in range(2):
            for one, other in zip(sess.run(found, {x: X}), values, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


class Summing:
    """A cell as TensorFlow's users write them: it tells its sizes, and gives two outputs."""

    state_size = (WIDTH, fb.Shape([]))

    def __init__(self):
        self.output_size = {"sum": WIDTH, "both": self.state_size}

    def __call__(self, x, state):
        total, count = state
        total, count = total + x, count + 1
        return {"sum": total, "both": (total * 2.0, count)}, (total, count)


@pytest.mark.parametrize("batch", [BATCH, None])
@pytest.mark.parametrize("time_major", [False, True])
def test_a_cell_may_tell_its_sizes_and_give_a_structure(batch, time_major):
    first = [STEPS, batch] if time_major else [batch, STEPS]
    x = fb.placeholder(fb.float64, [*first, WIDTH])
    outputs, (total, count) = fb.nn.dynamic_rnn(
        Summing(), x, sequence_length=LENGTHS, time_major=time_major, dtype=fb.float64
    )
    # As many examples as there are lengths.
    assert outputs["sum"].shape == [*([STEPS, BATCH] if time_major else [BATCH, STEPS]), WIDTH]
    [dx] = fb.gradients([outputs["sum"], outputs["both"][0]], [x])
    value = np.moveaxis(X, 0, 1) if time_major else X
    with fb.Session() as sess:
        found, last, counts, slope = sess.run([outputs, total, count, dx], {x: value})
    if time_major:
        slope, sums, both, counted = [
            np.moveaxis(t, 0, 1) for t in (slope, found["sum"], *found["both"])
        ]
    else:
        sums, (both, counted) = found["sum"], found["both"]
    assert counts.tolist() == LENGTHS
    for i, n in enumerate(LENGTHS):
        np.testing.assert_allclose(sums[i, :n], X[i, :n].cumsum(0))
        np.testing.assert_allclose(last[i], X[i, :n].sum(0))
        assert counted[i].tolist() == [*range(1, n + 1), *[0] * (STEPS - n)]
        wanted = [3.0 * max(n - k, 0) for k in range(STEPS)]
        np.testing.assert_allclose(slope[i], np.transpose([wanted] * WIDTH))
        assert not sums[i, n:].any()
    np.testing.assert_array_equal(both, 2 * sums)


def test_structures_by_dtype_and_of_both_directions():
    x = fb.constant(X)
    cell = Summing()
    start = (zeros(BATCH, WIDTH), zeros(BATCH))
    dtypes = {"sum": fb.float64, "both": (fb.float64, fb.float64)}
    told = fb.nn.dynamic_rnn(cell, x, start, dtype=dtypes)
    bare = fb.nn.dynamic_rnn(lambda x, state: cell(x, state), x, start, dtype=dtypes)
    both, _ = fb.nn.bidirectional_dynamic_rnn(cell, cell, x, dtype=fb.float64)
    with fb.Session() as sess:
        (one, _), (other, _), (forwards, backwards) = sess.run([told, bare, both])
    np.testing.assert_array_equal(one["sum"], other["sum"])
    np.testing.assert_array_equal(forwards["sum"], one["sum"])
    np.testing.assert_allclose(backwards["sum"], X[:, ::-1].cumsum(1)[:, ::-1])


def test_cells_made_of_others_tell_their_sizes():
    one, plain = Summing(), simple()
    narrow = lambda x, state: (x, state)  # noqa: E731
    narrow.state_size = 3
    dropped = fb.nn.dropout_cell(fb.nn.residual_cell(one), input_rate=0.5)
    assert (dropped.state_size, dropped.output_size) == (one.state_size, one.output_size)
    stacked = fb.nn.stacked_cell([narrow, one])
    assert stacked.state_size == (3, one.state_size)
    assert stacked.output_size == one.output_size
    for other in (fb.nn.residual_cell(plain), fb.nn.stacked_cell([plain, narrow])):
        assert not hasattr(other, "state_size")


@pytest.mark.parametrize(
    ("lengths", "steps"), [(None, STEPS), (LENGTHS, 4), ([1, 2, 0], 2), ([0] * BATCH, 1)]
)
def test_the_loop_ends_with_the_longest_sequence(lengths, steps):
    x = fb.placeholder(fb.float64, [BATCH, None, WIDTH])
    ran = fb.Variable(0)

    def counting(x, h):
        with fb.control_dependencies([fb.assign_add(ran, 1)]):
            return fb.identity(x), h + 1

    outputs, _ = fb.nn.dynamic_rnn(counting, x, zeros(BATCH), lengths)
    with fb.Session() as sess:
        assert sess.run(outputs, {x: X}).shape == X.shape
        assert sess.run(ran) == steps


def written_out():
    """An LSTM whose input and state are side by side."""
    kernel = weight(WIDTH + UNITS, 4 * UNITS)

    def cell(x, state):
        i, j, f, o = fb.split(fb.matmul(fb.concat([x, state[1]], 1), kernel), 4, axis=1)
        c = fb.sigmoid(f) * state[0] + fb.sigmoid(i) * fb.tanh(j)
        h = fb.sigmoid(o) * fb.tanh(c)
        return h, (c, h)

    return cell, pair()


@pytest.mark.parametrize(("make", "rtol"), [(written_out, 0), (CELLS["lstm"], 1e-12)])
def test_recomputing_steps(make, rtol):
    x = fb.placeholder(fb.float64, [BATCH, STEPS, WIDTH])
    cell, start = make()
    found = []
    for recompute in (False, True):
        outputs, _ = fb.nn.dynamic_rnn(cell, x, start, LENGTHS, recompute=recompute)
        found.append(fb.gradients(outputs, [x])[0])
    kept, again = [fb.forecast(g, {x: X}, trips=STEPS).stack_bytes for g in found]
    assert again < kept / 2
    with fb.Session() as sess:
        one, other = sess.run(found, {x: X})
    np.testing.assert_allclose(one, other, rtol=rtol)


def of_all_steps():
    """The products of matrices with the inputs of all steps."""
    ops = fb.get_default_graph().operations
    return [op for op in ops if op.type == "MatMul" and op.outputs[0].shape.rank == 3]


def test_what_cells_make_of_inputs_alone_is_computed_before_the_loop():
    x = fb.placeholder(fb.float64, [None, None, WIDTH])
    start = fb.zeros([fb.shape(x)[0], UNITS], fb.float64)
    fb.nn.dynamic_rnn(gru(), x, start, LENGTHS)
    inside = [op for op in x.graph.operations if op.type == "MatMul" and op.context is not None]
    assert [op.inputs[1].shape[0] for op in inside] == [UNITS, UNITS]
    assert [op.context for op in of_all_steps()] == [None, None]
    fb.layers.lstm(x, UNITS)
    fb.layers.gru(x, UNITS)
    assert [op.context for op in of_all_steps()] == [None] * 5
    assert not any(op.type == "ReadVariable" and op.context for op in x.graph.operations)


def test_what_is_computed_before_the_loop_runs_where_the_cell_asks_for():
    kernel = weight(WIDTH + UNITS, UNITS)

    def cell(x, h):
        with fb.device("/device:cpu:0"), fb.name_scope("mine"):
            return fb.nn.rnn_cell(x, h, kernel)

    fb.nn.dynamic_rnn(cell, fb.constant(X), zeros(BATCH, UNITS))
    [product] = of_all_steps()
    assert product.device == "/device:cpu:0"
    assert product.name == "dynamic_rnn/while/mine/rnn_cell/MatMul"


def test_what_is_not_there_before_the_loop_is_computed_in_it():
    x = fb.constant(X)
    start, matrix, row = zeros(BATCH, UNITS), weight(WIDTH + UNITS, UNITS), weight(UNITS)
    variable = fb.Variable(RANDOM.normal(size=(WIDTH + UNITS, UNITS)))
    step = fb.nn.rnn_cell
    cells = [
        lambda x, h: step(x * 2.0, h, matrix),
        lambda x, h: step(x, h, matrix + fb.reduce_sum(h)),
        lambda x, h: step(x, h, matrix, row * h[0]),
        lambda x, h: step(x, h, variable),
        lambda x, h: step(h[:, :WIDTH], h, matrix),
        lambda x, h: fb.cond(h[0, 0] > 0, lambda: step(x, h, matrix), lambda: (h, h)),
        # Here the input is the memory, and the state is what has this name elsewhere.
        lambda x, h: (h, step(h, x, matrix)[0]),
    ]
    found = [fb.nn.dynamic_rnn(cell, x, start)[0] for cell in cells]
    assert not of_all_steps()
    wanted = [fb.nn.static_rnn(cell, fb.unstack(x, axis=1), start)[0] for cell in cells]
    with fb.Session() as sess:
        for one, other in zip(*sess.run([found, wanted]), strict=True):
            np.testing.assert_allclose(one, np.stack(other, 1), rtol=1e-12)


def test_an_element_of_something_within_the_loop_is_no_input():
    kernel = weight(WIDTH + UNITS, UNITS)

    def body(i, h):
        inside = fb.constant(X) + fb.reduce_sum(h)
        return i + 1, fb.nn.rnn_cell(Elements(inside).at(0), h, kernel)[0]

    _, found = fb.while_loop(lambda i, h: i < 2, body, (0, zeros(STEPS, UNITS)))
    h = np.zeros((STEPS, UNITS))
    with fb.Session() as sess:
        last, matrix = sess.run([found, kernel])
    for _ in range(2):
        h = np.tanh(np.concatenate([X[0] + h.sum(), h], 1) @ matrix)
    np.testing.assert_allclose(last, h, rtol=1e-12)


def test_what_comes_after_the_longest_sequence_is_not_looked_at():
    kernel = weight(WIDTH + UNITS, UNITS)
    x = fb.placeholder(fb.float64, [BATCH, None, WIDTH])
    cell = lambda x, h: fb.nn.rnn_cell(x, h, kernel)  # noqa: E731
    outputs, _ = fb.nn.dynamic_rnn(cell, x, zeros(BATCH, UNITS), [2, 2, 2])
    found = fb.gradients(outputs, [kernel, x])
    value = X.copy()
    value[:, 2:] = np.nan
    with fb.Session() as sess:
        slopes = sess.run(found, {x: value})
        wanted = sess.run(found, {x: X})
    for one, other in zip(slopes, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not slopes[1][:, 2:].any()


def _as_scan(cell, x, start):
    """Steps come first; the state alone is what `fn` gives."""
    states = fb.scan(lambda state, step: cell(step, state)[1], x, start)
    return states[-1] if isinstance(start, tuple) else states


def _in_a_branch(cell, x, start):
    return fb.cond(fb.reduce_sum(x) < 1e9, lambda: _as_scan(cell, x, start), lambda: x[:, :, :1])


def _in_a_loop(cell, x, start):
    """The second of the two inner loops takes what the first one gives, widened or narrowed."""
    shape = fb.shape(x)[0]

    def body(i, total, y):
        given = _as_scan(cell, y, start)
        return i + 1, total + given, y + fb.reduce_mean(given, [2], keepdims=True)

    total = fb.zeros([shape, BATCH, UNITS], fb.float64)
    return fb.while_loop(lambda i, *_: i < 2, body, (0, total, x))[1]


def _along(cell, x, start):
    return fb.nn.dynamic_rnn(cell, x, start, time_major=True)[0]


@pytest.mark.parametrize(
    ("kind", "way"),
    [("gru", _along), ("lstm", _as_scan), ("simple", _in_a_branch), ("lstm", _in_a_loop)],
)
def test_before_the_loop_and_in_it(kind, way):
    """Values and gradients, also second ones, in the first run and in those after it."""
    x = fb.placeholder(fb.float64, [None, BATCH, WIDTH])
    cell, start = CELLS[kind]()
    weights = [op.outputs[0] for op in x.graph.operations if op.type == "Const"]
    weights = [w for w in weights if w.shape.rank == 2]
    found = []
    # What is multiplied by one is no element of the inputs.
    for each in (cell, lambda x, state: cell(x * 1.0, state)):
        y = way(each, x, start)
        slopes = fb.gradients(fb.square(y), [x, *weights])
        slopes = [g for g in slopes if g is not None]
        found.append([y, *slopes, *fb.gradients(fb.square(slopes[1]), [x, weights[0]])])
    assert of_all_steps()
    with fb.Session() as sess:
        for steps in (3, 0, 3):
            value = RANDOM.normal(size=(steps, BATCH, WIDTH))
            for one, other in zip(*sess.run(found, {x: value}), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def test_time_may_come_first():
    x = fb.placeholder(fb.float64, [None, None, WIDTH])
    cell = simple()
    start = fb.zeros([fb.shape(x)[0], UNITS], fb.float64)
    outputs, state = fb.nn.dynamic_rnn(cell, x, start, LENGTHS)
    turned, same = fb.nn.dynamic_rnn(
        cell, fb.transpose(x, [1, 0, 2]), start, LENGTHS, time_major=True
    )
    assert outputs.shape == [BATCH, None, UNITS]
    with fb.Session() as sess:
        found = sess.run([outputs, state, turned, same], {x: X})
    np.testing.assert_array_equal(found[0], found[2].transpose(1, 0, 2))
    np.testing.assert_array_equal(found[1], found[3])
    np.testing.assert_array_equal(found[0][0, 2:], 0)
    np.testing.assert_array_equal(found[0][0, 1], found[1][0])
    np.testing.assert_array_equal(found[1][1], 0)


def test_no_steps():
    x = fb.placeholder(fb.float64, [BATCH, None, WIDTH])
    outputs, state = fb.nn.dynamic_rnn(simple(), x, weight(BATCH, UNITS))
    with fb.Session() as sess:
        found = sess.run([outputs, state], {x: X[:, :0]})
    assert found[0].shape == (BATCH, 0, UNITS)
    assert found[1].all()


def test_inputs_and_states_may_be_structures():
    x = fb.placeholder(fb.float64, [BATCH, STEPS, WIDTH])
    ids = fb.constant(np.arange(BATCH * STEPS).reshape(BATCH, STEPS))

    def cell(step, state):
        total = state["total"] + step["x"]
        return fb.cast(step["ids"], fb.float64), {"total": total, "count": state["count"] + 1}

    start = {"total": zeros(BATCH, WIDTH), "count": fb.zeros([BATCH], fb.int32)}
    outputs, state = fb.nn.dynamic_rnn(cell, {"x": x, "ids": ids}, start, LENGTHS, dtype=fb.float64)
    with fb.Session() as sess:
        found, last = sess.run([outputs, state], {x: X})
    assert last["count"].tolist() == LENGTHS
    assert found.tolist() == [[0, 1, 0, 0], [0, 0, 0, 0], [8, 9, 10, 11]]
    wanted = [X[i, :n].sum(0) for i, n in enumerate(LENGTHS)]
    np.testing.assert_allclose(last["total"], wanted)


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("time_major", [False, True])
def test_both_directions(lengths, time_major):
    x = fb.placeholder(fb.float64, [BATCH, STEPS, WIDTH])
    forwards, backwards = simple(), lstm()
    given = fb.transpose(x, [1, 0, 2]) if time_major else x
    outputs, states = fb.nn.bidirectional_dynamic_rnn(
        forwards, backwards, given, zeros(BATCH, UNITS), pair(), lengths, time_major
    )
    joined = fb.concat(outputs, 2)
    with fb.Session() as sess:
        found, last = sess.run([joined, states], {x: X})
        if time_major:
            found = found.transpose(1, 0, 2)
        for i, n in enumerate(lengths or [STEPS] * BATCH):
            start = [t[:1] for t in pair()]
            rows = [fb.constant(X[i : i + 1, k]) for k in range(n)]
            if not rows:
                assert not found[i].any()
                continue
            one, end = fb.nn.static_rnn(forwards, rows, start[0])
            other, begin = fb.nn.static_rnn(backwards, rows[::-1], tuple(start))
            wanted = sess.run([fb.concat(one, 0), end, fb.concat(other[::-1], 0), begin])
            np.testing.assert_allclose(found[i, :n, :UNITS], wanted[0], rtol=1e-10)
            np.testing.assert_allclose(found[i, :n, UNITS:], wanted[2], rtol=1e-10)
            np.testing.assert_allclose(last[0][i], wanted[1][0], rtol=1e-10)
            np.testing.assert_allclose(last[1][1][i], wanted[3][1][0], rtol=1e-10)
            assert not found[i, n:].any()


def test_dropout_differs_between_steps_and_the_state_keeps_all():
    x = fb.ones([2, 6, 50])

    def adding(step, state):
        return step, state + step

    cell = fb.nn.dropout_cell(adding, output_rate=0.5, seed=1)
    outputs, state = fb.nn.dynamic_rnn(cell, x, fb.zeros([2, 50]))
    inputs = fb.nn.dropout_cell(adding, input_rate=0.5, seed=1)
    both = fb.nn.dynamic_rnn(inputs, x, fb.zeros([2, 50]))
    none, _ = fb.nn.dynamic_rnn(fb.nn.dropout_cell(adding), x, fb.zeros([2, 50]))
    with fb.Session() as sess:
        found, total, (dropped, sums), whole = sess.run([outputs, state, both, none])
    assert set(np.unique(found)) == {0, 2}
    assert len({found[:, k].tobytes() for k in range(6)}) == 6
    np.testing.assert_array_equal(total, 6)
    np.testing.assert_array_equal(sums, dropped.sum(1))
    assert set(np.unique(dropped)) == {0, 2}
    np.testing.assert_array_equal(whole, 1)


def test_layers_of_an_unknown_number_of_steps():
    known = fb.placeholder(fb.float32, [2, 3, 4])
    unknown = fb.placeholder(fb.float32, [None, None, 4])
    value = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
    for layer in (fb.layers.lstm, fb.layers.gru):
        wanted, _ = layer(known, 5, sequence_length=[3, 1], name="layer")
        shared = {
            v.name.removeprefix("layer/")
            .removesuffix(":0")
            .replace("gates/", "gate_")
            .replace("candidate/", "candidate_"): v
            for v in fb.get_default_graph().variables()
        }
        found, _ = layer(unknown, 5, sequence_length=[3, 1], **shared)
        looped, _ = layer(known, 5, sequence_length=[3, 1], unroll=False, **shared)
        assert found.shape == [2, None, 5]
        with fb.Session() as sess:
            each = sess.run([wanted, found, looped], {known: value, unknown: value})
        np.testing.assert_allclose(each[1], each[0], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(each[2], each[0], rtol=1e-6, atol=1e-7)
        with pytest.raises(fb.errors.InvalidArgumentError, match="unroll=False makes it a loop"):
            layer(unknown, 5, unroll=True, **shared)
        fb.reset_default_graph()
        known = fb.placeholder(fb.float32, [2, 3, 4])
        unknown = fb.placeholder(fb.float32, [None, None, 4])


def test_it_learns_to_remember():
    """The first of some bits is told at the end of sequences of different lengths."""
    bits = fb.placeholder(fb.float32, [None, None, 1])
    lengths = fb.placeholder(fb.int32, [None])
    _, (_, last) = fb.layers.lstm(bits, 8, sequence_length=lengths)
    logits = fb.layers.dense(last, 1)
    labels = bits[:, 0]
    loss = fb.reduce_mean(fb.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    train = fb.train.AdamOptimizer(0.05).minimize(loss)
    random = np.random.default_rng(0)
    fb.set_random_seed(1)
    with fb.Session() as sess:
        for steps in [5, 7, 6] * 30:
            value = random.integers(0, 2, (16, steps, 1)).astype(np.float32)
            feeds = {bits: value, lengths: random.integers(1, steps + 1, 16)}
            found, _ = sess.run([loss, train], feeds)
    assert found < 0.2


def test_what_cannot_be_is_refused():
    x = fb.placeholder(fb.float64, [BATCH, STEPS, WIDTH])
    start, wrong_type = zeros(BATCH, UNITS), fb.errors.InvalidTypeError
    wrong = fb.errors.InvalidArgumentError
    with pytest.raises(wrong_type, match="a cell is a function"):
        fb.nn.dynamic_rnn(None, x, start)
    with pytest.raises(wrong_type, match="an output and the next state"):
        fb.nn.dynamic_rnn(lambda x, h: h, x, start)
    with pytest.raises(wrong_type, match="output of a cell is a tensor"):
        fb.nn.dynamic_rnn(lambda x, h: (None, h), x, start)
    with pytest.raises(wrong_type, match=r"dtype gives fb.float64, but the cell a tuple of 2"):
        fb.nn.dynamic_rnn(lambda x, h: ((x, x), h), x, start)
    with pytest.raises(wrong_type, match="no initial_state, and the cell has no state_size"):
        fb.nn.dynamic_rnn(simple(), x, dtype=fb.float64)
    with pytest.raises(wrong_type, match="no initial_state, and no dtype is given either"):
        fb.nn.dynamic_rnn(Summing(), x)
    with pytest.raises(wrong_type, match=r"several dtypes, .*, none of which is the state's"):
        fb.nn.dynamic_rnn(Summing(), x, dtype=(fb.float64, fb.int32))
    with pytest.raises(
        wrong_type, match=r"initial_state gives the tensor .* the cell a tuple of 2"
    ):
        fb.nn.dynamic_rnn(lambda x, h: (x, (h, h)), x, start)
    with pytest.raises(wrong, match="no batch of sequences"):
        fb.nn.dynamic_rnn(simple(), x[0, 0], start)
    with pytest.raises(wrong, match=r"as many elements: inputs\[0\] \[4, 3, 2\]"):
        fb.nn.dynamic_rnn(lambda x, h: (h, h), (x, x[:, :2]), start)
    with pytest.raises(wrong, match="2 lengths for 3 examples"):
        fb.nn.dynamic_rnn(simple(), x, start, [1, 2])
    with pytest.raises(wrong_type, match="sequence_length is integer"):
        fb.nn.dynamic_rnn(simple(), x, start, [1.0, 2.0, 3.0])
    with pytest.raises(wrong_type, match="float64 where float32 is wanted"):
        fb.nn.dynamic_rnn(simple(), x, start, dtype=fb.float32)
    with pytest.raises(wrong, match="a state is a tensor"):
        fb.nn.dynamic_rnn(lambda x, h: (x, h), x, ())
    with pytest.raises(wrong, match="there is no cell"):
        fb.nn.stacked_cell([])
    with pytest.raises(wrong_type, match="a list of cells"):
        fb.nn.stacked_cell(simple())
    with pytest.raises(wrong, match="states of 2 cells"):
        fb.nn.stacked_cell([simple(), simple()])(x[:, 0], start)
