"""What one `run` costs when there is next to nothing to compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import AtMost, Case, Row

_FEEDS = 20
_TEN = np.arange(10, dtype=np.float32)


def _small_feeds() -> list[Any]:
    return [np.full(4, i, dtype=np.float32) for i in range(_FEEDS)]


# run_constant


def _constant_flowbook(fb: Any) -> Case:
    graph = fb.Graph()
    with graph.as_default():
        constant = fb.constant(42.0, name="constant")
    session = fb.Session(graph=graph)
    return Case(step=lambda: session.run(constant), value=session.run(constant))


def _constant_tf1(tf: Any) -> Case:
    graph = tf.Graph()
    with graph.as_default():
        constant = tf.constant(42.0, name="constant")
    session = tf1.session(tf, graph)
    return Case(step=lambda: session.run(constant), value=session.run(constant))


# run_add_feed, run_20_feeds: x + 1, and the sum of 20 feeds by one operation


def _add_feed_flowbook_parts(fb: Any) -> tuple[Any, Any, Any]:
    graph = fb.Graph()
    with graph.as_default():
        x = fb.placeholder(fb.float32, [10], name="x")
        y = fb.add(x, fb.constant(1.0))
    return fb.Session(graph=graph), x, y


def _add_feed_flowbook(fb: Any) -> Case:
    session, x, y = _add_feed_flowbook_parts(fb)
    return Case(step=lambda: session.run(y, {x: _TEN}), value=session.run(y, {x: _TEN}))


def _add_feed_flowbook_callable(fb: Any) -> Case:
    session, x, y = _add_feed_flowbook_parts(fb)
    call = session.make_callable(y, [x])
    return Case(step=lambda: call(_TEN), value=call(_TEN))


def _add_feed_tf1_parts(tf: Any) -> tuple[Any, Any, Any]:
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [10], name="x")
        y = tf.add(x, tf.constant(1.0))
    return tf1.session(tf, graph), x, y


def _add_feed_tf1(tf: Any) -> Case:
    session, x, y = _add_feed_tf1_parts(tf)
    return Case(step=lambda: session.run(y, {x: _TEN}), value=session.run(y, {x: _TEN}))


def _add_feed_tf1_callable(tf: Any) -> Case:
    session, x, y = _add_feed_tf1_parts(tf)
    call = session.make_callable(y, [x])
    return Case(step=lambda: call(_TEN), value=call(_TEN))


def _add_feed_jax(jax: Any) -> Case:
    add = jax.jit(lambda x: x + 1)
    return Case(step=lambda: np.asarray(add(_TEN)), value=add(_TEN))


def _feeds_flowbook_parts(fb: Any) -> tuple[Any, list[Any], Any]:
    graph = fb.Graph()
    with graph.as_default():
        xs = [fb.placeholder(fb.float32, [4], name=f"x{i}") for i in range(_FEEDS)]
        y = fb.add_n(xs)
    return fb.Session(graph=graph), xs, y


def _feeds_flowbook(fb: Any) -> Case:
    session, xs, y = _feeds_flowbook_parts(fb)
    feeds = dict(zip(xs, _small_feeds(), strict=True))
    return Case(step=lambda: session.run(y, feeds), value=session.run(y, feeds))


def _feeds_flowbook_callable(fb: Any) -> Case:
    session, xs, y = _feeds_flowbook_parts(fb)
    call = session.make_callable(y, xs)
    values = _small_feeds()
    return Case(step=lambda: call(*values), value=call(*values))


def _feeds_tf1_parts(tf: Any) -> tuple[Any, list[Any], Any]:
    graph = tf.Graph()
    with graph.as_default():
        xs = [tf.placeholder(tf.float32, [4], name=f"x{i}") for i in range(_FEEDS)]
        y = tf.add_n(xs)
    return tf1.session(tf, graph), xs, y


def _feeds_tf1(tf: Any) -> Case:
    session, xs, y = _feeds_tf1_parts(tf)
    feeds = dict(zip(xs, _small_feeds(), strict=True))
    return Case(step=lambda: session.run(y, feeds), value=session.run(y, feeds))


def _feeds_tf1_callable(tf: Any) -> Case:
    session, xs, y = _feeds_tf1_parts(tf)
    call = session.make_callable(y, xs)
    values = _small_feeds()
    return Case(step=lambda: call(*values), value=call(*values))


def _feeds_jax(jax: Any) -> Case:
    add_all = jax.jit(lambda *xs: sum(xs))
    values = _small_feeds()
    return Case(step=lambda: np.asarray(add_all(*values)), value=add_all(*values))


ROWS = (
    Row(
        name="run_constant",
        title="`run` of a constant",
        cases={"flowbook": _constant_flowbook, "tf1": _constant_tf1},
        target=AtMost(5e-6),
        unit="us",
    ),
    Row(
        name="run_add_feed",
        title="`run` of `x + 1`, 10 floats fed",
        cases={
            "flowbook": _add_feed_flowbook,
            "flowbook make_callable": _add_feed_flowbook_callable,
            "tf1": _add_feed_tf1,
            "tf1 make_callable": _add_feed_tf1_callable,
            "jax": _add_feed_jax,
        },
        target=AtMost(10e-6),
        unit="us",
        not_compared=frozenset({"jax"}),
        notes=(
            "JAX is shown, not compared: a jitted call takes its arguments by position and has no "
            "fetches and feeds to look up.",
        ),
    ),
    Row(
        name="run_20_feeds",
        title="`run` with 20 small feeds (their sum)",
        cases={
            "flowbook": _feeds_flowbook,
            "flowbook make_callable": _feeds_flowbook_callable,
            "tf1": _feeds_tf1,
            "tf1 make_callable": _feeds_tf1_callable,
            "jax": _feeds_jax,
        },
        target=AtMost(25e-6),
        unit="us",
        not_compared=frozenset({"jax"}),
        notes=(
            "JAX is shown, not compared: a jitted call takes its arguments by position and has no "
            "fetches and feeds to look up.",
        ),
    ),
)
