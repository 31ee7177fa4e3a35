"""Records what TensorFlow computes for the rows that name its operation.

    benchmarks/.peers/bin/python -m tests.record_tensorflow [family ...]

It runs where TensorFlow is installed, as `python -m benchmarks peers` does it, and writes
`tests/recorded/<family>.npz`. The tests need no TensorFlow: they compare with the recordings, and
fail where a row's inputs are no longer those that a recording was made from.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.op_cases import FAMILIES, Case
from tests.op_cases.case import converted, natural

RECORDED = Path(__file__).parent / "recorded"


def settings(case: Case) -> dict[str, list[np.ndarray]]:
    """What a row is recorded on: its inputs, and those with NaN and infinities."""
    chosen = {"inputs": case.inputs, "special": case.special}
    return {k: converted(case, v, natural(case)) for k, v in chosen.items() if v is not None}


def digest(inputs: list[np.ndarray]) -> str:
    """What tells whether a recording was made from these inputs."""
    found = hashlib.sha256()
    for value in inputs:
        data = repr(value.tolist()).encode() if value.dtype.hasobject else value.tobytes()
        found.update(f"{value.dtype} {value.shape}".encode() + data)
    return found.hexdigest()[:16]


def stored(value: Any) -> np.ndarray:
    """An output as an array that needs no pickle."""
    array = np.asarray(value)
    return array.astype(np.bytes_) if array.dtype.hasobject else array


def record(family: str) -> int:
    """Record the rows of one family; gives how many there were."""
    import tensorflow as tf

    found: dict[str, np.ndarray] = {}
    cases = [c for c in FAMILIES[family].CASES if c.tensorflow is not None]
    for case in cases:
        for setting, inputs in settings(case).items():
            outputs = case.tensorflow(tf, *inputs)
            outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
            key = f"{case.name}/{setting}"
            found[f"{key}/digest"] = np.array(digest(inputs))
            for port, output in enumerate(outputs):
                found[f"{key}/{port}"] = stored(output)
    if found:
        RECORDED.mkdir(exist_ok=True)
        np.savez_compressed(RECORDED / f"{family}.npz", **found)
    return len(cases)


def main() -> None:
    """Record the families that are named, or all."""
    for family in sys.argv[1:] or [f for f, m in FAMILIES.items() if hasattr(m, "CASES")]:
        print(f"{family}: {record(family)} rows")


if __name__ == "__main__":
    main()
