"""What the rows of models share: starting weights, and steps whose losses prove the work.

Every system starts from the same weights, drawn by shape, and gets the same batch from the caller's
NumPy arrays in every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.case import Case

_COMPARED_STEPS = 5


def weights(shapes: Sequence[Sequence[int]], seed: int = 0) -> list[Any]:
    """Matrices and filters drawn so that signals keep their size; zeros for vectors."""
    random = np.random.default_rng(seed)
    return [
        random.standard_normal(shape, dtype=np.float32) / np.float32(np.prod(shape[:-1]) ** 0.5)
        if len(shape) > 1
        else np.zeros(shape, np.float32)
        for shape in shapes
    ]


def training(step: Callable[[], Any]) -> Case:
    """A case that trains; its value is the loss over the first steps."""
    return Case(step=step, value=[float(step()) for _ in range(_COMPARED_STEPS)])


def start(fb: Any, graph: Any, values: Sequence[Any]) -> Any:
    """A Flowbook session in which the trainable variables, in their order, have these values."""
    variables = graph.variables(trainable=True)
    session = fb.Session(graph=graph)
    with graph.as_default():
        for variable, value in zip(variables, values, strict=True):
            fed = fb.placeholder(variable.dtype, variable.shape)
            session.run(fb.assign(variable, fed).op, {fed: value})
    return session
