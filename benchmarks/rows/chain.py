"""A chain of 10,000 scalar negations from a fed placeholder: what an operation costs.

The comparison that decides is the hand-generated function of 10,000 bare `np.negative` lines.
Traps: TensorFlow's arithmetic optimizer folds pairs of negations, so it is off here (`maximum`
with a constant, which it cannot fold, was measured to cost 15 % more than `negative` with it off);
XLA folds them as well and cannot be told not to, so JAX is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.case import Case, Row, Within
from benchmarks.graphs import in_both
from benchmarks.straight_line import straight_line

_LENGTH = 10_000
_VALUE = np.asarray(1.5, dtype=np.float32)


def _negations(lib: Any) -> tuple[Any, dict[Any, Any]]:
    x = end = lib.placeholder(lib.float32, [], name="x")
    for _ in range(_LENGTH):
        end = lib.negative(end)
    return end, {x: _VALUE}


def _torch(torch: Any) -> Case:
    run = straight_line("x = negative(x)", _LENGTH, {"negative": torch.neg})
    x = torch.tensor(_VALUE)
    return Case(step=lambda: run(x), value=run(x).numpy())


def _numpy(np: Any) -> Case:
    run = straight_line("x = negative(x)", _LENGTH, {"negative": np.negative})
    return Case(step=lambda: run(_VALUE), value=run(_VALUE))


ROWS = (
    Row(
        name="chain",
        title="chain of 10,000 scalar negations, per operation",
        cases={**in_both(_negations, arithmetic=False), "torch": _torch, "numpy": _numpy},
        target=Within(1.1, "numpy"),
        unit="ns",
        divisor=_LENGTH,
        notes=(
            "NumPy by hand: a generated function of 10,000 lines `x = negative(x)`. "
            "TF1 without its arithmetic optimizer, which folds the chain. "
            "No JAX: XLA folds the chain. PyTorch: eager, the same lines.",
        ),
    ),
)
