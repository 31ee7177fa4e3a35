"""FTRL-Proximal: sparse linear models, learnt online."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.math.arithmetic import maximum, minimum
from flowbook.graph.ops.math.elementwise import sqrt, square
from flowbook.graph.ops.math.no_nan import div_no_nan
from flowbook.graph.ops.math.powers import pow
from flowbook.graph.ops.state.variables import Variable
from flowbook.train.optimizer import Optimizer, Step
from flowbook.train.part import Part

__all__ = ["FtrlOptimizer"]


class FtrlOptimizer(Optimizer):
    """Follow the regularised leader, with the proximal form of its regularisers.

    With `p = -learning_rate_power` and `accum` the sum of squared gradients so far, before and
    after this step, `linear += gradient - (after**p - before**p) / learning_rate * variable`, and
    the variable becomes `(clip(linear, -l1, l1) - linear) / (after**p / learning_rate + 2 * l2)`:
    exactly zero where `abs(linear)` is at most `l1`. Of a sparse gradient only the rows that it
    names take part.

    Args:
        learning_rate: a number, a scalar tensor, or a function that gives one of them.
        learning_rate_power: how the steps shrink, at most 0; 0 keeps their size.
        initial_accumulator_value: what `accum` starts with; not negative.
        l1_regularization_strength: `l1`, a number that is not negative.
        l2_regularization_strength: `l2`, a number that is not negative.
        l2_shrinkage_regularization_strength: adds `2 * this * variable` to the gradient in
            `linear`, but not in `accum`; not negative.
        name: the name scope of what is built, and of the slots.

    Raises:
        InvalidArgumentError: if a number has a sign that it may not have.

    Source: McMahan and others, "Ad click prediction: a view from the trenches", 2013.
    """

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        name: str = "Ftrl",
    ) -> None:
        super().__init__(name)
        if learning_rate_power > 0:
            raise InvalidArgumentError(
                f"learning_rate_power is at most 0, not {learning_rate_power!r}"
            )
        for what, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0:
                raise InvalidArgumentError(f"{what} is not negative: {value!r}")
        self.learning_rate = learning_rate
        self.learning_rate_power = learning_rate_power
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength

    def update(self, part: Part, variable: Variable, step: Step) -> None:
        """Build the change of a part of one variable."""
        dtype, gradient = variable.dtype, part.gradient
        rate = step.number("learning_rate", self.learning_rate, dtype)
        accum = self.slot(variable, "accum", self.initial_accumulator_value)
        linear = self.slot(variable, "linear")
        value, before = part.read(variable), part.read(accum)
        pull = gradient
        if self.l2_shrinkage_regularization_strength:
            pull = pull + 2.0 * self.l2_shrinkage_regularization_strength * value
        root = self._root(part.add(accum, square(gradient)), dtype, step)
        change = (root - self._root(before, dtype, step)) / rate * value
        moved = part.add(linear, pull - change)
        l1, l2 = self.l1_regularization_strength, self.l2_regularization_strength
        wanted = minimum(maximum(moved, -l1), l1) - moved if l1 else -moved
        # Nothing over nothing, where there was no gradient yet, is what the clip leaves: 0.
        part.assign(variable, div_no_nan(wanted, root / rate + 2.0 * l2))

    def _root(self, accum: Tensor, dtype: Any, step: Step) -> Tensor:
        if self.learning_rate_power == -0.5:
            root: Tensor = sqrt(accum)
        else:
            root = pow(accum, step.number("power", -self.learning_rate_power, dtype))
        return root
