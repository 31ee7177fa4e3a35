"""What the notebooks tell their readers to try, tried: changing a cell and going on.

nbval sends no cell ids, so under it nothing is redefined. Here a real kernel gets the notebook's
own cells with their ids, as from JupyterLab, and has to say what the notebook says it will.
"""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.kernel import Kernel, running_kernel

pytestmark = pytest.mark.lab

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
WELCOME = NOTEBOOKS / "welcome.ipynb"
DEFINE = NOTEBOOKS / "define_an_operation.ipynb"


class Notebook:
    """A notebook in a kernel, as a front end sees it. Cells go by their ids."""

    def __init__(self, kernel: Kernel, path: Path) -> None:
        self._kernel = kernel
        cells = nbformat.read(path, as_version=4).cells
        code = [cell for cell in cells if cell.cell_type == "code"]
        self.source = {cell.id: cell.source for cell in code}
        self.may_fail = {
            cell.id for cell in code if "raises-exception" in cell.metadata.get("tags", [])
        }
        self.told = {cell.id: cell.source for cell in cells if cell.cell_type == "markdown"}

    def change(self, cell_id: str, old: str, new: str) -> None:
        """Edit a cell: the text has to be there."""
        assert old in self.source[cell_id]
        self.source[cell_id] = self.source[cell_id].replace(old, new)

    def run(self, cell_id: str) -> str:
        """Run a cell, and return what it printed on both streams."""
        printed, error = self._execute(self.source[cell_id], cell_id)
        assert bool(error) is (cell_id in self.may_fail), error
        return printed

    def run_all(self) -> None:
        for cell_id in self.source:
            self.run(cell_id)

    def value(self, expression: str) -> Any:
        """Evaluate an expression of plain values, without counting it as a cell that ran."""
        source, cell_id = f"print(repr({expression}))", str(uuid.uuid4())
        printed, error = self._execute(source, cell_id, counts=False)
        assert not error, error
        return eval(printed)

    def _execute(self, source: str, cell_id: str, counts: bool = True) -> tuple[str, str]:
        printed, error = "", ""
        for kind, told in self._kernel.messages(cell_id, source, counts=counts):
            if kind == "stream":
                printed += told["text"]
            elif kind == "error":
                error = f"{told['ename']}: {told['evalue']}"
        return printed, error


@pytest.fixture
def notebook(request: pytest.FixtureRequest) -> Iterator[Notebook]:
    with running_kernel() as kernel:
        yield Notebook(kernel, getattr(request, "param", WELCOME))


@pytest.fixture(scope="module")
def unchanged() -> Iterator[Notebook]:
    """The welcome notebook after it has run, for tests that change no cell of it."""
    with running_kernel() as kernel:
        notebook = Notebook(kernel, WELCOME)
        notebook.run_all()
        yield notebook


def said(notebook: Notebook, beginning: str) -> str:
    """The line of the notebook's text on redefinition that begins like this."""
    lines = [line.strip() for line in notebook.told["redefine"].splitlines()]
    [found] = [line for line in lines if line.startswith(beginning)]
    return found


NAMES = "[operation.name for operation in fb.get_default_graph().operations]"


def test_everything_runs_again(unchanged: Notebook) -> None:
    before = unchanged.value(NAMES)
    unchanged.run_all()
    assert unchanged.value(NAMES) == before


def test_unchanged_cells_build_nothing_new(unchanged: Notebook) -> None:
    before = unchanged.value(NAMES)
    for cell_id in ("layer", "output", "optimizer", "gradient", "py-func"):
        unchanged.run(cell_id)
    assert unchanged.value(NAMES) == before
    assert unchanged.value("len(fb.get_default_graph().stale())") == 0


def test_changing_the_layer_and_going_on(notebook: Notebook) -> None:
    notebook.run_all()
    before = notebook.value("sess.run(W).tolist()")

    notebook.change("layer", "fb.nn.relu(", "fb.tanh(")
    assert said(notebook, "flowbook: kept") in notebook.run("layer")
    assert notebook.value("sess.run(W).tolist()") == before

    assert said(notebook, "re-run cell") in notebook.run("train")
    for cell_id in ("output", "optimizer"):
        assert "start afresh:" not in notebook.run(cell_id)
    assert "Stale" not in notebook.run("train")
    notebook.run("score")

    notebook.change("layer", "50", "30")
    notebook.change("output", "[50, 10]", "[30, 10]")
    assert said(notebook, "flowbook: redefined") in notebook.run("layer")
    for cell_id in ("output", "optimizer", "train"):
        assert "Stale" not in notebook.run(cell_id)
    notebook.run("score")
    assert notebook.value("sess.run(W).shape") == (64, 30)
    trained = "[v.op.name for v in fb.get_default_graph().variables(trainable=True)]"
    assert notebook.value(trained) == ["W", "b", "output/V"]


@pytest.mark.parametrize("notebook", [DEFINE], indirect=True)
def test_a_definition_is_changed_by_running_its_cell_again(notebook: Notebook) -> None:
    notebook.run_all()
    notebook.run_all()
    notebook.change("first-definition", "axis=2))", "axis=2)) + 1")
    notebook.run("first-definition")
    notebook.run("first-use")
    assert notebook.value("float(sess.run(table, {x: corners, y: corners}).min())") == 1.0
