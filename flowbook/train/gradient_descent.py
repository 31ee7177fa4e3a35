"""Gradient descent: plain, with momentum, and with a proximal step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.math.arithmetic import maximum
from flowbook.graph.ops.math.complex import abs as abs_op
from flowbook.graph.ops.math.complex import sign
from flowbook.graph.ops.state.variables import Variable
from flowbook.train.optimizer import Optimizer, Step
from flowbook.train.part import Part, Rows

__all__ = ["GradientDescentOptimizer", "MomentumOptimizer", "ProximalGradientDescentOptimizer"]


class GradientDescentOptimizer(Optimizer):
    """Gradient descent: `variable -= learning_rate * gradient`.

    Of a sparse gradient only the rows that it names are read and written: such a step costs by
    their number, whatever the size of the variable.

    Args:
        learning_rate: a number, a scalar tensor, or a function that gives one of them.
        name: the name scope of what is built.
    """

    def __init__(self, learning_rate: Any, name: str = "GradientDescent") -> None:
        super().__init__(name)
        self.learning_rate = learning_rate

    def changes(
        self, gradient: Tensor | IndexedSlices, variable: Variable, step: Step
    ) -> Sequence[Any]:
        """Build the change of one variable; rows that are named twice are subtracted twice."""
        if not isinstance(gradient, IndexedSlices):
            return super().changes(gradient, variable, step)
        rows = Rows(gradient, is_distinct=False)
        self.update(rows, variable, step)
        return rows.changes

    def update(self, part: Part, variable: Variable, step: Step) -> None:
        """Build the change of a part of one variable."""
        rate = step.number("learning_rate", self.learning_rate, variable.dtype)
        part.subtract(variable, rate * part.gradient)


class MomentumOptimizer(Optimizer):
    """Gradient descent with momentum, plain or Nesterov's.

    `accumulator = momentum * accumulator + gradient; variable -= learning_rate * accumulator`;
    Nesterov's form uses `gradient + momentum * accumulator` for the last. Of a sparse gradient
    only the rows that it names take part, of the accumulator too.

    Args:
        learning_rate: a number, a scalar tensor, or a function that gives one of them.
        momentum: a number or a scalar tensor.
        use_nesterov: whether to use Nesterov's form.
        name: the name scope of what is built, and of the slots.

    Source: Sutskever, Martens, Dahl, Hinton, "On the importance of initialization and momentum in
    deep learning", 2013.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_nesterov: bool = False,
        name: str = "Momentum",
    ) -> None:
        super().__init__(name)
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.use_nesterov = use_nesterov

    def update(self, part: Part, variable: Variable, step: Step) -> None:
        """Build the change of a part of one variable."""
        rate = step.number("learning_rate", self.learning_rate, variable.dtype)
        momentum = step.number("momentum", self.momentum, variable.dtype)
        slot = self.slot(variable, "momentum")
        moved = part.assign(slot, momentum * part.read(slot) + part.gradient)
        change = part.gradient + momentum * moved if self.use_nesterov else moved
        part.subtract(variable, rate * change)


class ProximalGradientDescentOptimizer(Optimizer):
    """Gradient descent, after which the variable is drawn to zero by the regularisers' own step.

    `moved = variable - learning_rate * gradient`, and then `variable = sign(moved) *
    max(abs(moved) - learning_rate * l1, 0) / (1 + learning_rate * l2)`. Elements become exactly
    zero where the L1 regulariser wins. Of a sparse gradient only the rows that it names change.

    Args:
        learning_rate: a number, a scalar tensor, or a function that gives one of them.
        l1_regularization_strength: `l1`, a number that is not negative.
        l2_regularization_strength: `l2`, a number that is not negative.
        name: the name scope of what is built.

    Source: Duchi, Singer, "Efficient online and batch learning using forward backward splitting",
    2009.
    """

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(name)
        self.learning_rate = learning_rate
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength

    def update(self, part: Part, variable: Variable, step: Step) -> None:
        """Build the change of a part of one variable."""
        dtype = variable.dtype
        rate = step.number("learning_rate", self.learning_rate, dtype)
        l1 = step.number("l1", self.l1_regularization_strength, dtype)
        l2 = step.number("l2", self.l2_regularization_strength, dtype)
        shrinkage = step.once(("shrinkage", dtype), lambda: rate * l1)
        scale = step.once(("scale", dtype), lambda: 1.0 + rate * l2)
        proximal_step(part, variable, rate, shrinkage, scale)


def proximal_step(part: Part, variable: Variable, rate: Any, shrinkage: Any, scale: Any) -> None:
    """Go against the gradient, and then towards zero.

    Args:
        part: the part of the variable that changes.
        variable: the variable.
        rate: what the gradient is multiplied by.
        shrinkage: how far the L1 regulariser draws: the rate times its strength.
        scale: what the L2 regulariser divides by: 1 and the rate times its strength.
    """
    moved = part.read(variable) - rate * part.gradient
    part.assign(variable, sign(moved) * maximum(abs_op(moved) - shrinkage, 0.0) / scale)
