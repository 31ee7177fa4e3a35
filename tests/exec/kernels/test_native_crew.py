"""The native crew makes the bits of Python's, and nobody is waited for who has not begun."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, get_ident
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.kernels import blas, compiling, native_crew, onednn, shared_products
from flowbook.exec.kernels import crew as crews
from flowbook.exec.kernels.blas import Blas
from flowbook.exec.kernels.gemm_plan import Gemm, Plan, plan
from flowbook.exec.kernels.machine_code import machine_code
from flowbook.exec.kernels.native_crew import NativeCrew, gemms
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.numerics import hot_loop
from tests.need import requires

THREADS = 3

_library = blas.library(blas.NUMPYS)
LIBRARY = _library or Blas(lambda: 1, lambda threads: None)

pytestmark = [
    requires(module="llvmlite"),
    pytest.mark.skipif(gemms.name not in hot_loop.loops, reason="is for Linux on x86-64"),
    pytest.mark.skipif(not LIBRARY.gemms, reason="NumPy has another library than OpenBLAS"),
]


@pytest.fixture(scope="module")
def compiled() -> NativeCrew:
    made: NativeCrew = machine_code(gemms)
    return made


@pytest.fixture
def crew(compiled: NativeCrew) -> NativeCrew:
    """A crew of the test's own: no helpers yet, and no more of them if others are busy."""
    made = compiled.without_helpers()
    made._if_busy = 1
    return made


# ---- the same bits


@st.composite
def factors(draw: st.DrawFn) -> tuple[Any, Any]:
    """Factors of a product, which lie in memory in many ways."""
    batch = draw(st.lists(st.integers(1, 5), max_size=3))
    rows, inner, columns = (draw(st.integers(1, 40)) for _ in range(3))
    dtype = np.dtype(draw(st.sampled_from("fdFD")))

    def random(*shape: int) -> Any:
        numbers = np.random.default_rng(draw(st.integers(0, 99))).standard_normal((*shape, 2))
        return (
            numbers.view(np.complex128)[..., 0].astype(dtype)
            if dtype.kind == "c"
            else (numbers[..., 0].astype(dtype))
        )

    def factor(m: int, n: int) -> Any:
        dims = [draw(st.sampled_from([d, 1])) for d in batch][draw(st.integers(0, len(batch))) :]
        match draw(st.sampled_from(["by rows", "by columns", "apart", "outside in", "reversed"])):
            case "by columns":
                return random(*dims, n, m).swapaxes(-1, -2)
            case "apart":
                return random(*dims, m + 1, n + 5)[..., 1:, 2:-3]
            case "outside in":
                return np.moveaxis(random(m, *dims, n), 0, -2)
            case "reversed":
                return random(*dims, m, n)[..., ::-1]
        return random(*dims, m, n)

    x = factor(rows, inner)
    if draw(st.integers(0, 9)) == 0:
        return x, x.swapaxes(-1, -2)
    return x, factor(inner, columns)


@pytest.mark.parametrize(
    "by_onednn", [pytest.param(True, marks=requires(distribution="onednn-cpu-gomp")), False]
)
def test_both_crews_make_the_same_bits(
    crew: NativeCrew, monkeypatch: pytest.MonkeyPatch, by_onednn: bool
) -> None:
    if not by_onednn:
        monkeypatch.setattr(onednn, "for_products", lambda: None)
    for name in ("_SMALL", "_SMALL_BY_VECTOR", "_LEAST_PART"):
        monkeypatch.setattr(shared_products, name, 64)
    monkeypatch.setattr(shared_products, "_ROWS", 4)
    monkeypatch.setattr(shared_products, "_COLUMNS", 4)
    monkeypatch.setattr(shared_products, "_LEAST", 4)
    monkeypatch.setattr(shared_products, "processors", lambda: THREADS)
    monkeypatch.setattr(hot_loop, "WORTH", 1e9)
    # The library has one thread in tests, and says that it has three.
    library = Blas(lambda: THREADS, lambda threads: None, LIBRARY.gemms)
    monkeypatch.setattr(blas, "library", lambda module: library)
    calls: list[int] = []

    class Counting(NativeCrew):
        def multiply(self, plan: Plan, *given: Any) -> None:
            calls.append(plan.convention)
            crew.multiply(plan, *given)

    native = Counting(crew._engine)

    @given(factors())
    def check(both: tuple[Any, Any]) -> None:
        gemms.native = None
        expected = shared_products.multiply(*both)
        gemms.native = native
        assert shared_products.multiply(*both).tobytes() == expected.tobytes()

    monkeypatch.setattr(gemms, "native", None)
    check()
    assert len(calls) > 20
    assert (3 in calls) == by_onednn


@pytest.mark.parametrize(
    "by_onednn", [pytest.param(True, marks=requires(distribution="onednn-cpu-gomp")), False]
)
def test_pythons_helpers_are_called_to_large_products_alone(
    monkeypatch: pytest.MonkeyPatch, by_onednn: bool
) -> None:
    if not by_onednn:
        monkeypatch.setattr(onednn, "for_products", lambda: None)
    monkeypatch.setattr(shared_products, "processors", lambda: THREADS)
    library = Blas(lambda: THREADS, lambda threads: None, LIBRARY.gemms)
    monkeypatch.setattr(blas, "library", lambda module: library)
    monkeypatch.setattr(gemms, "native", None)
    at_once: list[int] = []

    def share(function: Any, parts: Any, threads: int) -> None:
        at_once.append(min(len(parts), threads))
        crews.share(function, parts, threads)

    monkeypatch.setattr(shared_products, "share", share)
    # Of 4 and of 18 million multiplications; the first is cut into parts too.
    for rows in (96, 480):
        x, y = np.ones((rows, 200), np.float32), np.ones((200, 192), np.float32)
        assert (shared_products.multiply(x, y) == 200).all()
    assert at_once == [1, THREADS]


def planned(x: Any, y: Any, out: Any = None, axis: int = -2) -> Any:
    """A plan of two equal parts."""
    if out is None:
        out = np.zeros(np.matmul(x, y).shape, x.dtype)
    size = out.shape[axis]
    return plan(LIBRARY.gemms[x.dtype.char], x, y, out, axis, (0, size // 2, size))


def test_what_gemm_does_not_make_is_not_planned() -> None:
    x, y = np.ones((8, 6)), np.ones((6, 4))
    assert planned(x, y) is not None
    assert planned(x[:2], y) is None, "a part is a vector"
    assert planned(x, y[:, :1]) is None, "a vector"
    assert planned(x[:, :1], y[:1]) is None, "nothing is summed"
    assert planned(x, x.T) is not None, "the parts are not square"
    squares = np.ones((4, 6, 6))
    assert planned(squares, squares.swapaxes(-1, -2), axis=-3) is None, "a matrix by its transpose"
    assert planned(squares, squares, axis=-3) is not None
    other = np.ones((4, 6, 6)).swapaxes(-1, -2)
    assert planned(squares, other, axis=-3) is not None
    assert planned(np.ones((2, 2, 2, 8, 6)), y) is None, "three axes of a batch"


def test_what_blas_cannot_read_or_write_is_not_planned() -> None:
    x, y = np.ones((8, 6)), np.ones((6, 4))
    assert planned(x[:, ::-1], y) is None
    assert planned(np.ones((8, 12))[:, ::2], y) is None
    assert planned(np.broadcast_to(np.ones(6), (8, 6)), y) is None
    shifted = np.frombuffer(bytes(8 * 48 + 1), np.int8)[1:].view(np.float64).reshape(8, 6)
    assert planned(shifted, y) is None
    assert planned(x, y, np.zeros((4, 8)).T) is None
    read_only = np.zeros((8, 4))
    read_only.flags.writeable = False
    assert planned(x, y, read_only) is None


# ---- who does it

_GEMM = ctypes.CFUNCTYPE(
    None,
    *[ctypes.c_int] * 3,
    *[ctypes.c_int64] * 3,
    ctypes.c_double,
    *[ctypes.c_void_p, ctypes.c_int64] * 2,
    ctypes.c_double,
    *[ctypes.c_void_p, ctypes.c_int64],
)


@contextmanager
def multiplying_by(act: Callable[[], None]) -> Iterator[Callable[[NativeCrew, int], None]]:
    """Gives a product of two parts and more, each of which is a call of `act`."""
    gemm = _GEMM(lambda *arguments: act())
    address = ctypes.cast(gemm, ctypes.c_void_p).value
    assert address is not None
    x, y, out = np.ones((8, 8)), np.ones((8, 8)), np.zeros((8, 8))

    def multiply(crew: NativeCrew, parts: int = 2) -> None:
        made = plan(
            Gemm(address, "d"), x, y, out, -2, tuple(8 * i // parts for i in range(parts + 1))
        )
        assert made is not None
        crew.multiply(made, x, y, out, 2)

    yield multiply


class Meeting:
    """A part that this thread and the helper have both begun before either goes on."""

    def __init__(self, act: Callable[[bool], None]) -> None:
        self.arrived = {True: Event(), False: Event()}
        self.here = get_ident()
        self.act = act

    def __call__(self) -> None:
        is_here = get_ident() == self.here
        self.arrived[is_here].set()
        assert self.arrived[not is_here].wait(60)
        self.act(is_here)


def meet(crew: NativeCrew) -> None:
    """Have a product made together with the helper, wherever that is when it begins."""
    here: list[bool] = []
    with multiplying_by(Meeting(here.append)) as multiply:
        multiply(crew)
    assert sorted(here) == [False, True]


ASLEEP, OWNER_ASLEEP = 2, 3


def state(crew: NativeCrew) -> int:
    """What the lowest bits of the helper's box tell."""
    return crew._boxes[0][0] & 3


def until_state(crew: NativeCrew, expected: int) -> None:
    while state(crew) != expected:
        os.sched_yield()


def test_a_helper_takes_part(crew: NativeCrew) -> None:
    for _ in range(20):
        meet(crew)


def test_a_helper_that_sleeps_is_woken(crew: NativeCrew) -> None:
    for _ in range(3):
        meet(crew)
        until_state(crew, ASLEEP)


def test_who_waits_for_a_helper_sleeps_until_it_is_done(crew: NativeCrew) -> None:
    done: list[bool] = []

    def act(is_here: bool) -> None:
        if not is_here:
            until_state(crew, OWNER_ASLEEP)
        done.append(is_here)

    with multiplying_by(Meeting(act)) as multiply:
        multiply(crew)
    assert done == [True, False]
    meet(crew)


def test_where_others_want_the_processors_more_helpers_take_part(compiled: NativeCrew) -> None:
    notice_others = ctypes.CFUNCTYPE(None)(compiled._engine.get_function_address("notice_others"))
    crew = compiled.without_helpers()
    seen: set[int] = set()

    def act() -> None:
        seen.add(get_ident())
        os.sched_yield()

    with multiplying_by(act) as multiply:
        # A while after it was noticed it is forgotten: the next time may come too late.
        while len(seen) < 4:
            notice_others()
            multiply(crew, 4)


def turn(thread: int) -> int:
    """How long the turns of a thread are that Linux was asked for, in nanoseconds."""
    attr = native_crew._SchedAttr()
    sched_getattr, size = 315, ctypes.sizeof(attr)
    assert not ctypes.pythonapi.syscall(sched_getattr, thread, ctypes.byref(attr), size, 0)
    runtime: int = attr.runtime
    return runtime


def test_helpers_alone_take_short_turns(crew: NativeCrew) -> None:
    shortest: list[int] = []

    def ask() -> None:
        native_crew.take_short_turns()
        shortest.append(turn(0))

    asking = Thread(target=ask)
    asking.start()
    asking.join()
    # 0 where Linux does not know of it.
    assert shortest in ([native_crew._SHORTEST_TURN], [0])
    usual = turn(0)
    before = set(os.listdir("/proc/self/task"))
    meet(crew)
    (helper,) = set(os.listdir("/proc/self/task")) - before
    assert turn(int(helper)) == shortest[0]
    assert turn(0) == usual != native_crew._SHORTEST_TURN


def test_where_turns_cannot_be_asked_for_a_helper_takes_part(
    crew: NativeCrew, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(process: int) -> int:
        raise PermissionError("no such call here")

    monkeypatch.setattr(os, "sched_getscheduler", refuse)
    meet(crew)


@contextmanager
def occupied_helper(crew: NativeCrew) -> Iterator[None]:
    """The only helper is at a part of another thread's product inside, and does not come."""
    occupied, free = Event(), Event()

    def occupy(is_here: bool) -> None:
        if not is_here:
            occupied.set()
            assert free.wait(60)

    def work() -> None:
        with multiplying_by(Meeting(occupy)) as multiply:
            multiply(crew)

    other = Thread(target=work)
    other.start()
    try:
        assert occupied.wait(60)
        yield
    finally:
        free.set()
        other.join()


def test_nobody_waits_for_a_helper_that_has_not_begun(crew: NativeCrew) -> None:
    done: list[int] = []
    with occupied_helper(crew), multiplying_by(lambda: done.append(get_ident())) as multiply:
        multiply(crew, 4)
    assert done == [get_ident()] * 4
    meet(crew)


def test_a_helper_leaves_what_was_taken_back_since_it_looked(compiled: NativeCrew) -> None:
    begin = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64)(
        compiled._engine.get_function_address("begin")
    )
    no_parts = Plan()
    # How many parts have been asked for, and the plan.
    job = (ctypes.c_int64 * 16)(0, ctypes.addressof(no_parts))
    box = ctypes.c_int64(0)
    assert not begin(box, ctypes.addressof(job))
    assert (box.value, job[0]) == (0, 0)
    box.value = ctypes.addressof(job)
    assert begin(box, ctypes.addressof(job))
    assert (box.value, job[0]) == (0, 1)


def test_what_no_helper_begins_is_taken_back(crew: NativeCrew) -> None:
    done: list[int] = []
    # As if it had one, which does not come.
    crew._size = 1
    with multiplying_by(lambda: done.append(get_ident())) as multiply:
        multiply(crew, 4)
    assert done == [get_ident()] * 4
    assert crew._boxes[0][0] == 0


def test_where_no_thread_can_start_the_product_is_made_here(
    crew: NativeCrew, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", refuse)
    done: list[int] = []
    with multiplying_by(lambda: done.append(get_ident())) as multiply:
        multiply(crew, 4)
    assert done == [get_ident()] * 4


def test_an_interrupt_comes_when_the_product_is_made(crew: NativeCrew) -> None:
    done: list[bool] = []

    def act(is_here: bool) -> None:
        if not is_here:
            until_state(crew, OWNER_ASLEEP)
            os.kill(os.getpid(), signal.SIGINT)
        done.append(is_here)

    with multiplying_by(Meeting(act)) as multiply:
        with pytest.raises(KeyboardInterrupt):
            multiply(crew)
        assert done == [True, False]
    meet(crew)


def test_several_threads_multiply_at_the_same_time(crew: NativeCrew) -> None:
    random = np.random.default_rng(0)
    found: dict[int, list[bool]] = {}

    def work(i: int) -> None:
        x, y = random.standard_normal((2, 24, 24))
        out = np.zeros((24, 24))
        made = plan(LIBRARY.gemms["d"], x, y, out, -1, (0, 8, 16, 24))
        assert made is not None
        expected = [x @ y[:, first : first + 8] for first in (0, 8, 16)]
        for _ in range(300):
            out[:] = 0
            crew.multiply(made, x, y, out, THREADS)
            found.setdefault(i, []).append(np.array_equal(out, np.hstack(expected)))

    threads = [Thread(target=work, args=(i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: [True] * 300 for i in range(5)}


# ---- when it is compiled


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No native crew yet; products are cut in two, and the library says it has two threads."""
    library = Blas(lambda: 2, lambda threads: None, LIBRARY.gemms)
    monkeypatch.setattr(blas, "library", lambda module: library)
    monkeypatch.setattr(shared_products, "processors", lambda: 2)
    monkeypatch.setattr(onednn, "for_products", lambda: None)
    for name in ("_threads", "_compiled", "_reasons"):
        monkeypatch.setattr(compiling, name, {})
    monkeypatch.setattr(hot_loop, "loops", {gemms.name: gemms})
    monkeypatch.setattr(hot_loop, "WORTH", 0.0)
    monkeypatch.setattr(gemms, "native", None)
    monkeypatch.setattr(gemms, "seconds", 0.0)
    fb.options.machine_code = "behind"
    yield
    fb.options.machine_code = "never"


@pytest.mark.usefixtures("cold")
def test_it_is_compiled_behind_products_that_are_cut() -> None:
    x = np.ones((128, 128), np.float32)
    shared_products.multiply(x, x[:, :8])
    assert gemms.seconds == 0, "is not cut"
    assert (shared_products.multiply(x, x) == 128).all()
    for thread in list(compiling._threads.values()):
        thread.join()
    assert fb.hot_loops() == {"products of matrices in parts": "machine code"}
    spent = gemms.seconds
    assert spent > 0
    assert (shared_products.multiply(x, x) == 128).all()
    assert gemms.seconds == spent


@pytest.mark.usefixtures("cold")
def test_it_is_not_compiled_for_what_it_does_not_make() -> None:
    x = np.ones((16, 128, 128), np.float32)
    shared_products.multiply(x, x.swapaxes(-1, -2))
    assert gemms.seconds == 0
    assert not compiling._threads


def test_a_crew_that_makes_other_numbers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Blas(lambda: 1, lambda threads: None, {"d": LIBRARY.gemms["d"]})
    monkeypatch.setattr(blas, "library", lambda module: library)
    monkeypatch.setattr(NativeCrew, "multiply", lambda *given: None)
    with pytest.raises(UnimplementedError, match="other numbers"):
        machine_code(gemms)


@pytest.mark.parametrize("parts", [1, 3])
def test_what_onednns_gemm_tells_is_an_error(crew: NativeCrew, parts: int) -> None:
    failing = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)
    address = ctypes.cast(failing, ctypes.c_void_p).value or 0
    x, y, out = (np.ones((9, 9), np.float32) for _ in range(3))
    borders = tuple(9 * i // parts for i in range(parts + 1))
    made = plan(Gemm(address, "f", is_onednns=True), x, y, out, -2, borders)
    assert made is not None
    with pytest.raises(MemoryError, match="oneDNN's status 1"):
        crew.multiply(made, x, y, out, 2)


# ---- processes

PROGRAM = """
import os, sys, warnings
from threading import Thread
import numpy as np
from flowbook.exec.kernels import blas, native_crew, shared_products
from flowbook.exec.kernels.machine_code import machine_code
# Python warns of forking beside any thread.
warnings.simplefilter("ignore", DeprecationWarning)

blas.library(blas.NUMPYS)._get = shared_products.processors = lambda: 2
x = np.random.default_rng(0).standard_normal((256, 256)).astype(sys.argv[1])
expected = shared_products.multiply(x, x)
native_crew.gemms.native = machine_code(native_crew.gemms)

def multiply():
    assert np.array_equal(shared_products.multiply(x, x), expected)

def until(state):
    multiply()
    while native_crew.gemms.native._boxes[0][0] != state:
        multiply() if state == 0 else os.sched_yield()

def multiply_while(going):
    while going:
        multiply()

def beside_others():
    going = [True]
    for _ in range(2):
        Thread(target=multiply_while, args=[going], daemon=True).start()
    for _ in range(30):
        multiply()
    return going

# Forked while others multiply, a process has helpers of its own. Then it ends as they look for
# work, as they sleep, and as they multiply.
for act in (lambda: until(0), lambda: until(2), beside_others):
    others = beside_others()
    child = os.fork()
    if not child:
        assert native_crew.gemms.native._size == 0
        act()
        sys.exit(native_crew.gemms.native._size)
    others.clear()  # The child needs the processors.
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_process_may_fork_and_end_beside_its_helpers(dtype: str) -> None:
    command = [sys.executable, "-c", PROGRAM, dtype]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("3\n" * 3, "", 0)
