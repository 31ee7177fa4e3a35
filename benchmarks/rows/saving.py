"""The first training step after a checkpoint of 500 MB was begun, which is written behind it.

By hand one copies the values, and writes the copies on another thread. Flowbook copies nothing: the
step writes to new memory what is still being saved. Both take the pages of 500 MB.
"""

from __future__ import annotations

import tempfile
import threading
from typing import Any

import numpy as np

from benchmarks.case import Case, Row, Within

_COUNT, _SHAPE = 10, (12_500, 1_000)
_MEGABYTES = 500


def _flowbook_parts(fb: Any) -> tuple[Any, Any, Any]:
    graph = fb.Graph()
    with graph.as_default():
        rate = fb.placeholder(fb.float32, [], name="rate")
        variables = [fb.Variable(fb.ones(_SHAPE), name=f"v{i}") for i in range(_COUNT)]
        step = fb.group(*[fb.assign_add(v, fb.ones(_SHAPE) * rate) for v in variables])
        total = fb.add_n([fb.reduce_sum(v[:2]) for v in variables])
    session = fb.Session(graph=graph)
    return session, lambda: session.run(step, {rate: 0.0}), session.run(total)


def _flowbook(fb: Any) -> Case:
    session, step, value = _flowbook_parts(fb)
    folder = tempfile.TemporaryDirectory()
    saving = session.checkpoint(folder.name, saver=fb.train.Saver(max_to_keep=1))

    def begin(owner: Any = folder) -> None:
        saving.flush()
        saving.save()

    return Case(step=step, value=value, before_each=begin)


def _flowbook_plain(fb: Any) -> Case:
    _, step, value = _flowbook_parts(fb)
    return Case(step=step, value=value, before_each=lambda: None)


def _numpy(np_: Any) -> Case:
    values = [np.ones(_SHAPE, np.float32) for _ in range(_COUNT)]
    ones = np.ones(_SHAPE, np.float32)
    folder = tempfile.TemporaryDirectory()
    writers: list[threading.Thread] = []

    def step() -> None:
        if begun:
            copies = [value.copy() for value in begun.pop()]
            writers.append(threading.Thread(target=_write, args=(folder.name, copies)))
            writers[-1].start()
        for value in values:
            value += ones * np.float32(0.0)

    begun: list[Any] = []

    def begin() -> None:
        while writers:
            writers.pop().join()
        begun.append(values)

    total = sum(float(value[:2].sum()) for value in values)
    return Case(step=step, value=total, before_each=begin)


def _write(folder: str, arrays: list[Any]) -> None:
    for index, array in enumerate(arrays):
        np.save(f"{folder}/{index}.npy", array)


ROWS = (
    Row(
        "save_500mb",
        f"a step's time while {_MEGABYTES} MB are saved behind it",
        {"flowbook": _flowbook, "flowbook plain": _flowbook_plain, "numpy": _numpy},
        Within(1.1, "numpy"),
        unit="ms",
        rounds=8,
        notes=("`plain` is the same step while nothing is saved.",),
        not_compared=frozenset({"flowbook plain"}),
    ),
)
