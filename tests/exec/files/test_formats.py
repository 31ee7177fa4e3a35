"""The records of files, held against plain Python that reads all at once; and files that lie."""

from __future__ import annotations

import gzip
import itertools
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.files.formats import FORMATS, Record
from flowbook.exec.files.framing import record
from flowbook.exec.files.opening import file_names, opened, read_all

FILE = "memory://test_formats.file"
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": lambda content: content,
    "gzip": gzip.compress,
    "zlib": zlib.compress,
}
compressions = st.sampled_from(sorted(PACKED))


def put(content: bytes, compression: str = "") -> None:
    with fb.Session(fb.Graph()) as sess, sess.graph.as_default():
        sess.run(fb.write_file(FILE, PACKED[compression](content)))


def records(format: str, **options: Any) -> list[Record]:
    return list(FORMATS[format].records(FILE, (), **options))


def check_places(format: str, found: list[Record], **options: Any) -> None:
    """From the place behind each record the others come."""
    for number, (_, after) in enumerate(found, 1):
        assert len(after) == FORMATS[format].length_of_place
        left = FORMATS[format].records(FILE, after, **options)
        assert list(left) == found[number:]


def check_fixed(content: bytes, compression: str, **options: int) -> None:
    put(content, compression)
    length, hop = options["record_bytes"], options["hop_bytes"] or options["record_bytes"]
    body = content[options["header_bytes"] : len(content) - options["footer_bytes"]]
    wanted = [body[p : p + length] for p in range(0, len(body) - length + 1, hop)]
    how = {**options, "compression": compression, "skip_damaged": True}
    found = records("fixed_length_records", **how)
    assert [value for (_, value), _ in found] == wanted
    assert [key for (key, _), _ in found] == [
        b"%s:%d" % (FILE.encode(), n) for n in range(len(found))
    ]
    check_places("fixed_length_records", found, **how)
    fits = len(body) == len(wanted) * length and len(content) - len(body) == (
        options["header_bytes"] + options["footer_bytes"]
    )
    if options["hop_bytes"] == 0 and not fits:
        with pytest.raises(fb.errors.DataLossError, match=FILE):
            records("fixed_length_records", **{**how, "skip_damaged": False})
    elif fits:
        assert records("fixed_length_records", **{**how, "skip_damaged": False}) == found


@given(st.lists(st.text("a\t\r ,é", max_size=5)), st.booleans(), st.integers(0, 3), compressions)
def test_lines(texts: list[str], is_ended: bool, header: int, compression: str) -> None:
    content = "\n".join(texts).encode() + (b"\n" if is_ended and texts else b"")
    put(content, compression)
    lines = content.split(b"\n")
    lines = lines[:-1] if lines[-1] == b"" else lines
    found = records("text_lines", skip_header_lines=header, compression=compression)
    assert [value for (_, value), _ in found] == [
        line.removesuffix(b"\r") for line in lines[header:]
    ]
    assert [int(key.rpartition(b":")[2]) for (key, _), _ in found] == list(
        range(header + 1, max(header, len(lines)) + 1)
    )
    check_places("text_lines", found, skip_header_lines=header, compression=compression)


@given(
    st.binary(max_size=40),
    st.integers(1, 6),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 12),
    compressions,
)
def test_records_of_one_length(
    content: bytes, length: int, header: int, footer: int, hop: int, compression: str
) -> None:
    check_fixed(
        content,
        compression,
        record_bytes=length,
        header_bytes=header,
        footer_bytes=footer,
        hop_bytes=hop,
    )


@given(st.lists(st.binary(max_size=20), max_size=6), compressions)
def test_framed_records(values: list[bytes], compression: str) -> None:
    put(b"".join(map(record, values)), compression)
    found = records("tf_records", compression=compression, skip_damaged=False)
    assert [value for (_, value), _ in found] == values
    starts = itertools.accumulate((16 + len(value) for value in values), initial=0)
    assert [key for (key, _), _ in found] == [
        f"{FILE}:{start}".encode() for start, _ in zip(starts, values, strict=False)
    ]
    check_places("tf_records", found, compression=compression, skip_damaged=False)


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_what_is_compressed_is_damaged(compression: str) -> None:
    values = [bytes([n]) * 50 for n in range(5)]
    packed = PACKED[compression](b"".join(map(record, values)))
    for place in range(len(packed)):
        with fb.Session(fb.Graph()) as sess, sess.graph.as_default():
            sess.run(fb.write_file(FILE, packed[:place] or b"\0"))
        with pytest.raises(fb.errors.DataLossError, match=rf"{FILE}: .* byte \d+ is dam") as caught:
            records("tf_records", compression=compression, skip_damaged=False)
        assert "skip_damaged" in str(caught.value.hint)
        # Lines cannot be left out, so nobody is told so.
        with pytest.raises(fb.errors.DataLossError, match="is damaged") as caught:
            records("text_lines", compression=compression, skip_header_lines=0)
        assert caught.value.hint is None
        left = records("tf_records", compression=compression, skip_damaged=True)
        assert [value for (_, value), _ in left] == values[: len(left)]


def test_a_length_that_lies_needs_no_memory() -> None:
    # A checksum keeps out what is damaged, and nobody who means it.
    lengths = [1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
    for length in lengths:
        framed = record(struct.pack("<Q", length))  # Its data have the checksum of the length.
        put(framed[12:] + b"data")
        with pytest.raises(fb.errors.DataLossError, match="the record at byte 0"):
            records("tf_records", compression="", skip_damaged=False)
        assert not records("tf_records", compression="", skip_damaged=True)


def test_a_file_that_does_not_seek() -> None:
    class Stream:
        """Gives at most seven bytes at once."""

        def __init__(self, content: bytes) -> None:
            self._content = content

        def read(self, count: int) -> bytes:
            count = min(count, 7)
            found, self._content = self._content[:count], self._content[count:]
            return found

    content = bytes(range(100))
    assert read_all(Stream(content), 100) == content  # type: ignore[arg-type]
    assert read_all(Stream(content), 300) == content  # type: ignore[arg-type]
    assert read_all(Stream(content), 0) == b""  # type: ignore[arg-type]


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    errors = fb.errors
    for path, kind in (
        (str(tmp_path / "missing"), errors.NotFoundError),
        ("memory://no/such/file", errors.NotFoundError),
        (str(tmp_path), errors.FailedPreconditionError),
        ("a\0b", errors.InvalidArgumentError),
        ("nothing-knows://this", errors.UnimplementedError),
        (str(tmp_path / ("n" * 300)), errors.UnavailableError),
    ):
        with pytest.raises(kind, match=re.escape(repr(path)[:80])), opened(path):
            pass


def test_names_of_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("b.txt", "a.txt", "c.csv", "folder/d.txt"):
        (tmp_path / name).write_text("")
    assert file_names(f"{tmp_path}/*.txt") == [f"{tmp_path}/a.txt", f"{tmp_path}/b.txt"]
    assert file_names(f"{tmp_path}/[bc].*") == [f"{tmp_path}/b.txt", f"{tmp_path}/c.csv"]
    assert len(file_names(f"{tmp_path}/**/*.txt")) == 3
    assert file_names(f"{tmp_path}/*") == [f"{tmp_path}/{n}" for n in ("a.txt", "b.txt", "c.csv")]
    assert file_names(f"{tmp_path}/none*") == []
