"""Batches of elements of one kind."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import flowbook as fb
from tests.graph.ops.queues.waiting import begun, given_up
from tests.train.input.reading import everything, numbers


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("is_smaller", [False, True])
def test_a_batch_is_of_one_bucket(threads: int, is_smaller: bool) -> None:
    number = numbers(20)
    which, found = fb.train.bucket(
        {"n": number, "text": fb.strings.as_string(number)},
        number % 3,
        batch_size=4,
        num_buckets=3,
        num_threads=threads,
        allow_smaller_final_batch=is_smaller,
    )
    assert found["n"].shape.dims == ((None,) if is_smaller else (4,))
    values = everything((which, found))
    seen: list[int] = []
    for bucket, batch in values:
        assert {int(n) % 3 for n in batch["n"]} == {bucket}
        assert [int(word) for word in batch["text"]] == batch["n"].tolist()
        seen += batch["n"].tolist()
    assert sorted(len(b["n"]) for _, b in values) == ([2, 3, 3] if is_smaller else []) + [4] * 3
    assert len(set(seen)) == len(seen)
    if is_smaller:
        assert sorted(seen) == [*range(20)]
    if threads == 1:
        # As they became whole.
        assert [int(b) for b, _ in values[:3]] == [0, 1, 2]
        assert values[0][1]["n"].tolist() == [0, 3, 6, 9]


def test_buckets_of_their_own_sizes_and_capacities() -> None:
    number = numbers(30)
    which, found = fb.train.bucket(
        number, fb.cast(number > 19, fb.int32), [5, 2], 2, bucket_capacities=[5, 3]
    )
    assert found.shape.dims == (None,)
    values = everything((which, found))
    assert Counter((int(b), len(n)) for b, n in values) == Counter({(0, 5): 4, (1, 2): 5})
    queue = fb.Queue.of(found.op.inputs[0].op)
    assert queue.op.attributes["capacity"] == 8


def test_sequences_of_about_one_length() -> None:
    number = numbers(12)
    lengths, [rows, sparse] = fb.train.bucket_by_sequence_length(
        number,
        [fb.fill([number], number), fb.SparseTensor([[1]], [number], [3])],
        batch_size=3,
        bucket_boundaries=[3, 9],
        dynamic_pad=True,
    )
    values = everything((lengths, rows, sparse))
    assert [ns.tolist() for ns, _, _ in values] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    for ns, filled, wide in values:
        assert filled.shape == (3, max(ns))
        assert [sorted(row)[-1:] for row in filled.tolist()] == [[n] for n in ns]
        assert [row.count(n) for row, n in zip(filled.tolist(), ns, strict=True)] == [
            n if n else max(ns) for n in ns.tolist()
        ]
        assert wide.values.tolist() == ns.tolist()


def test_what_is_not_kept_goes_into_no_bucket() -> None:
    number = numbers(12)
    which, found = fb.train.bucket(number, number % 2, 3, 2, keep_input=number < 8)
    assert [(int(b), n.tolist()) for b, n in everything((which, found))] == [
        (0, [0, 2, 4]),
        (1, [1, 3, 5]),
    ]


def test_who_waits_says_for_what_and_goes_on() -> None:
    x = fb.placeholder(fb.int32, [2])
    _, found = fb.train.bucket(fb.constant(1), 0, 2, 1)
    queue = fb.Queue.of(found.op.inputs[0].op)
    put, close = queue.enqueue_many([[0, 0], x]), queue.close()
    runner = next(op for op in fb.get_default_graph().operations if op.type == "QueueRunner")
    with fb.Session() as sess:
        sess.feeding.wanted = lambda queue: None  # type: ignore[method-assign]
        given_up(sess, found, "a batch of one bucket")
        run = begun(sess, queue, found)
        sess.run(put, {x: [7, 8]})
        assert run.result().tolist() == [7, 8]
        with pytest.raises(fb.errors.InvalidArgumentError, match="no bucket 5"):
            sess.run(queue.enqueue_many([[5, 0], x]), {x: [1, 2]})
        sess.run(close)
        with pytest.raises(fb.errors.OutOfRangeError, match="requested 2, current size 0"):
            sess.run(found)
    assert runner.inputs[0].op is queue.op


def test_wrong_buckets_are_refused() -> None:
    one = fb.constant(1)
    by_length: Any = fb.train.bucket_by_sequence_length
    for wrong, words in (
        (lambda: fb.train.bucket(one, 0, 2, 0), "num_buckets"),
        (lambda: fb.train.bucket(one, 0, [2, 3], 3), "2 numbers for 3 buckets"),
        (lambda: fb.train.bucket(one, 0, 0, 1), "batch_size"),
        (lambda: fb.train.bucket(fb.fill([numbers(2)], 1), 0, 2, 2), "dynamic_pad"),
        (lambda: by_length(one, one, 2, []), "boundaries are given"),
        (lambda: by_length(one, one, 2, [3, 3]), "and grow"),
    ):
        with pytest.raises(fb.errors.InvalidArgumentError, match=words):
            wrong()
    with pytest.raises(fb.errors.InvalidTypeError, match="integers"):
        by_length(one, one, 2, [1.5])
