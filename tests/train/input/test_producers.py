"""TensorFlow 1's producers and batches: what they give, in which order, until which end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.train.input.reading import everything, numbers


@pytest.fixture(autouse=True)
def no_threads_are_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()


def test_limit_epochs() -> None:
    limited = fb.train.limit_epochs([7], 3)
    assert [v.tolist() for v in everything(limited)] == [[7]] * 3
    assert fb.train.limit_epochs(limited) is limited
    with pytest.raises(fb.errors.InvalidArgumentError, match="num_epochs"):
        fb.train.limit_epochs([7], 0)


def test_producers_give_each_row_in_each_epoch() -> None:
    strings = fb.train.string_input_producer(["a", "b"], 2, shuffle=False, capacity=1)
    assert everything(strings.dequeue()) == [b"a", b"b", b"a", b"b"]
    rows = fb.train.input_producer([[1, 2], [3, 4]], num_epochs=2, shuffle=False)
    assert [v.tolist() for v in everything(rows.dequeue())] == [[1, 2], [3, 4]] * 2
    letters, places = fb.train.slice_input_producer([["a", "b", "c"], [0, 1, 2]], 1, seed=1)
    assert {(bytes(w), int(n)) for w, n in everything((letters, places))} == {
        (b"a", 0),
        (b"b", 1),
        (b"c", 2),
    }


def test_shuffled_epochs_differ_and_the_seed_says_how() -> None:
    orders = []
    for seed in (1, 1, 2):
        with fb.Graph().as_default():
            queue = fb.train.range_input_producer(20, 2, shuffle=True, seed=seed)
            orders.append([int(v) for v in everything(queue.dequeue())])
    assert sorted(orders[0][:20]) == sorted(orders[0][20:]) == [*range(20)]
    assert orders[0][:20] != orders[0][20:]
    assert orders[0] == orders[1] != orders[2]


def test_without_num_epochs_there_is_no_end() -> None:
    taken = fb.train.range_input_producer(2, shuffle=False).dequeue()
    with fb.Session() as sess:
        assert [int(sess.run(taken)) for _ in range(9)] == [0, 1] * 4 + [0]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("is_smaller", [False, True])
def test_batch(threads: int, is_smaller: bool) -> None:
    number = numbers(10)
    word = fb.strings.as_string(number)
    found = fb.train.batch(
        {"n": number, "word": word},
        4,
        num_threads=threads,
        allow_smaller_final_batch=is_smaller,
    )
    assert found["n"].shape.dims == ((None,) if is_smaller else (4,))
    values = everything(found)
    assert [len(v["n"]) for v in values] == ([4, 4, 2] if is_smaller else [4, 4])
    flat = [int(n) for v in values for n in v["n"]]
    assert [int(w) for v in values for w in v["word"]] == flat
    if threads == 1:
        assert flat == [*range(len(flat))]
    assert len(set(flat)) == len(flat)


def test_each_row_is_an_element_of_many() -> None:
    rows = fb.train.limit_epochs([[1, 2], [3, 4], [5, 6]], 2)
    found = fb.train.batch([rows], 2, enqueue_many=True)
    assert isinstance(found, list)
    assert [v.tolist() for [v] in everything(found)] == [
        [[1, 2], [3, 4]],
        [[5, 6], [1, 2]],
        [[3, 4], [5, 6]],
    ]


def test_dynamic_padding() -> None:
    number = numbers(4)
    ragged = fb.fill([number], "x")
    found = fb.train.batch((fb.fill([number], number), ragged), 4, dynamic_pad=True)
    [(n, words)] = everything(tuple(found))
    assert n.tolist() == [[0, 0, 0], [1, 0, 0], [2, 2, 0], [3, 3, 3]]
    assert words[2].tolist() == [b"x", b"x", b""]
    with pytest.raises(fb.errors.InvalidArgumentError, match="make no batch"):
        fb.train.batch(fb.fill([numbers(4)], 1), 4)


def test_shapes_that_only_the_user_knows() -> None:
    row = fb.py_func(lambda n: np.full([2], n, np.int32), [numbers(2)], fb.int32)
    found = fb.train.batch(row, 2, shapes=[2])
    assert found.shape == [2, 2]
    assert [v.tolist() for v in everything(found)] == [[[0, 0], [1, 1]]]


def test_what_is_not_kept_is_left_out() -> None:
    number = numbers(10)
    found = fb.train.maybe_batch(number, number % 2 < 1, 5)
    assert [v.tolist() for v in everything(found)] == [[0, 2, 4, 6, 8]]
    rows = fb.train.limit_epochs([1, 2, 3, 4], 1)
    some = fb.train.maybe_batch(rows, [True, False, False, True], 2, enqueue_many=True)
    assert [v.tolist() for v in everything(some)] == [[1, 4]]
    none = fb.train.maybe_batch(fb.train.limit_epochs([1, 2], 1), False, 1, enqueue_many=True)
    assert everything(none) == []


def test_several_places_join() -> None:
    places = [[numbers(6), fb.constant("a")], [numbers(3) + 10, fb.constant("b")]]
    found = everything(fb.train.batch_join(places, 3))
    pairs = Counter((int(n), bytes(w)) for ns, ws in found for n, w in zip(ns, ws, strict=True))
    assert pairs == Counter([*((n, b"a") for n in range(6)), *((n, b"b") for n in (10, 11, 12))])
    with pytest.raises(fb.errors.InvalidArgumentError, match="differ in their dtypes"):
        fb.train.batch_join([[fb.constant(1)], [fb.constant(1.0)]], 2)


def test_places_with_elements_of_different_shapes_join() -> None:
    places = [[fb.train.limit_epochs(fb.fill([n], n), 2)] for n in (2, 3)]
    [found] = fb.train.batch_join(places, 4, dynamic_pad=True)
    assert found.shape.dims == (4, None)
    [rows] = everything(found)
    assert sorted(map(tuple, rows.tolist())) == [(2, 2, 0), (2, 2, 0), (3, 3, 3), (3, 3, 3)]


def _shuffled(number: Any) -> Any:
    return fb.train.shuffle_batch(number, 5, 30, 10, seed=1, allow_smaller_final_batch=True)


def _shuffled_join(number: Any) -> Any:
    return fb.train.shuffle_batch_join([number], 5, 30, 10, 1, allow_smaller_final_batch=True)


@pytest.mark.parametrize("build", [_shuffled, _shuffled_join])
def test_shuffled_batches(build: Callable[[Any], Any]) -> None:
    values = everything(build(numbers(52)))
    assert [len(v) for v in values] == [5] * 10 + [2]
    flat = [int(n) for v in values for n in v]
    assert sorted(flat) == [*range(52)] != flat


def test_what_fails_beforehand_fails_the_batch() -> None:
    checked = fb.check_numerics(fb.log(fb.cast(numbers(3), fb.float32)), "wrong", name="checked")
    found = fb.train.batch(checked, 2)
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError, match="checked"):
        sess.run(found)


@pytest.mark.parametrize("num_epochs", [None, 1])
@pytest.mark.parametrize("shuffle", [False, True])
def test_an_input_without_rows_is_an_error(num_epochs: int | None, shuffle: bool) -> None:
    """Also where the run alone can tell, as of a pattern that no file matches."""
    names = fb.matching_files("memory://there/is/none*")
    first = fb.train.string_input_producer(names, num_epochs=num_epochs, shuffle=shuffle).dequeue()
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError, match="has no rows"):
        sess.run(first, timeout=60)


def test_wrong_arguments_are_refused() -> None:
    for wrong, words in (
        (lambda: fb.train.input_producer(3), "a scalar"),
        (lambda: fb.train.string_input_producer([]), "no rows"),
        (lambda: fb.train.input_producer(fb.placeholder(fb.int32)), "element_shape"),
        (lambda: fb.train.slice_input_producer([]), "no tensor"),
        (lambda: fb.train.slice_input_producer([[1], [1, 2]]), "as many rows"),
        (lambda: fb.train.batch(fb.constant(1), 2, num_threads=0), "num_threads"),
        (lambda: fb.train.batch_join([], 2), "a list"),
        (lambda: fb.train.batch_join([{"a": 1}, {"b": 1}], 2), "a dict with"),
    ):
        with pytest.raises(fb.errors.InvalidArgumentError, match=words):
            wrong()
