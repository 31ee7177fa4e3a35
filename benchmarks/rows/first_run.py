"""First run of a graph of 36,000 operations, and of the same graph one operation longer.

The graph is 1,500 blocks like Inception's: four branches of a small layer each, added up.  It
hangs from a placeholder, so that nothing folds, and every block has constants of its own, so that
no two operations are alike; the values contract, so that rounding stays small.  TF1 runs it with
and without its optimizer, which costs more than everything else together; the ratio takes the
faster.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import AtMost, Case, MakeCase, Row

_BRANCHES = 4
_BLOCKS = 1_500
_SIZE = 3
_X = np.asarray([[0.25, -0.5, 1.0]], dtype=np.float32)


def _weights() -> list[list[tuple[Any, Any]]]:
    """Per block and branch a small matrix and a bias, the same for every system."""
    random = np.random.default_rng(0)
    bound = 0.8 / (_SIZE * _BRANCHES) ** 0.5
    return [
        [
            (
                random.uniform(-bound, bound, [_SIZE, _SIZE]).astype(np.float32),
                random.uniform(-1, 1, [_SIZE]).astype(np.float32),
            )
            for _ in range(_BRANCHES)
        ]
        for _ in range(_BLOCKS)
    ]


def _build(system: Any) -> tuple[Any, Any, Any]:
    """The graph of 24 operations per block, its placeholder and its end."""
    graph = system.Graph()
    with graph.as_default():
        x = end = system.placeholder(system.float32, [1, _SIZE], name="x")
        for block in _weights():
            branches = [_layer(system, end, *parameters) for parameters in block]
            total = branches[0]
            for branch in branches[1:]:
                total = system.add(total, branch)
            end = system.negative(total)
    return graph, x, end


def _layer(system: Any, x: Any, w: Any, b: Any) -> Any:
    """Five operations: two constants, product, sum, activation."""
    return system.nn.relu(system.add(system.matmul(x, system.constant(w)), system.constant(b)))


def _first_run(system: Any, session_on: Callable[[Any], Any]) -> Case:
    """Times the first run in a new session on the graph, which is built once."""
    graph, x, end = _build(system)
    session = session_on(graph)
    value = session.run(end, {x: _X})

    def fresh_session() -> None:
        nonlocal session
        session.close()
        session = session_on(graph)
        gc.collect()

    return Case(before_each=fresh_session, step=lambda: session.run(end, {x: _X}), value=value)


def _further_fetch(system: Any, session_on: Callable[[Any], Any]) -> Case:
    """Times the run that fetches the new end after the graph grew by one operation."""
    graph, x, end = _build(system)
    session = session_on(graph)
    session.run(end, {x: _X})

    def extend() -> None:
        nonlocal end
        with graph.as_default():
            end = system.negative(end)

    extend()
    value = session.run(end, {x: _X})
    return Case(before_each=extend, step=lambda: session.run(end, {x: _X}), value=value)


def _cases(make: Callable[[Any, Callable[[Any], Any]], Case]) -> dict[str, MakeCase]:
    return {
        "flowbook": lambda fb: make(fb, lambda graph: fb.Session(graph=graph)),
        "tf1": lambda tf: make(tf, lambda graph: tf1.session(tf, graph)),
        "tf1 unoptimized": lambda tf: make(tf, lambda graph: tf1.session(tf, graph, rewrite=False)),
    }


ROWS = (
    Row(
        name="first_run_36k",
        title="first run of a graph of 36,000 operations",
        cases=_cases(_first_run),
        target=AtMost(0.6),
        unit="ms",
        rtol=1e-4,
        rounds=7,
    ),
    Row(
        name="further_fetch_36k",
        title="a further fetch after extending that graph by one operation",
        cases=_cases(_further_fetch),
        target=AtMost(20e-3),
        unit="ms",
        rtol=1e-4,
        rounds=7,
    ),
)
