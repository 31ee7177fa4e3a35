"""CRC-32C (Castagnoli), as records of event files carry it.

Long data are cut into lanes that NumPy takes forward together; a lane's checksum moves past what
follows it by a linear map, so that the lanes' checksums combine to that of the whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_POLYNOMIAL = 0x82F63B78
_LANES = 512
_LONG = 4096


def _make_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _make_table()
_WIDE_TABLE = np.array(_TABLE, np.uint32)


def crc32c(data: bytes) -> int:
    """The checksum of data."""
    state = 0xFFFFFFFF
    if len(data) >= _LONG:
        rows = len(data) // _LANES
        state = _in_lanes(np.frombuffer(data, np.uint8, rows * _LANES).reshape(_LANES, rows), state)
        data = data[rows * _LANES :]
    table = _TABLE
    for byte in data:
        state = table[(state ^ byte) & 0xFF] ^ state >> 8
    return state ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    """The checksum as a record holds it: turned and moved, as data may hold checksums too."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _in_lanes(lanes: np.ndarray[Any, Any], state: int) -> int:
    states = np.zeros(len(lanes), np.uint32)
    states[0] = state
    for column in lanes.T:
        states = _WIDE_TABLE[(states ^ column) & 0xFF] ^ states >> np.uint32(8)
    shift = _shift(lanes.shape[1])
    state = int(states[0])
    for lane in states[1:].tolist():
        state = _applied(shift, state) ^ lane
    return state


def _shift(count: int) -> list[int]:
    """What so many bytes of zeros do to each bit of a state."""
    result = [1 << bit for bit in range(32)]
    power = [_TABLE[(1 << bit) & 0xFF] ^ (1 << bit) >> 8 for bit in range(32)]
    while count:
        if count & 1:
            result = [_applied(power, value) for value in result]
        power = [_applied(power, value) for value in power]
        count >>= 1
    return result


def _applied(images: list[int], state: int) -> int:
    found = 0
    for bit in range(32):
        if state >> bit & 1:
            found ^= images[bit]
    return found
