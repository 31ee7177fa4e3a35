"""A numeric check of gradients: the tool for whoever writes an operation or doubts one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from flowbook.exec.session.session import Session
from flowbook.exec.signature.feeds import feedable
from flowbook.graph.gradients.backward import gradients
from flowbook.graph.model.convert import to_array
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.state.variables import Variable

__all__ = ["gradient_error"]


def gradient_error(
    ys: Tensor | Sequence[Tensor],
    xs: Any,
    feeds: Mapping[Any, Any] | None = None,
    *,
    session: Session | None = None,
    delta: float | None = None,
) -> float:
    """The largest difference between the registered gradient and a numeric one.

    Each element of `xs` is moved by `delta` both ways, and the difference of the sum of `ys`
    compared with `fb.gradients(ys, xs)`. The graph grows by the gradient; use it in tests.

    Args:
        ys: what is differentiated, of floating-point dtype.
        xs: tensors or variables to differentiate by, of floating-point dtype.
        feeds: values for placeholders. Tensors of `xs` that are not fed start from their value.
        session: where to run; by default a new one on the graph, closed afterwards.
        delta: the step; by default the cube root of the dtype's resolution, times the size of x.

    Returns:
        The largest absolute difference over all elements; NaN where one of them is, 0.0 where
        nothing depends on `xs`.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float64, [3], name="x")
    >>> bool(fb.gradient_error(fb.exp(x), x, {x: [0.0, 0.5, 1.0]}) < 1e-8)
    True
    """
    ys = [ys] if isinstance(ys, Tensor) else list(ys)
    xs = list(xs) if isinstance(xs, list | tuple) else [xs]
    for x in xs:
        if not isinstance(x, Tensor | Variable) or not x.dtype.is_floating:
            raise InvalidTypeError(f"xs are floating-point tensors or variables, not {x!r}")
    found = gradients(ys, xs)
    sess = session if session is not None else Session(xs[0].graph)
    try:
        graph = xs[0].graph
        # Whatever way a tensor was named, it is fed once.
        given = {feedable(graph, key): value for key, value in (feeds or {}).items()}
        kinds, fetched = [x.dtype for x in xs], sess.run(xs, given)
        xs = [feedable(graph, x) for x in xs]
        starts = [
            np.array(to_array(given.get(x, value), kind))
            for x, value, kind in zip(xs, fetched, kinds, strict=True)
        ]
        errors = [0.0]
        for x, start, gradient in zip(xs, starts, found, strict=True):
            here = {**given, **dict(zip(xs, starts, strict=True))}
            if gradient is None:
                registered = np.zeros(start.shape)
            else:
                dense = (
                    gradient.as_tensor()
                    if isinstance(gradient, IndexedSlices)
                    else convert_to_tensor(gradient)
                )
                registered = np.asarray(sess.run(dense, here))
            numeric = _numeric(sess, ys, x, start, here, delta)
            with np.errstate(invalid="ignore"):
                errors.extend(np.abs(numeric - registered).ravel().tolist())
        # Python's max would pass over NaN.
        return float(np.max(errors))
    finally:
        if session is None:
            sess.close()


def _numeric(
    sess: Session,
    ys: Sequence[Tensor],
    x: Any,
    start: np.ndarray[Any, Any],
    feeds: Mapping[Any, Any],
    delta: float | None,
) -> np.ndarray[Any, Any]:
    resolution = float(ml_dtypes.finfo(start.dtype).eps) ** (1 / 3)  # type: ignore[no-untyped-call]
    numeric = np.zeros(start.shape)
    for index in np.ndindex(start.shape):
        step = delta if delta is not None else resolution * max(1.0, abs(float(start[index])))
        sums, places = [], []
        for sign in (1.0, -1.0):
            moved = start.copy()
            moved[index] += sign * step
            places.append(float(moved[index]))
            values = sess.run(list(ys), {**feeds, x: moved})
            sums.append(sum(float(np.sum(v, dtype=np.float64)) for v in values))
        numeric[index] = (sums[0] - sums[1]) / (places[0] - places[1])
    return numeric
