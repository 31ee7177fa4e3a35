"""A limit on a BLAS library's threads ends with the call that it is for, whatever ends that."""

from __future__ import annotations

import signal
import sys
from threading import Event, Thread, main_thread
from typing import Any

import pytest

from flowbook.exec.kernels import blas
from flowbook.exec.kernels.blas import Blas


class Library:
    """Stands for OpenBLAS: a number of threads, and what it was set to."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.set_to: list[int] = []

    def get(self) -> int:
        return self.threads

    def limit(self, threads: int) -> None:
        self.threads = threads
        self.set_to.append(threads)


@pytest.fixture
def library() -> Library:
    return Library(4)


@pytest.fixture
def limited(library: Library) -> Blas:
    return Blas(library.get, library.limit)


def test_the_limit_holds_inside_alone(library: Library, limited: Blas) -> None:
    inside = limited.limited(1, lambda *given, **named: (library.threads, given, named), 7, x=8)
    assert inside == (1, (7,), {"x": 8})
    assert library.set_to == [1, 4]


def test_what_the_number_is_outside_can_be_asked_inside(library: Library, limited: Blas) -> None:
    assert limited.threads() == 4
    assert limited.limited(1, limited.threads) == 4
    # Somebody else, such as threadpoolctl, may change it at any time.
    library.threads = 2
    assert limited.threads() == 2
    assert limited.limited(1, limited.threads) == 2
    assert library.threads == 2


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_it(library: Library, limited: Blas, error: type[BaseException]) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(error):
        limited.limited(1, fail)
    assert library.threads == limited.threads() == 4


def test_the_last_thread_that_leaves_ends_it(library: Library, limited: Blas) -> None:
    entered, leave = Event(), Event()

    def stay() -> None:
        entered.set()
        assert leave.wait(60)

    other = Thread(target=limited.limited, args=(1, stay))
    other.start()
    try:
        assert entered.wait(60)
        assert limited.limited(2, library.get) == 2
        assert library.threads == 2
    finally:
        leave.set()
        other.join()
    assert library.threads == 4


@pytest.mark.skipif(sys.platform == "win32", reason="Windows raises signals otherwise")
def test_an_interrupt_at_any_instruction_leaves_the_number_as_it_was(library: Library) -> None:
    """The signal is pending from one call of the library on, or from within the function."""

    class Interrupting(Library):
        def limit(self, threads: int) -> None:
            super().limit(threads)
            if self.signals and main_thread().is_alive():
                self.signals -= 1
                signal.raise_signal(signal.SIGINT)

    for signals in range(1, 4):
        noisy = Interrupting(4)
        noisy.signals = signals
        outer = Blas(noisy.get, noisy.limit)
        with pytest.raises(KeyboardInterrupt):
            outer.limited(1, signal.raise_signal, signal.SIGINT)
        assert noisy.threads == outer.threads() == 4


def test_a_forked_process_has_no_thread_inside(library: Library, limited: Blas) -> None:
    limited._outside = 4
    limited._inside[-1] = None
    library.threads = 1
    limited.reset()
    assert library.threads == 4
    assert limited.limited(1, library.get) == 1
    assert library.threads == 4


def test_the_library_in_numpy_is_the_one_that_multiplies() -> None:
    found = blas.library(blas.NUMPYS)
    if found is None:
        pytest.skip("missing: NumPy with an OpenBLAS that has threads of its own")
    threadpoolctl = pytest.importorskip("threadpoolctl", reason="missing: threadpoolctl")
    before = found.threads()

    def told() -> set[Any]:
        return {
            each["num_threads"]
            for each in threadpoolctl.threadpool_info()
            if "numpy" in each["filepath"] and each["user_api"] == "blas"
        }

    assert found.limited(before + 1, told) == {before + 1}
    assert told() == {before}
    assert blas.library(blas.NUMPYS) is found


def test_a_module_without_blas_has_no_library() -> None:
    assert blas.library("_socket") is None
