"""Branches and loops that the run decides: what an iteration costs, and what a branch does.

The sums are of whole numbers that float32 holds exactly.  JAX compiles its loop to machine code, in
which a scalar iteration is a few instructions: it is shown, not compared, as are loops of plain
Python, which compute the same on NumPy's scalars.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import AtMost, Case, MakeCase, Row, Within
from benchmarks.graphs import in_both

_TRIPS = 10_000
_SIDE = 100
_SHORT = 1_000
_BRANCHES = 1_000
_FED = np.asarray(3.0, dtype=np.float32)


def _counted(lib: Any, x: Any, trips: int) -> Any:
    """The sum of a value over the iterations, as a loop of one library of graphs."""
    start = lib.constant(0), lib.constant(0.0)
    return lib.while_loop(lambda i, _: i < trips, lambda i, t: (i + 1, t + x), start)[1]


def _counted_gradient(lib: Any, x: Any, trips: int) -> Any:
    """The gradient of a product over the iterations, for which each keeps a value."""
    start = lib.constant(0), x
    y = lib.while_loop(lambda i, _: i < trips, lambda i, t: (i + 1, t * x / 3.0), start)[1]
    return lib.gradients(y, [x])[0]


def _counted_vectors(lib: Any, x: Any, trips: int) -> Any:
    """The sum of a vector over the iterations."""
    vector = lib.fill([1000], x)
    start = lib.constant(0), lib.zeros([1000])
    return lib.while_loop(lambda i, _: i < trips, lambda i, t: (i + 1, t + vector), start)[1]


def _built_branches(lib: Any, make_session: Any) -> Case:
    """A graph of 1,000 branches, one upon the other, is built anew in each step."""

    def build() -> tuple[Any, Any, Any]:
        graph = lib.Graph()
        with graph.as_default():
            x = end = lib.placeholder(lib.float32, [], name="x")
            for _ in range(_BRANCHES):
                end = lib.cond(end > 0.0, lambda end=end: end - 1.0, lambda end=end: end + 2.0)
        return graph, x, end

    graph, x, end = build()
    value = make_session(graph).run(end, {x: _FED})
    return Case(step=build, value=value, before_each=gc.collect)


def _nested(lib: Any, x: Any) -> Any:
    def body(i: Any, total: Any) -> Any:
        inner = lib.constant(0), total
        return i + 1, lib.while_loop(lambda j, _: j < _SIDE, lambda j, t: (j + 1, t + x), inner)[1]

    start = lib.constant(0), lib.constant(0.0)
    return lib.while_loop(lambda i, _: i < _SIDE, body, start)[1]


def _branch(lib: Any, x: Any) -> Any:
    return lib.cond(x > 0.0, lambda: x + 1.0, lambda: x - 1.0)


def _in_both(build: Any, *arguments: Any) -> dict[str, MakeCase]:
    """The cases of what is built from a fed scalar."""

    def fed(lib: Any) -> tuple[Any, dict[Any, Any]]:
        x = lib.placeholder(lib.float32, [], name="x")
        return build(lib, x, *arguments), {x: _FED}

    return in_both(fed)


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


def _gradient_in_jax(jax: Any) -> Case:
    def product(x: Any) -> Any:
        return jax.lax.scan(lambda t, _: (t * x / 3.0, None), x, None, length=_SHORT)[0]

    compiled = jax.jit(jax.grad(product))
    return Case(step=lambda: compiled(_FED).block_until_ready(), value=compiled(_FED))


def _vectors_in_jax(jax: Any) -> Case:
    def counted(x: Any) -> Any:
        return jax.lax.fori_loop(0, _SHORT, lambda _, t: t + x, jax.numpy.zeros(1000))

    compiled = jax.jit(lambda x: counted(jax.numpy.full(1000, x)))
    return Case(step=lambda: compiled(_FED).block_until_ready(), value=compiled(_FED))


def _vectors_in_python(np: Any) -> Case:
    vector = np.full(1000, _FED)

    def run() -> Any:
        total = np.zeros(1000, np.float32)
        for _ in range(_SHORT):
            total = total + vector
        return total

    return Case(step=run, value=run())


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
            **_in_both(_counted, _TRIPS),
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
        name="while_loop_gradient",
        title="gradient of a while_loop of 1,000 scalar iterations, both ways, per iteration",
        cases={
            **_in_both(_counted_gradient, _SHORT),
            "jax": _gradient_in_jax,
        },
        target=AtMost(4e-6),
        unit="ns",
        divisor=_SHORT,
        rtol=1e-3,
        not_compared=frozenset({"jax"}),
        notes=("JAX: `lax.scan`, compiled; shown, not compared: the loop is machine code.",),
    ),
    Row(
        name="while_loop_vectors",
        title="while_loop of 1,000 iterations on vectors of 1,000 elements, per iteration",
        cases={
            **_in_both(_counted_vectors, _SHORT),
            "jax": _vectors_in_jax,
            "numpy": _vectors_in_python,
        },
        target=Within(1.5, "numpy"),
        unit="ns",
        divisor=_SHORT,
        not_compared=frozenset({"jax"}),
        notes=(
            "By hand: a loop in Python over NumPy's vectors. "
            "JAX: `lax.fori_loop`, compiled; shown, not compared: the loop is machine code.",
        ),
    ),
    Row(
        name="while_loop_nested",
        title="while_loops in each other, 100 x 100 scalar iterations, per inner iteration",
        cases=_in_both(_nested),
        target=AtMost(0.6e-6),
        unit="ns",
        divisor=_SIDE * _SIDE,
    ),
    Row(
        name="cond",
        title="a run of one cond on a fed scalar",
        cases={
            **_in_both(_branch),
            "jax": _branch_in_jax,
        },
        target=AtMost(10e-6),
        unit="us",
        notes=("JAX: `lax.cond`, compiled.",),
    ),
    Row(
        name="build_conds",
        title="building 1,000 conds, per cond",
        cases={
            "flowbook": lambda fb: _built_branches(fb, lambda graph: fb.Session(graph=graph)),
            "tf1": lambda tf: _built_branches(tf, lambda graph: tf1.session(tf, graph)),
        },
        target=Within(1.0, "tf1"),
        unit="us",
        divisor=_BRANCHES,
        rounds=5,
    ),
)
