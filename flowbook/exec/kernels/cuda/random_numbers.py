"""Random numbers on GPUs: the streams that the CPU draws, made where they are used."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from flowbook.exec.devices import gpu as _gpu  # noqa: F401  # Admits kernels for its kind.
from flowbook.exec.kernels.cuda.launching import launch
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import DType, float16
from flowbook.graph.model.registry import special_kernel
from flowbook.graph.numerics.random import philox
from flowbook.graph.numerics.random.philox import Counter, Key, Kind
from flowbook.graph.numerics.random.philox_numbers import converter
from flowbook.graph.ops.basis.shaping import dims_of
from flowbook.graph.ops.random.random_numbers import (
    check_bounds,
    check_dims,
    normal_op,
    uniform_int_op,
    uniform_op,
)
from flowbook.graph.ops.random.stateless_numbers import (
    start_of,
    stateless_normal_op,
    stateless_uniform_int_op,
    stateless_uniform_op,
)

Bounds = tuple[int, int] | None

# What is rounded to 16 bits when it is made.
_MADE_OF = {("normal", float16): "float32"}


class State(Protocol):
    """What a random operation draws from; see `flowbook/exec/resources/random_state.py`."""

    def reserve(self, blocks: int) -> tuple[Key, Counter]:
        """A key, and the counter of the first of blocks that nobody else gets."""


def drawn(
    xp: Any,
    kind: Kind,
    start: tuple[Key, Counter],
    dims: tuple[int, ...],
    dtype: DType,
    bounds: Bounds = None,
) -> Any:
    """What `philox.draw` draws, as an array of the GPU.

    Args:
        xp: CuPy.
        kind: "uniform", "normal" or "uniform_int".
        start: the key and the counter.
        dims: the shape.
        dtype: one that GPUs hold.
        bounds: the least integer, and one more than the greatest; for "uniform_int" only.
    """
    converter(kind, dtype.numpy, *(bounds or (None, None)))  # Checks them.
    out = xp.empty(dims, np.float32 if dtype is float16 else dtype.numpy)
    key0, key1, low, high = philox.scalars(*start)
    stream = np.uint32(key0), np.uint32(key1), np.uint64(low), np.uint64(high)
    blocks = philox.blocks_for(dtype.numpy, out.size)
    name = f"{kind}_{_MADE_OF.get((kind, dtype), dtype.name)}"
    more = _as_words(bounds, dtype) if bounds is not None else ()
    launch("philox", name, blocks, out, np.uint64(out.size), *stream, *more)
    return out.astype(dtype.numpy, copy=False)


def _as_words(bounds: tuple[int, int], dtype: DType) -> tuple[Any, Any]:
    """The least integer, modulo what a word of the dtype holds, and how many integers there are."""
    least, end = bounds
    word = np.dtype(f"u{dtype.size}").type
    return word(least % (1 << 8 * dtype.size)), word(end - least)


def _drawn(kind: Kind) -> Callable[..., Any]:
    def kernel(xp: Any, state: State, shape: Any, dtype: DType) -> Any:
        dims = dims_of(check_dims(shape))
        return drawn(xp, kind, _reserved(state, dims, dtype), dims, dtype)

    return kernel


def _integers(xp: Any, state: State, shape: Any, low: Any, high: Any, dtype: DType) -> Any:
    check_bounds(low, high)
    dims = dims_of(check_dims(shape))
    start = _reserved(state, dims, dtype)
    return drawn(xp, "uniform_int", start, dims, dtype, (int(low), int(high)))


def _reserved(state: State, dims: tuple[int, ...], dtype: DType) -> tuple[Key, Counter]:
    return state.reserve(philox.blocks_for(dtype.numpy, math.prod(dims)))


def _drawn_by_seeds(kind: Kind) -> Callable[..., Any]:
    def kernel(xp: Any, shape: Any, seed: Any, dtype: DType) -> Any:
        return drawn(xp, kind, start_of(seed), dims_of(check_dims(shape)), dtype)

    return kernel


def _integers_by_seeds(xp: Any, shape: Any, seed: Any, low: Any, high: Any, dtype: DType) -> Any:
    check_bounds(low, high)
    dims, bounds = dims_of(check_dims(shape)), (int(low), int(high))
    return drawn(xp, "uniform_int", start_of(seed), dims, dtype, bounds)


_KERNELS: dict[OpDef, Callable[..., Any]] = {
    uniform_op: _drawn("uniform"),
    normal_op: _drawn("normal"),
    uniform_int_op: _integers,
    stateless_uniform_op: _drawn_by_seeds("uniform"),
    stateless_normal_op: _drawn_by_seeds("normal"),
    stateless_uniform_int_op: _integers_by_seeds,
}
for _op, _function in _KERNELS.items():
    special_kernel(_op.type, "gpu", None)(_function)
