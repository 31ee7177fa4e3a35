"""An operation belongs to the cell whose execution built it, however that came about."""

import asyncio
import sys
import threading
from typing import Any

import pytest

import flowbook as fb


def built_by(tensor: Any) -> str:
    return tensor.op.site.author.label


async def run_cell(shell: Any, cell_id: str, source: str) -> bool:
    """Run a cell as ipykernel does in its loop; whether it succeeded."""
    result = await shell.run_cell_async(
        source,
        store_history=True,
        cell_id=cell_id,
        transformed_cell=shell.transform_cell(source),
    )
    shell.events.trigger("post_execute")
    shell.events.trigger("post_run_cell", result)
    return bool(result.success)


def test_cell_and_line(notebook: Any) -> None:
    notebook.run("a", "x = fb.constant(1.0)\n\ny = fb.constant(2.0)")
    assert str(notebook["y"].op.site) == "cell [1], line 3:  y = fb.constant(2.0)"


def test_function_of_another_cell(notebook: Any) -> None:
    notebook.run("a", "def build():\n    return fb.constant(1.0)")
    notebook.run("b", "x = build()")
    site = notebook["x"].op.site
    assert site.place == "cell [1], line 2, run by cell [2]"
    assert site.source == "return fb.constant(1.0)"
    assert site.author.label == "cell [2]"


def test_outside_cells_nobody_builds(notebook: Any) -> None:
    notebook.run("a", "x = fb.constant(1.0)")
    assert fb.constant(2.0).op.site.author is None


def test_two_cells_of_the_same_source(notebook: Any, monkeypatch: Any) -> None:
    # As in ipykernel: the file name depends on the source only.
    monkeypatch.setattr(notebook.shell.compile, "get_code_name", lambda raw, code, number: raw)
    source = "made.append(fb.constant(1.0))"
    notebook.run("start", "made = []")
    for cell_id in ("a", "b", "a", "b"):
        notebook.run(cell_id, source)
    first, second, again, and_again = notebook["made"]
    assert (again, and_again) == (first, second)
    assert first is not second
    assert first.op.site.place == "cell [4], line 1"
    assert second.op.site.place == "cell [5], line 1"
    assert notebook.names == ["Const", "Const_1"]


@pytest.mark.parametrize("how", ["thread", "pool"])
def test_threads(notebook: Any, how: str) -> None:
    notebook.run(
        "a",
        "import threading, concurrent.futures as futures\n"
        "def build(): made.append(fb.constant(1.0))",
    )
    start = {
        "thread": "t = threading.Thread(target=build); t.start(); t.join()",
        "pool": "with futures.ThreadPoolExecutor() as pool: pool.submit(build).result()",
    }[how]
    notebook.run("b", f"made = []\n{start}")
    first = notebook["made"][0]
    assert built_by(first) == "cell [2]"
    notebook.run("b", f"made = []\n{start}")
    assert notebook["made"] == [first]
    assert notebook.names == ["Const"]


def test_thread_that_outlives_its_cell(notebook: Any) -> None:
    notebook.run("a", "def build():\n    go.wait(); made.append(fb.constant(1.0))")
    notebook.run(
        "b",
        "import threading\nmade, go = [], threading.Event()\n"
        "t = threading.Thread(target=build); t.start()",
    )
    # The function's own cell runs again, unchanged: the thread is still b's.
    notebook.run("a", "def build():\n    go.wait(); made.append(fb.constant(1.0))")
    notebook.run("c", "go.set(); t.join()")
    assert built_by(notebook["made"][0]) == "cell [2]"


def test_pool_works_for_the_cell_that_wrote_its_job(notebook: Any) -> None:
    notebook.run(
        "a",
        "import concurrent.futures as futures\npool = futures.ThreadPoolExecutor(1)\n"
        "def build(): return fb.constant(1.0)\nx = pool.submit(build).result()",
    )
    notebook.run("b", "def job(): return fb.constant(2.0)\ny = pool.submit(job).result()")
    notebook["pool"].shutdown()
    assert built_by(notebook["x"]) == "cell [1]"
    assert built_by(notebook["y"]) == "cell [2]"


def test_callback_after_its_cell(notebook: Any) -> None:
    notebook.run("a", "def on_click(): return fb.constant(1.0)")
    notebook.run("b", "x = fb.constant(2.0)")
    assert built_by(notebook["on_click"]()) == "cell [1]"


def test_async_cell(notebook: Any) -> None:
    notebook.run(
        "a", "import asyncio\nx = fb.constant(1.0)\nawait asyncio.sleep(0)\ny = fb.constant(2.0)"
    )
    assert built_by(notebook["x"]) == built_by(notebook["y"]) == "cell [1]"


def test_task_runs_between_the_steps_of_another_cell(notebook: Any) -> None:
    """A task of the first cell builds while the second awaits, as under ipykernel's one loop."""

    async def run(cell_id: str, source: str) -> None:
        assert await run_cell(notebook.shell, cell_id, source)

    async def front_end() -> None:
        await asyncio.create_task(
            run(
                "a",
                "import asyncio\nmine, others, go = [], [], asyncio.Event()\n"
                "async def work():\n"
                "    await go.wait(); others.append(fb.constant(1.0, name='t'))\n"
                "task = asyncio.create_task(work())\nawait asyncio.sleep(0)",
            )
        )
        for _ in range(2):
            await asyncio.create_task(
                run(
                    "b",
                    "mine.append(fb.constant(2.0, name='m'))\ngo.set()\nawait asyncio.sleep(0)\n"
                    "await asyncio.sleep(0)\nmine.append(fb.constant(3.0, name='n'))",
                )
            )

    asyncio.run(front_end())
    assert [built_by(t) for t in notebook["others"]] == ["cell [1]"]
    assert {built_by(t) for t in notebook["mine"]} == {"cell [3]"}
    assert notebook.names == ["m", "t", "n"]


def test_to_thread_keeps_the_cell(notebook: Any) -> None:
    notebook.run("a", "import asyncio\nx = await asyncio.to_thread(fb.constant, 1.0)")
    assert built_by(notebook["x"]) == "cell [1]"


def test_nested_run_cell_is_part_of_the_outer(notebook: Any) -> None:
    notebook.run(
        "a",
        "x = fb.constant(1.0)\nget_ipython().run_cell('y = fb.constant(2.0)')\n"
        "z = fb.constant(3.0)",
    )
    assert {built_by(notebook[n]) for n in "xyz"} == {"cell [1]"}
    assert "run by cell [1]" in notebook["y"].op.site.place or notebook["y"].op.site.line == 1


def test_magics_are_part_of_the_cell(notebook: Any) -> None:
    notebook.run("a", "%%time\nx = fb.constant(1.0)")
    assert built_by(notebook["x"]) == "cell [1]"


def test_gradients_belong_to_the_cell_that_asked(notebook: Any) -> None:
    notebook.run("a", "x = fb.placeholder(fb.float32, [], name='x')\ny = x * x")
    for count in (2, 3):
        notebook.run("b", "[g] = fb.gradients(y, x)")
        assert built_by(notebook["g"]) == f"cell [{count}]"
        assert notebook["g"].op.site.place == f"cell [1], line 1, run by cell [{count}]"
    assert not any("_1" in name.partition("/")[0] for name in notebook.names)


def test_without_ids_every_execution_is_its_own(notebook: Any) -> None:
    for _ in range(2):
        notebook.run(None, "x = fb.constant(1.0, name='x')")
    assert notebook.names == ["x", "x_1"]


def test_empty_and_wrong_cells_disturb_nothing(notebook: Any) -> None:
    notebook.run("a", "x = fb.constant(1.0, name='x')")
    notebook.run("b", "")
    notebook.run("a", "x = (", fails=True)
    assert notebook.names == ["x"]
    notebook.run(
        "a",
        "x = fb.constant(1.0, name='x')\nget_ipython().run_cell('  ')\n"
        "y = fb.constant(1.0, name='y')",
    )
    assert built_by(notebook["x"]) == built_by(notebook["y"])


def test_thread_that_runs_no_code_of_a_cell(notebook: Any) -> None:
    def library() -> None:
        notebook.shell.user_ns["x"] = fb.constant(1.0)

    notebook.shell.user_ns["thread"] = threading.Thread(target=library)
    notebook.run("a", "thread.start(); thread.join()")
    assert built_by(notebook["x"]) == "cell [1]"


def test_two_cells_at_once(notebook: Any) -> None:
    """As in ipykernel's subshells: each thread is in a cell of its own."""
    meet = threading.Barrier(2, timeout=60)
    notebook.shell.user_ns["meet"] = meet
    shell, labels = notebook.shell, {}

    def run(cell_id: str) -> None:
        source = f"meet.wait(); {cell_id} = fb.constant(1.0, name='{cell_id}'); meet.wait()"
        asyncio.run(run_cell(shell, cell_id, source))
        labels[cell_id] = built_by(notebook[cell_id])

    threads = [threading.Thread(target=run, args=(cell_id,)) for cell_id in ("p", "q")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(labels.values()) == ["cell [1]", "cell [2]"]
    notebook.run("p", "pass")
    assert notebook.names == ["q"]


MODULE = """
import flowbook as fb
of_module = fb.constant({value}, name="of_module")
sess = fb.Session()
def layer(x):
    return fb.tanh(x, name="layer")
"""


@pytest.fixture
def module(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The file of a module that builds when it is imported."""
    path = tmp_path / "made_for_a_test.py"
    path.write_text(MODULE.format(value=1.0))
    monkeypatch.syspath_prepend(tmp_path)
    yield path
    sys.modules.pop("made_for_a_test", None)


def test_what_a_module_builds_outlives_the_cell_that_imports_it(notebook: Any, module: Any) -> None:
    """Python runs a module once: the cell that runs again does not build it again."""
    for _ in range(2):
        notebook.run("a", "import made_for_a_test as m")
    assert notebook["m"].of_module.op.site.author is None
    assert notebook.names == ["of_module"]
    assert not notebook["m"].sess.closed
    notebook.run("b", "y = m.layer(m.of_module)")
    assert built_by(notebook["y"]) == "cell [3]"


def test_a_reloaded_module_builds_beside_what_it_built(notebook: Any, module: Any) -> None:
    notebook.run("a", "import importlib, made_for_a_test as m\ny = m.layer(m.of_module)")
    module.write_text(MODULE.format(value=20.0))
    notebook.run("b", "importlib.reload(m)")
    assert notebook.names == ["of_module", "layer", "of_module_1"]
    notebook.run("a", "import importlib, made_for_a_test as m\ny = m.layer(m.of_module)")
    assert notebook.names == ["of_module", "of_module_1", "layer"]
    assert not notebook.graph.stale()


def test_a_script_that_a_cell_runs_is_part_of_it(notebook: Any, module: Any) -> None:
    for _ in range(2):
        notebook.run("a", f"%run {module}")
    assert notebook.names == ["of_module"]
    assert notebook["of_module"].op.site.place == "made_for_a_test.py, line 3, run by cell [2]"
    assert notebook.notices == [
        "flowbook: closed the session that this cell made before; its variables start afresh"
    ]


def test_cells_that_await_end_in_any_order(notebook: Any) -> None:
    """The first to begin is the first to end, while the other still awaits."""

    async def front_end() -> None:
        first = asyncio.create_task(
            run_cell(
                notebook.shell,
                "a",
                "import asyncio\ngo, done = asyncio.Event(), asyncio.Event()\n"
                "p = fb.constant(1.0, name='p')\nawait go.wait()\nq = fb.constant(2.0, name='q')",
            )
        )
        await asyncio.sleep(0)
        second = asyncio.create_task(
            run_cell(
                notebook.shell,
                "b",
                "r = fb.constant(3.0, name='r')\ngo.set()\nawait done.wait()\n"
                "s = fb.constant(4.0, name='s')",
            )
        )
        assert await first
        notebook["done"].set()
        assert await second

    for _ in range(2):
        asyncio.run(front_end())
        assert sorted(notebook.names) == ["p", "q", "r", "s"]
    assert built_by(notebook["p"]) == built_by(notebook["q"]) == "cell [3]"
    assert built_by(notebook["r"]) == built_by(notebook["s"]) == "cell [4]"
    notebook.run("a", "pass")
    assert sorted(notebook.names) == ["r", "s"]


def test_a_task_of_an_earlier_cell_that_runs_a_cell(notebook: Any) -> None:
    """It is nobody's part: the cell that runs meanwhile did not call it."""

    async def front_end() -> None:
        await run_cell(
            notebook.shell,
            "a",
            "import asyncio\ngo = asyncio.Event()\n"
            "async def later():\n    await go.wait()\n"
            "    get_ipython().run_cell(\"late = fb.constant(1.0, name='late')\")\n"
            "task = asyncio.create_task(later())\nawait asyncio.sleep(0)",
        )
        await run_cell(notebook.shell, "b", "mine = fb.constant(2.0)\ngo.set()\nawait task")

    asyncio.run(front_end())
    assert built_by(notebook["mine"]) == "cell [2]"
    assert built_by(notebook["late"]) != "cell [2]"


def test_an_interrupted_async_cell_ends(notebook: Any) -> None:
    notebook.run("a", "import asyncio\nx = fb.constant(1.0, name='x')")
    notebook.run("a", "await asyncio.sleep(0)\nraise KeyboardInterrupt", fails=True)
    assert notebook.names == ["x"]
    assert fb.constant(2.0).op.site.author is None
    notebook.run("b", "y = fb.constant(3.0)")
    assert built_by(notebook["y"]) == "cell [3]"
