"""What loops and branches did when they ran last, told by whatever ran them."""

import gc
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.session.session import Session
from tests.exec.state.gates import Gate, gates, wait_op


def sides_of(session: Session) -> dict[str, int | None]:
    """Which side was taken, by the predicates' scopes."""
    named = {op.id: op.inputs[-1].op.name for op in session.graph.operations if op.type == "Switch"}
    found = {named[switch]: side for switch, side in session.ran().sides.items()}
    return {name.rpartition("/")[0]: s for name, s in found.items() if name.endswith("pred_id")}


def nested() -> tuple[fb.Tensor, fb.Tensor]:
    """A loop and a branch in a loop, and a loop on one side of a branch."""
    p = fb.placeholder(fb.bool, [], name="p")

    def body(i: fb.Tensor, t: fb.Tensor) -> Any:
        def inner(j: fb.Tensor, t: fb.Tensor) -> Any:
            return j + 1, fb.cond(t > 20, lambda: t - 1, lambda: t + 3, name="limit")

        return i + 1, fb.while_loop(lambda j, t: j < 7, inner, (0, t), name="inner")[1]

    _, t = fb.while_loop(lambda i, t: i < 5, body, (0, 0), name="outer")

    def small() -> Any:
        return fb.while_loop(lambda k: k < 3, lambda k: k + 1, [0], name="small")[0]

    return p, fb.cond(p, lambda: t * 2, small, name="choice")


@pytest.mark.parametrize("executor", ["run_reference", "run_checked", "run_regions", "run"])
def test_every_executor_tells_the_same(executor: str) -> None:
    p, y = nested()
    with fb.Session() as sess:
        sess.run(y, {p: True})
        sess.run(y, {p: True})
        (runner,) = [kept.runner for kept in sess._master._programs.kept.values()]  # type: ignore[attr-defined]
        getattr(runner, executor)([np.bool_(False)])
        assert sess.trips == {"outer": 5, "outer/inner": 35, "choice/small": 3}
        assert sides_of(sess) == {"outer/inner/limit": 1, "choice": 0}
        getattr(runner, executor)([np.bool_(True)])
        assert sess.trips == {"outer": 5, "outer/inner": 35, "choice/small": 0}
        assert sides_of(sess) == {"outer/inner/limit": 1, "choice": 1}


def test_the_first_run_counts_and_what_it_said_outlives_its_code() -> None:
    p, y = nested()
    with fb.Session() as sess:
        assert sess.trips == {}
        sess.run(y, {p: False})
        gc.collect()
        assert sess.trips == {"outer": 5, "outer/inner": 35, "choice/small": 3}
    # And the session.
    assert sess.trips["choice/small"] == 3


def test_the_latest_of_several_programs_counts() -> None:
    n = fb.placeholder(fb.int32, [], name="n")
    last = fb.while_loop(lambda i: i < n, lambda i: i + 1, [0], name="count")[0]
    fetches = [last, last * 2]
    with fb.Session() as sess:
        for turn, trips in enumerate((3, 0, 8, 5, 1, 9)):
            sess.run(fetches[turn % 2], {n: trips})
            assert sess.trips == {"count": trips}


def test_a_run_that_fails_does_not_count() -> None:
    n = fb.placeholder(fb.int32, [], name="n")

    def body(i: fb.Tensor) -> Any:
        with fb.control_dependencies([fb.Assert(i < 4, ["too far"])]):
            return i + 1

    last = fb.while_loop(lambda i: i < n, body, [0], name="count")[0]
    with fb.Session() as sess:
        sess.run(last, {n: 3})
        for _ in range(3):
            with pytest.raises(fb.errors.InvalidArgumentError):
                sess.run(last, {n: 6})
            assert sess.trips == {"count": 3}


def test_a_branch_that_a_run_does_not_come_to_took_no_side() -> None:
    n = fb.placeholder(fb.int32, [], name="n")

    def body(i: fb.Tensor) -> Any:
        return fb.cond(i > 1, lambda: i + 2, lambda: i + 1, name="step")

    last = fb.while_loop(lambda i: i < n, body, [0], name="count")[0]
    with fb.Session() as sess:
        for _ in range(2):
            sess.run(last, {n: 2})
            assert sides_of(sess) == {"count/step": 0}
            sess.run(last, {n: 0})
            assert sides_of(sess) == {"count/step": None}


def test_a_loop_beside_what_waits_is_counted_by_the_state_machine() -> None:
    gate = gates["counted"] = Gate()
    gate.is_open = True
    x = fb.placeholder(fb.int32, [])
    n = wait_op(x, gate="counted")
    last = fb.while_loop(lambda i: i < n, lambda i: i + 1, [0], name="count")[0]
    with fb.Session() as sess:
        for trips in (7, 4, 0):
            sess.run(last, {x: trips})
            assert sess.trips == {"count": trips}
