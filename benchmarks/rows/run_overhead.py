"""What one `run` costs when there is next to nothing to compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.case import AtMost, Case, Row
from benchmarks.graphs import calling, in_both

_FEEDS = 20
_TEN = np.arange(10, dtype=np.float32)


def _small_feeds() -> list[Any]:
    return [np.full(4, i, dtype=np.float32) for i in range(_FEEDS)]


def _constant(lib: Any) -> tuple[Any, None]:
    return lib.constant(42.0, name="constant"), None


def _add_feed(lib: Any) -> tuple[Any, dict[Any, Any]]:
    x = lib.placeholder(lib.float32, [10], name="x")
    return lib.add(x, lib.constant(1.0)), {x: _TEN}


def _add_feed_jax(jax: Any) -> Case:
    add = jax.jit(lambda x: x + 1)
    return Case(step=lambda: np.asarray(add(_TEN)), value=add(_TEN))


def _sum_of_feeds(lib: Any) -> tuple[Any, dict[Any, Any]]:
    """By one operation."""
    xs = [lib.placeholder(lib.float32, [4], name=f"x{i}") for i in range(_FEEDS)]
    return lib.add_n(xs), dict(zip(xs, _small_feeds(), strict=True))


def _sum_of_feeds_jax(jax: Any) -> Case:
    add_all = jax.jit(lambda *xs: sum(xs))
    values = _small_feeds()
    return Case(step=lambda: np.asarray(add_all(*values)), value=add_all(*values))


_NOT_COMPARED = (
    "JAX is shown, not compared: a jitted call takes its arguments by position and has no "
    "fetches and feeds to look up."
)

ROWS = (
    Row(
        name="run_constant",
        title="`run` of a constant",
        cases=in_both(_constant),
        target=AtMost(5e-6),
        unit="us",
    ),
    Row(
        name="run_add_feed",
        title="`run` of `x + 1`, 10 floats fed",
        cases={
            **in_both(_add_feed),
            **in_both(_add_feed, calling, " make_callable"),
            "jax": _add_feed_jax,
        },
        target=AtMost(10e-6),
        unit="us",
        not_compared=frozenset({"jax"}),
        notes=(_NOT_COMPARED,),
    ),
    Row(
        name="run_20_feeds",
        title="`run` with 20 small feeds (their sum)",
        cases={
            **in_both(_sum_of_feeds),
            **in_both(_sum_of_feeds, calling, " make_callable"),
            "jax": _sum_of_feeds_jax,
        },
        target=AtMost(25e-6),
        unit="us",
        not_compared=frozenset({"jax"}),
        notes=(_NOT_COMPARED,),
    ),
)
