"""Hot loops are compiled behind the runs; whatever goes wrong, NumPy's form goes on serving."""

import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.kernels import compiling
from flowbook.graph.numerics import hot_loop
from flowbook.graph.numerics.hot_loop import HotLoop
from tests.need import requires

llvmlite = requires(module="llvmlite")


def count_up(out: Any, first: int) -> None:
    out[:] = np.arange(first, first + out.size)


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[HotLoop]:
    """A loop of the test's own, the only one there is, which is hot from its first run on."""
    monkeypatch.setattr(hot_loop, "loops", {})
    for name in ("_threads", "_compiled", "_reasons"):
        monkeypatch.setattr(compiling, name, {})
    monkeypatch.setattr(hot_loop, "WORTH", 0.0)
    fb.options.machine_code = "behind"
    yield HotLoop(
        "tried",
        lambda index, first: [first + index],
        count_up,
        makes=np.uint32,
        width=1,
        scalars=1,
        trial=(3,),
    )
    fb.options.machine_code = "never"


def run(loop: HotLoop) -> list[int]:
    out = np.zeros(5, np.uint32)
    loop(out, 2**32 - 2)
    found: list[int] = out.tolist()
    return found


NUMBERS = [2**32 - 2, 2**32 - 1, 0, 1, 2]


def wait() -> None:
    for thread in list(compiling._threads.values()):
        thread.join()


@llvmlite
def test_a_hot_loop_is_compiled_behind_its_run(loop: HotLoop) -> None:
    assert fb.hot_loops() == {"tried": "NumPy: ran for 0.00 s, is compiled after 0.0 s"}
    assert run(loop) == NUMBERS
    wait()
    assert fb.hot_loops() == {"tried": "machine code"}
    spent = loop.seconds
    assert run(loop) == NUMBERS
    assert loop.seconds == spent


def test_a_loop_that_is_not_hot_stays_in_numpy(
    loop: HotLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hot_loop, "WORTH", 1e9)
    assert run(loop) == NUMBERS
    assert not compiling._threads


def test_runs_go_on_while_it_is_compiled(loop: HotLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()
    compile_ = compiling.machine_code

    def slowly(loop: HotLoop) -> Any:
        may_end.wait()
        return compile_(loop)

    monkeypatch.setattr(compiling, "machine_code", slowly)
    assert [run(loop) for _ in range(3)] == [NUMBERS] * 3
    assert len(compiling._threads) == 1
    assert fb.hot_loops() == {"tried": "NumPy: being compiled"}
    may_end.set()
    wait()


def test_without_llvmlite_numpy_serves(loop: HotLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    assert run(loop) == NUMBERS
    wait()
    assert [run(loop) for _ in range(2)] == [NUMBERS] * 2
    assert len(compiling._threads) == 1
    reason = "llvmlite, which compiles, is not installed; pip install llvmlite"
    assert fb.hot_loops() == {"tried": f"NumPy: {reason}"}
    with pytest.raises(fb.errors.UnimplementedError, match="pip install llvmlite"):
        fb.options.machine_code = "now"
    assert fb.options.machine_code == "behind"


@pytest.mark.parametrize("error", [OSError("no such library"), MemoryError(), ValueError("odd")])
def test_whatever_goes_wrong_is_told(
    loop: HotLoop, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(loop: HotLoop) -> Any:
        raise error

    monkeypatch.setattr(compiling, "machine_code", fails)
    assert run(loop) == NUMBERS
    wait()
    assert run(loop) == NUMBERS
    assert fb.hot_loops() == {"tried": f"NumPy: {type(error).__name__}: {error}"}


def test_where_no_thread_can_be_started(loop: HotLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert run(loop) == NUMBERS
    assert fb.hot_loops() == {"tried": "NumPy: can't start new thread"}


@llvmlite
def test_a_body_that_llvm_refuses(loop: HotLoop) -> None:
    loop.body = lambda index, first: [first.nothing]
    assert run(loop) == NUMBERS
    wait()
    assert fb.hot_loops()["tried"].startswith("NumPy: AttributeError: ")


@llvmlite
def test_now_and_never(loop: HotLoop) -> None:
    fb.options.machine_code = "now"
    assert fb.hot_loops() == {"tried": "machine code"}
    fb.options.machine_code = "never"
    assert fb.hot_loops() == {"tried": "NumPy: options.machine_code is 'never'"}
    assert run(loop) == NUMBERS
    assert not compiling._threads
    fb.options.machine_code = "behind"
    assert fb.hot_loops() == {"tried": "machine code"}


@llvmlite
def test_now_tries_once_more(loop: HotLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "llvmlite", None)
        run(loop)
        wait()
    fb.options.machine_code = "now"
    assert fb.hot_loops() == {"tried": "machine code"}


def program(text: str) -> str:
    """What a program prints that makes many random numbers in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


HOT = """
import flowbook as fb
from flowbook.exec.kernels import compiling
from flowbook.graph.numerics import hot_loop
from flowbook.graph.numerics.random import philox
hot_loop.WORTH = 0.0
def draw():
    return philox.draw("uniform", (1, 2), (3, 4, 5, 6), [100_000], "float32")[0]
expected = draw()
"""


@llvmlite
def test_a_process_may_end_while_it_compiles() -> None:
    assert program(HOT + "print('done')") == "done\n"


@llvmlite
@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
def test_a_process_may_fork_while_it_compiles() -> None:
    text = """
    import os, warnings
    # Python warns of forking beside any thread: OpenBLAS's, here.
    warnings.simplefilter("ignore", DeprecationWarning)
    child = os.fork()
    if not child:
        fb.options.machine_code = "now"
        assert (draw() == expected).all()
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print(fb.hot_loops()["uniform float32"])
    """
    assert program(HOT + textwrap.dedent(text)) == "7\nmachine code\n"


@llvmlite
def test_draws_become_machine_code_by_themselves() -> None:
    text = """
    for thread in compiling._threads.values():
        thread.join()
    assert (draw() == expected).all()
    told = fb.hot_loops()
    print(told["uniform float32"], "|", told["random words at places"])
    """
    printed = program(HOT + textwrap.dedent(text))
    assert printed == "machine code | NumPy: ran for 0.00 s, is compiled after 0.0 s\n"
