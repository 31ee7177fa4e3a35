"""Files of records: what is written is read, and damage is found and named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb

RECORDS = [b"first", b"", b"third"]
# Each record is 16 bytes longer than what it holds.
STARTS = [0, 21, 37]


def written(path: Path) -> bytes:
    with fb.train.RecordWriter(str(path)) as writer:
        for record in RECORDS:
            writer.write(record)
    return path.read_bytes()


@given(st.lists(st.binary(max_size=50), max_size=8), st.sampled_from([None, "gzip"]))
def test_what_is_written_is_read(records: list[bytes], compression: str | None) -> None:
    path = "memory://test.records"
    with fb.train.RecordWriter(path, compression) as writer:
        for record in records:
            writer.write(record)
        writer.flush()
    assert list(fb.train.read_records(path, compression)) == records


def test_the_bytes_are_tensorflows(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with fb.train.RecordWriter(str(path)) as writer:
        writer.write(b"")
    # The checksum of nothing is the constant alone.
    assert path.read_bytes()[:8] == bytes(8)
    assert path.read_bytes()[12:] == bytes.fromhex("d8ea82a2")


def test_each_damaged_byte_is_found_and_its_record_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    whole = written(path)
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        damaged = max(n for n, start in enumerate(STARTS) if start <= place)
        found = []
        with pytest.raises(fb.errors.DataLossError, match=f"file: .*byte {STARTS[damaged]} is"):
            found.extend(fb.train.read_records(str(path)))
        reader = fb.train.read_records(str(path))
        assert [next(reader) for _ in range(damaged)] == RECORDS[:damaged]
        is_length = place - STARTS[damaged] < 12
        rest = [] if is_length else RECORDS[damaged + 1 :]
        left = list(fb.train.read_records(str(path), skip_damaged=True))
        assert left == RECORDS[:damaged] + rest


def test_a_file_that_was_cut_off_is_found(tmp_path: Path) -> None:
    path = tmp_path / "file"
    whole = written(path)
    for length in set(range(len(whole))) - set(STARTS):
        path.write_bytes(whole[:length])
        with pytest.raises(fb.errors.DataLossError, match="cut off"):
            list(fb.train.read_records(str(path)))


def test_records_are_an_input(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with fb.train.RecordWriter(str(path)) as writer:
        for n in range(3):
            writer.write(fb.serialize_example({"n": n}))
    record = fb.train.from_generator(lambda: fb.train.read_records(str(path)))
    n = fb.parse_single_example(record, {"n": fb.FixedLenFeature([], fb.int64)})["n"]
    with fb.Session() as sess:
        assert [int(v) for v in fb.train.until_end(sess, n)] == [0, 1, 2]
    path.write_bytes(path.read_bytes()[:-1])
    with fb.Session() as sess, pytest.raises(fb.errors.DataLossError, match="the record at byte"):
        list(fb.train.until_end(sess, n))


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="compression"):
        fb.train.RecordWriter(str(tmp_path / "file"), "zip")
    with (
        fb.train.RecordWriter(str(tmp_path / "file")) as writer,
        pytest.raises(fb.errors.InvalidTypeError, match="bytes"),
    ):
        writer.write("text")  # type: ignore[arg-type]
