"""What has a life of its own ends with the cell that made it, and then says which to re-run."""

import re
from typing import Any

import pytest

import flowbook as fb

FailedPrecondition = fb.errors.FailedPreconditionError

MODEL = "x = fb.placeholder(fb.float32, [], name='x')\ny = x + 1.0\nz = y * 2.0"


@pytest.fixture
def ready(notebook: Any) -> Any:
    notebook.run("model", MODEL)
    notebook.run("session", "sess = fb.Session()")
    return notebook


def test_a_session_says_which_cell_makes_another(ready: Any) -> None:
    ready.run("use", "old = sess; call = sess.make_callable(y, [x])")
    ready.run("session", "1 / 0", fails=True)
    message = (
        "this session is closed: cell [4] ran again, which made it\n"
        "  hint: use the one that cell [4] makes since, or re-run it"
    )
    for run in (
        lambda: ready["old"].run("y:0", {"x:0": 1.0}),
        lambda: ready["call"](1.0),
        lambda: ready["old"].partial_run("y:0", ["x:0"]),
        lambda: ready["old"].summarize(),
        lambda: ready["old"].__enter__(),
    ):
        with pytest.raises(FailedPrecondition, match=re.escape(message)):
            run()


def test_a_session_that_was_closed_by_hand_says_so(ready: Any) -> None:
    ready.run("use", "old = sess; sess.close()")
    ready.run("session", "sess = fb.Session()")
    assert ready.notices == []
    with pytest.raises(FailedPrecondition, match=r"this session is closed\n  hint: make a new"):
        ready["old"].run("y:0", {"x:0": 1.0})


def test_a_partial_run_ends(ready: Any) -> None:
    begin = "step = sess.partial_run([y, z], [x])\nfirst = step.run(y, {x: 1.0})"
    ready.run("begin", begin)
    ready.run("use", "old = step")
    ready.run("begin", begin)
    assert ready["step"].run(ready["z"]) == 4.0
    with pytest.raises(
        FailedPrecondition,
        match=r"has ended: cell \[5\] ran again\n  hint: re-run cell \[5\], which began it",
    ):
        ready["old"].run(ready["z"])
    ready.run("note", "old = sess.partial_run(y, [x])")
    ready.run("begin", begin, deleted=["note"])
    with pytest.raises(FailedPrecondition, match=r"has ended: cell \[6\] was deleted"):
        ready["old"].run(ready["y"], {"x:0": 1.0})


def test_logs_close_with_the_rules_that_write_them(ready: Any, tmp_path: Any) -> None:
    """The one of the last rule stays open: the next may go on with it."""
    ready.run("loss", "s = fb.summary.scalar('loss', z)")
    ready.shell.user_ns["folder"] = tmp_path
    for number in range(3):
        ready.run("to", f"s = sess.summarize(fetches=z, series='a', to=folder / 'log{number}')")
        ready.run("run", "sess.run(z, {x: 1.0})")
    [summarizer] = ready["sess"]._instruments.all
    assert [log.path for log in summarizer._logs.values()] == [str(tmp_path / "log2")]
    ready["s"].flush()
    before = set(tmp_path.rglob("*tfevents*"))
    for _ in range(2):
        ready.run("to", "s = sess.summarize(fetches=z, series='a', to=folder / 'log2')")
        ready.run("run", "sess.run(z, {x: 1.0})")
    ready.run("flush", "s.flush()")
    assert set(tmp_path.rglob("*tfevents*")) == before
