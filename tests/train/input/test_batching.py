"""Batches of what is sparse, and of what is not always kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.train.input.reading import everything, numbers


def sparse_row(number: Any) -> fb.SparseTensor:
    """The number at its own place, in a vector of one place more."""
    whole = fb.cast(number, fb.int64)
    return fb.SparseTensor(fb.reshape(whole, [1, 1]), [number], [whole + 1])


def dense(value: fb.SparseTensorValue) -> list[list[int]]:
    found = np.zeros(value.dense_shape, int)
    found[tuple(value.indices.T)] = value.values
    return found.tolist()  # type: ignore[no-any-return]


def _in_order(element: Any) -> Any:
    return fb.train.batch(element, 2, allow_smaller_final_batch=True)


def _shuffled(element: Any) -> Any:
    return fb.train.shuffle_batch(element, 2, 9, 4, seed=3, allow_smaller_final_batch=True)


def test_batches_of_sparse_elements() -> None:
    number = numbers(5)
    found = _in_order({"n": number, "row": sparse_row(number)})
    assert found["row"].shape.rank == 2
    values = everything(found)
    assert [dense(v["row"]) for v in values] == [
        [[0, 0], [0, 1]],
        [[0, 0, 2, 0], [0, 0, 0, 3]],
        [[0, 0, 0, 0, 4]],
    ]


def test_sparse_elements_are_shuffled_with_what_belongs_to_them() -> None:
    number = numbers(8)
    values = everything(tuple(_shuffled([sparse_row(number), number])))
    flat = [int(n) for _, ns in values for n in ns]
    assert sorted(flat) == [*range(8)] != flat
    for row, ns in values:
        assert [sum(line) for line in dense(row)] == ns.tolist()


def test_each_row_of_a_sparse_tensor_is_an_element() -> None:
    rows = fb.SparseTensor([[0, 1], [2, 0], [2, 1]], fb.train.limit_epochs([5, 6, 7], 1), [3, 2])
    found = fb.train.batch(rows, 3, enqueue_many=True)
    assert isinstance(found, fb.SparseTensor)
    assert [dense(v) for v in everything(found)] == [[[0, 5], [0, 0], [6, 7]]]
    constant = fb.train.batch(fb.SparseTensorValue([[0]], ["x"], [2]), 2)
    with fb.Session() as sess:
        value = sess.run(constant)
    assert value.indices.tolist() == [[0, 0], [1, 0]]
    assert value.values.tolist() == [b"x", b"x"]
    assert value.dense_shape.tolist() == [2, 2]


def test_dense_and_sparse_do_not_join() -> None:
    row = sparse_row(numbers(2))
    with pytest.raises(fb.errors.InvalidArgumentError, match="in what is sparse"):
        fb.train.batch_join([[row], [row.values]], 2)


def test_what_is_not_kept_of_several_places() -> None:
    places = [[numbers(6)], [numbers(4) + 10]]
    keep = [places[0][0] % 2 < 1, places[1][0] > 11]
    [found] = fb.train.maybe_batch_join(places, keep, 5)
    [values] = everything(found)
    assert sorted(values) == [0, 2, 4, 12, 13]
    with pytest.raises(fb.errors.InvalidArgumentError, match="one entry for each of 2 places"):
        fb.train.maybe_batch_join(places, [True], 5)


def test_what_is_not_kept_of_what_is_shuffled() -> None:
    number = numbers(40)
    rules: dict[str, Any] = {"seed": 1, "allow_smaller_final_batch": True}
    found = [
        fb.train.maybe_shuffle_batch(number, 6, 30, 9, number % 2 < 1, **rules),
        fb.train.maybe_shuffle_batch_join(
            [[n] for n in (numbers(20), numbers(20) + 20)], 6, 30, 9, [True, False], **rules
        )[0],
    ]
    for batch, wanted in zip(found, ([*range(0, 40, 2)], [*range(20)]), strict=True):
        values = [int(n) for v in everything(batch) for n in v]
        assert sorted(values) == wanted != values


def test_sparse_elements_that_are_not_kept_are_left_out() -> None:
    number = numbers(6)
    found = fb.train.maybe_batch(sparse_row(number), number > 3, 2)
    assert [dense(v) for v in everything(found)] == [[[0, 0, 0, 0, 4, 0], [0, 0, 0, 0, 0, 5]]]
