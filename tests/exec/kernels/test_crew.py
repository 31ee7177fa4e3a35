"""Parts of work are done once each, by whoever comes; nobody is waited for who has not begun."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, get_ident
from typing import Any

import numpy as np
import pytest

from flowbook.exec.kernels import crew
from flowbook.exec.kernels.crew import share


@pytest.fixture(autouse=True)
def _a_crew_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "_crew", crew._Crew())


class Meeting:
    """A part that this thread and a helper both have begun before either goes on."""

    def __init__(self) -> None:
        self.arrived = {True: Event(), False: Event()}
        self.here = get_ident()

    def __call__(self, act: Callable[[bool], None]) -> None:
        is_here = get_ident() == self.here
        self.arrived[is_here].set()
        assert self.arrived[not is_here].wait(60)
        act(is_here)


def test_every_part_is_done_once() -> None:
    done: list[int] = []
    for threads in (1, 2, 5):
        share(done.append, [(i,) for i in range(20)], threads)
        assert sorted(done) == list(range(20))
        done.clear()


def test_a_helper_takes_part() -> None:
    here: list[bool] = []
    share(Meeting(), [(here.append,)] * 2, 2)
    assert sorted(here) == [False, True]


@contextmanager
def occupied_helper() -> Iterator[None]:
    """The only helper is at a part of another thread's work inside, and does not come."""
    occupied, free = Event(), Event()

    def occupy(is_here: bool) -> None:
        if not is_here:
            occupied.set()
            assert free.wait(60)

    def work() -> None:
        share(Meeting(), [(occupy,)] * 2, 2)

    other = Thread(target=work)
    other.start()
    try:
        assert occupied.wait(60)
        yield
    finally:
        free.set()
        other.join()


def test_nobody_waits_for_a_helper_that_has_not_begun() -> None:
    done: list[int] = []
    with occupied_helper():
        share(lambda i: done.append(get_ident()), [(i,) for i in range(5)], 2)
    assert done == [get_ident()] * 5


def test_where_no_thread_can_start_the_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", refuse)
    done: list[int] = []
    share(done.append, [(i,) for i in range(5)], 3)
    assert done == list(range(5))


@pytest.mark.parametrize("fails_here", [True, False])
@pytest.mark.parametrize("error", [IndexError("wrong"), MemoryError(), KeyboardInterrupt()])
def test_an_error_of_a_part_is_raised_and_the_rest_stays_undone(
    fails_here: bool, error: BaseException
) -> None:
    failed, done = Event(), []

    def act(is_here: bool) -> None:
        if is_here == fails_here:
            failed.set()
            raise error
        assert failed.wait(60)
        done.append(is_here)

    with pytest.raises(type(error)) as caught:
        share(Meeting(), [(act,)] * 2, 2)
    assert caught.value is error
    # The crew goes on: it is at hand for the next work.
    here: list[bool] = []
    share(Meeting(), [(here.append,)] * 2, 2)
    assert sorted(here) == [False, True]


def test_what_is_not_begun_when_a_part_fails_stays_undone() -> None:
    done: list[int] = []

    def part(i: int) -> None:
        if i == 2:
            raise KeyboardInterrupt
        done.append(i)

    with occupied_helper(), pytest.raises(KeyboardInterrupt):
        share(part, [(i,) for i in range(10)], 2)
    # Now the helper comes, and when it has begun the next work it has been at this one.
    share(Meeting(), [(lambda is_here: None,)] * 2, 2)
    assert done == [0, 1]


def test_several_threads_share_at_the_same_time() -> None:
    found: dict[int, list[int]] = {}

    def work(i: int) -> None:
        for _ in range(50):
            done: list[int] = []
            share(done.append, [(i * 100 + k,) for k in range(8)], 3)
            found.setdefault(i, []).append(sorted(done) == [i * 100 + k for k in range(8)])

    threads = [Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: [True] * 50 for i in range(6)}


def test_idle_helpers_hold_nothing() -> None:
    array = np.zeros(5)
    gone = weakref.ref(array)
    seen: list[Any] = []

    def part(act: Callable[[bool], None], given: Any) -> None:
        meeting(act)

    meeting = Meeting()
    share(part, [(seen.append, array)] * 2, 2)
    # It has left the first work when it has begun the next.
    share(Meeting(), [(seen.append,)] * 2, 2)
    assert len(seen) == 4
    del array
    gc.collect()
    assert gone() is None


def test_helpers_do_not_warn_of_what_numbers_overflow() -> None:
    kinds: list[Any] = []
    share(Meeting(), [(lambda is_here: kinds.append((is_here, np.geterr()["over"])),)] * 2, 2)
    assert (False, "ignore") in kinds


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_helpers_of_its_own() -> None:
    here: list[bool] = []
    share(Meeting(), [(here.append,)] * 2, 2)
    if not (child := os.fork()):
        try:
            share(Meeting(), [(here.append,)] * 2, 2)
            os._exit(sorted(here) != [False, False, True, True])
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_importing_flowbook_starts_no_thread() -> None:
    text = "import flowbook, threading; print(threading.active_count())"
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, check=True, text=True)
    assert found.stdout == "1\n"
