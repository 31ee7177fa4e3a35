"""A cell with a session from a checkpoint runs again: what lives is kept, and this is said."""

from pathlib import Path
from typing import Any

import pytest

import flowbook as fb

KEPT = (
    "flowbook: kept the values of the session that this cell made before, rather than those of the "
    "checkpoint (fb.train.Saver().restore(sess, path) takes these)"
)
CLOSED = "flowbook: closed the session that this cell made before"


@pytest.fixture
def notebook_with(notebook: Any, tmp_path: Path) -> Any:
    notebook.shell.user_ns["folder"] = tmp_path
    notebook.run("model", "W = fb.Variable(0.0, name='W')\nadd = fb.assign_add(W, 1.0)")
    with fb.Session() as sess:
        sess.run(fb.assign(notebook["W"], 10.0))
        fb.train.Saver().save(sess, tmp_path / "step", 7)
    return notebook


SESSION = "sess = fb.Session(checkpoint=folder)"


def test_the_output_says_what_was_restored(notebook_with: Any, tmp_path: Path) -> None:
    notebook_with.run("session", SESSION + "\nsess.run(add)")
    assert notebook_with.notices == [f"flowbook: restored '{tmp_path}/step-7', step 7"]
    assert notebook_with["sess"].run(notebook_with["W"]) == 11.0


@pytest.mark.parametrize("then", ["", "\nsess.run(add)"])
def test_what_lives_is_kept_over_what_is_on_disk(then: str, notebook_with: Any) -> None:
    notebook_with.run("session", SESSION + then)
    notebook_with.run("train", "for _ in range(5): sess.run(add)")
    before = notebook_with["sess"].run(notebook_with["W"])
    notebook_with.run("session", SESSION + then)
    assert notebook_with.notices == [KEPT]
    after = notebook_with["sess"].run(notebook_with["W"])
    assert after == (before + 1.0 if then else before)
    assert fb.open_sessions(notebook_with.graph) == [notebook_with["sess"]]
    # And again: it goes on.
    notebook_with.run("session", SESSION + then)
    assert notebook_with.notices == [KEPT]
    assert notebook_with["sess"].run(notebook_with["W"]) == (after + 1.0 if then else after)


def test_what_random_operations_drew_is_kept_too(notebook_with: Any) -> None:
    notebook_with.run("draw", "draw = fb.random_uniform([2], seed=3)")
    notebook_with.run("session", SESSION + "\nfirst = sess.run([W, draw])[1]")
    notebook_with.run("session", SESSION + "\nsecond = sess.run([W, draw])[1]")
    with fb.Session(notebook_with.graph) as sess:
        draws = [sess.run(notebook_with["draw"]).tolist() for _ in range(2)]
    assert [notebook_with["first"].tolist(), notebook_with["second"].tolist()] == draws


def test_what_was_closed_is_restored_from_disk(notebook_with: Any, tmp_path: Path) -> None:
    for _ in range(2):
        notebook_with.run("session", f"with {SESSION[7:]} as sess: value = sess.run(add)")
        assert notebook_with.notices == [f"flowbook: restored '{tmp_path}/step-7', step 7"]
        assert notebook_with["value"] == 11.0


def test_a_session_without_values_gives_way_to_the_disk(notebook_with: Any, tmp_path: Path) -> None:
    notebook_with.run("session", "sess = fb.Session()")
    notebook_with.run("session", SESSION + "\nvalue = sess.run(W)")
    assert notebook_with.notices == [f"flowbook: restored '{tmp_path}/step-7', step 7", CLOSED]
    assert notebook_with["value"] == 10.0


def test_a_named_session_is_kept_by_its_cell(notebook_with: Any) -> None:
    for _ in range(3):
        notebook_with.run("session", "sess = fb.Session(name='mine')\nsess.run(add)")
        assert notebook_with.notices == []
    assert notebook_with["sess"].run(notebook_with["W"]) == 3.0
    notebook_with.run("other", "pass", deleted=["session"])
    assert notebook_with["sess"].run(notebook_with["W"]) == 3.0
    notebook_with["sess"].close()


def test_a_cell_that_runs_again_saves_once(notebook_with: Any, tmp_path: Path) -> None:
    notebook_with.run(
        "optimizer",
        "step = fb.train.get_or_create_global_step()\n"
        "train = fb.train.GradientDescentOptimizer(0.1).minimize(W * W, step)",
    )
    notebook_with.run("session", "sess = fb.Session()")
    for _ in range(3):
        notebook_with.run("save", "saving = sess.checkpoint(folder / 'mine', every=1)")
        assert notebook_with.notices == []
    notebook_with.run("train", "sess.run(train)\nsaving.flush()")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["step-1"]
    assert len([i for i in notebook_with["sess"]._instruments.all if i is not None]) == 1
