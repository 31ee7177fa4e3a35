"""Summaries and cells that run again."""

from typing import Any

from flowbook.widgets.summaries.sources import Sources

MODEL = """
W = fb.Variable(2.0, name="W")
loss = fb.square(W)
_ = fb.summary.scalar("loss", loss)
train = fb.train.GradientDescentOptimizer(0.25).minimize(loss)
"""
STEPS = "steps = [p.step for p in kept.history.points('loss')]"


def test_a_cell_that_runs_again_does_not_summarise_twice(notebook: Any) -> None:
    notebook.run("a", MODEL)
    notebook.run("s", "sess = fb.Session()")
    for _ in range(3):
        notebook.run("k", "sess.summarize()\nkept = sess.summarize(every=2)")
    notebook.run("r", "for _ in range(4): sess.run(train)")
    notebook.run("p", STEPS)
    assert sorted(notebook["steps"]) == [0, 0, 1, 2, 2, 3]


def test_a_redefined_summary_takes_the_place_of_the_old(notebook: Any) -> None:
    notebook.run("a", MODEL)
    notebook.run("b", "_ = fb.summary.scalar('twice', loss * 1)")
    notebook.run("s", "sess = fb.Session()\nkept = sess.summarize()")
    notebook.run("r", "sess.run(train)")
    notebook.run("b", "_ = fb.summary.scalar('half', loss)")
    notebook.run("r", "sess.run(train)")
    assert set(notebook["kept"].history.tags()) == {"loss", "half"}
    assert [op.name for op in notebook.graph.summaries()] == ["loss/summary", "half/summary"]
    notebook.run("p", STEPS)
    assert notebook["steps"] == [0, 1]


def test_the_model_runs_again_and_is_summarised_on(notebook: Any) -> None:
    notebook.run("a", MODEL)
    notebook.run("s", "sess = fb.Session()\nkept = sess.summarize()")
    notebook.run("r", "for _ in range(2): sess.run(train)")
    notebook.run("a", MODEL)
    notebook.run("r", "for _ in range(2): sess.run(train)")
    notebook.run("p", STEPS)
    assert notebook["steps"] == [0, 1, 2, 3]


def test_a_session_made_again_is_another_run(notebook: Any) -> None:
    notebook.run("a", MODEL)
    notebook.run("h", "gathered = fb.summary.SummaryHistory()")
    for _ in range(2):
        notebook.run("s", "sess = fb.Session()\nkept = sess.summarize(to=gathered)")
        notebook.run("r", "sess.run(train)")
    assert len(notebook["gathered"].runs) == 2


def test_the_guard_names_the_cell(notebook: Any) -> None:
    notebook.run("a", "x = fb.placeholder(fb.float32, [])\ny = fb.log(x)")
    notebook.run("s", "sess = fb.Session()\n_ = sess.guard()")
    output = notebook.run("r", "sess.run(y, {x: -1.0})", fails=True)
    assert "y (Log 'Log'): it gave 1 NaN" in output
    assert "defined at cell [1], line 2" in output


def test_a_redefined_training_is_a_run_of_its_own(notebook: Any) -> None:
    notebook.run("a", MODEL)
    notebook.run("s", "sess = fb.Session()\nkept = sess.summarize()")
    notebook.run("r", "for _ in range(3): sess.run(train)")
    notebook.run("a", MODEL)
    notebook.run("r", "for _ in range(3): sess.run(train)")
    [first] = notebook["kept"].history.runs
    notebook.run("a", MODEL.replace("0.25", "0.125"))
    notebook.run("r", "for _ in range(2): sess.run(train)")
    notebook.run("a", MODEL.replace("GradientDescent", "Adam"))
    notebook.run("r", "sess.run(train)")
    history = notebook["kept"].history
    runs = history.runs
    assert runs == [first, f"{first}-2", f"{first}-3"]
    steps = [[p.step for p in history.points("loss", run)] for run in runs]
    assert steps == [[0, 1, 2, 3, 4, 5], [0, 1], [0]]
    labels = [run.label for run in sources_of(notebook["kept"])]
    assert labels == ["run 1", "run 1, redefined in cell [6]", "run 1, redefined in cell [8]"]
    assert notebook["kept"].run == runs[-1]


def test_a_series_goes_on_with_what_its_fetches_became(notebook: Any) -> None:
    model = MODEL.replace("square(W)", "square(W, name='cost')")
    notebook.run("a", model)
    notebook.run("s", "sess = fb.Session()\nkept = sess.summarize(fetches=loss, series='held out')")
    notebook.run("r", "for _ in range(2): sess.run(loss)")
    notebook.run("a", model.replace("square", "abs"))
    notebook.run("r", "for _ in range(3): sess.run(loss)")
    notebook.run("p", "found = [p.value for p in kept.history.points('held out/loss')]")
    assert notebook["found"] == [4.0, 4.0, 2.0, 2.0, 2.0]


def test_two_trainings_of_one_session_are_one_run(notebook: Any) -> None:
    notebook.run("a", MODEL)
    notebook.run("b", "other = fb.train.GradientDescentOptimizer(0.5).minimize(loss)")
    notebook.run("s", "sess = fb.Session()\nkept = sess.summarize()")
    notebook.run("r", "for _ in range(2): sess.run(train), sess.run(other)")
    assert len(notebook["kept"].history.runs) == 1


def sources_of(shown: Any) -> list[Any]:
    sources = Sources(shown)
    sources.snapshot()
    return sources.runs
