"""Adam, and Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from flowbook.graph.building.scopes import control_dependencies
from flowbook.graph.definition.descriptions import arguments_as
from flowbook.graph.model.dtypes import DType, float64
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.math.elementwise import sqrt, square
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.ops.state.writing import assign, scatter_add
from flowbook.train.distinct_rows import distinct_rows
from flowbook.train.optimizer import Optimizer, Step, as_number
from flowbook.train.part import Part, Whole

__all__ = ["AdamOptimizer", "AdamWOptimizer"]


class AdamOptimizer(Optimizer):
    """Adam: steps scaled by running estimates of the gradient's first two moments.

    With t the number of the step, `rate = learning_rate * sqrt(1 - beta2**t) / (1 - beta1**t)`,
    `m = beta1 * m + (1 - beta1) * gradient`, `v = beta2 * v + (1 - beta2) * gradient**2`, and
    `variable -= rate * m / (sqrt(v) + epsilon)`.

    A sparse gradient counts as a dense one, zero in the rows that it does not name: their moments
    decay and they move on, so that the step costs by the size of the variable. With `lazy=True`
    only the rows that it names take part: the step costs by their number, and other rows stay as
    they are. Both are in use, and give different values.

    Args:
        learning_rate: a number, a scalar tensor, or a function that gives one of them.
        beta1: the decay of the first moment `m`, a number or a scalar tensor.
        beta2: the decay of the second moment `v`, a number or a scalar tensor.
        epsilon: what keeps the divisor from zero; in float16 anything below 6e-8 is zero.
        lazy: whether sparse gradients touch only the rows that they name.
        name: the name scope of what is built, and of the slots.

    Raises:
        InvalidArgumentError: if a decay is a number outside of [0, 1).

    Source: Kingma, Ba, "Adam: a method for stochastic optimization", 2015 (the form before
    section 2.1 there, with its epsilon hat).
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        lazy: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(name)
        for what, beta in (("beta1", beta1), ("beta2", beta2)):
            if isinstance(beta, float | int) and not 0 <= beta < 1:
                raise InvalidArgumentError(f"{what} is from 0 to below 1, not {beta!r}")
        self.learning_rate = learning_rate
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lazy = lazy

    def changes(
        self, gradient: Tensor | IndexedSlices, variable: Variable, step: Step
    ) -> Sequence[Any]:
        """Build the change of one variable, of all of it unless the optimizer is lazy."""
        if isinstance(gradient, IndexedSlices) and not self.lazy:
            return self._changes_by_rows(distinct_rows(gradient), variable, step)
        return super().changes(gradient, variable, step)

    def update(self, part: Part, variable: Variable, step: Step) -> None:
        """Build the change of a part of one variable."""
        rest_m = step.rest("beta1", self.beta1, variable.dtype)
        rest_v = step.rest("beta2", self.beta2, variable.dtype)
        m, v = self.slot(variable, "m"), self.slot(variable, "v")
        new_m = part.add(m, rest_m * (part.gradient - part.read(m)))
        new_v = part.add(v, rest_v * (square(part.gradient) - part.read(v)))
        self._move(part, variable, (new_m, new_v), step)

    def _changes_by_rows(
        self, gradient: IndexedSlices, variable: Variable, step: Step
    ) -> Sequence[Any]:
        """As for the dense gradient, which is never built."""
        dtype = variable.dtype
        moments = []
        for name, what, beta, rows in (
            ("m", "beta1", self.beta1, gradient.values),
            ("v", "beta2", self.beta2, square(gradient.values)),
        ):
            slot = self.slot(variable, name)
            decay, rest = step.number(what, beta, dtype), step.rest(what, beta, dtype)
            with control_dependencies([assign(slot, decay * slot)]):
                moments.append(scatter_add(slot, gradient.indices, rest * rows))
        whole = Whole(gradient.values)
        self._move(whole, variable, (moments[0], moments[1]), step)
        return whole.changes

    def _move(
        self, part: Part, variable: Variable, moments: tuple[Tensor, Tensor], step: Step
    ) -> None:
        """Build the change of a part of a variable, given the part's new moments."""
        m, v = moments
        epsilon = step.number("epsilon", self.epsilon, variable.dtype)
        rate = step.once(("rate", variable.dtype), lambda: self._rate(variable.dtype, step))
        change = rate * m / (sqrt(v) + epsilon)
        decayed = self._decayed(part, variable, step)
        part.subtract(variable, change if decayed is None else change + decayed)

    def _decayed(self, part: Part, variable: Variable, step: Step) -> Tensor | None:
        """What is taken from a part of a variable besides Adam's step."""
        return None

    def _rate(self, dtype: DType, step: Step) -> Tensor:
        """The learning rate, corrected for the moments' start from zero."""
        return as_number(step.once("corrected", lambda: self._corrected_rate(step)), dtype)

    def _corrected_rate(self, step: Step) -> Tensor:
        # float64 for all variables: float32 rounds 1 - 0.999 otherwise than the moments do.
        powers = []
        for name, beta in (("beta1_power", self.beta1), ("beta2_power", self.beta2)):
            number = step.number(name.removesuffix("_power"), beta, float64)
            kept = self.shared(step.graph, name, float64, partial(as_number, beta, float64))
            powers.append(kept.as_tensor(False))
            step.changes.append(assign(kept, kept * number))
        rate = step.number("learning_rate", self.learning_rate, float64)
        return rate * sqrt(1.0 - powers[1]) / (1.0 - powers[0])


@arguments_as(AdamOptimizer)
class AdamWOptimizer(AdamOptimizer):
    """Adam with decoupled weight decay: `variable -= weight_decay * variable` besides Adam's step.

    The decay is not part of the gradient, so that it does not enter the moments; nor is it scaled
    by the learning rate: where that follows a schedule, let `weight_decay` follow it too. A sparse
    gradient decays all rows; with `lazy=True` those that it names.

    Args:
        weight_decay: what part of a variable is taken from it at each step, a number or a scalar
            tensor.
        decay_var_list: the variables that decay; by default all that change. Biases and the
            parameters of normalisations are commonly left out.
        name: the name scope of what is built, and of the slots.

    Source: Loshchilov, Hutter, "Decoupled weight decay regularization", 2019, algorithm 2.
    """

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        lazy: bool = False,
        decay_var_list: Sequence[Variable] | None = None,
        name: str = "AdamW",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, lazy, name)
        self.weight_decay = weight_decay
        for variable in decay_var_list or ():
            if not isinstance(variable, Variable):
                raise InvalidTypeError(f"decay_var_list holds variables, not {variable!r}")
        self.decay_var_list = None if decay_var_list is None else list(decay_var_list)

    def _decayed(self, part: Part, variable: Variable, step: Step) -> Tensor | None:
        """What the decay takes from a part of a variable, if it decays."""
        kept = self.decay_var_list
        if kept is not None and all(v.op is not variable.op for v in kept):
            return None
        return step.number("weight_decay", self.weight_decay, variable.dtype) * part.read(variable)
