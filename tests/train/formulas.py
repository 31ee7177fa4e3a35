"""The optimizers' formulas in NumPy, from the papers, without Flowbook."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Formula:
    """One variable, and what an optimizer keeps for it, in float64.

    Args:
        start: the variable's value.
        kind: the optimizer's class.
        arguments: its arguments.
    """

    def __init__(self, start: Array, kind: str, arguments: dict[str, Any]) -> None:
        self.x = np.array(start, np.float64)
        self.t = 0
        self.state: dict[str, Array] = {}
        self.step = getattr(self, kind.removesuffix("Optimizer"))
        self.arguments = arguments
        counts_as_dense = kind in ("AdamOptimizer", "AdamWOptimizer")
        self.touches_rows = arguments.get("lazy", not counts_as_dense)
        self.rows: Any = ...

    def dense(self, gradient: Array) -> None:
        """Take a step."""
        self.t += 1
        self.rows = ...
        self.step(np.asarray(gradient, np.float64), **self.arguments)

    def sparse(self, values: Array, indices: Array) -> None:
        """Take a step by some rows."""
        whole = np.zeros_like(self.x)
        np.add.at(whole, indices, values)
        if not self.touches_rows:
            self.dense(whole)
            return
        self.t += 1
        self.rows = sorted(set(indices.tolist()))
        self.step(whole[self.rows], **self.arguments)

    def kept(self, name: str, start: float = 0.0) -> Array:
        return self.state.setdefault(name, np.full(self.x.shape, start))[self.rows].copy()

    def keep(self, name: str, value: Array) -> Array:
        self.state[name][self.rows] = value
        return value

    def decayed(self, name: str, decay: float, value: Array, start: float = 0.0) -> Array:
        return self.keep(name, decay * self.kept(name, start) + (1 - decay) * value)

    def move(self, change: Array) -> None:
        self.x[self.rows] = self.x[self.rows] - change

    def GradientDescent(self, g: Array, learning_rate: float) -> None:
        self.move(learning_rate * g)

    def Momentum(
        self, g: Array, learning_rate: float, momentum: float, use_nesterov: bool = False
    ) -> None:
        a = self.keep("a", momentum * self.kept("a") + g)
        self.move(learning_rate * (g + momentum * a if use_nesterov else a))

    def ProximalGradientDescent(
        self,
        g: Array,
        learning_rate: float,
        l1_regularization_strength: float,
        l2_regularization_strength: float,
    ) -> None:
        moved = self.x[self.rows] - learning_rate * g
        limit = learning_rate * l1_regularization_strength
        shrunk = np.where(moved > limit, moved - limit, np.where(moved < -limit, moved + limit, 0))
        self.x[self.rows] = shrunk / (1 + learning_rate * l2_regularization_strength)

    def Adagrad(
        self, g: Array, learning_rate: float, initial_accumulator_value: float = 0.1
    ) -> None:
        a = self.keep("a", self.kept("a", initial_accumulator_value) + g**2)
        self.move(learning_rate * g / a**0.5)

    def ProximalAdagrad(
        self,
        g: Array,
        learning_rate: float,
        initial_accumulator_value: float,
        l1_regularization_strength: float,
        l2_regularization_strength: float,
    ) -> None:
        a = self.keep("a", self.kept("a", initial_accumulator_value) + g**2)
        rate = learning_rate / np.sqrt(a)
        self.ProximalGradientDescent(
            g, rate, l1_regularization_strength, l2_regularization_strength
        )

    def Adadelta(self, g: Array, learning_rate: float, rho: float, epsilon: float) -> None:
        squares = self.decayed("squares", rho, g**2)
        change = g * (self.kept("changes") + epsilon) ** 0.5 / (squares + epsilon) ** 0.5
        self.decayed("changes", rho, change**2)
        self.move(learning_rate * change)

    def RMSProp(
        self,
        g: Array,
        learning_rate: float,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        centered: bool = False,
    ) -> None:
        spread = self.decayed("squares", decay, g**2, 1.0)
        if centered:
            spread = spread - self.decayed("mean", decay, g) ** 2
        change = learning_rate * g / (spread + epsilon) ** 0.5
        self.move(self.keep("moved", momentum * self.kept("moved") + change))

    def Adam(
        self,
        g: Array,
        learning_rate: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        lazy: bool = False,
    ) -> None:
        m, v = self.decayed("m", beta1, g), self.decayed("v", beta2, g**2)
        scale = learning_rate * (1 - beta2**self.t) ** 0.5 / (1 - beta1**self.t)
        self.move(scale * m / (v**0.5 + epsilon))

    def AdamW(self, g: Array, weight_decay: float, **others: Any) -> None:
        before = self.x[self.rows].copy()
        self.Adam(g, **others)
        self.move(weight_decay * before)

    def Adafactor(
        self,
        g: Array,
        learning_rate: float | None = None,
        multiply_by_parameter_scale: bool = True,
        decay_rate: float | None = None,
        beta1: float = 0.0,
        clipping_threshold: float | None = 1.0,
        factored: bool = True,
    ) -> None:
        decay = 1 - self.t**-0.8 if decay_rate is None else decay_rate
        squares = g**2 + 1e-30
        if factored and g.ndim == 2:
            rows = self.state.setdefault("r", np.zeros(len(self.x)))
            r = rows[self.rows] = decay * rows[self.rows] + (1 - decay) * squares.mean(1)
            c = self.state["c"] = decay * self.state.get("c", 0) + (1 - decay) * squares.mean(0)
            v = np.outer(r, c) / c.mean()
        else:
            v = self.decayed("v", decay, squares)
        u = g / v**0.5
        if clipping_threshold is not None:
            u = u / max(1.0, float(np.mean(u**2)) ** 0.5 / clipping_threshold)
        rate = min(0.01, self.t**-0.5) if learning_rate is None else learning_rate
        if multiply_by_parameter_scale:
            rate *= max(1e-3, float(np.mean(self.x[self.rows] ** 2)) ** 0.5)
        self.move(self.decayed("m", beta1, rate * u))

    def Ftrl(
        self,
        g: Array,
        learning_rate: float,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        x, before = self.x[self.rows].copy(), self.kept("n", initial_accumulator_value)
        after = self.keep("n", before + g**2)
        sigma = (after**-learning_rate_power - before**-learning_rate_power) / learning_rate
        pull = g + 2 * l2_shrinkage_regularization_strength * x
        z = self.keep("z", self.kept("z") + pull - sigma * x)
        l1, l2 = l1_regularization_strength, l2_regularization_strength
        curvature = after**-learning_rate_power / learning_rate + 2 * l2
        self.x[self.rows] = np.where(np.abs(z) > l1, (l1 * np.sign(z) - z) / curvature, 0)
