"""A million random numbers, or what needs them, beside NumPy's own generator (PCG64).

Flowbook's loops are timed in both forms, machine code and NumPy; each is in use before the clock
starts. The generators differ, so what agrees are the moments of what they draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Case, Row, Within
from benchmarks.rows import operations

_SHAPE = (1000, 1000)
_RATE = 0.5


@dataclass(frozen=True)
class _Draw:
    """One operation: how Flowbook builds it, and NumPy draws it from a generator `g`.

    `fed` is what either is given besides. `shown` is what must agree: the mean and the deviation,
    if nothing else.
    """

    work: str
    flowbook: Callable[..., Any]
    numpy: Callable[..., Any]
    fed: tuple[Any, ...] = ()
    shown: Callable[[Any], Any] = lambda drawn: [np.mean(drawn), np.std(drawn)]


def _flowbook(draw: _Draw, machine_code: str, fb: Any) -> Case:
    # "now" returns when the machine code is in use, and fails where there can be none.
    fb.options.machine_code = machine_code
    graph = fb.Graph()
    with graph.as_default():
        tensors = [fb.placeholder(fb.as_dtype(a.dtype), a.shape) for a in draw.fed]
        result = draw.flowbook(fb, *tensors)
    session = fb.Session(graph=graph)
    feeds = dict(zip(tensors, draw.fed, strict=True))

    def step() -> Any:
        return session.run(result, feeds)

    return Case(step=step, value=draw.shown(step()))


def _numpy(draw: _Draw, np: Any) -> Case:
    generator = np.random.default_rng(0)

    def step() -> Any:
        return draw.numpy(np, generator, *draw.fed)

    return Case(step=step, value=draw.shown(step()))


def _truncated(np: Any, g: Any) -> Any:
    drawn = g.standard_normal(_SHAPE, dtype=np.float32)
    flat = drawn.reshape(-1)
    far = np.flatnonzero(np.abs(flat) >= 2)
    while far.size:
        flat[far] = g.standard_normal(far.size, dtype=np.float32)
        far = far[np.abs(flat[far]) >= 2]
    return drawn


def _dropout(np: Any, g: Any, x: Any) -> Any:
    kept = g.random(_SHAPE, dtype=np.float32) >= np.float32(_RATE)
    scaled = x / np.float32(1 - _RATE)
    scaled *= kept
    return scaled


def _shuffled(np: Any, g: Any) -> Any:
    rows = np.arange(1_000_000, dtype=np.int32)
    g.shuffle(rows)
    return rows


_DRAWS = {
    "random_uniform": _Draw(
        "random_uniform",
        lambda fb: fb.random_uniform(_SHAPE),
        lambda np, g: g.random(_SHAPE, dtype=np.float32),
    ),
    "random_uniform_float64": _Draw(
        "random_uniform, float64",
        lambda fb: fb.random_uniform(_SHAPE, dtype=fb.float64),
        lambda np, g: g.random(_SHAPE),
    ),
    "random_integers": _Draw(
        "random_uniform, int32 below 1000",
        lambda fb: fb.random_uniform(_SHAPE, 0, 1000, dtype=fb.int32),
        lambda np, g: g.integers(0, 1000, _SHAPE, dtype=np.int32),
    ),
    "random_normal": _Draw(
        "random_normal",
        lambda fb: fb.random_normal(_SHAPE),
        lambda np, g: g.standard_normal(_SHAPE, dtype=np.float32),
    ),
    "random_normal_float64": _Draw(
        "random_normal, float64",
        lambda fb: fb.random_normal(_SHAPE, dtype=fb.float64),
        lambda np, g: g.standard_normal(_SHAPE),
    ),
    "truncated_normal": _Draw(
        "truncated_normal",
        lambda fb: fb.truncated_normal(_SHAPE),
        _truncated,
    ),
    "random_gamma": _Draw(
        "random_gamma of shape 2",
        lambda fb: fb.random_gamma(_SHAPE, 2.0),
        lambda np, g: g.standard_gamma(2.0, _SHAPE, dtype=np.float32),
    ),
    "random_poisson": _Draw(
        "random_poisson of mean 20",
        lambda fb: fb.random_poisson(20.0, _SHAPE),
        lambda np, g: g.poisson(20.0, _SHAPE).astype(np.float32),
    ),
    "dropout": _Draw(
        "dropout of one half",
        lambda fb, x: fb.nn.dropout(x, rate=_RATE),
        _dropout,
        fed=(np.ones(_SHAPE, np.float32),),
    ),
    "random_shuffle": _Draw(
        "random_shuffle of 1 M int32",
        lambda fb: fb.random_shuffle(fb.range(1_000_000)),
        _shuffled,
        shown=lambda order: np.sort(order)[::1000],
    ),
}

ROWS = tuple(
    Row(
        name=f"op_{name}",
        title=draw.work,
        cases={
            "flowbook": partial(_flowbook, draw, "now"),
            "flowbook in NumPy": partial(_flowbook, draw, "never"),
            "numpy": partial(_numpy, draw),
        },
        target=Within(1.1, "numpy"),
        unit="ms",
        rtol=1e-2,
        atol=1e-2,
        rounds=15,
        processes=3,
        section=operations.SECTION,
        notes=("Flowbook: machine code; in NumPy: as without llvmlite.",),
    )
    for name, draw in _DRAWS.items()
)
