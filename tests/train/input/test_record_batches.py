"""Batches of the records of many files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowbook as fb
from tests.train.input.reading import everything


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten records in each of three files: "a0" to "c9"."""
    for name in "cab":
        with fb.train.RecordWriter(tmp_path / f"{name}.records") as records:
            for number in range(10):
                records.write(f"{name}{number}".encode())
    (tmp_path / "other").write_text("no record")
    return tmp_path


ALL = [f"{name}{number}".encode() for name in "abc" for number in range(10)]


def flat(batches: Any) -> list[bytes]:
    return [record for batch in everything(batches) for record in batch]


def test_records_come_in_the_order_of_the_files(folder: Path) -> None:
    batch = fb.train.record_batches(folder / "*.records", 4)
    assert batch.shape == [4]
    assert [len(b) for b in everything(batch)] == [4] * 7
    assert flat(batch) == ALL[:28]
    assert flat(fb.train.record_batches([folder / "c.records", folder / "a.records"], 10)) == [
        *ALL[20:],
        *ALL[:10],
    ]
    rest = fb.train.record_batches(folder / "[bc]*", 8, epochs=2, allow_smaller_final_batch=True)
    assert rest.shape.dims == (None,)
    assert [len(b) for b in everything(rest)] == [8] * 5
    assert flat(rest) == ALL[10:] * 2


@pytest.mark.parametrize("buffer_size", [1, 7, 100])
def test_each_epoch_has_every_record_in_an_order_of_its_own(folder: Path, buffer_size: int) -> None:
    how: dict[str, Any] = {"epochs": 2, "buffer_size": buffer_size}
    batch = fb.train.record_batches(folder / "*.records", 5, shuffle=3, **how)
    found = flat(batch)
    assert sorted(found[:30]) == sorted(found[30:]) == ALL
    assert found[:30] != found[30:]
    assert flat(batch) == found
    assert flat(fb.train.record_batches(folder / "*.records", 5, shuffle=4, **how)) != found
    # Nothing is further ahead than there is room for: here only the files are in another order.
    is_in_files = [r for f in dict.fromkeys(r[:1] for r in found[:30]) for r in ALL if r[:1] == f]
    assert (found[:30] == is_in_files) == (buffer_size == 1)


def test_what_is_damaged_or_missing(folder: Path) -> None:
    path = folder / "b.records"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(fb.errors.DataLossError, match=r"b\.records: the record at byte 162"):
        flat(fb.train.record_batches(path, 5))
    assert flat(fb.train.record_batches(path, 3, skip_damaged=True)) == ALL[10:19]
    with pytest.raises(fb.errors.NotFoundError, match="no file matches"):
        flat(fb.train.record_batches(folder / "*.nothing", 3))
    with pytest.raises(fb.errors.InvalidArgumentError, match="10 records make no batch of 11"):
        flat(fb.train.record_batches(folder / "a.records", 11))
    fb.train.RecordWriter(folder / "nothing.records").close()
    for epochs in (1, None):  # For ever it would go through nothing.
        with pytest.raises(fb.errors.InvalidArgumentError, match=r"no records in .*nothing\.rec"):
            flat(fb.train.record_batches(folder / "nothing.records", 1, epochs=epochs))
    for wrong, words in (
        (lambda: fb.train.record_batches([], 3), "no files"),
        (lambda: fb.train.record_batches(path, 0), "size"),
        (lambda: fb.train.record_batches(path, 1, buffer_size=0), "buffer_size"),
    ):
        with pytest.raises(fb.errors.InvalidArgumentError, match=words):
            wrong()
