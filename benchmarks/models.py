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


def training_in_jax(jax: Any, train: Callable[..., Any], state: Any, *batch: Any) -> Case:
    """A case that trains with JAX, compiled and with its state donated.

    Args:
        jax: the module.
        train: gives, for a state and a batch, the next state and the loss.
        state: arrays that the first step starts from.
        batch: what every step is given.
    """
    compiled = jax.jit(train, donate_argnums=0)
    state = jax.tree.map(jax.numpy.array, state)

    def step() -> float:
        nonlocal state
        state, loss = compiled(state, *batch)
        jax.block_until_ready(state)
        return float(loss)

    return training(step)


def step_in_torch(optimizer: Any, loss: Any) -> float:
    """What every step with PyTorch ends in: gradients, and the change that they make."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.detach())


def start(fb: Any, graph: Any, values: Sequence[Any]) -> Any:
    """A Flowbook session in which the trainable variables, in their order, have these values."""
    variables = graph.variables(trainable=True)
    session = fb.Session(graph=graph)
    with graph.as_default():
        for variable, value in zip(variables, values, strict=True):
            fed = fb.placeholder(variable.dtype, variable.shape)
            session.run(fb.assign(variable, fed).op, {fed: value})
    return session
