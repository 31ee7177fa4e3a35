"""Several operations that own one resource: what touches it by any of them has one order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.cells.conftest import Notebook
from tests.exec.engine.test_growth import chain, prepared
from tests.exec.state.executors import EXECUTORS, everywhere, run_in
from tests.notebook_shell import interactive_shell

__all__ = ["prepared"]  # A fixture.

# The second owner is the first, or another one of the same resource.
how_many_own = pytest.mark.parametrize("owners", [1, 2])


def both(owners: int, make: Callable[[], Any]) -> tuple[Any, Any]:
    first = make()
    return first, first if owners == 1 else make()


def table() -> fb.lookup.MutableHashTable:
    return fb.lookup.MutableHashTable(fb.string, fb.int64, default_value=-1, shared_name="shared")


def later() -> tuple[fb.Tensor, fb.Operation]:
    """A key that comes when all that does not wait has run, and what lets it come."""
    queue = fb.FIFOQueue(1, [fb.string], [[1]])
    return queue.dequeue(), queue.enqueue([["key"]])


@how_many_own
def test_writes_go_in_the_order_of_construction(owners: int) -> None:
    one, other = both(owners, table)
    key, let_it_come = later()
    writes = [one.insert(key, [5]), other.insert(["key"], [6]), let_it_come]
    for kind, sess, _ in everywhere(fb.get_default_graph(), writes):
        assert sess.run(one.lookup(["key"])) == [6], kind


@how_many_own
def test_a_read_built_before_a_write_sees_what_was_there(owners: int) -> None:
    one, other = both(owners, table)
    key, let_it_come = later()
    seen = one.lookup(key)
    written = other.insert(["key"], [6])
    for kind, _, found in everywhere(fb.get_default_graph(), [seen, written, let_it_come]):
        assert found[0] == [-1], kind


@how_many_own
@pytest.mark.parametrize("kind", EXECUTORS)
def test_sections_of_a_mutex_take_turns(kind: str, owners: int) -> None:
    one, other = both(owners, lambda: fb.Mutex(shared_name="shared"))
    total = fb.Variable(1.0)
    key, let_it_come = later()
    with fb.control_dependencies([key]):
        first = one.execute(lambda: fb.assign(total, total + 1.0))
    second = other.execute(lambda: fb.assign(total, total * 10.0))
    with fb.Session() as sess:
        assert run_in(kind, sess, [second, first, let_it_come])[:2] == [20.0, 2.0]


@pytest.mark.filterwarnings("ignore:re-run cell")
def test_a_variable_of_a_container_is_one_when_its_cell_has_run_again() -> None:
    with interactive_shell() as shell:
        notebook = Notebook(shell)
        cell = "with fb.container('shared_owners'):\n    W = fb.Variable(1.0, name='W')"
        notebook.run("start", "q, sess = fb.FIFOQueue(1, [fb.float32], [[]]), fb.Session()")
        notebook.run("model", cell)
        notebook.run("before", "added = fb.assign_add(W, 10.0)")
        notebook.run("model", cell.replace("1.0", "2.0"))
        notebook.run("late", "with fb.control_dependencies([q.dequeue()]):\n    read = W * 1.0")
        # No path orders the read after the write: it sees the value from before.
        notebook.run("run", "print(*sess.run([added, read, q.enqueue([0.0])])[:2], sess.run(W))")
        assert notebook.output.strip() == "12.0 2.0 12.0"


@how_many_own
def test_what_is_added_by_one_owner_is_written_after_reads_by_another(
    prepared: list[int], owners: int
) -> None:
    one, other = both(owners, table)
    x = fb.placeholder(fb.float32, [2])
    key, let_it_come = later()
    asked = [one.lookup(key), chain(x), let_it_come]
    feeds = {x: np.ones(2, np.float32)}
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(asked, feeds)
        prepared.clear()
        written = other.insert(["key"], [6])
        assert sess.run([*asked, written], feeds)[0] == [-1]
        assert max(prepared) < 10
        assert sess.run(asked, feeds)[0] == [6]
