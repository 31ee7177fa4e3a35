"""Generated code: what it computes, when it lets go of values, how it splits, what failed."""

import gc
import weakref

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.engine import segment
from flowbook.exec.plan.failure import deadline_after
from tests.exec.state.executors import runner_of


@pytest.fixture
def sess():
    with fb.Session() as session:
        yield session


def source(sess, fetches, feeds=()):
    _, runner = runner_of(sess, fetches, dict.fromkeys(feeds))
    return runner._generate(runner._setting, with_deadline=False).text


def test_expressions_are_inlined_and_locals_reused(sess):
    x = fb.placeholder(fb.float32, [2])
    y = fb.negative(fb.exp(fb.negative(x)))
    text = source(sess, y, [x])
    assert text.splitlines() == [
        "def step(f0, xp=xp):",
        "    f0 = xp_negative(f0)",
        "    f0 = xp_exp(f0)",
        "    f0 = xp_negative(f0)",
        "    return (scalar(f0),)",
    ]


def test_a_value_needed_later_keeps_its_local(sess):
    x = fb.placeholder(fb.float32, [2])
    a = fb.exp(x)
    y = fb.negative(a) * a
    text = source(sess, [y, x], [x])
    assert text.splitlines()[1:] == [
        "    v1 = xp_exp(f0)",
        "    v2 = xp_negative(v1)",
        "    v1 = xp_multiply(v2, v1); v2 = None",
        "    return (scalar(v1), copied(f0),)",
    ]


class Watched:
    """Operations that note which of their results are still alive when the next one runs."""

    def __init__(self):
        self.references = []
        self.alive = []
        self.op = fb.OpDef(
            "Watched",
            "inputs: N*float32 -> output: float32",
            attributes={"note": ""},
            infer=lambda inputs, note: fb.Shape([4]),
            kernel=self.run,
            aliases={},
        )
        self.two = fb.OpDef(
            "WatchedTwo",
            "x: float32 -> a: float32, b: float32",
            infer=lambda x: [fb.Shape([4])] * 2,
            kernel=lambda xp, x: (self.fresh("a"), self.fresh("b")),
            aliases={},
        )

    def fresh(self, note):
        made = np.zeros(4, np.float32)
        self.references.append((note, weakref.ref(made)))
        return made

    def run(self, xp, *inputs, note):
        gc.collect()
        self.alive.append((note, [n for n, made in self.references if made() is not None]))
        return self.fresh(note)


@pytest.mark.parametrize("longest", [4000, 2, 1])
@pytest.mark.parametrize("timeout", [None, 100.0])
def test_values_are_freed_at_their_last_use(sess, monkeypatch, longest, timeout):
    monkeypatch.setattr(segment, "LONGEST", longest)
    watched = Watched()
    x = fb.placeholder(fb.float32, [4])
    a = watched.op([x], note="a1")
    b = watched.op([a], note="b1")
    c = watched.op([a, b], note="c1")
    _, unused = watched.two(c)
    d = watched.op([unused], note="d1")
    e = watched.op([d], note="e1")
    for _ in range(3):  # The reference, then generated code.
        watched.references.clear()
        watched.alive.clear()
        sess.run([e, c], {x: np.zeros(4)}, timeout=timeout)
        assert watched.alive == [
            ("a1", []),
            ("b1", ["a1"]),
            ("c1", ["a1", "b1"]),
            ("d1", ["c1", "b"]),
            ("e1", ["c1", "d1"]),
        ]


@pytest.mark.parametrize("longest", [1, 2, 3, 7])
def test_long_code_is_split(sess, monkeypatch, longest):
    x, y = fb.placeholder(fb.float32, [3]), fb.placeholder(fb.float32, [3])
    v = fb.Variable([1.0, 2.0, 3.0])
    a = fb.exp(x) + v
    first, second, _ = fb.unstack(a * 2.0)
    b = fb.stack([second, first]) * 3.0
    update = fb.assign_add(v, a)
    fetches = [b, x, a, fb.constant([7.0]), first, update, fb.constant(3.0), [y, b], update.op]
    feeds = {x: np.arange(3, dtype=np.float32), y: np.ones(3, np.float32)}
    with fb.Session() as other:
        expected = [other.run(fetches, feeds) for _ in range(4)]
    monkeypatch.setattr(segment, "LONGEST", longest)
    found = [sess.run(fetches, feeds, timeout=t) for t in (None, None, 100.0, None)]
    assert repr(found) == repr(expected)
    prepared, runner = runner_of(sess, fetches, {x: None, y: None})
    assert len(runner._segment.stretches) == -(-len(prepared.program.parts[0].nodes) // longest)


@pytest.mark.parametrize("longest", [4000, 2])
def test_a_failure_is_found_in_its_part(sess, monkeypatch, longest):
    monkeypatch.setattr(segment, "LONGEST", longest)
    x = fb.placeholder(fb.float32, name="x")
    y = fb.placeholder(fb.float32, name="y")
    chain = x
    for _ in range(5):
        chain = fb.negative(chain)
    wrong = fb.add(chain, y, name="wrong")
    end = fb.exp(fb.exp(wrong))
    for timeout in (None, None, 100.0):
        with pytest.raises(ValueError, match="Add 'wrong'") as caught:
            sess.run(end, {x: np.ones(2), y: np.ones(3)}, timeout=timeout)
        assert "given [2]" in str(caught.value)
        assert "given [3]" in str(caught.value)
        assert caught.value.operation is wrong.op


def test_the_variant_with_a_deadline_looks_at_the_clock(sess):
    x = fb.placeholder(fb.float32, [2])
    y = fb.exp(fb.negative(x))
    _, runner = runner_of(sess, y, {x: None})
    generated = runner._generate(runner._setting, with_deadline=True)
    assert generated.text.count("if clock() > deadline: raise late()") == 2
    assert generated.function(deadline_after(100.0), np.zeros(2, np.float32))[0].tolist() == [1, 1]
    with pytest.raises(fb.errors.DeadlineExceededError):
        generated.function(deadline_after(0.0) - 1.0, np.zeros(2, np.float32))


def test_attributes_that_are_no_literals(sess):
    op = fb.OpDef(
        "TakesAnything",
        "x: float32 -> y: float32",
        attributes={"none": None, "low": -1, "text": "a'b", "array": 0, "flag": True},
        infer=lambda x, **_: x.shape,
        kernel=lambda xp, x, low, flag, array, text, none: (
            x + xp.float32(low + flag) + array.sum() + xp.float32(len(text)) * (none is None)
        ),
    )
    x = fb.placeholder(fb.float32, [2])
    y = op(x, array=np.ones(3, np.float32))
    for _ in range(3):
        assert sess.run(y, {x: [1.0, 2.0]}).tolist() == [7.0, 8.0]


def test_a_plan_without_operations(sess):
    x = fb.placeholder(fb.float32, [2])
    for _ in range(3):
        assert sess.run([x, fb.constant(1.0)], {x: [1.0, 2.0]})[1] == 1.0
        assert sess.run([], {x: [1.0, 2.0]}) == []


def test_generated_code_takes_results_unchecked_unless_shapes_are_unsure(sess):
    x = fb.placeholder(fb.float32, [2])
    mine = fb.OpDef("MineToCheck", "x: float32 -> y: float32", kernel=lambda xp, x: x)
    shape = fb.constant([2, 1])
    y = mine(fb.reshape(x, shape))
    assert "checked" not in source(sess, y, [x])
    assert source(sess, y, [x, shape]).count("checked") == 2
