"""Arrays of every dtype in the safetensors format, and what is refused of files from outside."""

import io
import json
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import flowbook as fb
from flowbook.exec.checkpoints.tensor_file import TensorFile, write_arrays

DTYPES = (*fb.VALUES, *fb.SMALL)
NATIVE = [
    t
    for t in DTYPES
    if t.numpy.type in {np.dtype(n).type for n in safetensors.numpy._TYPES.values()}
]


def values(dtype: fb.DType, shape: tuple[int, ...] = (2, 3)) -> Any:
    count = int(np.prod(shape))
    if dtype == fb.string:
        texts = np.empty(count, object)
        texts[:] = [b"\0\xff" * i for i in range(count)]
        return texts.reshape(shape)
    bits = np.random.default_rng(7).integers(0, 2, count * dtype.size, np.uint8)
    return bits.view(dtype.numpy).reshape(shape)


def written(arrays: dict[str, Any]) -> tuple[bytes, dict[str, str]]:
    file = io.BytesIO()
    digests = write_arrays(file, arrays)
    return file.getvalue(), digests


def read(content: bytes, digests: dict[str, str]) -> dict[str, Any]:
    file = TensorFile(io.BytesIO(content), "'it'")
    return {name: file.read(name, digests[name]) for name in file.stored}


def assert_same(found: Any, wanted: Any) -> None:
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if wanted.dtype == object:
        assert found.tolist() == wanted.tolist()
    else:
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (2, 0, 3), (1,) * 9])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_comes_back(dtype: fb.DType, shape: tuple[int, ...]) -> None:
    array = values(dtype, shape)
    assert_same(read(*written({"a": array}))["a"], array)


def test_the_formats_own_package_reads_what_is_written() -> None:
    arrays = {dtype.name: values(dtype) for dtype in DTYPES}
    found = safetensors.numpy.load(written(arrays)[0])
    assert {t.name for t in NATIVE} >= {"bool", "complex64", "float16", "uint64"}
    for dtype in NATIVE:
        assert_same(found[dtype.name], arrays[dtype.name])
    assert found["bfloat16"].tobytes() == arrays["bfloat16"].tobytes()


def test_what_the_formats_own_package_writes_is_read() -> None:
    arrays = {dtype.name: values(dtype) for dtype in NATIVE}
    file = TensorFile(io.BytesIO(safetensors.numpy.save(arrays, {"by": "another"})), "'it'")
    digests = written(arrays)[1]
    for name, array in arrays.items():
        assert_same(file.read(name, digests[name]), array)


# A strategy that is made anew for each array, Hypothesis looks at for longer than it draws from it.
NUMBERS = [t.numpy for t in DTYPES if t.numpy.isbuiltin == 1 and t != fb.string]
ARRAYS = st.one_of([hnp.arrays(dtype, hnp.array_shapes()) for dtype in NUMBERS])


@given(st.dictionaries(st.text(min_size=1), ARRAYS))
def test_whatever_names_and_values(arrays: dict[str, Any]) -> None:
    arrays = {
        name: array
        for name, array in arrays.items()
        if name.isprintable() and name != "__metadata__"
    }
    content, digests = written(arrays)
    found = read(content, digests)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert_same(found[name], array)


def test_views_are_written_as_what_they_show() -> None:
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    views = {"t": array.T, "r": array[::-1, ::2], "b": array.astype(">i4")}
    found = read(*written(views))
    for name, view in views.items():
        assert found[name].tolist() == view.tolist()


def test_arrays_begin_where_their_dtype_wants_it() -> None:
    content, _ = written({"a": np.zeros(3, np.uint8), "b": np.zeros(3, np.float64)})
    stored = TensorFile(io.BytesIO(content), "'it'").stored
    assert (stored["b"].begin, stored["a"].begin) == (0, 24)
    assert (8 + int.from_bytes(content[:8], "little")) % 8 == 0


@pytest.mark.parametrize("name", ["", "__metadata__"])
def test_a_name_that_the_format_has_no_place_for(name: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="stored under the name"):
        written({name: np.zeros(3)})


def test_objects_are_refused() -> None:
    with pytest.raises(fb.errors.UnimplementedError, match="not Python objects"):
        written({"a": np.array([{}], object)})


def with_header(header: Any, data: bytes = b"\0" * 8) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> Any:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 7,
        (1 << 62).to_bytes(8, "little") + b"{}",
        with_header(b"not JSON"),
        with_header(b'{"a": {}, "a": {}}'),
        with_header(b"[" * 100_000),
        with_header([]),
        with_header({"a": None}),
        with_header({"a": entry("F99")}),
        with_header({"a": entry(shape=[-2])}),
        with_header({"a": entry(shape=[2.0])}),
        with_header({"a": entry(shape=[1] * 65)}),
        with_header({"a": entry(shape=[1 << 62, 1 << 62])}),
        with_header({"a": entry(offsets=[0, 4])}),
        with_header({"a": entry(offsets=[8, 0])}),
        with_header({"a": entry(offsets=[0, 8, 9])}),
        with_header({"a": entry(), "b": entry()}),
        with_header({"a": entry()}, b"\0" * 9),
        with_header({"a": entry()}, b"\0" * 7),
        with_header({"a": entry(offsets=[8, 16])}, b"\0" * 16),
        with_header({"a": entry("U8", [8]), "__metadata__": {"a": "no JSON"}}),
        with_header({"a": entry("U8", [8]), "__metadata__": {"a": '{"dtype": "int2"}'}}),
        with_header(
            {"a": entry("U8", [8]), "__metadata__": {"a": '{"dtype": "int2", "shape": [9]}'}}
        ),
        with_header(
            {"a": entry("U8", [8]), "__metadata__": {"a": '{"dtype": "string", "shape": [2]}'}}
        ),
    ],
)
def test_a_damaged_file_is_refused_before_anything_is_read(content: bytes) -> None:
    with pytest.raises(fb.errors.DataLossError, match="'it' is damaged"):
        TensorFile(io.BytesIO(content), "'it'")


@pytest.mark.parametrize(
    ("dtype", "content"),
    [
        (fb.bool, bytes([2])),
        (fb.string, (-1).to_bytes(8, "little", signed=True)),
        (fb.string, (1 << 62).to_bytes(8, "little") + b"a"),
        (fb.string, (1).to_bytes(8, "little") + b"ab"),
    ],
)
def test_bytes_that_are_no_values(dtype: fb.DType, content: bytes) -> None:
    own = json.dumps({"dtype": dtype.name, "shape": [1]})
    header = {"a": entry("U8", [len(content)], [0, len(content)]), "__metadata__": {"a": own}}
    file = TensorFile(io.BytesIO(with_header(header, content)), "'it'")
    digest = written({"a": np.frombuffer(content, np.uint8)})[1]["a"]
    with pytest.raises(fb.errors.DataLossError, match="'a' has"):
        file.read("a", digest)


def test_another_byte_is_noticed() -> None:
    content, digests = written({"a": values(fb.float32)})
    damaged = content[:-1] + bytes([content[-1] ^ 1])
    with pytest.raises(fb.errors.DataLossError, match="the bytes of 'a' are not those"):
        read(damaged, digests)
