"""Records of event files, whole and damaged."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from flowbook.exec.files.framing import record
from flowbook.exec.instruments.summaries.records import read_records
from tests.need import requires

pytestmark = requires(module="tensorboard")


def test_a_record_is_framed_as_the_format_has_it() -> None:
    # The checksum of "123456789" is the standard's: RFC 3720, appendix B.4.
    turned = 0xE3069283 >> 15 | 0xE3069283 << 17 & 0xFFFFFFFF
    masked = (turned + 0xA282EAD8) % 2**32
    made = record(b"123456789")
    assert made[:8] == (9).to_bytes(8, "little")
    assert made[12:21] == b"123456789"
    assert made[21:] == masked.to_bytes(4, "little")


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_tensorboards_writer_makes_the_same(parts: list[bytes]) -> None:
    from tensorboard.summary.writer.record_writer import RecordWriter

    file = io.BytesIO()
    writer = RecordWriter(file)
    for part in parts:
        writer.write(part)
    assert file.getvalue() == b"".join(map(record, parts))


@given(st.lists(st.binary(max_size=60), max_size=5), st.data())
def test_a_cut_file_gives_all_that_is_whole(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(map(record, parts))
    cut = data.draw(st.integers(0, len(whole)))
    found = read_records(io.BytesIO(whole[:cut]), 0)
    assert found.data == parts[: len(found.data)]
    assert found.end + found.rest == cut
    assert (found.damage, found.skipped) == (None, 0)
    rest = read_records(io.BytesIO(whole), found.end)
    assert found.data + rest.data == parts


@given(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=5), st.data())
def test_a_wrong_byte_costs_one_record_or_the_rest(parts: list[bytes], data: st.DataObject) -> None:
    whole = bytearray(b"".join(map(record, parts)))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    found = read_records(io.BytesIO(bytes(whole)), 0)
    assert found.skipped == 1 or found.damage is not None
    assert set(found.data) <= set(parts)
    if found.damage is None:
        assert len(found.data) == len(parts) - 1
