"""A deleted cell: what it built leaves the graph; nothing is lost if it was only moved."""

import gc
import weakref
from typing import Any

import pytest

import flowbook as fb
from tests.exec.held import own_keys

MODEL = "W = fb.Variable([1.0, 2.0], name='W')\nb = fb.Variable(0.5)"
USE = "y = fb.identity(W + b, name='y')"


@pytest.fixture
def trained(notebook: Any) -> Any:
    """A notebook with a model, something built from it, and a session that changed a value."""
    notebook.run("model", MODEL)
    notebook.run("use", USE)
    notebook.run("session", "sess = fb.Session()")
    notebook.run("train", "sess.run(fb.assign(W, [5.0, 6.0])); sess.run(y)")
    return notebook


def test_what_it_built_is_retired(trained: Any) -> None:
    before = trained.names
    trained.run("note", "pass", deleted=["train"])
    assert set(before) - set(trained.names) == {"Assign", "Assign/value"}
    assert trained.notices == [
        "flowbook: cell [4] was deleted: 2 operations, 'Assign/value', 'Assign' left the graph "
        "(where the cell was only moved, or is back, running it brings them back)"
    ]
    trained.run("note", "pass")
    assert trained.notices == []


def test_its_names_are_free(trained: Any) -> None:
    trained.run("new", "V = fb.Variable([1.0], name='W')", deleted=["model"])
    assert trained["V"].op.name == "W"
    assert [v.op.name for v in fb.get_default_graph().variables()] == ["W"]
    assert trained["W"].op.name == "W@1"


def test_what_was_built_from_it_is_stale(trained: Any) -> None:
    trained.run("note", "pass", deleted=["model"])
    with pytest.warns(fb.errors.StaleDefinitionWarning) as warned:
        trained.run("run", "value = sess.run(y)")
    assert str(warned[0].message) == (
        "re-run cell [2]: this run uses 'Add', 'y' built from 'W', 'Variable' of cell [1], "
        "which was deleted"
    )
    # It runs on what it was built from.
    assert trained["value"].tolist() == [5.5, 6.5]


def test_fetching_what_was_deleted(trained: Any) -> None:
    trained.run("note", "pass", deleted=["use"])
    with pytest.warns(fb.errors.StaleDefinitionWarning) as warned:
        trained.run("run", "sess.run(y)")
    assert str(warned[0].message) == (
        "fetch something else: this run uses a 'y' of cell [2], which was deleted"
    )


def test_values_go_with_the_last_reference(trained: Any) -> None:
    variable = weakref.ref(trained["W"].op)
    assert trained["sess"]._master.stores.find(trained["W"].op.key).is_initialized
    trained.run("note", "del W, b, y", deleted=["model", "use", "train"])
    trained.run("run", "sess.run(fb.constant(1.0))")
    gc.collect()
    assert variable() is None
    assert own_keys(trained["sess"]) == []


def test_a_cell_that_was_moved_gets_everything_back(trained: Any) -> None:
    before, variable = trained.graph.operations, trained["W"]
    trained.run("note", "pass", deleted=["model", "use"])
    trained.run("model", MODEL)
    assert trained["W"].op is variable.op
    assert "flowbook: kept the values of W, Variable" in trained.notices[0]
    trained.run("use", USE)
    assert trained.graph.operations == before
    assert not trained.graph.stale()
    trained.run("run", "value = sess.run(y)")
    assert trained["value"].tolist() == [5.5, 6.5]
    fb.Graph.from_bytes(trained.graph.to_bytes())


def test_a_cell_that_was_deleted_twice_gets_everything_back(trained: Any) -> None:
    before, variable = trained.graph.operations, trained["W"]
    trained.run("note", "pass", deleted=["model", "use"])
    trained.run("note", "pass")
    trained.run("note", "pass", deleted=["model", "use"])
    assert trained.notices == []
    trained.run("model", MODEL)
    trained.run("use", USE)
    assert trained["W"].op is variable.op
    assert trained.graph.operations == before


def test_a_cell_that_comes_back_changed_redefines(trained: Any) -> None:
    trained.run("note", "pass", deleted=["model"])
    trained.run("model", MODEL.replace("[1.0, 2.0]", "[1.0]"))
    assert trained["W"].op.name == "W"
    assert any("start afresh: W (shape [1], was [2])" in n for n in trained.notices)


def test_a_name_that_was_taken_meanwhile_stays_taken(trained: Any) -> None:
    trained.run("new", "V = fb.Variable([1.0], name='W')", deleted=["model"])
    trained.run("model", MODEL)
    assert trained["V"].op.name == "W"
    assert trained["W"].op.name == "W_1"


def test_requests_sent_together_carry_one_list(trained: Any) -> None:
    """As Lab sends them with "run all": the cell was brought back, and runs among the others."""
    for cell_id, source in (("note", "pass"), ("model", MODEL), ("use", USE), ("note", "pass")):
        trained.run(cell_id, source, deleted=["model"])
    assert trained["W"].op.name == "W"
    assert not trained.graph.stale()
    trained.run("note", "pass", deleted=[])
    trained.run("note", "pass", deleted=["model"])
    assert trained["W"].op.name == "W@2"


def test_each_notebook_on_a_kernel_has_a_list_of_its_own(trained: Any, monkeypatch: Any) -> None:
    class Kernel:
        client = ""

        def get_parent(self, channel: str) -> Any:
            return {"header": {"session": self.client}}

    kernel = Kernel()
    monkeypatch.setattr(trained.shell, "kernel", kernel, raising=False)

    def run(client: str, cell_id: str, source: str, deleted: list[str]) -> None:
        kernel.client = client
        trained.run(cell_id, source, deleted=deleted)

    run("first", "note", "pass", ["model"])
    run("first", "model", MODEL, ["model"])
    variable = trained["W"]
    run("second", "other", "pass", [])
    run("first", "note", "pass", ["model"])
    assert variable.op.name == "W"
    assert trained.notices == []
    run("second", "other", "pass", ["model"])
    assert variable.op.retired


def test_sessions_stay_and_all_else_is_closed(trained: Any) -> None:
    trained.run("summary", "s = sess.summarize()")
    trained.run("note", "pass", deleted=["session", "summary"])
    assert trained["s"].closed
    assert not trained["sess"].closed
    trained.run("session", "new = fb.Session()")
    assert trained["sess"].closed


def test_unknown_and_odd_reports_do_nothing(trained: Any) -> None:
    before = trained.names
    trained.run("note", "pass", deleted=["<b>nobody</b>", "note", "x" * 1_000_000])
    for meta in (None, {}, {"deletedCells": None}, {"deletedCells": [{}, 7, None]}):
        trained.shell.run_cell("pass", store_history=True, cell_id="note", cell_meta=meta)
    assert trained.names == before


def test_a_finalized_graph_stays(trained: Any) -> None:
    before = trained.names
    trained.graph.finalize()
    trained.run("note", "pass", deleted=["model"])
    assert trained.names == before
    assert trained.notices == []


def test_a_cell_with_an_error_in_its_syntax_reports_too(trained: Any) -> None:
    trained.run("wrong", "(", fails=True, deleted=["train"])
    assert "Assign" not in trained.names
    assert len(trained.notices) == 1
