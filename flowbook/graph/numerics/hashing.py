"""Hashes of strings that never change, for buckets that a stored model may count on.

They are those of TensorFlow: FarmHash's 64-bit fingerprint (Pike, "FarmHash", 2014) and
SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012). All arithmetic is
modulo 2**64.
"""

from __future__ import annotations

import struct

_ALL = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _rotated(value: int, by: int) -> int:
    """Rotated to the right."""
    value &= _ALL
    return (value >> by | value << (64 - by)) & _ALL


def _mixed(value: int) -> int:
    value &= _ALL
    return value ^ value >> 47


def _of_two(u: int, v: int, factor: int) -> int:
    a = _mixed((u ^ v) * factor)
    b = _mixed((v ^ a) * factor)
    return b * factor & _ALL


def _word(text: bytes, place: int) -> int:
    return int.from_bytes(text[place : place + 8], "little")


def fingerprint(text: bytes) -> int:
    """FarmHash's Fingerprint64.

    >>> hex(fingerprint(b"flowbook"))
    '0x72d0469b72a2187'
    """
    size = len(text)
    if size <= 16:
        return _short(text)
    if size <= 64:
        return _medium(text)
    return _long(text)


def _short(text: bytes) -> int:
    size = len(text)
    factor = _K2 + 2 * size
    if size >= 8:
        a, b = _word(text, 0) + _K2, _word(text, size - 8)
        c = _rotated(b, 37) * factor + a
        d = (_rotated(a, 25) + b) * factor
        return _of_two(c & _ALL, d & _ALL, factor)
    if size >= 4:
        a, b = int.from_bytes(text[:4], "little"), int.from_bytes(text[-4:], "little")
        return _of_two(size + (a << 3), b, factor)
    if not size:
        return _K2
    y = text[0] + (text[size >> 1] << 8)
    z = size + (text[-1] << 2)
    return _mixed(y * _K2 ^ z * _K0) * _K2 & _ALL


def _medium(text: bytes) -> int:
    size = len(text)
    factor = _K2 + 2 * size
    a = _word(text, 0) * (_K1 if size <= 32 else _K2)
    b = _word(text, 8)
    c, d = _word(text, size - 8) * factor, _word(text, size - 16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d & _ALL
    z = _of_two(y, a + _rotated(b + _K2, 18) + c & _ALL, factor)
    if size <= 32:
        return z
    e, f = _word(text, 16) * factor, _word(text, 24)
    g = (y + _word(text, size - 32)) * factor
    h = (z + _word(text, size - 24)) * factor
    return _of_two(
        _rotated(e + f, 43) + _rotated(g, 30) + h & _ALL, e + _rotated(f + a, 18) + g & _ALL, factor
    )


def _of_block(text: bytes, place: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = struct.unpack_from("<4Q", text, place)
    a += w
    b = _rotated(b + a + z, 21)
    c = a
    a += x + y
    b += _rotated(a, 44)
    return a + z & _ALL, b + c & _ALL


def _long(text: bytes) -> int:
    size = len(text)
    seed = 81
    y = seed * _K1 + 113 & _ALL
    z = _mixed(y * _K2 + 113) * _K2 & _ALL
    v, w = (0, 0), (0, 0)
    x = seed * _K2 + _word(text, 0) & _ALL
    for place in range(0, (size - 1) // 64 * 64, 64):
        x, y, z, v, w = _step(text, place, x, y, z, v, w, _K1, 1)
    rest = (size - 1) & 63
    factor = _K1 + ((z & 0xFF) << 1)
    first = w[0] + rest
    second = v[0] + first
    w, v = (first + second, w[1]), (second, v[1])
    x, y, z, v, w = _step(text, size - 64, x, y, z, v, w, factor, 9)
    return _of_two(
        _of_two(v[0], w[0], factor) + _mixed(y) * _K0 + z & _ALL,
        _of_two(v[1], w[1], factor) + x & _ALL,
        factor,
    )


_Pair = tuple[int, int]


def _step(
    text: bytes, at: int, x: int, y: int, z: int, v: _Pair, w: _Pair, factor: int, weight: int
) -> tuple[int, int, int, _Pair, _Pair]:
    """Take in 64 bytes; the last time with other weights."""
    x = _rotated(x + y + v[0] + _word(text, at + 8), 37) * factor
    y = _rotated(y + v[1] + _word(text, at + 48), 42) * factor
    x = (x ^ w[1] * weight) & _ALL
    y = y + v[0] * weight + _word(text, at + 40) & _ALL
    z = _rotated(z + w[0], 33) * factor & _ALL
    v = _of_block(text, at, v[1] * factor, x + w[0])
    w = _of_block(text, at + 32, z + w[1], y + _word(text, at + 16))
    return z, y, x, v, w


def siphash(key: tuple[int, int], text: bytes) -> int:
    """SipHash-2-4.

    >>> hex(siphash((0x0706050403020100, 0x0F0E0D0C0B0A0908), bytes(range(15))))
    '0xa129ca6149be45e5'
    """
    k0, k1 = key
    state = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]
    whole = len(text) // 8 * 8
    words = [_word(text, place) for place in range(0, whole, 8)]
    words.append((len(text) & 0xFF) << 56 | int.from_bytes(text[whole:], "little"))
    for word in words:
        state[3] ^= word
        state = _sip_round(_sip_round(state))
        state[0] ^= word
    state[2] ^= 0xFF
    for _ in range(4):
        state = _sip_round(state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _sip_round(state: list[int]) -> list[int]:
    a, b, c, d = state
    a = a + b & _ALL
    b = _rotated(b, 51) ^ a
    a = _rotated(a, 32)
    c = c + d & _ALL
    d = _rotated(d, 48) ^ c
    a = a + d & _ALL
    d = _rotated(d, 43) ^ a
    c = c + b & _ALL
    b = _rotated(b, 47) ^ c
    return [a, b, _rotated(c, 32), d]
