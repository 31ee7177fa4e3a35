"""What holds in `with` blocks around code that builds ends with them, whatever comes between."""

import gc
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import flowbook as fb
from flowbook.graph.building import blocks
from tests.interrupts import interrupted_at


def _everything() -> None:
    one = fb.constant(1.0)
    with (
        fb.Graph().as_default() as inner,
        fb.name_scope("a"),
        fb.device("/device:cpu:0"),
        fb.container("shared"),
    ):
        two = fb.constant(2.0)
        with fb.control_dependencies([two]), fb.colocate_with(two):
            assert fb.get_default_graph() is inner
    with fb.name_scope(None, "b", [one]) as prefix, fb.name_scope(prefix):
        fb.add(one, one)


def _training() -> None:
    x = fb.placeholder(fb.float32, [None, 2])
    W = fb.Variable(fb.ones([2, 1]))
    fb.train.MomentumOptimizer(0.1, 0.9).minimize(fb.reduce_mean(fb.square(x @ W)))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("build", "step"), [(_everything, 1), (_training, 11)])
def test_no_interrupt_leaves_a_scope_behind(build: Callable[[], None], step: int) -> None:
    kept = []  # As IPython keeps the last error, and with it all that it was in.
    for number in itertools.count(1, step):
        fb.reset_default_graph()
        graph = fb.get_default_graph()
        before = graph.scope
        interrupt = interrupted_at(number, build)
        assert graph.scope is before
        assert fb.get_default_graph() is graph
        if interrupt is None:
            break
        kept.append(interrupt)
    assert len(kept) > 50
    with fb.name_scope("after") as prefix, fb.Graph().as_default() as inner:
        kept.clear()
        gc.collect()
        assert fb.get_default_graph() is inner
        assert graph.scope.prefix == prefix
    assert graph.scope is before


@contextmanager
def suspended() -> Iterator[None]:
    with fb.name_scope("of_generator"), fb.Graph().as_default():
        yield


def test_a_block_of_a_generator_that_was_forgotten_ends_nothing_else() -> None:
    graph = fb.get_default_graph()
    before = blocks.entered()
    forgotten = suspended()
    forgotten.__enter__()
    assert graph.scope.prefix == "of_generator/"
    assert fb.get_default_graph() is not graph
    blocks.return_to(before)
    with fb.name_scope("after"):
        del forgotten
        gc.collect()
        assert graph.scope.prefix == "after/"
    assert graph.scope.prefix == ""


def test_blocks_that_end_in_another_order_hold_as_long_as_they_run() -> None:
    graph = fb.get_default_graph()
    one, other = fb.name_scope("one"), fb.device("/device:cpu:0")
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert graph.scope.device == "/device:cpu:0"
    other.__exit__(None, None, None)
    assert graph.scope.prefix == graph.scope.device == ""


def test_a_block_is_its_threads_own() -> None:
    graph = fb.get_default_graph()
    seen: list[Any] = []
    with fb.name_scope("here"):
        thread = threading.Thread(target=lambda: seen.append(graph.scope.prefix))
        thread.start()
        thread.join()
    assert seen == [""]


def test_a_block_that_has_ended_keeps_nothing() -> None:
    with fb.Graph().as_default():
        one = fb.constant(1.0)
        with fb.control_dependencies([one]):
            pass
        reference = weakref.ref(one.op.graph)
    del one
    gc.collect()
    assert reference() is None
