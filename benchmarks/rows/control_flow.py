"""Branches and loops that the run decides: what an iteration costs, and what a branch does.

The sums are of whole numbers that float32 holds exactly.  JAX compiles its loop to machine code, in
which a scalar iteration is a few instructions: it is shown, not compared, as are loops of plain
Python, which compute the same on NumPy's scalars.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import AtMost, Case, Row

_TRIPS = 10_000
_SIDE = 100
_FED = np.asarray(3.0, dtype=np.float32)


def _counted(lib: Any, x: Any, trips: int) -> Any:
    """The sum of a value over the iterations, as a loop of one library of graphs."""
    start = lib.constant(0), lib.constant(0.0)
    return lib.while_loop(lambda i, _: i < trips, lambda i, t: (i + 1, t + x), start)[1]


def _nested(lib: Any, x: Any) -> Any:
    def body(i: Any, total: Any) -> Any:
        inner = lib.constant(0), total
        return i + 1, lib.while_loop(lambda j, _: j < _SIDE, lambda j, t: (j + 1, t + x), inner)[1]

    start = lib.constant(0), lib.constant(0.0)
    return lib.while_loop(lambda i, _: i < _SIDE, body, start)[1]


def _branch(lib: Any, x: Any) -> Any:
    return lib.cond(x > 0.0, lambda: x + 1.0, lambda: x - 1.0)


def _in_flowbook(build: Any, *arguments: Any) -> Any:
    def make(fb: Any) -> Case:
        graph = fb.Graph()
        with graph.as_default():
            x = fb.placeholder(fb.float32, [], name="x")
            end = build(fb, x, *arguments)
        session = fb.Session(graph=graph)
        return Case(step=lambda: session.run(end, {x: _FED}), value=session.run(end, {x: _FED}))

    return make


def _in_tf1(build: Any, *arguments: Any) -> Any:
    def make(tf: Any) -> Case:
        graph = tf.Graph()
        with graph.as_default():
            x = tf.placeholder(tf.float32, [], name="x")
            end = build(tf, x, *arguments)
        session = tf1.session(tf, graph)
        return Case(step=lambda: session.run(end, {x: _FED}), value=session.run(end, {x: _FED}))

    return make


def _counted_in_jax(jax: Any) -> Case:
    def counted(x: Any) -> Any:
        return jax.lax.while_loop(
            lambda state: state[0] < _TRIPS,
            lambda state: (state[0] + 1, state[1] + x),
            (0, jax.numpy.float32(0.0)),
        )[1]

    compiled = jax.jit(counted)
    return Case(step=lambda: compiled(_FED).block_until_ready(), value=compiled(_FED))


def _branch_in_jax(jax: Any) -> Case:
    compiled = jax.jit(lambda x: jax.lax.cond(x > 0.0, lambda: x + 1.0, lambda: x - 1.0))
    return Case(step=lambda: compiled(_FED).block_until_ready(), value=compiled(_FED))


def _counted_in_python(np: Any) -> Case:
    one, last, x = np.int32(1), np.int32(_TRIPS), _FED[()]

    def run() -> Any:
        i, total = np.int32(0), np.float32(0.0)
        while i < last:
            i = i + one
            total = total + x
        return total

    return Case(step=run, value=run())


ROWS = (
    Row(
        name="while_loop",
        title="while_loop of 10,000 scalar iterations, per iteration",
        cases={
            "flowbook": _in_flowbook(_counted, _TRIPS),
            "tf1": _in_tf1(_counted, _TRIPS),
            "jax": _counted_in_jax,
            "numpy": _counted_in_python,
        },
        target=AtMost(0.6e-6),
        unit="ns",
        divisor=_TRIPS,
        not_compared=frozenset({"jax"}),
        notes=(
            "By hand: a loop in Python over NumPy's scalars. "
            "JAX: `lax.while_loop`, compiled; shown, not compared: the loop is machine code.",
        ),
    ),
    Row(
        name="while_loop_nested",
        title="while_loops in each other, 100 x 100 scalar iterations, per inner iteration",
        cases={"flowbook": _in_flowbook(_nested), "tf1": _in_tf1(_nested)},
        target=AtMost(0.6e-6),
        unit="ns",
        divisor=_SIDE * _SIDE,
    ),
    Row(
        name="cond",
        title="a run of one cond on a fed scalar",
        cases={
            "flowbook": _in_flowbook(_branch),
            "tf1": _in_tf1(_branch),
            "jax": _branch_in_jax,
        },
        target=AtMost(10e-6),
        unit="us",
        notes=("JAX: `lax.cond`, compiled.",),
    ),
)
