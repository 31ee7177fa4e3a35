"""Who initialises a variable where several threads would; what becomes of values that are lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.resources.variable import VariableResource
from tests.exec.held import held
from tests.exec.state.threads import run_together


class Initial:
    """An initial value that does what it is told each time it is computed."""

    def __init__(self, *turns: Callable[[], Any]) -> None:
        self.turns = turns
        self.calls = 0

    def __call__(self) -> Any:
        turn = self.turns[self.calls]
        self.calls += 1
        return np.float32(turn())

    def variable(self, name: str) -> fb.Variable:
        return fb.Variable(fb.py_func(self, [], fb.float32), name=name)


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when some thread begins to wait for another's initialisation."""
    event = threading.Event()
    wait = VariableResource.wait_for_claim

    def noted(self: VariableResource, seconds: float) -> bool:
        event.set()
        return wait(self, seconds)

    monkeypatch.setattr(VariableResource, "wait_for_claim", noted)
    return event


class Stopped(BaseException):
    """What stops an initialiser as an interrupt would."""


def test_a_claim_is_one_threads_until_it_ends() -> None:
    W = fb.Variable(1.0)
    with fb.Session() as sess:
        resource = held(sess, W)

        def is_free() -> Any:
            """Whether another thread finds nobody initialising it."""
            found: list[bool] = []
            run_together(lambda: found.append(resource.wait_for_claim(0.0)))
            return found[0]

        first, second = threading.Event(), threading.Event()
        assert is_free()
        assert resource.claim(first)
        assert not resource.claim(second)
        assert not resource.claim(first)
        assert not is_free()
        first.set()
        assert is_free()
        assert resource.claim(second)
        # It ends with the frame that held it, where an interrupt kept that from saying so.
        del second
        assert is_free()
        resource.assign(np.float32(2.0))
        assert not resource.claim(threading.Event())


def test_who_waits_finds_the_value(waiting: threading.Event) -> None:
    initial = Initial(lambda: waiting.wait(60) and 3.0)
    W = initial.variable("W")
    with fb.Session() as sess:
        found: list[Any] = []
        run_together(*[lambda: found.append(sess.run(W + 1.0))] * 2)
        assert found == [4.0, 4.0]
        assert initial.calls == 1


@pytest.mark.parametrize("error", [ValueError("not now"), Stopped()], ids=["fails", "is stopped"])
def test_who_waits_goes_on_where_another_failed(
    waiting: threading.Event, error: BaseException
) -> None:
    def fail() -> Any:
        assert waiting.wait(60)
        raise error

    initial = Initial(fail, lambda: 3.0)
    W, V = initial.variable("W"), fb.Variable(1.0, name="V")
    with fb.Session() as sess:
        found: list[Any] = []

        def run() -> None:
            try:
                found.append(sess.run([W, V]))
            except (fb.errors.InvalidArgumentError, Stopped) as caught:
                found.append(type(caught.__cause__ or caught))

        run_together(run, run)
        assert sorted(found, key=str) == sorted([type(error), [3.0, 1.0]], key=str)
        assert initial.calls == 2
        assert sess.graph.values.has_value(W.op)


def test_a_failing_initialiser_leaves_no_claim_behind() -> None:
    initial = Initial(lambda: 1 / 0, lambda: 1 / 0, lambda: 5.0)
    W = initial.variable("W")
    with fb.Session() as sess:
        for _ in range(2):
            with pytest.raises(fb.errors.OpError, match="division"):
                sess.run(W)
            assert held(sess, W).wait_for_claim(0.0)
            assert not sess.graph.values.has_value(W.op)
        assert sess.run(W) == 5.0


@pytest.mark.parametrize("siblings_code", ["users", "none"])
def test_an_initialiser_may_wait_for_a_thread_that_initialises_a_sibling(
    siblings_code: str,
) -> None:
    """It claims no variable but its own: the other thread finds the sibling free."""

    def through_another_thread() -> Any:
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(sess.run(V)), daemon=True)
        thread.start()
        thread.join(60)
        assert found, "the thread hangs"
        return found[0] * 10.0

    W = Initial(through_another_thread).variable("W")
    sibling = Initial(lambda: 4.0)
    V = sibling.variable("V") if siblings_code == "users" else fb.Variable(4.0, name="V")
    with fb.Session() as sess:
        assert sess.run([W, V]) == [40.0, 4.0]
        assert sess.run(fb.add(V, W)) == 44.0
        assert sibling.calls == (siblings_code == "users")


@pytest.fixture
def container() -> Iterator[str]:
    yield "claims"
    fb.reset_container("claims")


@pytest.mark.parametrize("is_partial", [False, True])
def test_a_value_lost_before_the_step_begins_is_initialised_again(
    container: str, is_partial: bool
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    values = iter([1.0, 2.0, 3.0])

    def slow() -> Any:
        begun.set()
        assert go_on.wait(60)
        return 0.0

    with fb.container(container):
        W = fb.Variable(fb.py_func(lambda: np.float32(next(values)), [], fb.float32), name="W")
    # It comes after W, which has been seen to when it waits.
    V = fb.Variable(fb.py_func(lambda w: np.float32(slow() + w), [W], fb.float32), name="V")
    with fb.Session() as sess, fb.Session() as other:

        def first() -> None:
            step = sess.partial_run([W, V]).run if is_partial else sess.run
            assert step([W, V]) == [2.0, 1.0]

        def second() -> None:
            assert begun.wait(60)
            fb.reset_container(container)
            go_on.set()

        run_together(first, second)
        assert sess.run([W, V]) == [2.0, 1.0]
        fb.reset_container(container)
        assert other.run(W) == 3.0
        assert sess.run([W, V]) == [3.0, 1.0]


def test_a_session_with_nothing_lost_asks_for_nothing_again() -> None:
    initial = Initial(lambda: 1.0, lambda: 2.0)
    W = initial.variable("W")
    with fb.Session() as sess, fb.Session() as other:
        assert sess.run(W) == 1.0
        epoch = sess._master.stores.epoch
        assert other.run(W) == 2.0
        assert [sess.run(W) for _ in range(3)] == [1.0] * 3
        assert sess._master.stores.epoch == epoch
        assert initial.calls == 2


# Who has a value


def test_who_has_a_value_is_known_by_events() -> None:
    W, V = fb.Variable(1.0, name="W"), fb.Variable(2.0, name="V")
    has_value = fb.get_default_graph().values.has_value

    def known() -> tuple[bool, bool]:
        return has_value(W.op), has_value(V.op)

    first, second = fb.Session(), fb.Session()
    assert known() == (False, False)
    first.run(W.initializer)
    assert known() == (True, False)
    second.run(fb.assign(V, 5.0))
    assert known() == (True, True)
    fb.get_default_graph().members.forget(W.op)
    first.extend()
    assert known() == (False, True)
    second.run(W)
    assert known() == (True, True)
    first.close()
    assert known() == (True, True)
    second.close()
    assert known() == (False, False)


def test_a_failing_initialiser_gives_no_value() -> None:
    W = Initial(lambda: 1 / 0).variable("W")
    with fb.Session() as sess:
        with pytest.raises(fb.errors.OpError):
            sess.run(W)
        assert not sess.graph.values.has_value(W.op)


def test_a_shared_value_is_everyones(container: str) -> None:
    with fb.container(container):
        W = fb.Variable(1.0, name="W")
    with fb.Session() as first:
        first.run(W)
    assert not fb.get_default_graph().values.has_value(W.op)
    with fb.Graph().as_default() as graph, fb.container(container):
        again = fb.Variable(1.0, name="W")
    with fb.Session() as third, fb.Session(graph):
        assert graph.values.has_value(again.op)
        assert third.graph.values.has_value(W.op)
        fb.reset_container(container)
        assert not graph.values.has_value(again.op)
        assert not third.graph.values.has_value(W.op)
        third.run(W)
        assert graph.values.has_value(again.op)
