"""Building a graph of 5,000 operations: site, inference, names and all.

A step builds the whole graph anew.  JAX's counterpart is tracing the same function to a jaxpr,
which also infers shapes and records source lines.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import AtMost, Case, Row

_BLOCKS = 1_000
_OPERATIONS = 5 * _BLOCKS
_X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
_W = np.eye(4, dtype=np.float32)[[1, 2, 3, 0]]
_HALF = np.asarray(0.5, dtype=np.float32)
_OFFSETS = [np.asarray(i % 7 / 8, dtype=np.float32) for i in range(_BLOCKS)]


def _grow(ops: Any, constant: Callable[[Any], Any], x: Any, w: Any, half: Any) -> Any:
    """Add the 1,000 blocks of five operations; bounded, and no two are alike."""
    end = x
    for offset in _OFFSETS:
        shifted = ops.add(end, constant(offset))
        turned = ops.matmul(shifted, w)
        end = ops.negative(ops.multiply(turned, half))
    return end


def _build(system: Any) -> tuple[Any, dict[Any, Any], Any]:
    """The graph, its feeds and its end, in Flowbook and TF1 alike."""
    graph = system.Graph()
    with graph.as_default():
        x = system.placeholder(system.float32, [2, 4], name="x")
        w = system.placeholder(system.float32, [4, 4], name="w")
        half = system.placeholder(system.float32, [], name="half")
        end = _grow(system, system.constant, x, w, half)
    return graph, {x: _X, w: _W, half: _HALF}, end


def _flowbook(fb: Any) -> Case:
    graph, feeds, end = _build(fb)
    with fb.Session(graph=graph) as session:
        value = session.run(end, feeds)
    return Case(before_each=gc.collect, step=lambda: _build(fb), value=value)


def _tf1(tf: Any) -> Case:
    graph, feeds, end = _build(tf)
    with tf1.session(tf, graph) as session:
        value = session.run(end, feeds)
    return Case(before_each=gc.collect, step=lambda: _build(tf), value=value)


def _jax(jax: Any) -> Case:
    jnp = jax.numpy

    def trace() -> Any:
        # A new function each time: a trace of the same one is cached.
        return jax.make_jaxpr(lambda x, w, half: _grow(jnp, jnp.asarray, x, w, half))(_X, _W, _HALF)

    return Case(before_each=gc.collect, step=trace, value=_grow(jnp, jnp.asarray, _X, _W, _HALF))


ROWS = (
    Row(
        name="build",
        title="building a graph of 5,000 operations, per operation",
        cases={"flowbook": _flowbook, "tf1": _tf1, "jax": _jax},
        target=AtMost(10e-6),
        unit="us",
        divisor=_OPERATIONS,
        rtol=1e-4,
        rounds=15,
        not_compared=frozenset({"jax"}),
        notes=(
            "JAX: tracing the same function to a jaxpr; shown, not compared: its operations have "
            "no names, and what it traces cannot be extended.",
        ),
    ),
)
