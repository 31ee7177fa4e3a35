"""In a real kernel, with the cells' ids in the requests' metadata, as JupyterLab sends them."""

from collections.abc import Iterator

import pytest

from tests.kernel import Kernel, running_kernel

pytestmark = pytest.mark.lab

MODEL = "x = fb.placeholder(fb.float32, [2], name='x')\nW = fb.Variable([1.0, 2.0], name='W')"
NAMES = "print([op.name for op in fb.get_default_graph().operations])"


@pytest.fixture(scope="module")
def started() -> Iterator[Kernel]:
    with running_kernel() as kernel:
        yield kernel


@pytest.fixture
def kernel(started: Kernel) -> Kernel:
    return started


def test_a_session_of_work(kernel: Kernel) -> None:
    # The cell that imports flowbook builds too.
    first = "import flowbook as fb\nfirst = fb.constant(1.0, name='first')"
    assert kernel.run("import", first) == ""
    assert kernel.run("show", "print(first.op.site)") == (
        "cell [1], line 2:  first = fb.constant(1.0, name='first')"
    )
    kernel.run("import", first)
    assert kernel.run("names", NAMES) == "['first']"

    kernel.run("model", MODEL)
    kernel.run("use", "y = fb.identity(x * W, name='y')")
    before = kernel.run("names", NAMES)
    kernel.run("model", MODEL)
    assert kernel.run("names", NAMES) == before
    assert kernel.run("show", "print(fb.get_default_graph().stale())") == "nothing is stale"

    kernel.run("model", MODEL.replace("[2]", "[None]"))
    assert kernel.run("show", "for s in fb.get_default_graph().stale()[:1]: print(s)") == (
        "'Mul' (cell [6], line 1): it was built from the 'x' of before cell [11] redefined it; "
        "re-run cell [6]"
    )
    kernel.run("use", "y = fb.identity(x * W, name='y')")
    assert kernel.run("show", "print(fb.get_default_graph().stale())") == "nothing is stale"


def test_two_cells_of_one_source(kernel: Kernel) -> None:
    """As ipykernel gives equal sources one file name."""
    kernel.run("start", "import flowbook as fb; fb.reset_default_graph(); made = []")
    for cell_id in ("p", "q", "p", "q"):
        kernel.run(cell_id, "made.append(fb.constant(1.0, name='c'))")
    assert kernel.run("names", NAMES) == "['c', 'c_1']"
    assert kernel.run("show", "print(made[0] is made[2], made[1] is made[3])") == "True True"


def test_thread_and_async_cells(kernel: Kernel) -> None:
    kernel.run("start", "import flowbook as fb, threading, asyncio; fb.reset_default_graph()")
    kernel.run("f", "def build(name): fb.constant(1.0, name=name)")
    for _ in range(2):
        kernel.run("t", "t = threading.Thread(target=build, args=['t']); t.start(); t.join()")
        kernel.run("a", "build('a')\nawait asyncio.sleep(0.01)\nbuild('b')")
        # A task that goes on after its cell, while another cell awaits.
        kernel.run(
            "task",
            "go = asyncio.Event()\n"
            "async def work():\n    await go.wait(); build('late')\n"
            "task = asyncio.create_task(work())",
        )
        kernel.run("other", "build('o'); go.set(); await task; build('p')")
    assert sorted(eval(kernel.run("names", NAMES))) == ["a", "b", "late", "o", "p", "t"]
    kernel.run("other", "pass")
    assert sorted(eval(kernel.run("names", NAMES))) == ["a", "b", "late", "t"]


def test_without_ids_nothing_is_redefined(kernel: Kernel) -> None:
    kernel.run(None, "import flowbook as fb; fb.reset_default_graph()")
    for _ in range(2):
        kernel.run(None, "c = fb.constant(1.0, name='c')")
    assert kernel.run(None, NAMES) == "['c', 'c_1']"


def test_displays(kernel: Kernel) -> None:
    kernel.run("start", "import flowbook as fb; fb.reset_default_graph()")
    kernel.run("model", MODEL)
    assert "<table>" in kernel.run("show", "x")
    assert "<svg" in kernel.run("show", "fb.get_default_graph()")


def test_running_again_leaks_nothing(kernel: Kernel) -> None:
    kernel.run("start", "import flowbook as fb, gc; fb.reset_default_graph()")
    for i in range(20):
        kernel.run("model", MODEL.replace("1.0", f"{i}.0") + "\ny = fb.identity(x * W)")
    count = "gc.collect(); print(sum(isinstance(o, fb.Operation) and o.graph is x.graph for o in "
    kernel.run("count", "all_of = gc.get_objects()")
    kernel.run("drop", "del all_of")
    count += "gc.get_objects()))"
    assert kernel.run("count", count) == kernel.run(
        "show", "print(len(fb.get_default_graph().operations))"
    )


def test_errors_show_the_cells_frames_only(kernel: Kernel) -> None:
    kernel.run("start", "import flowbook as fb; fb.reset_default_graph()")
    kernel.run("model", MODEL)
    for source in ("x @ W @ x", "fb.Session().run(x)", "fb.Session().run(x, feed_dict={})"):
        lines = kernel.run("wrong", source).splitlines()
        assert lines[2].startswith("Cell In["), lines
        assert lines[3:5] == [f"----> 1 {source}", ""]
        assert "Error: " in lines[5]
        assert lines[-1].startswith("(Flowbook's own frames are hidden;")
