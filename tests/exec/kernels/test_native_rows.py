"""Rows combined by machine code against NumPy's form, and what it refuses."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.kernels.machine_code import machine_code
from flowbook.graph.numerics import hot_loop, row_writes
from flowbook.graph.numerics.row_writes import RowLoop, write_rows
from tests.need import requires

pytestmark = requires(module="llvmlite")

LOOPS = {loop.name: loop for loop in row_writes._loops.values()}
floats = st.floats(width=32)


@pytest.fixture(scope="module")
def compiled() -> dict[str, Any]:
    return {name: machine_code(loop) for name, loop in LOOPS.items()}


@pytest.fixture
def native(compiled: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """All loops have their machine code."""
    for name, loop in LOOPS.items():
        monkeypatch.setattr(loop, "native", compiled[name])


def test_they_are_among_the_hot_loops() -> None:
    names = {f"{how} rows {of}" for how in ("add", "subtract") for of in ("float32", "float64")}
    assert names == set(LOOPS) <= set(hot_loop.loops)


@pytest.mark.parametrize("name", LOOPS)
@given(data=st.data())
def test_it_makes_the_same_bits(compiled: dict[str, Any], name: str, data: Any) -> None:
    loop = LOOPS[name]
    count, width = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 19))
    indices = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=12)), np.int64)
    numbers = data.draw(st.lists(floats, min_size=1, max_size=9))
    rows = np.resize(np.array(numbers, loop.dtype), (len(indices), width))
    expected, found = (np.resize(rows[::-1], (count, width)) + loop.dtype.type(1) for _ in range(2))
    with np.errstate(all="ignore"):
        loop.numpy(expected, indices, rows)
    compiled[name](found, indices, rows)
    np.testing.assert_array_equal(found, expected)
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(found)].all()


@pytest.mark.parametrize("of", [np.int32, np.uint8, np.int64])
def test_indices_of_any_dtype_and_rows_of_any_layout(native: None, of: Any) -> None:
    buffer = np.zeros((4, 2, 3), np.float32)
    rows = np.arange(36, dtype=np.float32).reshape(6, 3, 2).transpose(0, 2, 1)
    write_rows(buffer, np, np.add, np.array([3, 0, 3], of), rows[::2])
    expected = np.zeros_like(buffer)
    expected[0], expected[3] = rows[2], rows[0] + rows[4]
    np.testing.assert_array_equal(buffer, expected)


def test_arrays_that_are_not_aligned(native: None) -> None:
    def unaligned(values: Any) -> Any:
        memory = np.zeros(values.nbytes + 1, np.uint8)[1:]
        memory[:] = np.frombuffer(values.tobytes(), np.uint8)
        return memory.view(values.dtype).reshape(values.shape)

    buffer = np.zeros((4, 5))
    rows, indices = unaligned(np.arange(10.0).reshape(2, 5)), unaligned(np.array([3, 3]))
    assert not rows.flags.aligned
    write_rows(buffer, np, np.subtract, indices, rows)
    assert buffer.tolist() == [*[[0] * 5] * 3, [-5, -7, -9, -11, -13]]


@pytest.mark.parametrize("index", [-1, 4, 2**62])
def test_an_index_outside_ends_it_before_that_row(native: None, index: int) -> None:
    buffer = np.zeros((4, 3))
    with pytest.raises(IndexError, match=f"index {index} lies outside of 4 rows"):
        write_rows(buffer, np, np.add, np.array([1, index, 2]), np.ones((3, 3)))
    assert buffer.sum(1).tolist() == [0, 3, 0, 0]


@pytest.mark.parametrize(
    "rows",
    [
        np.ones((2, 3), np.float32),
        np.ones((2, 4)),
        np.ones((3, 3)),
        np.ones((2, 6))[:, ::2],
    ],
    ids=["dtype", "width", "count", "layout"],
)
def test_what_it_is_given_is_checked(compiled: dict[str, Any], rows: Any) -> None:
    buffer = np.zeros((4, 3))
    with pytest.raises(ValueError, match=r"rows|contiguous"):
        compiled["add rows float64"](buffer, np.zeros(2, np.int64), rows)
    assert not buffer.any()


def test_a_read_only_array_is_not_written(compiled: dict[str, Any]) -> None:
    buffer = np.zeros((4, 3))
    buffer.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled["add rows float64"](buffer, np.zeros(2, np.int64), np.ones((2, 3)))


def test_no_rows_at_all(native: None) -> None:
    for shape in ((4, 3), (4, 0), (0, 3)):
        buffer = np.ones(shape)
        write_rows(buffer, np, np.add, np.zeros(0, np.int64), np.ones((0, *shape[1:])))
        assert buffer.tobytes() == np.ones(shape).tobytes()


def test_variables_are_written_by_it(native: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowLoop, "numpy", None)  # Nobody falls back on it.
    table = fb.Variable(np.zeros([3, 2], np.float32))
    added = fb.scatter_add(table, [2, 0, 2], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    taken = fb.scatter_sub(table, [[0]], [[[1.0, 1.0]]])
    with fb.Session() as session:
        assert session.run(added).tolist() == [[3, 4], [0, 0], [6, 8]]
        assert session.run(taken).tolist() == [[2, 3], [0, 0], [6, 8]]
