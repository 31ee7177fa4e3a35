"""RMSProp: steps scaled by a running average of squared gradients."""

from __future__ import annotations

from typing import Any

from flowbook.graph.ops.math.elementwise import rsqrt, square
from flowbook.graph.ops.state.variables import Variable
from flowbook.train.optimizer import Optimizer, Step
from flowbook.train.part import Part

__all__ = ["RMSPropOptimizer"]


class RMSPropOptimizer(Optimizer):
    """RMSProp: gradients divided by the root of their running mean square.

    `rms = decay * rms + (1 - decay) * gradient**2`, starting with ones; `moved = momentum * moved +
    learning_rate * gradient / sqrt(rms + epsilon)`; `variable -= moved`. The centered form divides
    by the root of `rms - mg**2 + epsilon`, where `mg` is the running mean of the gradient. Of a
    sparse gradient only the rows that it names take part.

    Args:
        learning_rate: a number, a scalar tensor, or a function that gives one of them.
        decay: of the running means, a number or a scalar tensor.
        momentum: a number or a scalar tensor. Without momentum, the number 0, there is no slot
            for it.
        epsilon: what keeps the divisor from zero.
        centered: whether to divide by the estimated variance in place of the mean square.
        name: the name scope of what is built, and of the slots.

    Source: Tieleman, Hinton, "Lecture 6.5: RMSProp", Neural networks for machine learning, 2012;
    the centered form: Graves, "Generating sequences with recurrent neural networks", 2013.
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(name)
        self.learning_rate = learning_rate
        self.decay = decay
        self.momentum = momentum
        self.epsilon = epsilon
        self.centered = centered

    def update(self, part: Part, variable: Variable, step: Step) -> None:
        """Build the change of a part of one variable."""
        dtype, gradient = variable.dtype, part.gradient
        rate = step.number("learning_rate", self.learning_rate, dtype)
        rest = step.rest("decay", self.decay, dtype)
        slot = self.slot(variable, "rms", 1.0)
        spread = part.add(slot, rest * (square(gradient) - part.read(slot)))
        if self.centered:
            slot = self.slot(variable, "mg")
            spread = spread - square(part.add(slot, rest * (gradient - part.read(slot))))
        epsilon = step.number("epsilon", self.epsilon, dtype)
        change = rate * gradient * rsqrt(spread + epsilon)
        if not isinstance(self.momentum, float | int) or self.momentum:
            momentum = step.number("momentum", self.momentum, dtype)
            slot = self.slot(variable, "momentum")
            change = part.assign(slot, momentum * part.read(slot) + change)
        part.subtract(variable, change)
