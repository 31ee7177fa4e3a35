"""Machine code against NumPy's form of the same loops, and what it refuses."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowbook.exec.kernels.machine_code import machine_code
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.numerics import hot_loop
from flowbook.graph.numerics.hot_loop import HotLoop
from tests.need import requires

pytestmark = requires(module="llvmlite")

TOP = 2**64 - 1

words = st.integers(0, 2**32 - 1)
# Near the borders that a counter carries over.
halves = st.one_of(
    st.integers(0, TOP),
    st.sampled_from([0, 2**32 - 3, 2**32, TOP - 2**32 - 3, TOP - 3, TOP]),
)


@pytest.fixture(scope="module")
def compiled() -> dict[str, Any]:
    loops = {name: loop for name, loop in hot_loop.loops.items() if isinstance(loop, HotLoop)}
    return {name: machine_code(loop) for name, loop in loops.items()}


@pytest.fixture
def defined(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Defines loops that are forgotten when the test ends."""
    monkeypatch.setattr(hot_loop, "loops", {})

    def define(body: Any, numpy: Any, makes: Any = np.uint64) -> HotLoop:
        return HotLoop("tried", body, numpy, makes=makes, width=1, scalars=1, trial=(5,))

    return define


CONSECUTIVE = ["random words", "uniform float32", "uniform float64", "normal float64"]


@pytest.mark.parametrize("name", CONSECUTIVE)
@given(words, words, halves, halves, st.integers(0, 200))
def test_consecutive_blocks_are_the_same(
    compiled: dict[str, Any], name: str, key0: int, key1: int, low: int, high: int, blocks: int
) -> None:
    loop = hot_loop.loops[name]
    expected, found = (np.zeros(blocks * loop.width, loop.makes) for _ in range(2))
    loop.numpy(expected, key0, key1, low, high)
    compiled[name](found, key0, key1, low, high)
    assert found.tobytes() == expected.tobytes()


# How many arrays loops read besides the places of blocks, and the least number in these.
READ = {
    "random words at places": (0, 0.0),
    "exponential variates": (0, 0.0),
    "gamma variates": (1, 0.0),
    "Poisson variates of small means": (2, 0.0),
    "Poisson variates of large means": (1, 10.0),
}


def test_every_loop_is_compared(compiled: dict[str, Any]) -> None:
    assert {*READ, *CONSECUTIVE} == set(compiled)


@pytest.mark.parametrize("name", READ)
@given(words, words, halves, halves, st.data())
def test_blocks_at_places_are_the_same(
    compiled: dict[str, Any], name: str, key0: int, key1: int, low: int, high: int, data: Any
) -> None:
    loop, (arrays, least) = hot_loop.loops[name], READ[name]
    places = np.array(data.draw(st.lists(halves, max_size=100)), np.uint64)
    numbers = st.lists(st.floats(least), min_size=places.size, max_size=places.size)
    read = [np.array(data.draw(numbers)).view(np.uint64) for _ in range(arrays)]
    expected, found = (np.zeros(loop.width * places.size, loop.makes) for _ in range(2))
    with np.errstate(all="ignore"):
        loop.numpy(expected, key0, key1, low, high, places, *read)
    compiled[name](found, key0, key1, low, high, places, *read)
    np.testing.assert_array_equal(found, expected)


@pytest.fixture(scope="module")
def operators() -> Any:
    def body(index: Any, x: Any, shift: Any) -> Any:
        return [x + 7, x - 7, x * 7, x & 7, x | 7, x ^ 7, x << shift, x >> shift, x < shift]

    def numpy(out: Any, x: int, shift: int) -> None:
        row = np.array([12, TOP - 1, 35, 5, 7, 2, 20, 1, 0], np.uint64)
        out[:] = np.tile(row, out.size // 9)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hot_loop, "loops", {})
        return machine_code(
            HotLoop("operators", body, numpy, makes=np.uint64, width=9, scalars=2, trial=(5, 2))
        )


@given(halves, st.integers(0, 63))
def test_the_operators_are_those_of_unsigned_integers(
    operators: Any, scalar: int, shift: int
) -> None:
    x, by, seven = np.uint64(scalar), np.uint64(shift), np.uint64(7)
    with np.errstate(over="ignore"):
        expected = [
            *(x + seven, x - seven, x * seven, x & seven, x | seven, x ^ seven),
            *(x << by, x >> by, x < by),
        ]
    found = np.zeros(9, np.uint64)
    operators(found, scalar, shift)
    assert found.tolist() == [int(value) for value in expected]


@pytest.fixture(scope="module")
def functions() -> Any:
    """A loop of everything that bodies can do with floats."""

    def body(index: Any, x: Any, y: Any) -> list[Any]:
        x, y = x.view(np.float64), y.view(np.float64)
        made = [x + y, x - y, x * y, x / y, -x, 2.0 - x, (x < y) * 1.0, x + y * x]
        made += [np.absolute(x), np.copysign(x, y), np.floor(x), np.sqrt(np.absolute(x))]
        return [
            *made,
            np.maximum(x, y),
            np.minimum(x, y),
            (x.view(np.uint64) >> 1).view(np.float64),
        ]

    trial = [np.linspace(first, 9, 100).view(np.uint64) for first in (-5, 7)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hot_loop, "loops", {})
        loop = HotLoop(
            "floats", body, makes=np.float64, width=15, scalars=0, arrays=2, trial=tuple(trial)
        )
        return loop, machine_code(loop)


@given(st.lists(st.tuples(st.floats(), st.floats()), min_size=1, max_size=30))
def test_functions_of_floats_are_numpys(functions: Any, pairs: list[tuple[float, float]]) -> None:
    loop, native = functions
    arrays = [np.array(column).view(np.uint64) for column in zip(*pairs, strict=True)]
    expected, found = (np.zeros((len(pairs), 15)) for _ in range(2))
    with np.errstate(all="ignore"):
        loop.numpy(expected.reshape(-1), *arrays)
    native(found.reshape(-1), *arrays)
    np.testing.assert_array_equal(found, expected)


def test_a_body_is_told_what_it_cannot_do(defined: Any) -> None:
    with pytest.raises(TypeError, match="tan"):
        machine_code(defined(lambda index, scalar: [np.tan(scalar.view(np.float64))], None))


def test_turns_are_numbered(defined: Any) -> None:
    def numpy(out: Any, first: int) -> None:
        out[:] = np.arange(first, first + out.size)

    native = machine_code(defined(lambda index, first: [first + index], numpy))
    found = np.zeros(100, np.uint64)
    native(found, 7)
    assert found.tolist() == list(range(7, 107))


def test_code_that_makes_other_numbers_is_not_used(defined: Any) -> None:
    def numpy(out: Any, scalar: int) -> None:
        out[:] = scalar + 1

    with pytest.raises(UnimplementedError, match="makes other numbers"):
        machine_code(defined(lambda index, scalar: [scalar], numpy))


@pytest.mark.parametrize(
    "out",
    [
        np.zeros(40, np.int32),
        np.zeros(40, np.uint64),
        np.zeros(42, np.uint32),
        np.zeros(80, np.uint32)[::2],
    ],
    ids=["sign", "size", "length", "strides"],
)
def test_what_it_is_to_fill_is_checked(compiled: dict[str, Any], out: Any) -> None:
    before = out.copy()
    with pytest.raises(ValueError, match="a loop takes contiguous uint32"):
        compiled["random words"](out, 1, 2, 3, 4)
    np.testing.assert_array_equal(out, before)


@pytest.mark.parametrize(
    "places", [np.zeros(9, np.uint64), np.zeros(10, np.int64), np.zeros(20, np.uint64)[::2]]
)
def test_what_it_reads_is_checked(compiled: dict[str, Any], places: Any) -> None:
    with pytest.raises(ValueError, match="a loop takes contiguous uint64"):
        compiled["random words at places"](np.zeros(40, np.uint32), 1, 2, 3, 4, places)


def test_a_read_only_array_is_not_filled(compiled: dict[str, Any]) -> None:
    out = np.zeros(40, np.uint32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled["random words"](out, 1, 2, 3, 4)


@pytest.mark.skipif(sys.platform != "linux", reason="the refusal is Linux's")
def test_a_system_without_new_machine_code() -> None:
    # PR_SET_MDWE: from now on no memory of the process becomes code. Running into that ends it.
    program = """
import ctypes
import flowbook as fb
from flowbook.graph.numerics.random import philox
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):
    print("this Linux is too old")
else:
    try:
        fb.options.machine_code = "now"
    except fb.errors.UnimplementedError as error:
        print(error)
    philox.random_bits((1, 2), (3, 4, 5, 6), 10)
    print(*{told for told in fb.hot_loops().values() if "machine code" in told})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    if "too old" in done.stdout:
        pytest.skip("this Linux knows no such refusal")
    assert done.stdout.count("lets no process write machine code") == 2
