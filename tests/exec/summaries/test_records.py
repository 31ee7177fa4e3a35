"""Records of event files, whole and damaged."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowbook.exec.summaries.crc32c import crc32c
from flowbook.exec.summaries.records import read_records, record


def slowly(data: bytes) -> int:
    """By the definition, bit by bit."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def test_checksums_of_the_standard() -> None:
    # RFC 3720, appendix B.4.
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 5119, 20_001])
def test_lanes_give_the_same(size: int) -> None:
    data = bytes(i * i % 251 for i in range(size))
    assert crc32c(data) == slowly(data)


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
