"""Re-running a cell redefines what it built; it does not duplicate."""

import gc
import time
import weakref
from typing import Any

import pytest

from tests.tries import in_one_try

MODEL = "x = fb.placeholder(fb.float32, [2], name='x')\ny = fb.identity(x * 2.0, name='y')"


def test_same_cell_gives_the_same_objects(notebook: Any) -> None:
    notebook.run("a", MODEL)
    notebook.run("b", "z = y + 1.0")
    before, version = notebook.graph.operations, notebook.graph.version
    x, y = notebook["x"], notebook["y"]
    notebook.run("a", MODEL)
    assert notebook.graph.operations == before
    assert (notebook["x"], notebook["y"]) == (x, y)
    assert (notebook.graph.version, notebook.graph.retirements) == (version, 0)
    assert notebook.graph.stale() == []
    assert y.op.site.place == "cell [3], line 2"


def test_changed_operation_takes_the_name(notebook: Any) -> None:
    notebook.run("a", MODEL)
    old = notebook["y"]
    notebook.run("a", MODEL.replace("2.0", "3.0"))
    new = notebook["y"]
    assert new is not old
    assert (new.name, old.name) == ("y:0", "y@1:0")
    assert old.op.retired
    assert notebook.graph.get_operation_by_name("y") is new.op
    assert notebook.graph.retirements == 3  # The constant, the product and its name.
    assert notebook.names == ["x", "Mul/y", "Mul", "y"]
    notebook.run("a", MODEL.replace("2.0", "4.0"))
    assert (new.name, old.name) == ("y@2:0", "y@1:0")


def test_what_is_not_built_again_is_retired(notebook: Any) -> None:
    notebook.run("a", MODEL)
    notebook.run("a", "x = fb.placeholder(fb.float32, [2], name='x')")
    assert notebook.names == ["x"]
    notebook.run("b", "y = fb.identity(x, name='y')")
    assert notebook["y"].name == "y:0"


def test_failing_cell_keeps_what_it_did_not_reach(notebook: Any) -> None:
    notebook.run("a", MODEL)
    notebook.run("a", "x = fb.placeholder(fb.float32, [3], name='x')\n1 / 0", fails=True)
    assert set(notebook.names) == {"x", "Mul/y", "Mul", "y"}
    assert notebook.graph.get_tensor_by_name("x:0").shape.as_list() == [3]
    assert {s.operation.name for s in notebook.graph.stale()} == {"Mul", "y"}
    notebook.run("a", MODEL)
    assert notebook.names == ["Mul/y", "x", "Mul", "y"]
    assert notebook.graph.stale() == []


def test_interrupted_cell_fails(notebook: Any) -> None:
    notebook.run("a", MODEL)
    notebook.run("a", "raise KeyboardInterrupt", fails=True)
    assert notebook.names == ["x", "Mul/y", "Mul", "y"]


def test_names_of_other_cells_get_a_suffix(notebook: Any) -> None:
    notebook.run("a", "x = fb.constant(1.0, name='x')")
    for _ in range(2):
        notebook.run("b", "y = fb.constant(1.0, name='x')")
        assert notebook["y"].name == "x_1:0"


def test_counters_go_on_where_they_did(notebook: Any) -> None:
    notebook.run("a", "x = [fb.constant(float(i)) for i in range(3)]")
    notebook.run("b", "y = fb.constant(9.0)")
    notebook.run("a", "x = [fb.constant(float(i)) for i in range(4)]")
    assert [t.name for t in notebook["x"]] == ["Const:0", "Const_1:0", "Const_2:0", "Const_4:0"]
    assert notebook["y"].name == "Const_3:0"


def test_scopes_are_free_again(notebook: Any) -> None:
    scoped = "with fb.name_scope('layer') as s:\n    x = fb.constant(1.0, name='x')"
    for _ in range(3):
        notebook.run("a", scoped)
        assert (notebook["s"], notebook["x"].name) == ("layer/", "layer/x:0")
    notebook.run("a", "pass")
    notebook.run("b", scoped)
    assert notebook["s"] == "layer/"
    notebook.run("a", scoped)
    assert notebook["s"] == "layer_1/"


def test_operation_becomes_a_scope(notebook: Any) -> None:
    notebook.run("a", "x = fb.constant(1.0, name='it')")
    notebook.run("a", "with fb.name_scope('it'):\n    x = fb.constant(1.0, name='x')")
    assert notebook.names == ["it/x"]
    notebook.run("b", "with fb.name_scope('it') as s: pass")
    assert notebook["s"] == "it_1/"


def test_control_inputs_and_devices_count(notebook: Any) -> None:
    source = "x = fb.constant(1.0, name='x')\nwith {}:\n    y = fb.identity(x, name='y')"
    notebook.run("a", source.format("fb.control_dependencies([])"))
    for change in ("fb.control_dependencies([x])", "fb.device('/device:cpu:0')"):
        y = notebook["y"]
        notebook.run("a", source.format(change))
        assert notebook["y"] is not y


def test_thread_of_an_earlier_execution_takes_nothing(notebook: Any) -> None:
    source = (
        "import threading\ngo = threading.Event()\n"
        "def late(go=go): go.wait(); made.append(fb.constant({}, name='late'))\n"
        "t = threading.Thread(target=late); t.start(); goes.append((go, t))\n"
        "x = fb.constant({}, name='late')"
    )
    notebook.run("start", "made, goes = [], []")
    notebook.run("a", source.format(1.0, 2.0))
    notebook.run("a", source.format(1.0, 3.0))
    for go, thread in notebook["goes"]:
        go.set()
        thread.join()
    assert notebook["x"].name == "late:0"
    assert not notebook["x"].op.retired
    notebook.run("a", "pass")
    assert notebook.names == []


def test_graphs_made_by_the_cell(notebook: Any) -> None:
    source = "graph = fb.Graph()\nwith graph.as_default():\n    x = fb.constant(1.0, name='x')"
    notebook.run("a", source)
    first = notebook["graph"]
    notebook.run("a", source)
    assert first.operations == []
    assert [op.name for op in notebook["graph"].operations] == ["x"]


def test_finalized_graphs_stay(notebook: Any) -> None:
    notebook.run("a", "g = fb.Graph()\nwith g.as_default(): x = fb.constant(1.0)\ng.finalize()")
    graph = notebook["g"]
    notebook.run("a", "pass")
    assert len(graph.operations) == 1


@pytest.mark.parametrize("changes", [False, True])
def test_running_again_leaks_nothing(notebook: Any, changes: bool) -> None:
    source = (
        "with fb.name_scope('layer'):\n"
        "    W = fb.Variable([1.0, {0}], name='W'); u = fb.Variable({0})\n"
        "    y = fb.reduce_sum(W * {0} + u, name='y')\n"
        "y.consumers(); None"
    )
    for i in range(5):
        notebook.run("a", source.format(float(i) if changes else 1.0))
    count = len(notebook.graph.operations)
    refs = []
    for i in range(5, 205):
        refs.append(weakref.ref(notebook["y"].op))
        notebook.run("a", source.format(float(i) if changes else 1.0))
    gc.collect()
    current = notebook["y"].op
    assert [r() for r in refs if r() not in (None, current)] == []
    assert len(notebook.graph.operations) == count
    assert len(notebook.tracker._sources) <= 2


def test_a_thousand_changed_operations_take_no_quadratic_time(notebook: Any) -> None:
    source = "x = fb.placeholder(fb.float32, [{}])\nfor i in range(3000): x = fb.identity(x)"

    def spent(size: int) -> float:
        begun = time.process_time()
        notebook.run("a", source.format(size))
        return time.process_time() - begun

    def is_no_slower_by_far() -> bool:
        notebook.run("a", "pass")
        return 20 * spent(1) > spent(2)

    assert in_one_try(is_no_slower_by_far)
    assert len(notebook.names) == 3001
