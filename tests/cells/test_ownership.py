"""What has a life of its own ends with the cell that made it, and then says which to re-run."""

import re
import weakref
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


TRAIN = "train = fb.assign_add(W, 1.0).op\nfor _ in range(3): sess.run(train)"
CLOSED = "flowbook: closed the session that this cell made before; its variables start afresh"
TAKE = " (take_values() of the new one brings their values back)"
STILL_OPEN = (
    "flowbook: the session that this cell made before is still open, with its values: "
    "see fb.open_sessions()"
)


@pytest.fixture
def trained(notebook: Any) -> Any:
    notebook.run("model", "W = fb.Variable(0.0, name='W')")
    notebook.run("session", "sess = fb.Session()")
    notebook.run("train", TRAIN)
    return notebook


def test_a_closed_session_says_where_another_was_made(trained: Any) -> None:
    trained.run("use", "old = sess; call = sess.make_callable(W)")
    trained.run("session", "sess = fb.Session()")
    message = (
        "this session is closed: another was made in its place at cell [5], line 1\n"
        "  hint: use that one; its take_values() brings the values back that this one had"
    )
    for run in (
        lambda: trained["old"].run("W:0"),
        lambda: trained["call"](),
        lambda: trained["old"].partial_run("W:0", []),
        lambda: trained["old"].summarize(),
        lambda: trained["old"].take_values(trained["sess"]),
        lambda: trained["old"].__enter__(),
    ):
        with pytest.raises(FailedPrecondition, match=re.escape(message)):
            run()


@pytest.mark.parametrize(
    ("edited", "fails"),
    [
        ("rate = 0.1", False),
        ("1 / 0\nsess = fb.Session()", True),
        ("sess = fb.Session(", True),
        ("sess = fb.Session(None, wrong=1)", True),
        ("with fb.Session() as other: other.run(W)", False),
        ("value = fb.Session().run(W)", False),
    ],
)
def test_a_cell_that_makes_no_session_closes_none(trained: Any, edited: str, fails: bool) -> None:
    for _ in range(2):
        trained.run("session", edited, fails=fails)
        assert trained.notices == []
        assert trained["sess"].run(trained["W"]) == 3.0
    trained.run("session", "sess = fb.Session()")
    assert trained.notices == [CLOSED + TAKE]
    assert trained["sess"].run(trained["W"]) == 0.0


def test_a_cell_that_fails_with_a_session_loses_nothing(trained: Any) -> None:
    """The name is the new one's: the old one is found among those that are open."""
    for _ in range(2):
        trained.run("session", "sess = fb.Session()\nsess.run(W)\n1 / 0", fails=True)
        assert trained.notices == [STILL_OPEN]
    first = fb.open_sessions(trained.graph)[0]
    assert first.run(trained["W"]) == 3.0
    assert trained["sess"].take_values(first) == ["W"]
    assert trained["sess"].run(trained["W"]) == 3.0
    del first
    trained.run("session", "sess = fb.Session()")
    assert trained.notices == [CLOSED + TAKE]
    assert fb.open_sessions(trained.graph) == [trained["sess"]]


def test_values_of_the_session_before_are_taken(trained: Any) -> None:
    trained.run("session", "sess = fb.Session()")
    assert trained.notices == [CLOSED + TAKE]
    # Once more, before anything ran: nothing came between.
    trained.run("session", "sess = fb.Session()")
    assert trained.notices == [CLOSED + TAKE]
    trained.run("use", "taken = sess.take_values()")
    assert trained["taken"] == ["W"]
    trained.run("train", TRAIN)
    assert trained["sess"].run(trained["W"]) == 6.0
    assert trained["sess"].take_values() == ["W"]
    assert trained["sess"].run(trained["W"]) == 3.0


def test_values_of_two_sessions_before_are_gone(trained: Any) -> None:
    trained.run("use", "old = sess")
    last_values = weakref.ref(trained["old"])
    trained.run("session", "sess = fb.Session()")
    trained.run("train", TRAIN)
    trained.run("session", "sess = fb.Session()")
    trained.run("use", "del old")
    assert last_values() is None
    trained["sess"].close()
    assert fb.open_sessions(trained.graph) == []


def test_a_session_without_values_has_none_to_take(notebook: Any) -> None:
    notebook.run("session", "sess = fb.Session()")
    notebook.run("session", "sess = fb.Session()")
    assert notebook.notices == [CLOSED]
    with pytest.raises(FailedPrecondition, match="not made in place of another"):
        notebook["sess"].take_values()


def test_each_session_takes_the_place_of_that_of_its_line(notebook: Any) -> None:
    notebook.run("model", "W = fb.Variable(0.0, name='W')")
    two = "a = fb.Session()\nb = fb.Session()"
    notebook.run("sessions", two)
    notebook.run("train", "for s, value in ((a, 1.0), (b, 2.0)): s.run(fb.assign(W, value))")
    notebook.run("sessions", "b = fb.Session()")
    assert notebook.notices == [CLOSED + TAKE]
    notebook.run("use", "b.take_values()")
    assert [notebook[name].run(notebook["W"]) for name in "ab"] == [1.0, 2.0]
    notebook.run("sessions", "c = fb.Session(auto_initialize=False)\n" + two)
    assert notebook["a"].take_values() == notebook["b"].take_values() == ["W"]
    assert [notebook[name].run(notebook["W"]) for name in "ab"] == [1.0, 2.0]


def test_a_deleted_cell_that_is_back_goes_on(trained: Any) -> None:
    trained.run("other", "pass", deleted=["session"])
    trained.run("session", "rate = 0.1")
    assert trained["sess"].run(trained["W"]) == 3.0
    trained.run("session", "sess = fb.Session()")
    assert trained.notices == [CLOSED + TAKE]
    assert trained["sess"].take_values() == ["W"]


def test_values_of_a_session_whose_variables_are_of_the_same_cell(notebook: Any) -> None:
    cell = "W = fb.Variable({}, name='W')\nb = fb.Variable(0.0, name='b')\nsess = fb.Session()"
    notebook.run("all", cell.format("[1.0]"))
    notebook.run("train", "sess.run([fb.assign_add(W, [5.0]), fb.assign_add(b, 5.0)]);")
    notebook.run("all", cell.format("[1.0, 2.0]"))
    assert notebook.notices == [CLOSED + TAKE]
    assert notebook["sess"].take_values() == ["b"]  # W is another now.
    assert notebook["sess"].run(notebook["b"]) == 5.0


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
        match=r"has ended: the one that was begun at cell \[5\], line 1 took its place",
    ):
        ready["old"].run(ready["z"])
    ready.run("note", "old = sess.partial_run(y, [x])")
    ready.run("begin", begin, deleted=["note"])
    with pytest.raises(
        FailedPrecondition, match=r"has ended: cell \[6\], line 1, which .* was deleted"
    ):
        ready["old"].run(ready["y"], {"x:0": 1.0})


def test_a_partial_run_tells_what_was_redefined_since_it_began(notebook: Any) -> None:
    model = (
        "x = fb.placeholder(fb.float32, [{size}], name='x')\n"
        "W = fb.Variable({size} * [1.0], name='W')\n"
        "y = fb.add(x, W, name='y')\n"
        "first, second = fb.unstack(y[:2], name='pair')\n"
        "end = fb.group(y, name='end')"
    )
    notebook.run("model", model.format(size=2))
    notebook.run("session", "sess = fb.Session()")
    notebook.run("begin", "step = sess.partial_run([W, y, first, end], [x])")
    notebook.run("use", "old = x, y")
    notebook.run("model", model.format(size=3))
    step, began = notebook["step"], "that the partial run began with"
    for fetch, name, which in (
        (notebook["y"], "y:0", "y"),
        ("y", "y", ""),
        (notebook["W"], "W/read:0", "W"),
        (notebook["first"], "pair:0", "pair"),
        (notebook["second"], "pair:1", ""),
        (notebook["end"], "end", "end"),
    ):
        with pytest.raises(fb.errors.InvalidArgumentError) as caught:
            step.run(fetch)
        told = f", but the {which!r} of before cell [5] redefined it" if which else ""
        assert caught.value.message == f"{name!r} was not among the fetches {began}{told}"
        hint = "begin another partial run, with what there is now"
        assert caught.value.hint == (hint if which else None)
    with pytest.raises(fb.errors.InvalidArgumentError, match="the 'x' of before cell") as caught:
        step.run([], {notebook["x"]: [1.0, 2.0, 3.0]})
    assert caught.value.message.startswith(f"'x:0' was not among the feeds {began}, but")
    x, y = notebook["old"]
    assert step.run(y, {x: [1.0, 2.0]}).tolist() == [2.0, 3.0]
    notebook.run("again", "step = sess.partial_run(y, [x])")
    with pytest.raises(fb.errors.InvalidArgumentError) as caught:
        notebook["step"].run(y)
    assert caught.value.message == f"'y@1:0' was not among the fetches {began}"


def test_what_a_failing_or_edited_cell_does_not_make_again_lives(ready: Any) -> None:
    ready.run("loss", "s = fb.summary.scalar('loss', z)")
    begin = "step = sess.partial_run([y, z], [x])\nkept = sess.summarize(fetches=z, series='a')"
    ready.run("begin", begin)
    ready.run("use", "old, rule = step, kept\nstep.run(y, {x: 1.0})")
    for source, fails in ((f"1 / 0\n{begin}", True), ("pass", False), (begin + "\n1 / 0", True)):
        assert not ready["rule"].closed
        ready.run("begin", source, fails=fails)
        assert not ready["old"].closed
    # The new summaries are there, and what runs is not summarised twice.
    assert ready["rule"].closed
    assert not ready["kept"].closed
    assert ready["old"].run(ready["z"]) == 4.0
    ready.run("begin", begin)
    ready.run("begin", begin)
    assert ready["step"].closed is False


def test_what_takes_whose_place_is_told_by_kind(ready: Any) -> None:
    ready.run("loss", "s = fb.summary.scalar('loss', z)")
    ready.run(
        "all", "kept = sess.summarize(fetches=z, series='a'); step = sess.partial_run(y, [x])"
    )
    ready.run("use", "rule, old = kept, step")
    ready.run("all", "step = sess.partial_run(y, [x]); other = 0")
    assert ready["old"].closed
    assert not ready["rule"].closed
    ready.run("other", "pass", deleted=["all"])
    assert ready["rule"].closed
    assert ready["step"].closed
    assert not ready["sess"].closed


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
