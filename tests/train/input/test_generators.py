"""Python iterables as inputs: their elements, their errors and their ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb


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


def test_the_first_element_tells_dtypes_and_shapes() -> None:
    def elements() -> Iterator[Any]:
        for n in range(5):
            yield {"n": n, "x": (np.full([2], n, np.float64), "word")}

    found = fb.train.from_generator(elements)
    assert found["n"].dtype is fb.int32
    assert found["x"][0].shape == [2]
    for _ in range(2):  # Each session from the first on.
        values = everything(found)
        assert [int(value["n"]) for value in values] == [0, 1, 2, 3, 4]
        assert values[3]["x"][0].tolist() == [3.0, 3.0]
        assert values[3]["x"][1] == b"word"


def test_iterables_of_all_kinds() -> None:
    assert [int(v) for v in everything(fb.train.from_generator(range(3)))] == [0, 1, 2]
    assert [int(v) for v in everything(fb.train.from_generator([4, 5]))] == [4, 5]
    loader = [[np.ones([2]), np.array([1, 2])], [np.zeros([2]), np.array([3, 4])]]
    x, y = fb.train.from_generator(loader)
    assert [v.tolist() for v in everything(y)] == [[1, 2], [3, 4]]
    assert x.shape == [2]
    once = fb.train.from_generator(iter(range(3)))
    assert [int(v) for v in everything(once)] == [0, 1, 2]
    with fb.Session() as sess, pytest.raises(fb.errors.FailedPreconditionError, match="another"):
        sess.run(once)


def test_dtypes_and_shapes_that_are_given() -> None:
    def of_any_length() -> Iterator[Any]:
        yield [1.0], 1
        yield [1.0, 2.0], 2

    x, n = fb.train.from_generator(of_any_length, [fb.float64, fb.int32], ([None], []))
    assert x.shape.dims == (None,)
    assert n.shape == []
    assert [v[0].tolist() for v in everything((x, n))] == [[1.0], [1.0, 2.0]]
    unknown = fb.train.from_generator(lambda: iter([1.0]), fb.float32)
    assert unknown.shape.rank is None
    assert everything(unknown) == [1.0]


def test_nothing_is_taken_before_it_is_wanted() -> None:
    taken = []

    def elements() -> Iterator[int]:
        taken.append(1)
        yield 1

    found = fb.train.from_generator(elements, fb.int32, [])
    with fb.Session() as sess:
        assert taken == []
        assert sess.run(found) == 1


def test_an_error_names_the_line_of_the_generator() -> None:
    def elements() -> Iterator[float]:
        yield 1.0
        yield 1.0 / 0.0

    found = fb.train.from_generator(elements, name="ratios")
    with fb.Session() as sess:
        assert sess.run(found) == 1.0
        with pytest.raises(fb.errors.UnknownError) as caught:
            sess.run(found)
    assert "ZeroDivisionError" in str(caught.value)
    assert "test_generators.py, line" in str(caught.value)
    assert "yield 1.0 / 0.0" in str(caught.value)


@pytest.mark.parametrize(
    ("elements", "words"),
    [
        ([[1.0], [1.0, 2.0]], r"element 1 \(the first is 0\): it is of shape \[2\], and \[1\]"),
        ([1, 2.5], "element 1"),
        ([(1, 2), (1, 2, 3)], "a tuple of 2 is wanted"),
        ([{"a": 1}, {"b": 1}], "a dict with 'a' is wanted"),
    ],
)
def test_an_element_that_does_not_fit_is_named(elements: Any, words: str) -> None:
    found = fb.train.from_generator(elements)
    with fb.Session() as sess:
        sess.run(found)
        with pytest.raises(fb.errors.InvalidArgumentError, match=words):
            sess.run(found)


def test_what_is_no_iterable_is_refused() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="an iterable is wanted"):
        fb.train.from_generator(3)
    with pytest.raises(fb.errors.InvalidArgumentError, match="gives nothing"):
        fb.train.from_generator([])
    with pytest.raises(fb.errors.InvalidTypeError, match=r"the first element\['a'\]"):
        fb.train.from_generator([{"a": object()}])


def test_an_empty_one_with_dtypes_is_at_its_end_at_once() -> None:
    assert everything(fb.train.from_generator([], fb.float32)) == []


def test_a_generator_is_closed_with_the_session() -> None:
    closed = threading.Event()

    def elements() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    found = fb.train.from_generator(elements, fb.int32, [])
    sess = fb.Session()
    sess.run(found)
    assert not closed.is_set()
    sess.close()
    assert closed.wait(60)


def test_what_is_made_while_the_session_closes_is_closed_by_who_makes_it() -> None:
    begun, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def elements() -> Iterator[int]:
        try:
            begun.set()
            go_on.wait(60)
            yield 1
        finally:
            closed.set()

    from flowbook.exec.resources.stream import Stream

    stream = Stream(elements)
    values: list[int] = []
    thread = threading.Thread(target=lambda: values.append(stream.next()))
    thread.start()
    assert begun.wait(60)
    stream.let_go()
    assert not closed.is_set()
    go_on.set()
    thread.join(60)
    assert closed.is_set()
    with pytest.raises(fb.errors.CancelledError):
        stream.next()


def test_a_generator_that_never_comes_to_its_next_element_ends_with_its_session() -> None:
    begun, ends = threading.Event(), []

    def elements() -> Iterator[int]:
        try:
            yield 1
            begun.set()
            while True:
                pass
        finally:
            ends.append(threading.current_thread())

    number = fb.train.from_generator(elements, fb.int32, [])
    with fb.Session() as sess:
        assert sess.run(number) == 1
        with pytest.raises(fb.errors.DeadlineExceededError):
            sess.run(number, timeout=0.01)
        assert begun.wait(60)
    assert len(ends) == 1
    assert not ends[0].is_alive()


def test_what_is_made_while_it_begins_anew_is_given_to_nobody() -> None:
    from flowbook.exec.resources.stream import Stream

    begun, go_on, made = threading.Event(), threading.Event(), iter(["old", "new"])

    def elements() -> Iterator[str]:
        word = next(made)
        begun.set()
        go_on.wait(60)
        yield word

    stream, errors = Stream(elements), list[BaseException]()

    def take() -> None:
        try:
            stream.next()
        except fb.errors.CancelledError as error:
            errors.append(error)

    thread = threading.Thread(target=take)
    thread.start()
    assert begun.wait(60)
    stream.start_over()  # Nobody waits for a generator that takes its time.
    go_on.set()
    thread.join(60)
    assert len(errors) == 1
    assert stream.next() == "new"
