"""Batches of arrays: every row where it belongs, in a known order, and nothing left behind."""

from __future__ import annotations

import itertools
import threading
import tracemalloc
from collections import namedtuple
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from tests.graph.ops.queues.waiting import begun
from tests.interrupts import interrupted_at
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
    st.one_of(st.none(), st.integers(0, 5)),
)
def test_each_epoch_has_every_row_once(
    rows: int,
    size: int,
    epochs: int,
    is_smaller: bool,
    seed: int | None,
    prefetch: int | None,
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


def test_who_makes_the_batches_makes_no_difference() -> None:
    x = np.arange(22.0).reshape(11, 2)
    for how in ({"shuffle": 5}, {"allow_smaller_final_batch": True}):
        found = [
            everything(fb.train.batches(x, 3, epochs=3, prefetch=prefetch, **how))
            for prefetch in (0, 1, 4)
        ]
        for other in found[1:]:
            assert [batch.tolist() for batch in other] == [batch.tolist() for batch in found[0]]


def test_small_batches_are_made_by_their_runs_and_large_ones_by_a_thread() -> None:
    def runners(size: int, **how: int) -> int:
        with fb.Graph().as_default() as graph, fb.Session() as sess:
            fb.train.batches(np.zeros([4, 1 << 18], np.float32), size, **how)
            assert graph is sess.graph
            [queue] = sess.pipeline().queues
            return len(queue.runners)

    assert runners(1) == 1
    assert runners(1, prefetch=0) == 0
    with fb.Graph().as_default(), fb.Session() as sess:
        fb.train.batches((np.zeros([4, 1 << 16]), np.zeros(4)), 1)
        assert not sess.pipeline().queues[0].runners


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_batch_is_nobody_elses_memory(prefetch: int) -> None:
    x = np.arange(4.0)
    batch = fb.train.batches(x, 2, epochs=None, prefetch=prefetch)
    with fb.Session() as sess:
        found = sess.run(batch)
        found[:] = 9
        assert x.tolist() == [0, 1, 2, 3]
        sess.run(batch)
        assert sess.run(batch).tolist() == [0, 1]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_batch_that_somebody_has_stays_as_it_is(prefetch: int) -> None:
    x = np.arange(60.0)
    batch = fb.train.batches(x, 3, shuffle=0, prefetch=prefetch)
    with fb.Session() as sess:
        kept = {}
        for number in range(20):
            found = sess.run(batch)
            # Some are kept for long, or a part of one.
            kept[number % 7] = found[1:] if number % 2 else found, found.tolist()[number % 2 :]
            assert all(values.tolist() == then for values, then in kept.values())


def test_memory_of_batches_that_nobody_has_is_used_again() -> None:
    places = set()

    def note(values: Any) -> Any:
        places.add(values.ctypes.data)
        return values.sum()

    x = np.arange(1000.0)
    total = fb.py_func(note, [fb.train.batches(x, 10, shuffle=0, prefetch=0)], fb.float64)
    with fb.Session() as sess:
        assert sum(found.item() for found in fb.train.until_end(sess, total)) == x.sum()
    assert len(places) <= 2


def test_rows_that_lie_apart_are_gathered_as_those_that_lie_together() -> None:
    x = np.arange(600.0).reshape(2, 3, 100)
    for array in (x.transpose(2, 0, 1), x[:, :, ::2].T, x.T[::-1]):
        batch = fb.train.batches(array, 7, shuffle=3, prefetch=0)
        expected = fb.train.batches(array.copy(), 7, shuffle=3, prefetch=0)
        for found in everything((batch, expected)):
            np.testing.assert_array_equal(*found)


def test_rows_that_lie_apart_are_not_copied_together() -> None:
    apart = np.zeros([100, 10_000]).T
    crooked = np.zeros(8_000_001, np.uint8)[1:].view(np.float64).reshape(10_000, 100)
    for x in (apart, crooked):
        batch = fb.train.batches(x, 7, shuffle=3, prefetch=0)
        with fb.Session() as sess:
            sess.run(batch)
            tracemalloc.start()
            sess.run(batch)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < x.nbytes / 10


@pytest.mark.parametrize("prefetch", [0, 2])
def test_who_runs_past_the_end_hears_of_the_loop_that_ends_there(prefetch: int) -> None:
    batch = fb.train.batches(np.arange(4), 2, prefetch=prefetch)
    with fb.Session() as sess:
        for _ in range(2):
            sess.run(batch)
        with pytest.raises(fb.errors.OutOfRangeError, match=r"hint: `fb\.train\.until_end"):
            sess.run(batch)


def test_threads_take_every_batch_once() -> None:
    batch = fb.train.batches(np.arange(400), 2, shuffle=1, prefetch=0)
    with fb.Session() as sess, ThreadPoolExecutor(8) as pool:
        runs = [pool.submit(sess.run, batch) for _ in range(200)]
        found = [int(n) for run in runs for n in run.result(60)]
        assert sorted(found) == [*range(400)]
        with pytest.raises(fb.errors.OutOfRangeError):
            sess.run(batch)


def test_a_step_that_finds_that_it_has_to_wait_takes_no_second_batch() -> None:
    batch = fb.train.batches(np.arange(12), 2, prefetch=0)
    queue = fb.FIFOQueue(1, fb.int32, shapes=[[]])
    put, both = queue.enqueue(7), [batch, queue.dequeue()]
    with fb.Session() as sess:
        found = []
        for _ in range(3):
            sess.run(put)
            found.append(sess.run(both))
        for _ in range(3):
            waiting = begun(sess, queue, both)
            sess.run(put)
            found.append(waiting.result())
    assert [n for numbers, _ in found for n in numbers.tolist()] == [*range(12)]


def test_an_interrupt_anywhere_loses_no_batch_and_doubles_none() -> None:
    batch = fb.train.batches(np.arange(10_000), 2, prefetch=0)
    with fb.Session() as sess:
        expected = 0
        for _ in range(3):
            sess.run(batch)
            expected += 2
        for number in itertools.count(1):
            found: list[Any] = []
            stopped = interrupted_at(number, lambda to=found: to.append(sess.run(batch)))
            [n, _] = sess.run(batch).tolist()
            # One that was taken, and not handed over, is gone with its run.
            assert n in ((expected + 2,) if found else (expected, expected + 2)), number
            expected = n + 2
            if stopped is None:
                break


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
        (lambda: fb.train.batches(x, [1, 2], 2), TypeError, r"batches\(\(x, y\), size\)"),
        (lambda: fb.train.batches(x, 2, 0), ValueError, "epochs is a positive integer"),
        (lambda: fb.train.batches(x, 2, prefetch=True), ValueError, "prefetch"),
        (lambda: fb.train.batches(x, 2, shuffle="yes"), TypeError, "shuffle is a seed"),
        (
            lambda: fb.train.batches(x, 2, prefetch=-1),
            ValueError,
            "prefetch is an integer from 0 on",
        ),
        (lambda: fb.train.batches(x, 8), ValueError, "4 rows make no batch of 8"),
        (lambda: fb.train.until_end(x, x), TypeError, "fb.Session"),
    ):
        with pytest.raises(error, match=words):
            wrong()


def test_what_is_fed_is_fed_in_each_run() -> None:
    x = fb.placeholder(fb.int64, [])
    total = fb.reduce_sum(fb.train.batches(np.arange(4), 2)) * x
    with fb.Session() as sess:
        assert list(fb.train.until_end(sess, total, feeds={x: 10})) == [10, 50]


@requires(module="pandas")
def test_a_table_of_pandas_gives_its_columns() -> None:
    import pandas

    table = pandas.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "word": ["a", "b", "c", "d"]})
    [found, _] = everything(fb.train.batches(table, 2))
    assert found["x"].tolist() == [1.0, 2.0]
    assert found["word"].tolist() == [b"a", b"b"]
    [found] = everything(fb.train.batches((table, table["x"]), 4))
    assert found[1].tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(fb.errors.InvalidArgumentError, match="2 columns are called 'x'"):
        fb.train.batches(pandas.concat([table, table["x"]], axis=1), 2)
    table.loc[1, "word"] = None
    with pytest.raises(
        fb.errors.InvalidArgumentError, match=r"arrays\['word'\].* lacks 1 value of"
    ):
        fb.train.batches(table, 2)


@requires(module="pandas")
def test_what_a_table_of_pandas_lacks_does_not_become_nan() -> None:
    import pandas

    for dtype, values in {
        "Int64": [1, 2, 3],
        "Float32": [1.5, 2.5, 3.5],
        "boolean": [True, False, True],
        "string": ["a", "b", "c"],
        "category": [4, 5, 4],
    }.items():
        column = pandas.Series(values, dtype=dtype)
        with fb.Graph().as_default():
            [found] = everything(fb.train.batches({"n": column}, 3))
        assert found["n"].tolist() == [v.encode() if dtype == "string" else v for v in values]
        column[1] = None
        for arrays in ({"n": column}, pandas.DataFrame({"n": column}), column, column.array):
            with pytest.raises(fb.errors.InvalidArgumentError, match="it lacks 1 value of 3"):
                fb.train.batches(arrays, 3)
    floats = pandas.DataFrame({"x": [1.0, np.nan]})
    [found] = everything(fb.train.batches(floats, 2))
    assert np.isnan(found["x"]).tolist() == [False, True]


@requires(module="pyarrow")
def test_a_table_of_pyarrow_gives_its_columns() -> None:
    import pyarrow

    table = pyarrow.table({"n": [1, 2, 3], "word": ["a", "b", "c"]})
    [found] = everything(fb.train.batches(table, 3))
    assert found["n"].tolist() == [1, 2, 3]
    assert found["word"].tolist() == [b"a", b"b", b"c"]
    lacking = pyarrow.table({"n": [1, None]})
    in_dictionary = pyarrow.DictionaryArray.from_arrays([0, 1], ["a", None])
    for arrays in (lacking, lacking["n"], lacking["n"].chunk(0), {"n": in_dictionary}):
        with pytest.raises(fb.errors.InvalidArgumentError, match="it lacks 1 value of 2"):
            fb.train.batches(arrays, 1)


@requires(module="pyarrow")
def test_what_no_tensor_holds_is_named() -> None:
    import pyarrow

    day, words = np.array(["2020-01-01"] * 2, "datetime64[D]"), ["a", "b"]
    for column, message in (
        (pyarrow.array(day), r"no dtype, as those of datetime64\[D\]"),
        (pyarrow.array([words, words]), "its elements are lists or arrays"),
        (pyarrow.array([words, ["c"]]), "differ in length"),
    ):
        with pytest.raises(fb.errors.OpError, match=rf"arrays\['n'\].*{message}"):
            fb.train.batches(pyarrow.table({"n": column}), 1)
    rows: Any = np.asarray(pyarrow.table({"n": [words, words]})["n"])
    stacked = np.stack(rows)
    assert everything(fb.train.batches(stacked, 2))[0].tolist() == [[b"a", b"b"]] * 2
