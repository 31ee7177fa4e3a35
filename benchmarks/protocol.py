"""What driver and worker say to each other: one JSON object per line.

Requests: `open` (row, label, quick), `warm_up`, `sample`, `resident`.  An answer is an object; one
with `missing` or `error` (a text each) says that there will be no times.  Arrays travel as the
base64 text of their `.npy` bytes.
"""

from __future__ import annotations

import base64
import io
import json
from typing import IO, Any

import numpy as np
import numpy.typing as npt

Message = dict[str, Any]


def send(stream: IO[str], message: Message) -> None:
    """Write one message as a line and flush it."""
    stream.write(json.dumps(message) + "\n")
    stream.flush()


def receive(stream: IO[str]) -> Message | None:
    """Read one message; None once the other side is gone."""
    line = stream.readline()
    if not line:
        return None
    message: Message = json.loads(line)
    return message


def encode_array(array: npt.NDArray[Any]) -> str:
    """An array as text."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def decode_array(text: str) -> npt.NDArray[Any]:
    """The array that `encode_array` wrote."""
    array: npt.NDArray[Any] = np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False)
    return array
