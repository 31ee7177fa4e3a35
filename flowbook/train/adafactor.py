"""Adafactor: adaptive steps whose state is a row and a column for each matrix."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import zeros, zeros_like
from flowbook.graph.ops.basis.shaping import expand_dims, shape, size
from flowbook.graph.ops.math.arithmetic import maximum, minimum
from flowbook.graph.ops.math.elementwise import rsqrt, sqrt, square
from flowbook.graph.ops.math.powers import pow
from flowbook.graph.ops.reduction.reductions import reduce_mean
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.ops.state.writing import assign_add
from flowbook.train.optimizer import Optimizer, Step, as_number, complement
from flowbook.train.part import Part

__all__ = ["AdafactorOptimizer"]


class AdafactorOptimizer(Optimizer):
    """Adafactor: gradients over the root of their mean squares, which are kept in factored form.

    For a variable of two or more dimensions the running mean of the squared gradient is kept as
    its means over the last dimension and over the one before, and estimated as their outer
    product: `n + m` numbers for a matrix of `n * m`. Others keep it whole. The step is divided by
    its own root mean square over `clipping_threshold`, where that is above 1.

    State is float32 for smaller floats.

    A sparse gradient counts as that of a variable of the rows that it names: only these change, by
    their own root mean squares, and with them their means over the last dimension. A matrix's means
    over its rows are one vector for all of them: they are decayed at each step that names a row,
    and follow the rows named. So rows keep their scale while others learn, and a step costs by the
    number of rows that it names.

    Args:
        learning_rate: a number or a scalar tensor; by default the paper's relative step size,
            `min(0.01, 1 / sqrt(t))` with t the number of the step, or 0.05 times that without
            `multiply_by_parameter_scale`.
        multiply_by_parameter_scale: whether a step is scaled by the variable's root mean square
            (at least `epsilon2`).
        decay_rate: of the running means, a number or a scalar tensor; by default the paper's
            `1 - t**-0.8`.
        beta1: the decay of a running mean of the steps, which costs a slot; 0 for none.
        clipping_threshold: the largest root mean square of a step before scaling; None for any.
        factored: whether to factor where that is possible.
        epsilon1: what is added to squared gradients.
        epsilon2: the least root mean square that a variable counts as.
        name: the name scope of what is built, and of the slots.

    Source: Shazeer, Stern, "Adafactor: adaptive learning rates with sublinear memory cost", 2018,
    algorithms 4 to 6.
    """

    def __init__(
        self,
        learning_rate: Any = None,
        multiply_by_parameter_scale: bool = True,
        decay_rate: Any = None,
        beta1: float = 0.0,
        clipping_threshold: float | None = 1.0,
        factored: bool = True,
        epsilon1: float = 1e-30,
        epsilon2: float = 1e-3,
        name: str = "Adafactor",
    ) -> None:
        super().__init__(name)
        self.learning_rate = learning_rate
        self.multiply_by_parameter_scale = multiply_by_parameter_scale
        self.decay_rate = decay_rate
        self.beta1 = beta1
        self.clipping_threshold = clipping_threshold
        self.factored = factored
        self.epsilon1 = epsilon1
        self.epsilon2 = epsilon2

    def update(self, part: Part, variable: Variable, step: Step) -> None:
        """Build the change of one variable."""
        wide = dtypes.float64 if variable.dtype is dtypes.float64 else dtypes.float32
        gradient = cast(part.gradient, wide)
        rest = step.once(("rest", wide), lambda: self._rest(wide, step))
        squares = square(gradient) + self.epsilon1
        if self._is_factored(variable):
            change = gradient * self._factors(part, variable, squares, rest)
        else:
            slot = self._kept(variable, "v", wide)
            change = gradient * rsqrt(part.add(slot, rest * (squares - part.read(slot))))
        if self.clipping_threshold is not None:
            change = change / maximum(_root_mean_square(change) / self.clipping_threshold, 1.0)
        rate = step.once(("rate", wide), lambda: self._rate(wide, step))
        if self.multiply_by_parameter_scale:
            value = cast(part.read(variable), wide)
            rate = rate * maximum(_root_mean_square(value), self.epsilon2)
        change = rate * change
        if self.beta1:
            slot = self._kept(variable, "m", wide)
            change = part.add(slot, (1.0 - self.beta1) * (change - part.read(slot)))
        part.subtract(variable, cast(change, variable.dtype))

    def _is_factored(self, variable: Variable) -> bool:
        rank = variable.shape.rank
        if rank is None:
            raise InvalidArgumentError(
                f"Adafactor needs to know how many dimensions {variable.op.name!r} has",
                hint="give the variable an initial value of known rank",
            )
        return self.factored and rank >= 2

    def _factors(self, part: Part, variable: Variable, squares: Tensor, rest: Tensor) -> Tensor:
        """One over the root of the mean square, from the means over columns and over rows."""
        slot = self._kept(variable, "vr", squares.dtype, -1)
        rows = part.add(slot, rest * (reduce_mean(squares, -1) - part.read(slot)))
        slot = self._kept(variable, "vc", squares.dtype, -2)
        if variable.shape.rank == 2:
            columns = assign_add(slot, rest * _mean_of_rows(squares - slot))
        else:
            columns = part.add(slot, rest * (reduce_mean(squares, -2) - part.read(slot)))
        # Steps that named no row yet have left zeros.
        columns = maximum(columns, self.epsilon1)
        # Of all rows both have the same mean; that of few rows would hide how they differ.
        columns = columns / reduce_mean(columns, -1, keepdims=True)
        return expand_dims(rsqrt(rows), -1) * expand_dims(rsqrt(columns), -2)

    def _kept(
        self, variable: Variable, name: str, dtype: DType, without: int | None = None
    ) -> Variable:
        """A slot of zeros, of the variable's shape or without one of its dimensions."""

        def build() -> Tensor:
            if variable.shape.is_fully_defined:
                dims: list[Any] = variable.shape.as_list()
                if without is not None:
                    del dims[without]
                zeroes: Tensor = zeros(dims, dtype)
            else:
                value = cast(variable.value, dtype)
                whole = value if without is None else reduce_mean(value, without)
                zeroes = zeros_like(whole)
            return zeroes

        return self.slot(variable, name, build=build)

    def _rest(self, dtype: DType, step: Step) -> Tensor:
        """What the newest squares weigh in the running mean."""
        if self.decay_rate is not None:
            return complement(self.decay_rate, dtype)
        return pow(self._count(dtype, step), as_number(-0.8, dtype))

    def _rate(self, dtype: DType, step: Step) -> Tensor:
        if self.learning_rate is not None:
            return as_number(self.learning_rate, dtype)
        rate: Tensor = minimum(rsqrt(self._count(dtype, step)), 0.01)
        return rate if self.multiply_by_parameter_scale else 0.05 * rate

    def _count(self, dtype: DType, step: Step) -> Tensor:
        """The number of this step, from 1."""

        def build() -> Tensor:
            kept = self.shared(
                step.graph, "step", dtypes.int64, lambda: convert_to_tensor(0, dtypes.int64)
            )
            step.changes.append(assign_add(kept, 1))
            return kept.as_tensor(False) + 1

        return cast(step.once("count", build), dtype)


def _root_mean_square(value: Tensor) -> Tensor:
    """The root of the mean square of all elements; 0 where there are none."""
    count = _at_least_one(size(value, out_type=dtypes.int64), value.dtype)
    return sqrt(reduce_sum(square(value)) / count)


def _mean_of_rows(value: Tensor) -> Tensor:
    """The mean over the first dimension; zeros where there are no rows."""
    return reduce_sum(value, 0) / _at_least_one(shape(value)[0], value.dtype)


def _at_least_one(count: Tensor, dtype: DType) -> Tensor:
    return maximum(cast(count, dtype), 1.0)
