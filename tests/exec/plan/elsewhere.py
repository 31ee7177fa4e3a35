"""A process that never saw a graph runs programs: `python -m tests.exec.plan.elsewhere`.

It reads from its input and writes to its output, each item with its length before it. It is given
the entropy of random states; then for each step a program and its feeds as a `.npz` file. It gives
for each step the fetched values likewise, or what became of it.
"""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

import flowbook as fb
from flowbook.exec.devices.local_devices import local_devices
from flowbook.exec.engine.engine import Engine
from flowbook.exec.engine.runner import Runner
from flowbook.exec.local.failed import located
from flowbook.exec.plan.codec import decode, decode_failure, encode, encode_failure
from flowbook.exec.plan.failure import StepFailed
from flowbook.exec.plan.pipeline import Prepared, prepare
from flowbook.exec.resources.session_stores import SessionStores
from flowbook.exec.signature.signature import Signature

ENTROPY = 12345


def send(stream: BinaryIO, data: bytes) -> None:
    """Write an item."""
    stream.write(struct.pack("<Q", len(data)) + data)


def received(stream: BinaryIO) -> Iterator[bytes]:
    """Read all items."""
    while header := stream.read(8):
        yield stream.read(struct.unpack("<Q", header)[0])


def as_bytes(values: Sequence[Any]) -> bytes:
    """Arrays as a `.npz` file."""
    file = io.BytesIO()
    np.savez(file, *values)
    return file.getvalue()


def as_arrays(data: bytes) -> list[np.ndarray]:
    """The arrays of a `.npz` file."""
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        return [stored[f"arr_{i}"] for i in range(len(stored.files))]


def prepared_for(
    fetches: Sequence[fb.Tensor], targets: Sequence[Any] = (), feeds: Sequence[fb.Tensor] = ()
) -> Prepared:
    return prepare(Signature(tuple(fetches), tuple(targets), tuple(feeds)), local_devices())


def run_elsewhere(steps: Sequence[tuple[Prepared, Sequence[Any]]]) -> list[Any]:
    """What a fresh process gives for each step: its values, or the error as the client tells it."""
    request = io.BytesIO()
    send(request, ENTROPY.to_bytes(8, "little"))
    for prepared, feeds in steps:
        send(request, encode(prepared.program))
        send(request, as_bytes(feeds))
    done = subprocess.run(
        [sys.executable, "-m", "tests.exec.plan.elsewhere"],
        input=request.getvalue(),
        capture_output=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr.decode()
    answers = list(received(io.BytesIO(done.stdout)))
    found: list[Any] = []
    for (prepared, _), answer in zip(steps, answers, strict=True):
        if answer[:6] == b"values":
            found.append(as_arrays(answer[6:]))
        else:
            found.append(located(decode_failure(answer[6:]), prepared))
    return found


def main() -> None:
    """Run the programs."""
    items = received(sys.stdin.buffer)
    stores = SessionStores(int.from_bytes(next(items), "little"))
    for program, feeds in zip(items, items, strict=True):
        runner = Runner(decode(program), local_devices()[0], Engine(stores))
        try:
            send(sys.stdout.buffer, b"values" + as_bytes(runner.run(as_arrays(feeds))))
        except StepFailed as failed:
            send(sys.stdout.buffer, b"failed" + encode_failure(failed.failure))


if __name__ == "__main__":
    main()
