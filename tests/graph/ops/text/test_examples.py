"""Examples: what is written comes back, and what does not fit is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb

NUMBERS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32, allow_nan=False)


def run(fetches: Any) -> Any:
    with fb.Session() as sess:
        return sess.run(fetches)


@given(
    st.lists(
        st.tuples(st.lists(NUMBERS, max_size=4), st.lists(FLOATS, max_size=4), st.binary()),
        min_size=1,
        max_size=5,
    )
)
def test_what_is_written_is_read(rows: list[tuple[list[int], list[float], bytes]]) -> None:
    records = [
        fb.serialize_example(
            {
                "n": np.array(numbers, np.int64),
                "x": np.array(floats, np.float32),
                "word": word,
            }
        )
        for numbers, floats, word in rows
    ]
    features = {
        "n": fb.VarLenFeature(fb.int64),
        "word": fb.FixedLenFeature([], fb.string),
        "x": fb.VarLenFeature(fb.float32),
    }
    with fb.Graph().as_default():
        whole = run(fb.parse_example(np.array(records, object), features))
        single = run([fb.parse_single_example(record, features) for record in records])
    assert [*whole] == ["n", "word", "x"]
    assert whole["word"].tolist() == [word for _, _, word in rows]
    for place, name in ((0, "n"), (1, "x")):
        lists = [row[place] for row in rows]
        value = whole[name]
        assert value.values.tolist() == [each for row in lists for each in row]
        assert value.indices.tolist() == [
            [i, j] for i, row in enumerate(lists) for j in range(len(row))
        ]
        assert value.dense_shape.tolist() == [len(rows), max(map(len, lists))]
        for row, found in zip(lists, single, strict=True):
            assert found[name].values.tolist() == row
            assert found[name].indices.tolist() == [[j] for j in range(len(row))]
            assert found[name].dense_shape.tolist() == [len(row)]
    assert [found["word"] for found in single] == [word for _, _, word in rows]


def test_the_bytes_are_tensorflows() -> None:
    # Example > Features > entry of the map: its key, and a Feature with an Int64List.
    record = b"\x0a\x0c\x0a\x0a\x0a\x01n\x12\x05\x1a\x03\x0a\x01\x07"
    assert fb.serialize_example({"n": 7}) == record
    found = fb.parse_single_example(record, {"n": fb.FixedLenFeature([], fb.int64)})
    assert run(found["n"]) == 7
    unpacked = b"\x0a\x0b\x0a\x09\x0a\x01n\x12\x04\x1a\x02\x08\x07"
    found = fb.parse_single_example(unpacked, {"n": fb.FixedLenFeature([], fb.int64)})
    assert run(found["n"]) == 7


def test_shapes_are_known_and_defaults_taken() -> None:
    records = [fb.serialize_example({"x": [[1.0, 2.0], [3.0, 4.0]]}), fb.serialize_example({})]
    features = {
        "x": fb.FixedLenFeature([2, 2], fb.float32, default_value=0.5),
        "n": fb.FixedLenFeature([2], fb.int64, default_value=[8, 9]),
        "word": fb.VarLenFeature(fb.string),
    }
    found = fb.parse_example(records, features)
    assert found["x"].shape == [2, 2, 2]
    assert found["word"].values.dtype is fb.string
    values = run(found)
    assert values["x"].tolist() == [[[1.0, 2.0], [3.0, 4.0]], [[0.5, 0.5], [0.5, 0.5]]]
    assert values["n"].tolist() == [[8, 9], [8, 9]]
    assert values["word"].dense_shape.tolist() == [2, 0]
    unknown = fb.placeholder(fb.string)
    single = fb.parse_single_example(unknown, {"n": fb.FixedLenFeature([2], fb.int64, [1, 2])})
    assert single["n"].shape == [2]
    with fb.Session() as sess:
        assert sess.run(single["n"], {unknown: b""}).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("record", "feature", "words"),
    [
        (b"\xff", fb.FixedLenFeature([], fb.int64), "is no example"),
        (fb.serialize_example({}), fb.FixedLenFeature([], fb.int64), "has no feature 'n'"),
        (
            fb.serialize_example({"n": [1, 2]}),
            fb.FixedLenFeature([3], fb.int64),
            r"has 2 values, not the 3 of shape \[3\]",
        ),
        (
            fb.serialize_example({"n": 1.5}),
            fb.VarLenFeature(fb.int64),
            "feature 'n' holds float32, not int64",
        ),
    ],
)
def test_what_does_not_fit_is_named(record: bytes, feature: Any, words: str) -> None:
    good = fb.serialize_example({"n": [1, 2, 3]})
    single = fb.parse_single_example(record, {"n": feature})
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError, match=words):
        sess.run(single)
    if feature.dtype is fb.int64 and getattr(feature, "shape", None) == [3]:
        several = fb.parse_example([good, record], {"n": feature})
        with fb.Session() as sess, pytest.raises(ValueError, match="of example 1"):
            sess.run(several)


def test_wrong_arguments_are_refused() -> None:
    fixed = fb.FixedLenFeature([], fb.int64)
    for wrong, words in (
        (lambda: fb.parse_example("a", {"n": fixed}), "a string vector"),
        (lambda: fb.parse_single_example(["a"], {"n": fixed}), "a string scalar"),
        (lambda: fb.parse_example(["a"], {}), "a dict of what to read"),
        (lambda: fb.parse_example(["a"], {"n": fb.int64}), "feature 'n' is a FixedLenFeature"),
        (lambda: fb.parse_example(["a"], {"n": fb.VarLenFeature(fb.int32)}), "not int32"),
        (lambda: fb.parse_example(["a"], {"n": fb.FixedLenFeature([None], fb.int64)}), "is known"),
        (
            lambda: fb.parse_example(["a"], {"n": fb.FixedLenFeature([2], fb.int64, [1, 2, 3])}),
            "the default of feature 'n'",
        ),
        (lambda: fb.serialize_example({"n": object()}), "feature 'n'"),
        (lambda: fb.serialize_example({"n": 1j}), "feature 'n': numbers or strings"),
    ):
        with pytest.raises(fb.errors.InvalidArgumentError, match=words):
            wrong()


def test_a_feature_without_values_is_of_any_dtype() -> None:
    record = fb.serialize_example({"words": [], "none": np.zeros(0, np.int64)})
    features = {
        "words": fb.VarLenFeature(fb.string),
        "none": fb.FixedLenFeature([0], fb.float32),
    }
    found = run(fb.parse_single_example(record, features))
    missing = {"words": fb.FixedLenFeature([], fb.string, default_value="?")}
    assert run(fb.parse_single_example(record, missing)["words"]) == b"?"
    assert found["words"].dense_shape.tolist() == [0]
    assert found["none"].shape == (0,)


def test_numbers_of_all_kinds_are_written() -> None:
    values = {"b": [True, False], "u": np.uint8(200), "h": np.float16(0.5), "none": np.zeros(0)}
    record = fb.serialize_example(values)
    features = {
        "b": fb.FixedLenFeature([2], fb.int64),
        "u": fb.FixedLenFeature([], fb.int64),
        "h": fb.FixedLenFeature([], fb.float32),
        "none": fb.FixedLenFeature([0], fb.float32),
    }
    found = run(fb.parse_single_example(record, features))
    assert found["b"].tolist() == [1, 0]
    assert (found["u"], found["h"]) == (200, 0.5)
    with pytest.raises(fb.errors.InvalidArgumentError, match="feature 'n'"):
        fb.serialize_example({"n": np.uint64(2**64 - 1)})


def test_sparse_features_have_the_values_and_places_of_tensorflow() -> None:
    records = [
        fb.serialize_example({"ix": [3, 0], "iy": [1, 2], "v": [1.5, 2.5]}),
        fb.serialize_example({}),
        fb.serialize_example({"ix": [4], "iy": [0], "v": [9.0]}),
    ]
    features = {
        "one": fb.SparseFeature("ix", "v", fb.float32, 5),
        "two": fb.SparseFeature(["ix", "iy"], "v", fb.float32, [5, 3]),
        "as it is": fb.SparseFeature("ix", "v", fb.float32, 5, already_sorted=True),
        "v": fb.VarLenFeature(fb.float32),
    }
    tensors = fb.parse_example(records, features)
    assert tensors["two"].indices.shape.dims == (None, 3)
    found = run(tensors)
    single = run([fb.parse_single_example(record, features) for record in records])
    # As tf.io.parse_example gives them.
    for name, indices, values, shape in (
        ("one", [[0, 0], [0, 3], [2, 4]], [2.5, 1.5, 9.0], [3, 5]),
        ("two", [[0, 0, 2], [0, 3, 1], [2, 4, 0]], [2.5, 1.5, 9.0], [3, 5, 3]),
        ("as it is", [[0, 3], [0, 0], [2, 4]], [1.5, 2.5, 9.0], [3, 5]),
        ("v", [[0, 0], [0, 1], [2, 0]], [1.5, 2.5, 9.0], [3, 2]),
    ):
        assert [part.tolist() for part in found[name]] == [indices, values, shape]
        for row, each in enumerate(single):
            assert each[name].indices.tolist() == [i[1:] for i in indices if i[0] == row]
            assert name == "v" or each[name].dense_shape.tolist() == shape[1:]


def test_sparse_features_that_do_not_fit_are_named() -> None:
    good = fb.serialize_example({"i": [0], "v": [1.5]})
    feature = {"x": fb.SparseFeature("i", "v", fb.float32, 4)}
    for values, words in (
        ({"i": [0, 1], "v": [1.0]}, "example 1 .*has 2 places in feature 'i' for 1 value in 'v'"),
        ({"i": [4], "v": [1.0]}, "has the place 4 in feature 'i', where there are 4, from 0 on"),
        ({"i": [-1], "v": [1.0]}, "has the place -1"),
        ({"i": [1.0], "v": [1.0]}, "example 1 .*feature 'i' holds float32, not int64"),
    ):
        found = fb.parse_example([good, fb.serialize_example(values)], feature)
        with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError, match=words):
            sess.run(found)
    for arguments, words in (
        ((["i", "j"], "v", fb.float32, 4), "2 index keys and 1 size"),
        (("i", "v", fb.float32, 0), "size of feature 'x' is from 1 on"),
        ((3, "v", fb.float32, 4), "keys of feature 'x' are names, not 3"),
        (("i", "v", fb.int32, 4), "not int32"),
    ):
        with pytest.raises(fb.errors.InvalidArgumentError, match=words):
            fb.parse_example([good], {"x": fb.SparseFeature(*arguments)})


def test_a_name_that_is_misspelt_is_told_the_nearest() -> None:
    record = fb.serialize_example({"label": 1, "image": b""})
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError) as caught:
        sess.run(fb.parse_single_example(record, {"labels": fb.FixedLenFeature([], fb.int64)}))
    assert caught.value.hint == "did you mean 'label'?"
