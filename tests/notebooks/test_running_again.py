"""Fifty re-runs of the cells of a day's work: nothing of them stays behind."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel import Kernel, running_kernel

pytestmark = pytest.mark.lab

# So many fill the caches that are bounded, such as those of compiled regions and of IPython.
WARM_UP = 20
RUNS = 50
MEGABYTE = 1 << 20

START = """
import collections, gc, json, os, threading
import comm, numpy as np
from ipywidgets.widgets.widget import _instances
import flowbook as fb

# Initial values become a reason to load LLVM, 80 MB, after so many runs.
fb.options.machine_code = "never"

def files():
    for number in os.listdir("/proc/self/fd"):
        try:
            yield os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            pass  # It was that of the folder.
"""

CELLS = {
    "model": """
x = fb.placeholder(fb.float32, [None, 4_096], name="x")
h = fb.layers.dense(x, {width}, activation=fb.nn.relu, name="h")
loss = fb.reduce_mean(fb.square(fb.layers.dense(h, 1)))
fb.summary.scalar("loss", loss)
fb.summary.histogram("h", h)
train = fb.train.AdamOptimizer(0.01).minimize(loss)
""",
    "session": "sess = fb.Session()\nsummaries = sess.summarize(to={folder!r})",
    "train": """
data = np.ones([4, 4_096], np.float32)
for _ in (bar := fb.progress(range(3))):
    loss_value, _ = sess.run([loss, train], {{x: data}})
    bar.show(loss=loss_value)
""",
    "step": "step = sess.partial_run([h, loss], [x]); step.run(h, {{x: data}});",
    "view": """
display(fb.get_default_graph(), summaries, sess.explain(loss, {{x: (4, 4_096)}}))
summaries.flush()
""",
    "broken": "y = fb.square(x)\nfb.ones([{width}]) + fb.ones([7])",
}

COUNT = """
gc.collect()
objects = gc.get_objects()
kinds = collections.Counter(
    f"{{type(o).__module__}}.{{type(o).__qualname__}}"
    for o in objects
    if str(type(o).__module__).partition(".")[0] in ("flowbook", "ipywidgets", "anywidget", "tqdm")
)
with open("/proc/self/statm") as file:
    pages = int(file.read().split()[1])
print(json.dumps({
    "operations": len(fb.get_default_graph().operations),
    "comms": len(comm.get_comm_manager().comms),
    "widgets": len(_instances),
    "threads": threading.active_count(),
    "files": sum("eventfd" not in target for target in files()),
    "kinds": kinds,
    "bytes": pages * os.sysconf("SC_PAGE_SIZE"),
}))
del objects
""".replace("{{", "{").replace("}}", "}")


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    with running_kernel() as kernel:
        yield kernel


def test_nothing_stays_behind(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run("start", START)
    counts = {}
    for number in range(RUNS):
        width = 128 + number // 2 % 2  # Every second run changes something.
        for cell_id, source in CELLS.items():
            shown = kernel.run(cell_id, source.format(width=width, folder=str(tmp_path)))
            assert ("Error" in shown) is (cell_id == "broken"), shown
        if number in (WARM_UP - 1, RUNS - 1):
            counts[number] = json.loads(kernel.run("count", COUNT))
    first, last = counts.values()
    # A thread may still be busy with the latest view that was closed, but not with one in ten.
    grown = {
        kind: (first["kinds"].get(kind, 0), count)
        for kind, count in last["kinds"].items()
        if count - first["kinds"].get(kind, 0) > (RUNS - WARM_UP) / 10
    }
    assert grown == {}
    for key in ("operations", "comms", "widgets", "threads"):
        assert last[key] == first[key], key
    # The kernel closes what ended threads sent through, seen as eventfds, every ten seconds.
    # The log's thread opens the file of a new session when it first has something to write.
    assert last["files"] <= first["files"] + 2
    # Had a run in ten left its variables behind, of 6 MB, it would be more. IPython keeps what it
    # showed.
    assert last["bytes"] < first["bytes"] + 16 * MEGABYTE
