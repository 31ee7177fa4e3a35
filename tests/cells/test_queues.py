"""Queues of cells that run again: they are kept or replaced, and their runners stop."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

import flowbook as fb
from tests.exec.held import own_keys
from tests.graph.ops.queues.waiting import waiters

CELL = """
queue = fb.FIFOQueue({capacity}, fb.int32, shapes=[[]], name="numbers")
count = fb.Variable(0, name="count")
runner = fb.train.QueueRunner(queue, queue.enqueue(fb.count_up_to(count, 10**9)))
taken = queue.dequeue()
"""


def feeding() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "flowbook numbers_runner"]


def test_runners_stop_when_their_cell_runs_again_and_start_again(notebook) -> None:
    notebook.run("queue", CELL.format(capacity=4))
    notebook.run("session", "sess = fb.Session()")
    notebook.run("use", "first = sess.run(taken)")
    [thread] = feeding()
    notebook.run("queue", CELL.format(capacity=4))
    thread.join(60)
    assert feeding() == []
    notebook.run("use", "second = sess.run(taken); third = sess.run(taken)")
    # The same queue and the same counter: nothing is lost or comes twice.
    assert [notebook["first"], notebook["second"], notebook["third"]] == [0, 1, 2]
    assert len(feeding()) <= 1
    notebook.run("end", "sess.close()")
    assert feeding() == []


def test_what_a_runner_waits_with_is_put_in_when_its_cell_runs_again(notebook) -> None:
    notebook.run("queue", CELL.format(capacity=4))
    notebook.run("session", "sess = fb.Session()")
    notebook.run("use", "found = [sess.run(taken).item()]")
    while not waiters(notebook["sess"], notebook["queue"]):  # It has counted a sixth element.
        threading.Event().wait(0.001)
    notebook.run("queue", CELL.format(capacity=4))
    notebook.run("use", "found += [sess.run(taken).item() for _ in range(9)]")
    assert notebook["found"] == list(range(10))
    notebook.run("end", "sess.close()")


def test_a_queue_that_is_made_otherwise_is_another(notebook) -> None:
    notebook.run("queue", CELL.format(capacity=4))
    notebook.run("session", "sess = fb.Session()")
    notebook.run("use", "sess.run(taken)")
    old = weakref.ref(notebook["sess"]._master.stores.find(notebook["queue"].op.key))
    notebook.run("queue", CELL.format(capacity=5))
    notebook.run("use", "value = sess.run(taken)")
    [thread] = feeding()
    gc.collect()
    assert old() is None
    assert thread.is_alive()
    notebook.run("end", "sess.close()")


def test_nothing_stays_behind(notebook) -> None:
    notebook.run("session", "sess = fb.Session()")
    for number in range(30):
        notebook.run("queue", CELL.format(capacity=4 + number % 2))
        notebook.run("use", "value = sess.run(taken)")
    assert len(feeding()) == 1
    gc.collect()
    resources = [k for k in own_keys(notebook["sess"]) if k.name == "numbers"]
    assert len(resources) <= 2
    assert len(notebook["sess"].feeding._feeders) == 1
    notebook.run("end", "sess.close()")
    assert feeding() == []


def test_deleting_the_cell_stops_its_runners(notebook) -> None:
    notebook.run("queue", CELL.format(capacity=4))
    notebook.run("session", "sess = fb.Session()")
    notebook.run("use", "value = sess.run(taken)")
    [thread] = feeding()
    notebook.run("other", "1", deleted=["queue"])
    thread.join(60)
    assert feeding() == []
    notebook.run("end", "sess.close()")


PIPELINE = """
rows = fb.train.range_input_producer(5, num_epochs=1, shuffle=False)
batch = fb.train.batch(rows.dequeue(), 2{options})
"""


@pytest.mark.parametrize("options", ["", ", allow_smaller_final_batch=True"])
def test_an_input_that_was_used_up_is_there_again_when_its_cell_runs_again(
    notebook, options: str
) -> None:
    notebook.run("input", PIPELINE.format(options=options))
    notebook.run("session", "sess = fb.Session()")
    for _ in range(3):
        notebook.run("use", "found = [b.tolist() for b in fb.train.until_end(sess, batch)]")
        assert notebook["found"] == [[0, 1], [2, 3], [4]][: 3 if options else 2]
        notebook.run("use", "left = list(fb.train.until_end(sess, batch))")
        assert notebook["left"] == []
        notebook.run("input", PIPELINE.format(options=options))
    notebook.run("end", "sess.close()")


def ended(notebook) -> None:
    """Wait until the runners have put all into their queues."""
    for feeder in list(notebook["sess"].feeding._feeders.values()):
        for thread in feeder.threads:
            thread.join(60)


@pytest.mark.parametrize("again", ["rows", "batch"])
def test_any_part_of_an_input_that_was_used_up_begins_it_again(notebook, again: str) -> None:
    rows, batch = PIPELINE.format(options="").strip().splitlines()
    parts = {"rows": rows, "batch": batch}
    notebook.run("rows", rows)
    notebook.run("batch", batch)
    notebook.run("session", "sess = fb.Session()")
    for _ in range(3):
        notebook.run("use", "found = sess.run(batch).tolist()")
        assert notebook["found"] == [0, 1]
        ended(notebook)
        notebook.run(again, parts[again])
    notebook.run("end", "sess.close()")


def test_an_input_that_is_not_at_its_end_goes_on(notebook) -> None:
    text = "rows = fb.train.range_input_producer(9, num_epochs=1, shuffle=False, capacity=9)\n"
    text += "batch = fb.train.batch(rows.dequeue(), 2, capacity=2)"
    notebook.run("input", text)
    notebook.run("session", "sess = fb.Session()")
    notebook.run("use", "found = sess.run(batch).tolist()")
    notebook.run("input", text)
    notebook.run("use", "found += [n for b in fb.train.until_end(sess, batch) for n in b.tolist()]")
    assert notebook["found"] == list(range(8))
    notebook.run("input", text)
    notebook.run("use", "found = [n for b in fb.train.until_end(sess, batch) for n in b.tolist()]")
    assert notebook["found"] == list(range(8))
    notebook.run("end", "sess.close()")


JOINED = """
rows = fb.train.range_input_producer({rows}, num_epochs=1, shuffle=False, capacity={rows})
queue = fb.FIFOQueue(9, fb.int32, shapes=[[]])
for element in (fb.count_up_to(fb.Variable(0), 2), rows.dequeue()):
    fb.train.QueueRunner(queue, queue.enqueue(element))
taken = queue.dequeue()
"""


def test_an_input_of_several_is_at_its_end_when_all_are(notebook) -> None:
    notebook.run("input", JOINED.format(rows=3))
    notebook.run("session", "sess = fb.Session()")
    for _ in range(3):
        notebook.run("use", "found = sorted(n.item() for n in fb.train.until_end(sess, taken))")
        assert notebook["found"] == [0, 0, 1, 1, 2]
        notebook.run("input", JOINED.format(rows=3))
    notebook.run("input", JOINED.format(rows=500))
    # Until the one has given all that it has, and the other one as much at least, but not all.
    take = "while sorted(found)[:4] != [0, 0, 1, 1]: found.append(sess.run(taken).item())"
    notebook.run("use", f"found = []\n{take}")
    notebook.run("input", JOINED.format(rows=500))
    notebook.run("use", "found += [n.item() for n in fb.train.until_end(sess, taken)]")
    # The one that has ended gives nothing more; the other one goes on where it was.
    assert sorted(notebook["found"]) == sorted([0, 1, *range(500)])
    notebook.run("end", "sess.close()")


RANGE = """
rows = fb.train.range_input_producer({rows}, {epochs}, shuffle=False, capacity={capacity})
batch = fb.train.batch(rows.dequeue() * {factor}, 2)
"""


@pytest.mark.parametrize("used", [1, 60])
@pytest.mark.parametrize(
    "changed",
    [{"rows": 300}, {"rows": 100}, {"epochs": 2}, {"capacity": 9}, {"factor": 3}],
    ids=["more rows", "fewer rows", "epochs", "capacity", "factor"],
)
def test_an_input_that_is_made_otherwise_begins_anew(notebook, changed: Any, used: int) -> None:
    first = {"rows": 200, "epochs": 1, "capacity": 8, "factor": 1}
    notebook.run("input", RANGE.format(**first))
    notebook.run("session", "sess = fb.Session()")
    notebook.run("use", f"for _ in range({used}): sess.run(batch)")
    now = {**first, **changed}
    notebook.run("input", RANGE.format(**now))
    take = "found = [n for b in fb.train.until_end(sess, batch) for n in b.tolist()]"
    notebook.run("use", take)
    expected = [now["factor"] * n for n in range(now["rows"])] * now["epochs"]
    assert notebook["found"] == expected
    # Used up, it is there again as any other.
    notebook.run("input", RANGE.format(**now))
    notebook.run("use", take)
    assert notebook["found"] == expected
    notebook.run("end", "sess.close()")


LINES = """
names = fb.train.string_input_producer({names}, num_epochs=1, shuffle=False)
_, line = fb.TextLineReader().read(names)
batch = fb.train.batch(line, 2)
"""


def test_other_files_are_read_from_their_first_line(notebook, tmp_path) -> None:
    paths = [str(tmp_path / f"{name}.txt") for name in "abc"]
    for path in paths:
        Path(path).write_text("".join(f"{path[-5]}{number}\n" for number in range(90)))
    notebook.run("input", LINES.format(names=paths[:2]))
    notebook.run("session", "sess = fb.Session()")
    notebook.run("use", "found = sess.run(batch).tolist()")
    assert notebook["found"] == [b"a0", b"a1"]
    notebook.run("input", LINES.format(names=paths[1:]))
    notebook.run("use", "found = [n for b in fb.train.until_end(sess, batch) for n in b.tolist()]")
    assert notebook["found"] == [b"%s%d" % (name, n) for name in (b"b", b"c") for n in range(90)]
    notebook.run("end", "sess.close()")


STALE_INPUTS = {
    "prefetched": "batch = fb.train.batches([1, 2, 3, 4, 5, 6], {size}, prefetch=2)",
    "batched": """
[row] = fb.unstack(fb.train.batches([*range(2 * {size})], 1))
batch = fb.train.batch(row, {size}, capacity={size})
""",
}


@pytest.mark.parametrize("source", STALE_INPUTS.values(), ids=STALE_INPUTS)
@pytest.mark.parametrize("begun", [True, False], ids=["begun", "fresh"])
def test_who_takes_from_a_redefined_input_fails_when_nothing_fills_it(
    notebook, source: str, begun: bool
) -> None:
    notebook.run("input", source.format(size=2))
    notebook.run("use", "total = fb.reduce_sum(batch)")
    notebook.run("session", "sess = fb.Session()")
    if begun:
        notebook.run("run", "sess.run(total)")
    notebook.run("input", source.format(size=3))
    with pytest.warns(fb.errors.StaleDefinitionWarning):
        output = notebook.run("run", "list(fb.train.until_end(sess, total))", fails=True)
    input_cell = "cell [5]" if begun else "cell [4]"
    assert "any more: it is the 'batch" in output
    assert f"of before {input_cell} redefined it" in output
    assert f"redefined at {input_cell}, line" in output
    assert "hint: re-run cell [2]: this run uses 'Sum' built from" in output
    notebook.run("use", "total = fb.reduce_sum(batch)")
    notebook.run("run", "found = len(list(fb.train.until_end(sess, total)))")
    assert notebook["found"] == 2
    notebook.run("end", "sess.close()")


def test_a_queue_that_was_closed_is_open_and_empty_when_its_cell_runs_again(notebook) -> None:
    cell = "queue = fb.FIFOQueue(10, fb.int32, shapes=[[]])"
    notebook.run("queue", cell)
    notebook.run("uses", "put, shut = queue.enqueue_many([1, 2, 3]), queue.close()")
    notebook.run("session", "sess, size = fb.Session(), queue.size()")
    for _ in range(3):
        notebook.run("use", "sess.run(put); sess.run(shut)")
        notebook.run("look", "found = sess.run(size)")
        assert notebook["found"] == 3
        notebook.run("queue", cell)
        notebook.run("look", "found = sess.run(size)")
        assert notebook["found"] == 0
    notebook.run("end", "sess.close()")


def test_a_queue_that_is_open_keeps_its_elements_when_its_cell_runs_again(notebook) -> None:
    cell = "queue = fb.FIFOQueue(10, fb.int32, shapes=[[]])\nput = queue.enqueue_many([1, 2, 3])"
    notebook.run("queue", cell)
    notebook.run("session", "sess, size = fb.Session(), queue.size()")
    notebook.run("use", "sess.run(put)")
    notebook.run("queue", cell)
    notebook.run("look", "found = sess.run(size)")
    assert notebook["found"] == 3
    notebook.run("end", "sess.close()")


def test_what_a_runner_has_put_into_a_queue_stays_when_the_queues_cell_runs_again(notebook) -> None:
    cell = "queue = fb.FIFOQueue(10, fb.int32, shapes=[[]])"
    notebook.run("queue", cell)
    notebook.run("count", "number = fb.count_up_to(fb.Variable(0), 4)")
    notebook.run("runner", "fb.train.QueueRunner(queue, queue.enqueue(number))")
    notebook.run("session", "sess, taken = fb.Session(), queue.dequeue()")
    notebook.run("use", "found = [sess.run(taken)]")
    ended(notebook)
    notebook.run("queue", cell)
    notebook.run("use", "found += fb.train.until_end(sess, taken)")
    assert notebook["found"] == [0, 1, 2, 3]
    notebook.run("end", "sess.close()")
