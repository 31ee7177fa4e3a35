"""What a notebook stores of outputs that grow."""

from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import flowbook as fb
from flowbook.widgets.summaries import growing
from tests.need import requires

MODEL = """import flowbook as fb
loss = fb.square(fb.Variable(1.0, name="W"))
_ = fb.summary.scalar("loss", loss)
train = fb.train.GradientDescentOptimizer(0.01).minimize(loss)
sess = fb.Session()"""


@pytest.mark.lab
@requires(module="nbclient")
def test_stored_charts_are_those_after_the_training() -> None:
    cells = [
        "charts = sess.summarize()\ndisplay(charts)\nsess.run(train)",
        "fb.SummaryView(charts)",
        "for _ in range(4): sess.run(train)",
        "fb.SummaryView(charts)\nNone",
    ]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in (MODEL, *cells)]
    )
    NotebookClient(notebook, kernel_name="python3", extra_arguments=["--log-level=ERROR"]).execute()
    outputs = [cell.outputs for cell in notebook.cells[1:]]
    assert [len(each) for each in outputs] == [1, 1, 0, 0]
    for [output] in outputs[:2]:
        assert "loss     4" in output.data["text/plain"]
        assert "1 run, 1 tag" in output.data["image/svg+xml"]


def test_a_terminal_is_not_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr("IPython.display.publish_display_data", lambda *a, **k: told.append(k))
    history = fb.summary.SummaryHistory()
    fb.SummaryView(history)._ipython_display_()
    assert [each["update"] for each in told] == [False]
    assert growing._followed == []
