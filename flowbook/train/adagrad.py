"""Steps scaled by the sum of squared gradients: Adagrad and Adadelta."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.descriptions import arguments_as
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.ops.math.elementwise import rsqrt, sqrt, square
from flowbook.graph.ops.state.variables import Variable
from flowbook.train.gradient_descent import proximal_step
from flowbook.train.optimizer import Optimizer, Step
from flowbook.train.part import Part

__all__ = ["AdadeltaOptimizer", "AdagradOptimizer", "ProximalAdagradOptimizer"]


class AdagradOptimizer(Optimizer):
    """Adagrad: steps that shrink with the squared gradients so far, for each element.

    `accumulator += gradient**2; variable -= learning_rate * gradient / sqrt(accumulator)`. Of a
    sparse gradient only the rows that it names take part.

    Args:
        learning_rate: a number, a scalar tensor, or a function that gives one of them.
        initial_accumulator_value: what the accumulators start with; above zero, as they divide.
        name: the name scope of what is built, and of the slots.

    Raises:
        InvalidArgumentError: if the accumulators would not start above zero.

    Source: Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic
    optimization", 2011.
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        name: str = "Adagrad",
    ) -> None:
        super().__init__(name)
        check_positive("initial_accumulator_value", initial_accumulator_value)
        self.learning_rate = learning_rate
        self.initial_accumulator_value = initial_accumulator_value

    def update(self, part: Part, variable: Variable, step: Step) -> None:
        """Build the change of a part of one variable."""
        rate = step.number("learning_rate", self.learning_rate, variable.dtype)
        slot = self.slot(variable, "accumulator", self.initial_accumulator_value)
        accumulator = part.add(slot, square(part.gradient))
        part.subtract(variable, rate * part.gradient * rsqrt(accumulator))


@arguments_as(AdagradOptimizer)
class ProximalAdagradOptimizer(Optimizer):
    """Adagrad, after which the variable is drawn to zero by the regularisers' own step.

    `accumulator += gradient**2; rate = learning_rate / sqrt(accumulator)`, and then a step of the
    `ProximalGradientDescentOptimizer` with that rate for each element.

    Args:
        l1_regularization_strength: a number that is not negative.
        l2_regularization_strength: a number that is not negative.
        name: the name scope of what is built, and of the slots.

    Raises:
        InvalidArgumentError: if the accumulators would not start above zero.

    Source: Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic
    optimization", 2011.
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        name: str = "ProximalAdagrad",
    ) -> None:
        super().__init__(name)
        check_positive("initial_accumulator_value", initial_accumulator_value)
        self.learning_rate = learning_rate
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength

    def update(self, part: Part, variable: Variable, step: Step) -> None:
        """Build the change of a part of one variable."""
        dtype = variable.dtype
        l1 = step.number("l1", self.l1_regularization_strength, dtype)
        l2 = step.number("l2", self.l2_regularization_strength, dtype)
        slot = self.slot(variable, "accumulator", self.initial_accumulator_value)
        accumulator = part.add(slot, square(part.gradient))
        rate = step.number("learning_rate", self.learning_rate, dtype) * rsqrt(accumulator)
        proximal_step(part, variable, rate, rate * l1, 1.0 + rate * l2)


def check_positive(name: str, value: float) -> None:
    """Refuse what accumulators cannot start with.

    Raises:
        InvalidArgumentError: if it is not above zero.
    """
    if not value > 0:
        raise InvalidArgumentError(f"{name} is above zero, not {value!r}")


class AdadeltaOptimizer(Optimizer):
    """Adadelta: steps scaled by running averages of squared gradients and of squared steps.

    `accum = rho * accum + (1 - rho) * gradient**2`, `change = gradient * sqrt(accum_update +
    epsilon) / sqrt(accum + epsilon)`, `accum_update = rho * accum_update + (1 - rho) * change**2`,
    and `variable -= learning_rate * change`. Of a sparse gradient only the rows that it names take
    part.

    Args:
        learning_rate: a number or a scalar tensor; 1.0 is the paper's form.
        rho: the decay of both averages, a number or a scalar tensor.
        epsilon: what keeps divisors from zero, and lets the steps begin.
        name: the name scope of what is built, and of the slots.

    Source: Zeiler, "ADADELTA: an adaptive learning rate method", 2012.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(name)
        self.learning_rate = learning_rate
        self.rho = rho
        self.epsilon = epsilon

    def update(self, part: Part, variable: Variable, step: Step) -> None:
        """Build the change of a part of one variable."""
        dtype, gradient = variable.dtype, part.gradient
        rate = step.number("learning_rate", self.learning_rate, dtype)
        rest = step.rest("rho", self.rho, dtype)
        epsilon = step.number("epsilon", self.epsilon, dtype)
        squares, steps = self.slot(variable, "accum"), self.slot(variable, "accum_update")
        before = part.read(steps)
        mean = part.add(squares, rest * (square(gradient) - part.read(squares)))
        change = gradient * sqrt(before + epsilon) * rsqrt(mean + epsilon)
        part.add(steps, rest * (square(change) - before))
        part.subtract(variable, rate * change)
