"""Graphs as files, `Graph.save` and `Graph.load`; files that lie are refused unread."""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.storing import graph_file
from flowbook.graph.storing.graph_pb2 import ArrayDef, GraphDef
from tests.memory import bounded


def small_graph() -> fb.Graph:
    with fb.Graph().as_default() as graph:
        x = fb.placeholder(fb.float32, [None, 2], name="x")
        W = fb.Variable([[1.0, 2.0], [3.0, 4.0]], name="W")
        fb.matmul(x, W, name="y")
        fb.constant([b"a", b"", b"\xff\0"], name="strings")
        graph.seed = 7
    return graph


def saved(graph: fb.Graph) -> bytes:
    file = io.BytesIO()
    graph_file.write_graph(graph, file)
    return file.getvalue()


def loaded(data: bytes, **options: Any) -> fb.Graph:
    graph = fb.Graph()
    graph_file.read_graph(graph, io.BytesIO(data), **options)
    return graph


# Round trips


def test_a_graph_survives(tmp_path: Path) -> None:
    graph = small_graph()
    graph.save(tmp_path / "a.graph")
    again = fb.Graph.load(str(tmp_path / "a.graph"))
    assert again.to_bytes() == graph.to_bytes()
    assert [v.name for v in again.variables()] == ["W:0"]
    with fb.Session(graph=again) as sess:
        assert sess.run("y:0", {"x:0": [[1.0, 1.0]]}).tolist() == [[4.0, 6.0]]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3), (1, 1, 1)], ids=str)
def test_every_dtype_survives_and_is_numpys_file(shape: Any) -> None:
    with fb.Graph().as_default() as graph:
        count = int(np.prod(shape))
        for i, dtype in enumerate((*fb.NUMBERS, fb.bool, *fb.SMALL)):
            fb.constant((np.arange(count) + i).reshape(shape).astype(dtype.numpy))
        fb.constant(np.full(shape, b"text", object))
    data = saved(graph)
    assert loaded(data).to_bytes() == graph.to_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [n for n in archive.namelist() if n.endswith(".npy")]
        arrays = [np.load(io.BytesIO(archive.read(n)), allow_pickle=False) for n in names]
    constants = [op.attributes["value"] for op in graph.operations]
    for array, constant in zip(arrays, constants, strict=False):
        if fb.as_dtype(constant.dtype) not in (fb.bfloat16, *fb.SMALL):  # NumPy has no names.
            assert array.dtype == constant.dtype
            np.testing.assert_array_equal(array, constant)


def test_equal_graphs_have_equal_files(tmp_path: Path) -> None:
    assert saved(small_graph()) == saved(small_graph())
    assert saved(loaded(saved(small_graph()))) == saved(small_graph())
    small_graph().save(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == saved(small_graph())


def test_each_constant_is_stored_once_and_outside_of_the_structure() -> None:
    table = np.arange(10_000.0)
    with fb.Graph().as_default() as graph:
        for _ in range(5):
            fb.constant(table)
    data = saved(graph)
    assert len(data) < 1.1 * table.nbytes
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        structure, constant = archive.namelist()
        message = GraphDef.FromString(archive.read(structure))
        assert not message.arrays[0].data
        assert constant == f"constants/{message.arrays[0].digest.hex()}.npy"


def test_python_code_cannot_be_saved_and_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.graph"
    small_graph().save(path)
    before = path.read_bytes()
    with fb.Graph().as_default() as graph:
        fb.constant([1.0])
        fb.py_func(lambda: np.float32(1), [], fb.float32)
    with pytest.raises(fb.errors.UnimplementedError, match="Python code"):
        graph.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.graph"]


def test_a_write_that_breaks_off_leaves_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.graph"
    small_graph().save(path)
    before = path.read_bytes()

    def broken(*_: Any) -> None:
        raise OSError("No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, broken)
            with pytest.raises(OSError, match="No space"):
                fb.Graph().save(path)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["a.graph"]


def test_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.graph"
    small_graph().save(path)
    fb.Graph().save(path)
    assert not fb.Graph.load(path).operations


def test_a_link_stays_and_leads_to_what_is_saved(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "a.graph")
    small_graph().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert fb.Graph.load(tmp_path / "there" / "a.graph").operations


def test_large_constants_are_not_copied_over_and_over() -> None:
    with fb.Graph().as_default() as graph:
        fb.constant(np.zeros(2**22))
    with bounded(2**20), open(os.devnull, "wb") as nowhere:
        graph_file.write_graph(graph, nowhere)
    data = saved(graph)
    with bounded(int(2.2 * 2**25)):
        loaded(data)


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_a_file_that_a_tool_packed_again_is_read(compression: int) -> None:
    with zipfile.ZipFile(io.BytesIO(saved(small_graph()))) as archive:
        contents = {n: archive.read(n) for n in reversed(archive.namelist())}
    assert loaded(packed(contents, compression)).to_bytes() == small_graph().to_bytes()


# What is no graph's file


def test_paths() -> None:
    with pytest.raises(fb.errors.NotFoundError, match=r"no file '/none/a\.graph'"):
        fb.Graph.load("/none/a.graph")
    for call in (fb.Graph.load, fb.Graph().save):
        with pytest.raises(fb.errors.InvalidTypeError, match="named by a path"):
            call(3)


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x03\x04" * 9, b"GIF89a", b"\0" * 1000])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(fb.errors.DataLossError, match="not a graph's file"):
        loaded(data)


def test_bytes_of_a_graph_are_no_file() -> None:
    with pytest.raises(fb.errors.DataLossError, match="from_bytes"):
        loaded(small_graph().to_bytes())


def test_a_file_cut_anywhere_is_refused() -> None:
    data = saved(small_graph())
    for length in range(0, len(data), 7):
        with pytest.raises(fb.errors.DataLossError):
            loaded(data[:length])


Contents = dict[Any, bytes]


def packed(contents: Contents, compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip of contents by name or ZipInfo."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return file.getvalue()


def contents_of(data: bytes) -> Contents:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {n: archive.read(n) for n in archive.namelist()}


def npy(contents: Contents) -> str:
    return next(n for n in contents if n.endswith(".npy"))


def named(name: str, mode: int = 0) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def changed_header(contents: Contents, old: bytes, new: bytes) -> Contents:
    name = npy(contents)
    assert old in contents[name]
    return {**contents, name: contents[name].replace(old, new)}


def with_dims(contents: Contents, *dims: int) -> Contents:
    message = GraphDef.FromString(contents["graph.pb"])
    del message.arrays[0].dims[:]
    message.arrays[0].dims.extend(dims)
    return {**contents, "graph.pb": message.SerializeToString()}


def without(contents: Contents, name: str) -> Contents:
    return {n: c for n, c in contents.items() if n != name}


HOSTILE: dict[str, tuple[Callable[[Contents], Contents], str]] = {
    "no structure": (lambda c: without(c, "graph.pb"), "no graph.pb in it"),
    "no constant": (lambda c: without(c, npy(c)), "is missing"),
    "parent": (lambda c: {**c, "../evil": b""}, r"'\.\./evil' is no part"),
    "parent inside": (lambda c: {**c, "constants/../../a.npy": b""}, "is no part"),
    "absolute": (lambda c: {**c, "/etc/passwd": b""}, "'/etc/passwd' is no part"),
    "drive": (lambda c: {**c, "C:\\a.npy": b""}, "is no part"),
    "folder": (lambda c: {**c, "constants/": b""}, "is no part"),
    "another digest": (lambda c: {**c, f"constants/{'0' * 32}.npy": b""}, "does not refer to it"),
    "capitals": (lambda c: {**without(c, npy(c)), npy(c).upper(): c[npy(c)]}, "is no part"),
    "link": (
        lambda c: {**without(c, npy(c)), named(npy(c), stat.S_IFLNK | 0o777): b"/etc/passwd"},
        "is a link",
    ),
    "device": (
        lambda c: {**without(c, npy(c)), named(npy(c), stat.S_IFCHR): b""},
        "not a plain file",
    ),
    "huge": (
        lambda c: changed_header(c, b"(2, 2)", b"(9**9,"[:6]),
        "is not float32",
    ),
    "objects": (lambda c: changed_header(c, b"'<f4'", b"'|O '"), "is not float32"),
    "fortran": (lambda c: changed_header(c, b"False", b"True "), "is not float32"),
    "no header": (lambda c: {**c, npy(c): b"\0" * len(c[npy(c)])}, "is not float32"),
    "shorter": (lambda c: {**c, npy(c): c[npy(c)][:-1]}, "where 144 are float32"),
    "longer": (lambda c: {**c, npy(c): c[npy(c)] + b"\0"}, "where 144 are float32"),
    "huge dimensions": (lambda c: with_dims(c, 2**40, 2**40), "where [0-9]* are float32"),
    "no elements, huge": (lambda c: with_dims(c, 2**40, 0, 2**40), "where 128 are|another digest"),
    "many dimensions": (lambda c: with_dims(c, *[1] * 40_000), "has 40000 dimensions"),
    "elements": (
        lambda c: {**c, npy(c): c[npy(c)][:-1] + bytes([c[npy(c)][-1] ^ 1])},
        "another digest",
    ),
}


@pytest.mark.parametrize(("damage", "match"), HOSTILE.values(), ids=HOSTILE)
def test_a_file_that_lies_is_refused(damage: Callable[[Contents], Contents], match: str) -> None:
    data = packed(damage(contents_of(saved(small_graph()))))
    with pytest.raises(fb.errors.DataLossError, match=match):
        loaded(data)


def test_strings_that_are_none_are_refused() -> None:
    contents = contents_of(saved(small_graph()))
    name = next(n for n in contents if n.endswith(".strings"))
    for wrong in (b"\xff\xff", b"", ArrayDef(strings=[b"a"] * 5).SerializeToString()):
        with pytest.raises(fb.errors.DataLossError, match="damaged"):
            loaded(packed({**contents, name: wrong}))


def test_an_array_twice_or_with_elements_is_refused() -> None:
    contents = contents_of(saved(small_graph()))
    message = GraphDef.FromString(contents["graph.pb"])
    message.arrays.append(message.arrays[0])
    with pytest.raises(fb.errors.DataLossError, match="is two arrays"):
        loaded(packed({**contents, "graph.pb": message.SerializeToString()}))
    message.arrays[0].data = b"1234"
    with pytest.raises(fb.errors.DataLossError, match=r"stands in graph\.pb itself"):
        loaded(packed({**contents, "graph.pb": message.SerializeToString()}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_entry_twice_is_refused() -> None:
    file = io.BytesIO(saved(small_graph()))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("graph.pb", b"")
    with pytest.raises(fb.errors.DataLossError, match=r"graph\.pb is in the file twice"):
        loaded(file.getvalue())


def test_an_encrypted_entry_is_refused() -> None:
    data = bytearray(saved(small_graph()))
    directory = data.index(b"PK\x01\x02")
    data[directory + 8] |= 1
    with pytest.raises(fb.errors.DataLossError, match="encrypted"):
        loaded(bytes(data))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(method: int) -> None:
    with pytest.raises(fb.errors.DataLossError, match="compressed in a way"):
        loaded(packed(contents_of(saved(small_graph())), method))


# Bombs


def test_what_decompresses_is_limited_in_proportion() -> None:
    contents = contents_of(saved(small_graph()))
    data = packed({**contents, npy(contents): b"\0" * 2**26}, zipfile.ZIP_DEFLATED)
    assert len(data) < 2**17
    with bounded(2**22), pytest.raises(fb.errors.DataLossError, match="more than belief"):
        loaded(data)


def test_what_a_file_holds_is_limited() -> None:
    data = saved(small_graph())
    with pytest.raises(fb.errors.ResourceExhaustedError, match="max_bytes"):
        loaded(data, max_bytes=100)
    assert loaded(data, max_bytes=len(data)).operations


def test_a_size_that_is_declared_but_not_there_reserves_nothing() -> None:
    data = bytearray(saved(small_graph()))
    directory = data.index(b"PK\x01\x02")
    for size in (2**20, 2**30):
        data[directory + 20 : directory + 28] = struct.pack("<LL", size, size)
        with bounded(2**22), pytest.raises(fb.errors.DataLossError):
            loaded(bytes(data))


def test_an_inference_over_very_many_paths_is_quick() -> None:
    with fb.Graph().as_default() as graph:
        empty = fb.placeholder(fb.int32, [0])
        for _ in range(12):
            empty = fb.concat([empty] * 64, 0)
        fb.reshape(fb.zeros([1]), empty)
        fb.zeros(fb.placeholder(fb.int32, [2**40]))
    assert loaded(saved(graph)).to_bytes() == graph.to_bytes()


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    graph = fb.Graph()
    pipe, folder, link = tmp_path / "pipe", tmp_path / "folder", tmp_path / "link"
    os.mkfifo(pipe)
    folder.mkdir()
    link.symlink_to(pipe)
    for path in (pipe, folder, link, "/dev/null"):
        with pytest.raises(fb.errors.InvalidArgumentError, match="no regular file"):
            graph.save(path)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert link.is_symlink()
    file = tmp_path / "file"
    file.write_bytes(b"old")
    link.unlink()
    link.symlink_to(file)
    graph.save(link)
    assert link.is_symlink()
    assert fb.Graph.load(file).operations == []
