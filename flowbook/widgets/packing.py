"""Bytes for the front end: a header, and columns of numbers.

They are a zlib stream of: the length of a JSON header (uint32, little-endian), the header, and the
columns, each beginning at a multiple of eight bytes. The header says of each column what it holds
and where it begins, counted from the end of the header, padded to a multiple of eight.
`labextension/src/core/packing.ts` reads it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

Columns = Mapping[str, np.ndarray[Any, Any]]


def packed(header: Mapping[str, Any], columns: Columns) -> bytes:
    """Pack a header, which JSON can hold, and columns of int32, float64 or uint8."""
    places, parts, offset = {}, [], 0
    for name, values in columns.items():
        data = values.astype(values.dtype.newbyteorder("<")).tobytes()
        places[name] = [values.dtype.name, offset, len(values)]
        padding = -len(data) % 8
        parts += [data, bytes(padding)]
        offset += len(data) + padding
    encoded = json.dumps({**header, "columns": places}).encode()
    padding = -(len(encoded) + 4) % 8
    start = len(encoded).to_bytes(4, "little") + encoded + bytes(padding)
    return zlib.compress(b"".join([start, *parts]), level=1)
