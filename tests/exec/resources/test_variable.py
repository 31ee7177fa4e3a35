"""A variable's buffer: what readers hold stays, what nobody holds is written in place."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.resources.variable import VariableResource
from flowbook.graph.model.shape import Shape


def variable(value: Any = (1.0, 2.0, 3.0), shape: Any = None) -> VariableResource:
    array = np.asarray(value, np.float32)
    made = VariableResource("W", fb.float32, Shape(array.shape if shape is None else shape))
    made.assign(array)
    return made


def rows(v: VariableResource, *values: float) -> Any:
    """Rows of a variable of three, each full of one value."""
    shape = v.read().shape
    return np.repeat(np.float32(values), np.prod(shape[1:], dtype=int)).reshape(shape)


WRITES = {
    "assign": lambda v: v.assign(rows(v, 5, 6, 7)),
    "add": lambda v: v.update(np.add, rows(v, 4, 4, 4)),
    "scatter": lambda v: v.scatter(np.add, np.array([0, 1, 2]), rows(v, 4, 4, 4)),
    "replace": lambda v: v.scatter(None, np.array([0, 1, 2]), rows(v, 5, 6, 7)),
}

# Large ones lie in memory otherwise than small ones do.
VALUES = {"small": np.float32([1, 2, 3]), "large": np.ones((3, 5000), np.float32)}
every_size = pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)


@every_size
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_write_is_in_place_while_nobody_holds_the_buffer(write: Any, value: Any) -> None:
    W = variable(value)
    buffer = id(W._buffer)
    for _ in range(3):
        write(W)
        assert id(W._buffer) == buffer
    assert W.read().flat[0] in (5.0, 13.0)


HOLDS = {
    "view": lambda view: view,
    "slice": lambda view: view[1:],
    "reshaped": lambda view: view.reshape(-1, 1),
    "view of a view": lambda view: view[:2].view(np.int32),
    "memoryview": memoryview,
    "iterator": np.nditer,
}


@every_size
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("hold", HOLDS.values(), ids=HOLDS)
def test_write_leaves_alone_what_somebody_holds(write: Any, hold: Any, value: Any) -> None:
    W = variable(value)
    held = hold(W.read())
    before = np.array(held.operands[0] if isinstance(held, np.nditer) else held)
    buffer = id(W._buffer)
    write(W)
    assert id(W._buffer) != buffer
    after = np.array(held.operands[0] if isinstance(held, np.nditer) else held)
    np.testing.assert_array_equal(after, before)
    del held
    buffer = id(W._buffer)
    write(W)
    assert id(W._buffer) == buffer


@every_size
def test_what_is_read_cannot_be_written(value: Any) -> None:
    W = variable(value)
    W.update(np.add, rows(W, 4, 4, 4))
    with pytest.raises(ValueError, match="read-only"):
        W.read()[0] = 1.0
    with pytest.raises(ValueError, match="WRITEABLE"):
        W.read().flags.writeable = True


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_large_value_begins_with_a_line_of_the_cache(write: Any) -> None:
    W = variable(VALUES["large"])
    # NumPy's own arrays do one time in four. All are held, and so each is another.
    held = [W.read()]
    for _ in range(8):
        write(W)
        held.append(W.read())
    assert len({view.ctypes.data for view in held}) == 9
    assert not any(view.ctypes.data % 64 for view in held)


def test_assigned_array_stays_its_owners() -> None:
    W, value = variable(), np.float32([7, 8, 9])
    W.assign(value)
    value[:] = 0
    np.testing.assert_array_equal(W.read(), [7, 8, 9])
    W.update(np.add, np.float32([1, 1, 1]))
    np.testing.assert_array_equal(value, [0, 0, 0])


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, None])
def test_scatter_with_an_index_outside_writes_nothing(ufunc: Any) -> None:
    for indices in ([0, 3], [0, -1], [[0], [99]]):
        W = variable()
        with pytest.raises(fb.errors.InvalidIndexError, match=r"'W': row .* there are 3"):
            W.scatter(ufunc, np.array(indices), np.ones(np.shape(indices), np.float32))
        np.testing.assert_array_equal(W.read(), [1, 2, 3])


def test_scatter_counts_rows_named_twice() -> None:
    W = variable(np.zeros((3, 2)))
    W.scatter(np.add, np.array([[0, 0], [2, 0]]), np.ones((2, 2, 2), np.float32))
    np.testing.assert_array_equal(W.read(), [[3, 3], [0, 0], [1, 1]])
    W.scatter(np.subtract, np.array([0, 0]), np.ones((2, 2), np.float32))
    W.scatter(None, np.array([1, 1]), np.float32([[5, 5], [6, 6]]))
    np.testing.assert_array_equal(W.read(), [[1, 1], [6, 6], [1, 1]])


def test_scatter_of_nothing_writes_nothing() -> None:
    W = variable()
    W.scatter(np.add, np.zeros(0, np.int32), np.zeros(0, np.float32))
    np.testing.assert_array_equal(W.read(), [1, 2, 3])


def test_gather_holds_nothing() -> None:
    W = variable()
    rows = W.gather(np.array([[2, 0]]))
    buffer = id(W._buffer)
    W.update(np.add, np.float32([1, 1, 1]))
    assert id(W._buffer) == buffer
    np.testing.assert_array_equal(rows, [[3, 1]])
    with pytest.raises(fb.errors.InvalidIndexError):
        W.gather(np.array([3]))


def test_value_of_another_shape_is_refused() -> None:
    W = variable()
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"\[2\]"):
        W.assign(np.zeros(2, np.float32))
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"\[2, 3\]"):
        W.update(np.add, np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(W.read(), [1, 2, 3])


def test_partial_shape_takes_buffers_of_any_size_that_fits() -> None:
    W = variable(np.zeros((2, 2)), shape=[None, 2])
    W.assign(np.ones((5, 2), np.float32))
    assert W.read().shape == (5, 2)
    with pytest.raises(fb.errors.InvalidArgumentError):
        W.assign(np.ones((5, 3), np.float32))


def test_scalar_is_updated_in_place_and_held_values_stay() -> None:
    W = variable(1.0)
    held = W.read()
    W.update(np.add, np.float32(1))
    assert (held, W.read()) == (1.0, 2.0)
    buffer = id(W._buffer)
    del held
    W.update(np.add, np.float32(1))
    assert id(W._buffer) == buffer


def test_without_a_value_every_use_is_an_error() -> None:
    W = variable()
    W.forget()
    assert not W.is_initialized
    for use in (
        W.read,
        lambda: W.gather(np.array([0])),
        lambda: W.update(np.add, np.float32([1, 1, 1])),
        lambda: W.scatter(None, np.array([0]), np.float32([1])),
    ):
        with pytest.raises(fb.errors.FailedPreconditionError, match="uninitialized value 'W'"):
            use()
    assert not W.is_initialized


def test_strings_are_kept() -> None:
    W = VariableResource("S", fb.string, Shape([2]))
    W.assign(np.array([b"a", b"b"], dtype=fb.string.numpy))
    assert W.read().tolist() == [b"a", b"b"]
