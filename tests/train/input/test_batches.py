"""Batches of arrays: every row where it belongs, in a known order, and nothing left behind."""

from __future__ import annotations

import threading
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from tests.need import requires


@pytest.fixture(autouse=True)
def no_threads_are_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()


def everything(fetches: Any) -> list[Any]:
    with fb.Session() as sess:
        return list(fb.train.until_end(sess, fetches))


@given(
    st.integers(1, 30),
    st.integers(1, 12),
    st.integers(1, 3),
    st.booleans(),
    st.one_of(st.none(), st.integers(0, 9)),
    st.integers(1, 5),
)
def test_each_epoch_has_every_row_once(
    rows: int, size: int, epochs: int, is_smaller: bool, seed: int | None, prefetch: int
) -> None:
    with fb.Graph().as_default():
        arrays = np.arange(rows), np.arange(2.0 * rows).reshape(rows, 2)
        if rows < size and not is_smaller:
            with pytest.raises(fb.errors.InvalidArgumentError, match=f"make no batch of {size}"):
                fb.train.batches(arrays, size)
            return
        n, x = fb.train.batches(arrays, size, epochs, seed, is_smaller, prefetch)
        found = everything((n, x))
    whole, rest = divmod(rows, size)
    sizes = [size] * whole + [rest] * (is_smaller and rest > 0)
    assert [len(numbers) for numbers, _ in found] == sizes * epochs
    for epoch in range(epochs):
        part = found[epoch * len(sizes) : (epoch + 1) * len(sizes)]
        numbers = np.concatenate([numbers for numbers, _ in part])
        assert len(set(numbers)) == len(numbers)
        assert set(numbers) <= set(range(rows))
        np.testing.assert_array_equal(np.concatenate([x for _, x in part])[:, 0], 2 * numbers)
        if seed is None:
            assert numbers.tolist() == [*range(len(numbers))]


def test_the_seed_says_the_order_and_each_epoch_has_its_own() -> None:
    batch = fb.train.batches(np.arange(50), 50, 2, shuffle=3)
    again = fb.train.batches(np.arange(50), 50, 2, shuffle=3)
    other = fb.train.batches(np.arange(50), 50, 2, shuffle=4)
    first, second = everything(batch)
    assert first.tolist() != second.tolist() != [*range(50)]
    np.testing.assert_array_equal(everything(batch), [first, second])
    np.testing.assert_array_equal(everything(again), [first, second])
    assert everything(other)[0].tolist() != first.tolist()
    drawn = [everything(fb.train.batches(np.arange(50), 50, 1, shuffle=True)) for _ in range(2)]
    assert drawn[0][0].tolist() != drawn[1][0].tolist()


def test_shapes_are_known_and_structures_kept() -> None:
    x, y = np.zeros([10, 3, 2], np.float32), np.arange(10)
    pair = namedtuple("pair", "x y")(x, y)
    found = fb.train.batches({"pair": pair, "list": [x, y], "values": [*range(10)]}, 5)
    assert type(found["pair"]) is type(pair)
    assert found["pair"].x.shape == [5, 3, 2]
    assert found["pair"].y.dtype is fb.int64
    assert [tensor.shape for tensor in found["list"]] == [[5, 3, 2], [5]]
    assert found["values"].shape == [5]
    assert fb.train.batches(x, 4).shape == [4, 3, 2]
    assert fb.train.batches(x, 4, allow_smaller_final_batch=True).shape.dims == (None, 3, 2)
    assert fb.train.batches(x, 5, allow_smaller_final_batch=True).shape == [5, 3, 2]


def test_all_that_a_step_takes_is_of_one_batch() -> None:
    n, x = fb.train.batches((np.arange(100), np.arange(100)), 10, shuffle=0)
    difference = fb.reduce_sum(fb.abs(n - x))
    assert [int(d) for d in everything(difference)] == [0] * 10


def test_for_ever() -> None:
    batch = fb.train.batches(np.arange(3), 3, epochs=None, shuffle=0)
    with fb.Session() as sess:
        for _ in range(20):
            assert sorted(sess.run(batch)) == [0, 1, 2]


def test_the_end_stays_and_another_session_begins_anew() -> None:
    batch = fb.train.batches(np.arange(4), 2)
    for _ in range(2):
        with fb.Session() as sess:
            assert sess.run(batch).tolist() == [0, 1]
            assert sess.run(batch).tolist() == [2, 3]
            for _ in range(2):
                with pytest.raises(fb.errors.OutOfRangeError):
                    sess.run(batch)


def test_what_is_no_input_is_refused_by_name() -> None:
    x = np.arange(4)
    for wrong, error, words in (
        (lambda: fb.train.batches((x, np.arange(5)), 2), ValueError, "4 and 5 rows"),
        (lambda: fb.train.batches({"a": 3.0}, 2), ValueError, r"arrays\['a'\] is a scalar"),
        (lambda: fb.train.batches((x, [object()]), 2), TypeError, r"arrays\[1\] is no array"),
        (lambda: fb.train.batches((), 2), ValueError, "no array"),
        (lambda: fb.train.batches(x, 0), ValueError, "size is a positive integer"),
        (lambda: fb.train.batches(x, 2, 0), ValueError, "epochs is a positive integer"),
        (lambda: fb.train.batches(x, 2, prefetch=True), ValueError, "prefetch"),
        (lambda: fb.train.batches(x, 2, shuffle="yes"), TypeError, "shuffle is a seed"),
        (lambda: fb.train.batches(x, 8), ValueError, "4 rows make no batch of 8"),
        (lambda: fb.train.until_end(x, x), TypeError, "fb.Session"),
    ):
        with pytest.raises(error, match=words):
            wrong()


@requires(module="pandas")
def test_a_table_of_pandas_gives_its_columns() -> None:
    import pandas

    table = pandas.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "word": ["a", "b", "c", "d"]})
    [found, _] = everything(fb.train.batches(table, 2))
    assert found["x"].tolist() == [1.0, 2.0]
    assert found["word"].tolist() == [b"a", b"b"]
    [found] = everything(fb.train.batches((table, table["x"]), 4))
    assert found[1].tolist() == [1.0, 2.0, 3.0, 4.0]
    table.loc[1, "word"] = None
    with pytest.raises(fb.errors.InvalidTypeError, match=r"arrays\['word'\] is no array"):
        fb.train.batches(table, 2)


@requires(module="pyarrow")
def test_a_table_of_pyarrow_gives_its_columns() -> None:
    import pyarrow

    table = pyarrow.table({"n": [1, 2, 3], "word": ["a", "b", "c"]})
    [found] = everything(fb.train.batches(table, 3))
    assert found["n"].tolist() == [1, 2, 3]
    assert found["word"].tolist() == [b"a", b"b", b"c"]
    with pytest.raises(fb.errors.InvalidArgumentError, match="1 values are missing in column 'n'"):
        fb.train.batches(pyarrow.table({"n": [1, None]}), 1)
