"""Arrays of files: what NumPy and pyarrow write is read, and what lies is refused."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

import flowbook as fb
from tests.need import requires

DTYPES = ["bool", "int8", "uint16", ">i4", "int64", "float16", "<f4", ">f8", "complex64"]
Lost, Wrong = fb.errors.DataLossError, fb.errors.InvalidArgumentError


def run(fetches: Any) -> Any:
    with fb.Session() as sess:
        return sess.run(fetches)


def saved(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def saved_all(compressed: bool, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    return stream.getvalue()


@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, min_side=0))
    ),
    st.booleans(),
    st.booleans(),
)
def test_what_is_saved_is_read(array: np.ndarray, is_fortran: bool, compressed: bool) -> None:
    array = np.asfortranarray(array) if is_fortran else array
    dtype = fb.as_dtype(array.dtype.newbyteorder("="))
    with fb.Graph().as_default():
        one = fb.decode_npy(saved(array), dtype, [None] * array.ndim)
        content = saved_all(compressed, a=array, b=np.int32(7))
        two = fb.decode_npz(content, {"b": (fb.int32, []), "a": (dtype, array.shape)})
        found, both = run([one, two])
    assert one.shape.rank == array.ndim
    assert both["b"] == 7
    for value in (found, both["a"]):
        np.testing.assert_array_equal(value, array)


def test_what_does_not_fit_is_named() -> None:
    content = saved(np.zeros((2, 3), np.float32))
    with pytest.raises(Wrong, match=r"the array is float32 \[2, 3\], and float64 "):
        run(fb.decode_npy(content, fb.float64))
    with pytest.raises(Wrong, match=r"is float32 \[2, 3\], and float32 \[3, \?\] was"):
        run(fb.decode_npy(content, fb.float32, [3, None]))
    with pytest.raises(fb.errors.NotFoundError, match="no array 'c'; it has a, b"):
        run(fb.decode_npz(saved_all(False, a=1, b=2), {"c": (fb.int64, [])}))
    with pytest.raises(fb.errors.InvalidTypeError, match=r"'a' is \(dtype, shape\)"):
        fb.decode_npz(b"", {"a": fb.int64})
    with pytest.raises(Wrong, match="string scalar"):
        fb.decode_npy([content, content], fb.float32)


def test_objects_are_not_read() -> None:
    stream = io.BytesIO()
    np.save(stream, np.array([{}], object), allow_pickle=True)
    with pytest.raises(Lost, match="Python objects"):
        run(fb.decode_npy(stream.getvalue(), fb.string))


def test_each_damage_is_an_error_of_its_own_kind() -> None:
    content = saved(np.arange(3, dtype=np.int16))
    packed = saved_all(True, a=np.arange(3, dtype=np.int16))
    text = fb.placeholder(fb.string, [])
    one = fb.decode_npy(text, fb.int16, [3])
    many = fb.decode_npz(text, {"a": (fb.int16, [3])})
    expected = (Lost, Wrong, fb.errors.NotFoundError)
    with fb.Session() as sess:
        for whole, decoded in ((content, one), (packed, many)):
            for place in range(0, len(whole), 3):
                with pytest.raises(expected):
                    sess.run(decoded, {text: whole[:place]})
                changed = whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :]
                with contextlib.suppress(*expected):
                    sess.run(decoded, {text: changed})
        # No memory for what only a header speaks of.
        huge = content.replace(b"(3,), }              ", b"(99999999999999,), } ")
        assert huge != content
        with pytest.raises(Lost, match="has 199999999999998 bytes"):
            sess.run(one, {text: huge})


@requires(module="pyarrow")
def test_columns_of_parquet() -> None:
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table(
        {"n": [1, 2, 3], "x": [0.5, 1.5, 2.5], "word": ["a", "é", ""], "gap": [1, None, 3]}
    )
    stream = io.BytesIO()
    parquet.write_table(table, stream, row_group_size=2)
    content = stream.getvalue()
    columns = fb.decode_parquet(content, {"word": fb.string, "n": fb.int64, "x": fb.float64})
    assert columns["n"].shape.as_list() == [None]
    found = run(columns)
    assert found["word"].tolist() == [b"a", "é".encode(), b""]
    assert (found["n"].tolist(), found["x"].tolist()) == ([1, 2, 3], [0.5, 1.5, 2.5])
    with pytest.raises(fb.errors.NotFoundError, match="no column 'y'; it has n, x, word, gap"):
        run(fb.decode_parquet(content, {"y": fb.int64}))
    with pytest.raises(Wrong, match="'gap' lacks 1 value"):
        run(fb.decode_parquet(content, {"gap": fb.int64}))
    with pytest.raises(Wrong, match=r"column 'n' is int64 \[3\], and int32"):
        run(fb.decode_parquet(content, {"n": fb.int32}))
    text = fb.placeholder(fb.string, [])
    n = fb.decode_parquet(text, {"n": fb.int64})["n"]
    with fb.Session() as sess:
        for place in range(0, len(content), 50):
            with pytest.raises(Lost, match="no Parquet file"):
                sess.run(n, {text: content[:place]})
