"""Sequence examples: what is written comes back, padded or sparse; what does not fit is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb

ROWS = st.lists(
    st.tuples(st.integers(-(2**63), 2**63 - 1), st.lists(st.lists(st.binary(max_size=3)))),
    min_size=1,
    max_size=4,
)


def run(fetches: Any) -> Any:
    with fb.Session() as sess:
        return sess.run(fetches)


@given(ROWS)
def test_what_is_written_is_read(rows: list[tuple[int, list[list[bytes]]]]) -> None:
    records = [
        fb.serialize_sequence_example(
            {"n": n}, {"words": words, "pair": [[len(step), n] for step in words]}
        )
        for n, words in rows
    ]
    context = {"n": fb.FixedLenFeature([], fb.int64)}
    sequences = {
        "words": fb.VarLenFeature(fb.string),
        "pair": fb.FixedLenSequenceFeature([2], fb.int64, default_value=-7),
    }
    with fb.Graph().as_default():
        found = fb.parse_sequence_example(np.array(records, object), context, sequences)
        assert found[1]["pair"].shape.as_list() == [len(rows), None, 2]
        whole, steps, lengths = run(found)
        single = run([fb.parse_single_sequence_example(r, context, sequences) for r in records])
    assert [*steps] == ["words", "pair"]
    assert whole["n"].tolist() == [n for n, _ in rows]
    assert lengths["pair"].tolist() == [len(words) for _, words in rows]
    longest = max(len(words) for _, words in rows)
    pairs = [[[len(step), n] for step in words] for n, words in rows]
    assert steps["pair"].tolist() == [p + [[-7, -7]] * (longest - len(p)) for p in pairs]
    most = max((len(step) for _, words in rows for step in words), default=0)
    assert steps["words"].dense_shape.tolist() == [len(rows), longest, most]
    assert steps["words"].indices.tolist() == [
        [i, j, k]
        for i, (_, words) in enumerate(rows)
        for j, step in enumerate(words)
        for k in range(len(step))
    ]
    assert steps["words"].values.tolist() == [w for _, s in rows for step in s for w in step]
    for (n, words), pair, (alone, of_steps) in zip(rows, pairs, single, strict=True):
        assert alone["n"] == n
        assert of_steps["pair"].reshape(-1, 2).tolist() == pair
        assert of_steps["words"].values.tolist() == [word for step in words for word in step]
        assert of_steps["words"].dense_shape[0] == len(words)


def test_the_bytes_are_tensorflows() -> None:
    # SequenceExample > context, then the lists > entry: key, and a FeatureList of one Feature.
    record = b"\x12\x0e\x0a\x0c\x0a\x01n\x12\x07\x0a\x05\x1a\x03\x0a\x01\x07"
    assert fb.serialize_sequence_example({}, {"n": [7]}) == record
    context = b"\x0a\x0c\x0a\x0a\x0a\x01n\x12\x05\x1a\x03\x0a\x01\x07"
    assert fb.serialize_sequence_example({"n": 7}, {}) == context == fb.serialize_example({"n": 7})


def test_what_is_missing() -> None:
    record = fb.serialize_sequence_example({}, {"a": []})
    needed = {"b": fb.FixedLenSequenceFeature([], fb.float32)}
    optional = {"b": fb.FixedLenSequenceFeature([3], fb.float32, allow_missing=True)}
    with pytest.raises(fb.errors.InvalidArgumentError, match="has no feature 'b'"):
        run(fb.parse_single_sequence_example(record, sequence_features=needed))
    full = fb.serialize_sequence_example({}, {"b": [1.0]})
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"example 1 .*has no feature 'b'"):
        run(fb.parse_sequence_example([full, record], sequence_features=needed))
    found = run(fb.parse_single_sequence_example(record, sequence_features=optional))
    assert found[1]["b"].shape == (0, 3)
    assert run(fb.parse_sequence_example([record], sequence_features=optional))[2]["b"] == [0]


def test_what_does_not_fit_is_named() -> None:
    wrong, step = fb.errors.InvalidArgumentError, fb.FixedLenSequenceFeature
    record = fb.serialize_sequence_example({}, {"a": [[1, 2], [3]]})
    with pytest.raises(wrong, match=r"step 1 .* of feature 'a' has 1 value, not the 2"):
        run(fb.parse_single_sequence_example(record, {}, {"a": step([2], fb.int64)}))
    with pytest.raises(wrong, match="'a' holds int64, not float32"):
        run(fb.parse_single_sequence_example(record, {}, {"a": step([2], fb.float32)}))
    with pytest.raises(wrong, match="is no sequence example"):
        run(fb.parse_single_sequence_example(b"\xff", {}, {"a": step([2], fb.int64)}))
    with pytest.raises(fb.errors.InvalidTypeError, match="'a' is a FixedLenFeature or a VarLen"):
        fb.parse_single_sequence_example(record, {"a": step([], fb.int64)})
    with pytest.raises(fb.errors.InvalidTypeError, match="'a' is a FixedLenSequenceFeature or"):
        fb.parse_single_sequence_example(record, {}, {"a": fb.FixedLenFeature([], fb.int64)})
    with pytest.raises(fb.errors.InvalidTypeError, match="feature 'a': numbers or strings"):
        fb.serialize_sequence_example({}, {"a": [1j]})
    with pytest.raises(wrong, match="a string vector is wanted"):
        fb.parse_sequence_example(record, {}, {"a": step([2], fb.int64)})


def test_steps_of_examples() -> None:
    rows = [[1, 2, 3, 4], [], [5, 6]]
    records = [fb.serialize_example({"a": np.array(row, np.int64), "b": "x"}) for row in rows]
    features = {
        "a": fb.FixedLenSequenceFeature([2], fb.int64, allow_missing=True, default_value=9),
        "b": fb.FixedLenFeature([], fb.string),
    }
    found = run(fb.parse_example(records, features))
    assert [*found] == ["a", "b"]
    assert found["a"].tolist() == [[[1, 2], [3, 4]], [[9, 9], [9, 9]], [[5, 6], [9, 9]]]
    assert run(fb.parse_single_example(records[0], features))["a"].tolist() == [[1, 2], [3, 4]]
    three = {"a": fb.FixedLenSequenceFeature([3], fb.int64, allow_missing=True)}
    with pytest.raises(fb.errors.InvalidArgumentError, match="no multiple of the 3"):
        run(fb.parse_example(records, three))
    with pytest.raises(fb.errors.InvalidArgumentError, match="at least one value"):
        fb.parse_example(records, {"a": fb.FixedLenSequenceFeature([0], fb.int64)})
