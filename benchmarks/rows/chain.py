"""A chain of 10,000 scalar negations from a fed placeholder: what an operation costs.

The comparison that decides is the hand-generated function of 10,000 bare `np.negative` lines.
Traps: TensorFlow's arithmetic optimizer folds pairs of negations, so it is off here (`maximum`
with a constant, which it cannot fold, was measured to cost 15 % more than `negative` with it off);
XLA folds them as well and cannot be told not to, so JAX is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import Case, Row, Within
from benchmarks.straight_line import straight_line

_LENGTH = 10_000
_VALUE = np.asarray(1.5, dtype=np.float32)


def _flowbook(fb: Any) -> Case:
    graph = fb.Graph()
    with graph.as_default():
        x = end = fb.placeholder(fb.float32, [], name="x")
        for _ in range(_LENGTH):
            end = fb.negative(end)
    session = fb.Session(graph=graph)
    return Case(step=lambda: session.run(end, {x: _VALUE}), value=session.run(end, {x: _VALUE}))


def _tf1(tf: Any) -> Case:
    graph = tf.Graph()
    with graph.as_default():
        x = end = tf.placeholder(tf.float32, [], name="x")
        for _ in range(_LENGTH):
            end = tf.negative(end)
    session = tf1.session(tf, graph, arithmetic=False)
    return Case(step=lambda: session.run(end, {x: _VALUE}), value=session.run(end, {x: _VALUE}))


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
        cases={"flowbook": _flowbook, "tf1": _tf1, "torch": _torch, "numpy": _numpy},
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
