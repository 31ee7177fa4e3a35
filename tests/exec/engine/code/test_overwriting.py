"""Results that are put where a dying input lay: which ones, and that nobody sees it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.engine.code import overwriting
from tests.exec.state.executors import runner_of

SIDE = 200
FIRST = np.linspace(-1, 1, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)


@pytest.fixture
def sess():
    with fb.Session() as session:
        yield session


@pytest.fixture
def x():
    return fb.placeholder(fb.float32, [SIDE, SIDE], name="x")


def overwriting_lines(sess, fetches, feeds):
    """The lines of the code for a run that put a result where an input lay."""
    _, runner = runner_of(sess, fetches, feeds)
    text = runner._generate(runner._setting, with_deadline=False).text
    return [line.strip() for line in text.splitlines() if "c_contiguous" in line]


def test_a_large_result_lies_where_its_dying_input_lay(sess, x):
    y = -(fb.exp(x) + 1.0)
    found = overwriting_lines(sess, y, {x: FIRST})
    assert found == [
        "f0 = xp_add(f0, c0, out=f0 if f0.flags.c_contiguous else None)",
        "f0 = xp_negative(f0, out=f0 if f0.flags.c_contiguous else None)",
    ]


def views(x):
    made = fb.exp(x)
    row = made[0]
    return [made * 2.0, row]


def functions(x):
    seen = []
    made = fb.exp(x)
    kept = fb.py_func(lambda a: seen.append(a) or a.sum(), [made], fb.float32)
    with fb.control_dependencies([kept]):
        return [made * 2.0, kept]


keep = fb.OpDef(
    "KeepsWhatItIsGiven",
    "x: float32 -> total: float32",
    infer=lambda x: fb.Shape([]),
    kernel=lambda xp, x: KEPT.append(x) or x.sum(),
    aliases={},
)
KEPT = []


def users(x):
    made = fb.exp(x)
    kept = keep(made)
    with fb.control_dependencies([kept]):
        return [made * 2.0, kept]


def fed(x):
    return [x * 2.0]


def fetched(x):
    made = fb.exp(x)
    return [made, made * 2.0]


def read(x):
    variable = fb.Variable(FIRST)
    return [variable * 2.0, variable]


def narrower(x):
    return [fb.greater(fb.exp(x), 1.0)]


def broadcast(x):
    return [fb.exp(x)[:1] + x]


def small(x):
    return [-fb.exp(fb.reduce_sum(x, axis=0))]


@pytest.mark.parametrize(
    "build", [views, functions, users, fed, fetched, read, narrower, broadcast, small]
)
def test_what_somebody_may_still_see_is_not_overwritten(sess, x, build):
    fetches = build(x)
    given = FIRST.copy()
    expected = sess.run(fetches, {x: given})
    assert overwriting_lines(sess, fetches, {x: given}) == []
    for _ in range(3):
        found = sess.run(fetches, {x: given})
        for one, other in zip(found, expected, strict=True):
            assert np.array_equal(one, other)
    assert np.array_equal(given, FIRST)


def test_the_order_of_elements_is_as_in_the_first_run(sess, x):
    # What a kernel makes of transposed matrices lies by columns; sums of it would differ.
    turned = fb.exp(fb.transpose(x))
    y = fb.reduce_sum(turned + x * 1e-3, axis=0)
    first = sess.run(y, {x: FIRST})
    for _ in range(3):
        assert sess.run(y, {x: FIRST}).tobytes() == first.tobytes()


ELEMENTWISE = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: fb.maximum(a, b),
    lambda a, b: -a,
    lambda a, b: a * 0.5,
]
OTHERS = [
    # Views, and what makes none.
    lambda a, b: fb.reshape(a, [4, 3]),
    lambda a, b: fb.transpose(a),
    lambda a, b: fb.identity(a),
    lambda a, b: fb.reverse(a, [0]),
    lambda a, b: fb.concat([a[:1], b[1:]], 0),
    lambda a, b: fb.broadcast_to(a[:1], [3, 4]),
    lambda a, b: fb.matmul(fb.matmul(a, b, transpose_b=True), a),
    # Whole constructs of code.
    lambda a, b: fb.cond(fb.reduce_sum(a) > 0, lambda: a + b, lambda: a),
    lambda a, b: fb.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, -(v + b)), [0, a])[1],
    lambda a, b: fb.cond(fb.reduce_sum(b) > 0, lambda: -fb.exp(a - b), lambda: -(b + 1.0)),
]


@st.composite
def programs(draw):
    """A graph, what to fetch, and what to feed."""
    graph = fb.Graph()
    with graph.as_default():
        fed = fb.placeholder(fb.float32, [3, 4])
        variable = fb.Variable(np.full([3, 4], 0.25, np.float32))
        made = [fed, fb.identity(variable), fb.constant(np.eye(3, 4, dtype=np.float32))]
        for _ in range(draw(st.integers(3, 14))):
            functions = draw(st.sampled_from([ELEMENTWISE, ELEMENTWISE, OTHERS]))
            a, b = (draw(st.sampled_from(made)) for _ in "ab")
            found = draw(st.sampled_from(functions))(a, b)
            made.append(found if found.shape == (3, 4) else fb.reshape(found, [3, 4]))
            if draw(st.integers(0, 5)) == 0:
                with fb.control_dependencies([fb.assign(variable, made[-1])]):
                    made.append(fb.identity(made[-1]))
        fetches = draw(st.lists(st.sampled_from(made[3:]), min_size=1, max_size=3, unique=True))
    values = draw(st.lists(st.integers(-8, 8), min_size=12, max_size=12))
    return graph, fetches, {fed: np.array(values, np.float32).reshape(3, 4)}


@settings(max_examples=100)
@given(programs())
def test_overwriting_changes_no_value(program):
    graph, fetches, feeds = program
    found = []
    for least in (2, 1 << 40):
        with pytest.MonkeyPatch.context() as patch, fb.Session(graph=graph) as sess:
            patch.setattr(overwriting, "_LARGE", least)
            given = {tensor: value.copy() for tensor, value in feeds.items()}
            runs = [sess.run(fetches, given) for _ in range(4)]
            assert all(np.array_equal(given[tensor], value) for tensor, value in feeds.items())
            found.append([[value.tobytes() for value in run] for run in runs])
    assert found[0] == found[1]
