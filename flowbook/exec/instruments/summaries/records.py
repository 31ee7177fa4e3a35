"""Records of an event file: length, its checksum, data, their checksum.

A file that is being written may end in the middle of a record, as may one whose writer was killed.
What is whole before that is whole.
"""

from __future__ import annotations

import struct
from typing import BinaryIO, NamedTuple

from flowbook.exec.files.framing import masked_checksum

_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")

# More than a record ever has: what claims it is damaged, and not merely unfinished.
_LONGEST = 1 << 31


class Records(NamedTuple):
    """What a file gave.

    Attributes:
        data: of each whole record.
        end: where the last whole record ends.
        rest: how many bytes follow that are no whole record.
        damage: what is wrong with what follows; None if it may only be unfinished.
        skipped: how many records in between were damaged.
    """

    data: list[bytes]
    end: int
    rest: int
    damage: str | None
    skipped: int


def read_records(file: BinaryIO, start: int, most: int = -1) -> Records:
    """The records from a place on, up to the first that is not whole.

    Args:
        file: what to read.
        start: the place.
        most: how many bytes to look at; by default all that follow.

    Returns:
        What they hold. A record whose length is right and whose data are not is skipped; where the
        length is wrong nothing says where the next begins.
    """
    file.seek(start)
    content = file.read(most)
    found: list[bytes] = []
    place = skipped = 0
    damage = None
    while place + _HEADER.size <= len(content):
        length, checksum = _HEADER.unpack_from(content, place)
        if masked_checksum(content[place : place + 8]) != checksum or length > _LONGEST:
            damage = "the length of a record is damaged"
            break
        end = place + _HEADER.size + length + _FOOTER.size
        if end > len(content):
            break
        data = content[place + _HEADER.size : end - _FOOTER.size]
        if masked_checksum(data) == _FOOTER.unpack_from(content, end - _FOOTER.size)[0]:
            found.append(data)
        else:
            skipped += 1
        place = end
    return Records(found, start + place, len(content) - place, damage, skipped)
