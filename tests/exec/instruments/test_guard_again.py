"""A guard asked for again finds what the first one left: nothing is compiled a second time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flowbook as fb
from flowbook.exec.engine.code import generate
from flowbook.exec.local import placing
from tests.exec.state.threads import run_together


class Made:
    """What was prepared, and how many functions were generated."""

    def __init__(self) -> None:
        self.prepared = 0
        self.generated = 0

    def take(self) -> tuple[int, int]:
        found = self.prepared, self.generated
        self.prepared = self.generated = 0
        return found


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    noted = Made()
    grow, generated = placing.grow, generate.Generated

    def preparing(*args: Any) -> Any:
        noted.prepared += 1
        return grow(*args)

    def generating(*args: Any) -> Any:
        noted.generated += 1
        return generated(*args)

    monkeypatch.setattr(placing, "grow", preparing)
    monkeypatch.setattr(generate, "Generated", generating)
    return noted


@pytest.fixture
def sess() -> Iterator[fb.Session]:
    with fb.Session() as session:
        yield session


def kept(sess: fb.Session) -> int:
    """How many programs the session keeps."""
    prepared = sess._master._programs.all
    assert {*prepared} == {*sess._master._programs.kept}
    return len(prepared)


def test_thirty_entries_compile_once_and_keep_one_program(sess: fb.Session, made: Made) -> None:
    x = fb.placeholder(fb.float32, [])
    W = fb.Variable(1.0)
    train = fb.train.GradientDescentOptimizer(0.1).minimize(fb.square(W) * x)
    for _ in range(3):
        sess.run(train, {x: 1.0})
    made.take()
    plain = kept(sess)
    with sess.guard(allow=["some", "other"]):
        for _ in range(3):
            sess.run(train, {x: 1.0})
    assert made.take() == (1, 1)
    for turn in range(30):
        with sess.guard(allow=["other", "some"] if turn % 2 else ("some", "other", "other")):
            for _ in range(3):
                sess.run(train, {x: 1.0})
        sess.run(train, {x: 1.0})
    assert made.take() == (0, 0)
    assert kept(sess) == plain + 1


def test_entries_that_allow_something_else_are_others(sess: fb.Session, made: Made) -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    y = fb.log(x, name="logs")
    for allow, gives in (((), False), ("logs", True), ((), False), ("logs", True)):
        with sess.guard(allow=allow):
            if gives:
                assert str(sess.run(y, {x: -1.0})) == "nan"
            else:
                with pytest.raises(fb.errors.InvalidArgumentError, match="'logs'"):
                    sess.run(y, {x: -1.0})
    assert made.take()[0] == 2


def test_partial_runs_and_callables_find_theirs_too(sess: fb.Session, made: Made) -> None:
    x = fb.placeholder(fb.float32, [])
    y = fb.log(x)
    called = sess.make_callable(y, [x])
    for turn in range(4):
        with sess.guard():
            assert sess.partial_run(y, [x]).run(y, {x: 1.0}) == 0.0
            for _ in range(3):
                assert called(1.0) == 0.0
        # The callable's plain signature, and two under the guard.
        assert made.take() == ((3, 1) if not turn else (0, 0))
    assert kept(sess) == 3


def test_a_guard_goes_with_what_a_cell_redefined(sess: fb.Session) -> None:
    x = fb.placeholder(fb.float32, [])
    y = fb.log(x)
    for _ in range(3):
        with sess.guard():
            sess.run(y, {x: 1.0})
    assert kept(sess) == 1
    sess.graph.members.retire(y.op)
    z = fb.exp(x)
    with sess.guard():
        sess.run(z, {x: 1.0})
    assert kept(sess) == 1


def guards(sess: fb.Session, y: fb.Tensor, x: fb.Tensor) -> bool:
    try:
        sess.run(y, {x: -1.0})
    except fb.errors.InvalidArgumentError:
        return True
    return False


def test_the_outer_of_two_guards_goes_on_after_the_inner(sess: fb.Session) -> None:
    x = fb.placeholder(fb.float32, [])
    y = fb.log(x, name="logs")
    with sess.guard():
        with sess.guard(allow="logs"):
            assert not guards(sess, y, x)
            with sess.guard():
                assert guards(sess, y, x)
            assert not guards(sess, y, x)
        assert guards(sess, y, x)
    assert not guards(sess, y, x)
    assert sess._instruments.all == ()


def test_a_guard_for_good_goes_on_after_a_block_and_is_replaced_by_another(
    sess: fb.Session,
) -> None:
    x = fb.placeholder(fb.float32, [])
    y = fb.log(x, name="logs")
    sess.guard()
    with sess.guard(allow="logs"):
        assert not guards(sess, y, x)
    assert guards(sess, y, x)
    sess.guard(allow="logs")
    assert not guards(sess, y, x)
    assert len(sess._instruments.all) == 1
    with sess.guard():
        assert guards(sess, y, x)
        sess.guard(nonfinite=False)
        assert not guards(sess, y, x)
    assert sess._instruments.all == ()


def test_guards_that_end_in_another_order(sess: fb.Session) -> None:
    x = fb.placeholder(fb.float32, [])
    y = fb.log(x, name="logs")
    strict, lax = sess.guard(), sess.guard(allow="logs")
    # As two threads that enter what they have made.
    strict.__enter__()
    assert guards(sess, y, x)
    lax.__enter__()
    assert not guards(sess, y, x)
    strict.__exit__(None, None, None)
    assert not guards(sess, y, x)
    lax.__exit__(None, None, None)
    assert sess._instruments.all == ()
    again = sess.guard()
    later = sess.guard(allow="logs")
    again.remove()
    with later:
        pass
    assert sess._instruments.all == ()


def test_two_threads_guard_at_once(sess: fb.Session) -> None:
    x = fb.placeholder(fb.float32, [])
    y = fb.log(x)

    def work() -> None:
        for _ in range(50):
            with sess.guard():
                assert sess.run(y, {x: 1.0}) == 0.0
                assert guards(sess, y, x)

    run_together(work, work)
    assert sess._instruments.all == ()
    assert not guards(sess, y, x)
