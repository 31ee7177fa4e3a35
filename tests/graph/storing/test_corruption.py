"""Thousands of damaged graphs: each gives a clear error or a sound graph, and changes nothing.

The damage is done to what is read at each depth: to bytes of a graph, to a file's, to the entries
of a file that is whole otherwise, and to the parts of messages that are well formed otherwise.
"""

from __future__ import annotations

import io
import random
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.building import verify
from flowbook.graph.storing import graph_file
from flowbook.graph.storing.graph_pb2 import GraphDef
from tests.memory import refusing

ROOT = Path(__file__).parents[3]
EACH = 2500
LIMIT = 2**24


def small_graph() -> fb.Graph:
    with fb.Graph().as_default() as graph:
        x = fb.placeholder(fb.float32, [None, 2], name="x")
        W = fb.Variable([[1.0], [2.0]], name="W")
        y = fb.reshape(fb.matmul(x, W), fb.concat([fb.shape(x)[:1], [1]], 0), name="y")
        fb.assign_sub(W, fb.fill([2, 1], y[0, 0]), name="train")
        fb.constant([b"a", b"bc"], name="strings")
    return graph


def looping_graph() -> fb.Graph:
    with fb.Graph().as_default() as graph:
        x = fb.placeholder(fb.float32, [None], name="x")
        y = fb.while_loop(lambda v: fb.reduce_sum(v) < 9, lambda v: [v * x], [x])[0]
        fb.cond(y[0] > 0, lambda: y, lambda: -y)
    return graph


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Bits turned, a part cut off, left out, put in twice or elsewhere, or random."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        a, b = sorted((rng.randrange(len(found) + 1), rng.randrange(len(found) + 1)))
        b = min(b, a + rng.choice([1, 4, 32, 1000]))
        part, place = found[a:b], rng.randrange(len(found) + 1)
        match rng.randrange(7):
            case 0 | 1 if found:
                found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
            case 2:
                del found[max(1, a) :]
            case 3:
                del found[a:b]
            case 4:
                found[place:place] = part
            case 5:
                found[place : place + len(part)] = part
            case 6:
                found[a:b] = rng.randbytes(b - a)
    return bytes(found)


def saved(graph: fb.Graph) -> bytes:
    file = io.BytesIO()
    graph_file.write_graph(graph, file)
    return file.getvalue()


def entries_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {n: archive.read(n) for n in archive.namelist()}


def with_damaged_entry(entries: dict[str, bytes], rng: random.Random) -> bytes:
    """A whole zip with right checksums, of which one entry's content or name is damaged."""
    chosen, file = rng.choice([*entries, "graph.pb"]), io.BytesIO()
    method = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")  # Names may be there twice.
        for name, content in entries.items():
            if name != chosen:
                archive.writestr(name, content)
            elif rng.random() < 0.9:
                archive.writestr(name, damaged(content, rng))
            else:
                other = damaged(name.encode(), rng).decode("latin-1").replace("\0", "")
                archive.writestr(other or "x", content)
    return file.getvalue()


NUMBERS = [0, 1, 2, 5, 63, 64, 2**31 - 1, 2**31, 2**40, 2**62]


def with_damaged_message(data: bytes, rng: random.Random) -> bytes:
    """A message that is well formed, with numbers, names and references changed."""
    message = GraphDef.FromString(data)
    for _ in range(rng.choice([1, 2, 3])):
        operation = rng.choice(message.operations)
        match rng.randrange(9):
            case 0:
                operation.type = rng.choice(message.operations).type
            case 1 if operation.inputs:
                ref = rng.choice(operation.inputs)
                ref.operation = rng.choice([*range(len(message.operations) + 1), 2**32 - 1])
            case 2 if operation.inputs:
                rng.choice(operation.inputs).port = rng.choice([0, 1, 2**31])
            case 3 if operation.attributes:
                attribute = rng.choice(operation.attributes)
                other = rng.choice([o for o in message.operations if o.attributes])
                attribute.value.CopyFrom(rng.choice(other.attributes).value)
            case 4 if operation.attributes:
                rng.choice(operation.attributes).value.integer = rng.choice(NUMBERS)
            case 5:
                for attribute in operation.attributes:
                    if attribute.value.HasField("shape"):
                        dims = [rng.choice([-1, *NUMBERS]) for _ in range(rng.randrange(4))]
                        attribute.value.shape.dims[:] = dims
                for output in operation.outputs:
                    output.shape.Clear()
            case 6:
                array = rng.choice(message.arrays)
                array.dims[:] = [rng.choice(NUMBERS) for _ in range(rng.randrange(4))]
            case 7:
                operation.name = rng.choice(message.operations).name + rng.choice(["", "@1", "/"])
                operation.retired = rng.random() < 0.5
            case 8:
                closing = [op for op in message.operations if op.closes] or [operation]
                rng.choice(closing).closes = rng.randrange(len(message.operations) + 2)
    return message.SerializeToString()


PLAIN = small_graph().to_bytes()
LOOPS = looping_graph().to_bytes()
FILE = saved(small_graph())
ENTRIES = entries_of(FILE)
KINDS: dict[str, Callable[[random.Random], bytes]] = {
    "bytes": lambda rng: damaged(PLAIN, rng),
    "file": lambda rng: damaged(FILE, rng),
    "entry": lambda rng: with_damaged_entry(ENTRIES, rng),
    "message": lambda rng: with_damaged_message(PLAIN, rng),
    "loops": lambda rng: with_damaged_message(LOOPS, rng),
}


def read_damaged(kind: str) -> None:
    """Read so many graphs, and see to what they do."""
    rng = random.Random(kind)
    count = EACH // 5 if kind == "loops" else EACH  # They are larger.
    damages = [KINDS[kind](rng) for _ in range(count)]
    graph = fb.Graph()
    with graph.as_default():
        fb.Variable(np.ones(3, np.float32), name="mine")
    before = graph.to_bytes()
    imported = 0
    with refusing(LIMIT):
        with pytest.raises(MemoryError):
            np.empty(4 * LIMIT, np.uint8)
        for data in damages:
            try:
                with graph.as_default():
                    fb.import_graph_def(data)
            except fb.errors.OpError:
                assert len(graph.operations) == 4
            else:
                imported += 1
                verify.check(graph)
                graph = fb.Graph.from_bytes(before)
    assert graph.to_bytes() == before
    assert imported < count / 2


def test_damaged_graphs_are_refused_or_sound_and_change_nothing() -> None:
    # To count memory here would take six times as long. What is printed last is what fails.
    program = """
import sys
from tests.graph.storing.test_corruption import KINDS, read_damaged
for kind in KINDS:
    print("damaged", kind, file=sys.stderr)
    read_damaged(kind)
"""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
