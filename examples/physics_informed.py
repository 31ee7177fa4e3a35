"""A physics-informed network: it solves the heat equation, of which it knows nothing but the law.

A rod whose ends are kept cold cools down: u_t = u_xx / 10, and u = sin(pi x) in the beginning. The
network is a function of place and time. What is minimised is how far it is from the law, at points
where the solution is not known, and from what is known at the edges. Derivatives are tensors, and
derived again.

`python -m examples.physics_informed` solves it. The figure that shows what it has learnt is the
largest error anywhere; the solution is exp(-t pi^2 / 10) sin(pi x).

Source: Raissi, Perdikaris, Karniadakis, "Physics-informed neural networks", 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import flowbook as fb
from examples import figures

SPREAD = 0.1


def solution(x: Any, t: Any) -> Any:
    """The temperature at a place and time, both from 0 to 1."""
    return np.exp(-SPREAD * np.pi**2 * t) * np.sin(np.pi * x)


def temperature(x: Any, t: Any, units: int = 20) -> Any:
    """The network: temperatures [points] at places and times [points]."""
    h = fb.stack([x, t], axis=1)
    for _ in range(2):
        h = fb.layers.dense(h, units, fb.tanh)
    return fb.layers.dense(h, 1)[:, 0]


def loss(u: Any, inside: int, edge: int, rng: np.random.Generator) -> Any:
    """How far the network is from the law inside and from what is known at the edges."""
    x, t = fb.constant(rng.random([2, inside]).astype(np.float32))
    [u_t, u_x] = fb.gradients(u(x, t), [t, x])
    [u_xx] = fb.gradients(u_x, x)
    begin = fb.linspace(0.0, 1.0, edge)
    return (
        fb.reduce_mean(fb.square(u_t - SPREAD * u_xx))
        + fb.reduce_mean(fb.square(u(begin, fb.zeros([edge])) - fb.sin(np.pi * begin)))
        + fb.reduce_mean(fb.square(u(fb.zeros([edge]), begin)))
        + fb.reduce_mean(fb.square(u(fb.ones([edge]), begin)))
    )


def main(iterations: int = 1000, seed: int = 1, figure: Any = None) -> float:
    """Solve it; return the largest error on a grid."""
    fb.set_random_seed(seed)
    u = fb.template(temperature, "temperature")  # All calls share its weights.
    rng = np.random.default_rng(seed)
    optimizer = fb.train.LBFGSOptimizer(loss(u, 500, 50, rng), max_iterations=iterations)
    x, t = (part.ravel() for part in np.meshgrid(*[np.linspace(0, 1, 41, dtype=np.float32)] * 2))
    with fb.Session() as sess:
        result = optimizer.minimize(sess)
        found, right = sess.run(u(x, t)), solution(x, t)
    error = float(np.max(np.abs(found - right)))
    with figures.axes(figure, "place", "temperature") as drawn:
        for colour, moment in zip(figures.COLOURS, (0.0, 0.5, 1.0), strict=False):
            now = t == np.float32(moment)
            drawn.plot(x[now], found[now], color=colour, label=f"at the time {moment}")
            drawn.plot(x[now][::4], right[now][::4], "o", color=colour, markersize=3)
    print(f"loss {result.loss:.1e} after {result.iterations} iterations; largest error {error:.4f}")
    return error


if __name__ == "__main__":
    figures.run(main)
