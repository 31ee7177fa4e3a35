"""Files of arrays read piece by piece: each in its place, and never more than one in memory."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.numerics.formats.array_files import parquet_row_groups
from tests.need import requires


def of_parquet(path: Path, rows: int, size: int) -> str:
    """A Parquet file of rows in groups of a size."""
    import pyarrow
    from pyarrow import parquet

    n = np.arange(rows)
    words = [f"w{i}" for i in n]
    table = pyarrow.table({"n": n, "x": n / 2, "word": words})
    parquet.write_table(table, path, row_group_size=size)
    return str(path)


@requires(module="pyarrow")
def test_row_groups_become_batches_of_rows(tmp_path: Path) -> None:
    paths = [of_parquet(tmp_path / "a", 7, 3), of_parquet(tmp_path / "b", 2, 5)]
    names = fb.train.string_input_producer(paths, 1, shuffle=False)
    key, content = fb.ParquetReader(["word", "n"]).read(names)
    columns = fb.decode_parquet(content, {"n": fb.int64, "word": fb.string})
    batch = fb.train.batch(columns, 4, enqueue_many=True, allow_smaller_final_batch=True)
    with fb.Session() as sess:
        found = list(fb.train.until_end(sess, batch))
    assert [each["n"].tolist() for each in found] == [[0, 1, 2, 3], [4, 5, 6, 0], [1]]
    assert found[1]["word"].tolist() == [b"w4", b"w5", b"w6", b"w0"]
    with fb.Session() as sess:
        keys = [k.decode() for k in fb.train.until_end(sess, key)]
    assert keys == [f"{paths[0]}:0", f"{paths[0]}:1", f"{paths[0]}:2", f"{paths[1]}:0"]


@requires(module="pyarrow")
def test_reading_goes_on_with_the_next_row_group(tmp_path: Path) -> None:
    names = fb.train.string_input_producer([of_parquet(tmp_path / "it", 8, 2)], 1, shuffle=False)
    rows = fb.decode_parquet(fb.ParquetReader().read(names)[1], {"x": fb.float64})["x"]
    fb.Variable(0)
    saver = fb.train.Saver()
    with fb.Session() as sess:
        assert sess.run(rows).tolist() == [0.0, 0.5]
        path = saver.save(sess, tmp_path / "checkpoint")
        sess.run(rows)
        saver.restore(sess, path)
        assert sess.run(rows).tolist() == [1.0, 1.5]
    with fb.Session(checkpoint=path) as sess:
        left = [found.tolist() for found in fb.train.until_end(sess, rows)]
    assert left == [[1.0, 1.5], [2.0, 2.5], [3.0, 3.5]]


class Counting:
    """A file that knows how much of it has been read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        found = self._file.read(size)
        self.count += len(found)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@requires(module="pyarrow")
def test_what_is_not_asked_for_is_not_read(tmp_path: Path) -> None:
    path = of_parquet(tmp_path / "it", 40_000, 1_000)
    with open(path, "rb") as opened:
        file: Any = Counting(opened)
        groups = parquet_row_groups(file, ["n"], 20, skip_damaged=False)
        number, content = next(groups)
        assert number == 20
        assert len(content) > 8_000
        assert file.count < Path(path).stat().st_size / 4
        groups.close()


def test_the_arrays_of_a_file_come_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "it.npz"
    np.savez(path, a=np.arange(3), b=np.arange(2), c=np.arange(4))
    names = fb.train.string_input_producer([str(path)], 1, shuffle=False)
    reader = fb.NpzReader()
    key, content = reader.read(names)
    part = fb.decode_npy(content, fb.int64, [None])
    fb.Variable(0)
    saver = fb.train.Saver()
    with fb.Session() as sess:
        assert sess.run(part).tolist() == [0, 1, 2]
        saved = saver.save(sess, tmp_path / "checkpoint")
    with fb.Session(checkpoint=saved) as sess:
        found = [(k, v.tolist()) for k, v in fb.train.until_end(sess, (key, part))]
    assert found == [(f"{path}:b".encode(), [0, 1]), (f"{path}:c".encode(), [0, 1, 2, 3])]


def test_what_is_damaged_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"PK nothing")
    names = fb.train.string_input_producer([str(tmp_path / "bad")], 1)
    value = fb.NpzReader().read(names)[1]
    with fb.Session() as sess, pytest.raises(fb.errors.DataLossError, match="/bad: this is no"):
        sess.run(value)
    with pytest.raises(fb.errors.InvalidTypeError, match="columns are a list of names, not 'n'"):
        fb.ParquetReader("n")


def damage(path: str, place: int) -> None:
    content = bytearray(Path(path).read_bytes())
    content[place : place + 40] = b"\xff" * 40
    Path(path).write_bytes(content)


def read_whole(reader: Any, path: str) -> list[bytes]:
    """The keys of the records of a file."""
    key = reader.read(fb.train.string_input_producer([path], 1))[0]
    with fb.Session() as sess:
        return list(fb.train.until_end(sess, key))


def test_what_is_damaged_in_a_file_is_named_with_its_offset(tmp_path: Path) -> None:
    path = str(tmp_path / "it.npz")
    np.savez(path, a=np.arange(3), b=np.arange(200), c=np.arange(4))
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("b.npy").header_offset
    damage(path, start + 300)
    kept = read_whole(fb.NpzReader(skip_damaged=True), path)
    assert kept == [f"{path}:{name}".encode() for name in "ac"]
    names = fb.train.string_input_producer([path], 1)
    value = fb.NpzReader().read(names)[1]
    wanted = rf"/it.npz: 'b.npy' at byte {start} of the .npz file cannot be read: Bad CRC"
    with fb.Session() as sess:
        sess.run(value)
        with pytest.raises(fb.errors.DataLossError, match=wanted):
            sess.run(value)


@requires(module="pyarrow")
def test_a_damaged_row_group_is_named_with_its_offset(tmp_path: Path) -> None:
    from pyarrow import parquet

    path = of_parquet(tmp_path / "it", 4_000, 2_000)
    column = parquet.ParquetFile(path).metadata.row_group(1).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    damage(path, start)
    [kept] = read_whole(fb.ParquetReader(skip_damaged=True), path)
    assert kept == f"{path}:0".encode()
    names = fb.train.string_input_producer([path], 1)
    value = fb.ParquetReader().read(names)[1]
    wanted = f"/it: row group 1 at byte {start} of the Parquet file cannot be read"
    with fb.Session() as sess:
        sess.run(value)
        with pytest.raises(fb.errors.DataLossError, match=wanted):
            sess.run(value)


@requires(module="pyarrow")
def test_a_parquet_file_that_does_not_fit_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"PAR1 nothing PAR1")
    good = of_parquet(tmp_path / "good", 2, 2)
    for path, columns, error, words in (
        (str(tmp_path / "bad"), ["n"], fb.errors.DataLossError, "/bad: this is no Parquet file"),
        (good, ["y"], fb.errors.NotFoundError, "/good: the Parquet file has no column 'y'"),
    ):
        names = fb.train.string_input_producer([path], 1)
        value = fb.ParquetReader(columns).read(names)[1]
        with fb.Session() as sess, pytest.raises(error, match=words):
            sess.run(value)
