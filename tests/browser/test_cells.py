"""A day's work in a real JupyterLab: build, run, edit, break, fix, interrupt, delete, restart."""

from typing import Any

import pytest

from tests.browser.lab import MANAGER, Lab, Notebook
from tests.need import requires

pytestmark = [
    pytest.mark.browser,
    requires(program="chromium", module="playwright"),
]

MODEL = """import flowbook as fb
x = fb.placeholder(fb.float32, [None, 3], name="x")
W = fb.Variable([[1.0], [2.0], [3.0]], name="W")
y = x @ W"""
SESSION = "sess = fb.Session()"
TRAIN = "print(sess.run(fb.assign(W, [[4.0], [5.0], [6.0]])).ravel())"
ASK = "print(sess.run(y, {x: [[1.0, 1.0, 1.0]]}))"


@pytest.fixture
def notebook(lab: Lab, page: Any, request: Any) -> Notebook:
    """A notebook whose model is built and trained."""
    lab.write(request.node.name, MODEL, SESSION, TRAIN, ASK, "")
    opened = lab.open(page, request.node.name)
    for cell in range(4):
        opened.run(cell)
    assert opened.shown(3) == "[[15.]]"
    return opened


def test_edit_break_fix_and_rerun(notebook: Notebook) -> None:
    # Unchanged: nothing happens to the values.
    notebook.run(0)
    assert notebook.shown(0) == (
        "flowbook: kept the values of W (sess.run(variable.initializer) starts one afresh)"
    )
    # Edited: what depends on it says which cell to run again.
    notebook.edit(0, MODEL.replace("x @ W", "2.0 * (x @ W)"))
    notebook.run(0)
    notebook.run(3)
    assert notebook.shown(3) == "[[30.]]"
    # Broken: the old definitions stay, and the error names the line.
    notebook.edit(0, MODEL.replace("[None, 3]", "[None, 4]"))
    notebook.run(0)
    told = notebook.shown(0)
    assert "MatMul: inner dimensions differ: [?, 4] x [3, 1]" in told
    assert "defined at cell [8], line 4:  y = x @ W" in told
    assert "x:0 float32 [?, 4] (cell [8], line 2)" in told
    assert "flowbook/graph" not in told
    notebook.run(3)
    told = notebook.shown(3)
    assert "'x:0' takes" in told or "does not fit" in told or "re-run" in told
    # Fixed: everything is there, the values too.
    notebook.edit(0, MODEL)
    notebook.run(0)
    assert notebook.shown(0).startswith("flowbook: kept the values of W")
    notebook.run(3)
    assert notebook.shown(3) == "[[15.]]"
    notebook.edit(4, "print([op.name for op in fb.get_default_graph().operations])")
    notebook.run(4)
    names = notebook.shown(4)
    assert names.count("MatMul") == 1
    assert "_1" not in names


def test_a_redefined_variable_starts_afresh_and_others_are_stale(notebook: Notebook) -> None:
    notebook.edit(4, "z = fb.identity(y, name='z')")
    notebook.run(4)
    notebook.edit(0, MODEL.replace("[3.0]]", "[7.0]]"))
    notebook.run(0)
    assert notebook.shown(0) == (
        "flowbook: redefined, with values that start afresh: W (another initial value)"
    )
    notebook.edit(3, "print(sess.run(z, {x: [[1.0, 1.0, 1.0]]}))")
    notebook.run(3)
    assert notebook.shown(3) == (
        "[[15.]]\ncell [7]:1: StaleDefinitionWarning: re-run cell [5]: this run uses 'z' built "
        "from the 'MatMul' of before cell [6] redefined it"
    )
    notebook.run(4)
    notebook.run(3)
    assert notebook.shown(3) == "[[10.]]"


def test_interrupt_and_restart(notebook: Notebook) -> None:
    notebook.edit(4, "print('begun')\nwhile True:\n    sess.run(y, {x: [[1.0] * 3]})")
    notebook.start(4)
    notebook.wait_for(4, "begun")
    notebook.command("notebook:interrupt-kernel")
    notebook.finish()
    told = notebook.shown(4)
    assert "KeyboardInterrupt" in told
    assert "flowbook/exec" not in told
    notebook.run(3)
    assert notebook.shown(3) == "[[15.]]"
    notebook.restart()
    for cell in (0, 1, 3):
        notebook.run(cell)
    assert notebook.shown(0) == ""
    assert notebook.shown(3) == "[[6.]]"


def test_deleting_moving_and_undoing(notebook: Notebook) -> None:
    notebook.edit(
        4, "print(len(fb.get_default_graph().operations), fb.get_default_graph().stale())"
    )
    notebook.run(4)
    before = notebook.shown(4)
    # Cut and paste: Lab reports the cell as deleted, though it is there.
    notebook.select(0)
    notebook.command("notebook:cut-cell")
    notebook.command("notebook:paste-cell-above")
    notebook.run(3)
    assert "cell [1] was deleted" in notebook.shown(3)
    assert "[[15.]]" in notebook.shown(3)
    notebook.run(0)
    assert notebook.shown(0).startswith("flowbook: kept the values of W")
    notebook.run(4)
    assert notebook.shown(4) == before
    # Deleted for good.
    notebook.select(2)
    notebook.command("notebook:delete-cell")
    notebook.run(3)
    assert "cell [3] was deleted: 2 operations, 'Assign/value', 'Assign' left" in notebook.shown(3)
    # And brought back.
    notebook.command("notebook:undo-cell-action")
    notebook.run(2)
    notebook.run(4)
    assert notebook.shown(4) == before


RERUN = """import flowbook as fb, numpy as np
x = fb.placeholder(fb.float32, [None, 3], name="x")
loss = fb.reduce_mean(fb.square(fb.layers.dense(x, 1)))
train = fb.train.AdamOptimizer(0.01).minimize(loss)
sess = fb.Session()
for _ in fb.progress(range(3)):
    sess.run(train, {x: np.ones([2, 3])})
fb.get_default_graph()"""


# JupyterLab keeps the models of closed widgets: what they hold is to be small.
MODELS = f"""(async () => {{
    const models = await Promise.all(Object.values((await {MANAGER})._models));
    return models.find((model) => model.get("payload")).constructor.prototype;
}})()"""
VIEWS = "(elements) => elements.filter((element) => element.matches('.fb-graph')).length"
PAYLOADS = """(models) => models
    .flatMap((model) => [model.attributes?.payload, model._previousAttributes?.payload])
    .filter((payload) => payload?.byteLength > 0).length"""


def test_views_and_bars_of_before_leave_the_page(lab: Lab, own_page: Any) -> None:
    lab.write("rerun", RERUN)
    notebook = lab.open(own_page, "rerun")
    counts = []
    for _ in range(6):
        notebook.run(0)
        notebook.graph(0)
        counts.append(notebook.comms_and_models())
    assert counts[1:] == [counts[1]] * 5

    def few_stay(*what: str) -> bool:
        # The one before may still be on its way out; on a busy machine others too, for a while.
        return any(1 <= notebook.alive(*what) <= 2 for _ in range(40))

    assert few_stay("HTMLDivElement.prototype", VIEWS)
    assert few_stay(MODELS, PAYLOADS)
