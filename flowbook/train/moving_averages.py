"""Moving averages of variables and tensors, kept in variables beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flowbook.graph.building.graph import get_default_graph
from flowbook.graph.building.scopes import name_scope
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor, group, identity
from flowbook.graph.ops.basis.filling import zeros
from flowbook.graph.ops.math.arithmetic import minimum
from flowbook.graph.ops.math.powers import pow
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.ops.state.writing import assign_add, assign_sub
from flowbook.train.optimizer import as_number, beside, complement
from flowbook.train.remembered import Remembered, is_current

__all__ = ["ExponentialMovingAverage", "assign_moving_average"]


def assign_moving_average(
    variable: Variable,
    value: Any,
    decay: Any,
    zero_debias: bool = True,
    name: str | None = None,
) -> Tensor:
    """Move a variable that keeps an average towards a value.

    `variable -= (1 - decay) * (variable - value)`. With `zero_debias` the average is corrected for
    its start: it becomes `biased / (1 - decay**t)`, where `biased` is an average of the same kind
    that started from zero, and t counts these moves; both lie in variables beside it.

    Args:
        variable: the average, of floating-point dtype.
        value: of its dtype and shape.
        decay: how much of the old average stays, a number or a scalar tensor from 0 to 1.
        zero_debias: whether to correct for a start from zero.
        name: the name scope of what is built.

    Returns:
        The average after the move.

    Source: the correction: Kingma, Ba, "Adam: a method for stochastic optimization", 2015,
    section 3.
    """
    if not isinstance(variable, Variable) or not variable.dtype.is_floating:
        raise InvalidTypeError(f"an average is kept in a floating-point variable, not {variable!r}")
    graph = variable.graph
    with graph.as_default(), name_scope(name or "AssignMovingAvg"), beside(variable):
        value = convert_to_tensor(value, variable.dtype)
        rest = complement(decay, variable.dtype, "decay")
        if not zero_debias:
            return assign_sub(variable, rest * (variable - value))
        biased, count = _start(variable, "biased"), _start(variable, "local_step")
        moved = assign_sub(biased, rest * (biased - value))
        steps = assign_add(count, 1)
        weight = 1.0 - pow(1.0 - rest, steps)
        return assign_sub(variable, variable - moved / weight)


class ExponentialMovingAverage:
    """Averages of variables or tensors, in which the past fades exponentially.

    `average -= (1 - decay) * (average - value)` at each run of the operation that `apply` gives.
    The average of a variable starts with the variable's initial value, that of a tensor with zero.

    Args:
        decay: how much of the old average stays, a number or a scalar tensor; commonly 0.99 or
            above.
        num_updates: the number of updates so far, to let averages start faster: the decay is then
            at most `(1 + num_updates) / (10 + num_updates)`. None for none.
        zero_debias: whether averages of tensors are corrected for their start from zero.
        name: part of the averages' names: `variable/name`.

    >>> import flowbook as fb
    >>> W = fb.Variable(0.0)
    >>> average = fb.train.ExponentialMovingAverage(decay=0.75)
    >>> with fb.control_dependencies([fb.assign(W, 4.0)]):
    ...     step = average.apply([W])
    >>> with fb.Session() as sess:
    ...     _ = sess.run(step)
    ...     print(sess.run(average.average(W)))
    1.0
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self.decay = decay
        self.num_updates = num_updates
        self.zero_debias = zero_debias
        self.name = name
        self._averages = Remembered()

    def apply(self, var_list: Sequence[Variable | Tensor] | None = None) -> Operation:
        """An operation that moves all averages towards the current values.

        Build it under `fb.control_dependencies([train])`, so that it sees what training gives.

        Args:
            var_list: variables and tensors of floating-point dtype; by default the default
                graph's trainable variables. A tensor's shape is fully known.

        Raises:
            InvalidTypeError: if something listed has no average.
            InvalidArgumentError: if there is nothing to average, or a tensor's shape is not known.
        """
        averaged = list(get_default_graph().variables(True) if var_list is None else var_list)
        if not averaged:
            raise InvalidArgumentError("there is nothing to average")
        for item in averaged:
            if not isinstance(item, Variable | Tensor) or not item.dtype.is_floating:
                raise InvalidTypeError(
                    f"averages are those of floating-point variables and tensors, not of {item!r}"
                )
        graph = averaged[0].graph
        with graph.as_default(), name_scope(self.name) as scope:
            moves = []
            for item in averaged:
                average = self._average(item)
                corrected = self.zero_debias and not isinstance(item, Variable)
                decay = self._decay(item)
                moves.append(assign_moving_average(average, item, decay, corrected))
            return group(*moves, name=scope)

    def average(self, var: Variable | Tensor) -> Variable | None:
        """The variable that holds the average, or None if `apply` was not called for it.

        Args:
            var: what is averaged.
        """
        return self._averages.find(_key(var))

    def average_name(self, var: Variable | Tensor) -> str:
        """The name that the average of a variable or tensor has, or would have.

        Args:
            var: what is averaged.
        """
        found = self.average(var)
        return found.op.name if found is not None else f"{var.op.name}/{self.name}"

    def variables_to_restore(
        self, moving_avg_variables: Iterable[Variable] | None = None
    ) -> dict[str, Variable]:
        """Variables by the names of what to restore them from, averages in place of values.

        Args:
            moving_avg_variables: the variables to restore from their averages; by default the
                default graph's trainable ones, and those that `apply` was called for.

        Returns:
            All variables of the default graph: those by their averages' names, others by their
            own, unless that is the name of one of those averages.
        """
        if moving_avg_variables is None:
            trainable = get_default_graph().variables(True)
            applied = [o for o in get_default_graph().variables() if self.average(o) is not None]
            chosen = [*trainable, *applied]
        else:
            chosen = list(moving_avg_variables)
        restored = {self.average_name(variable): variable for variable in chosen}
        averaged = {variable.op for variable in chosen}
        for variable in get_default_graph().variables():
            if variable.op not in averaged:
                restored.setdefault(variable.op.name, variable)
        return restored

    def _average(self, item: Variable | Tensor) -> Variable:
        return self._averages.get(_key(item), lambda: _beside(item, self.name))

    def _decay(self, item: Variable | Tensor) -> Any:
        if self.num_updates is None:
            return self.decay
        updates = as_number(self.num_updates, item.dtype)
        return minimum(as_number(self.decay, item.dtype), (1.0 + updates) / (10.0 + updates))


def _key(item: Variable | Tensor) -> Any:
    return item.op if isinstance(item, Variable) else item


def _beside(item: Variable | Tensor, name: str) -> Variable:
    """A variable for the average of a variable or tensor."""
    if isinstance(item, Variable):
        with beside(item), name_scope(None):
            # Its value, as computing its initial value again would draw other numbers.
            return Variable(
                lambda: identity(item.value), trainable=False, name=f"{item.name_prefix}{name}"
            )
    if not item.shape.is_fully_defined:
        raise InvalidArgumentError(
            f"the average of {item.name} {item.shape} needs its shape",
            hint="fb.reshape(x, [...]) with the known dimensions, or average a reduced value",
        )
    with name_scope(None):
        return Variable(
            lambda: zeros(item.shape, item.dtype), trainable=False, name=f"{item.op.name}/{name}"
        )


def _start(average: Variable, name: str) -> Variable:
    """A variable of zeros that belongs to a corrected average."""
    full = f"{average.name_prefix}{name}"
    graph = average.graph
    if graph.has_operation(full):
        found = graph.variable_of(graph.get_operation_by_name(full))
        if found is not None and is_current(found):
            return found  # type: ignore[no-any-return]
    shape: Any = average.shape if name == "biased" else []
    with name_scope(None):
        return Variable(lambda: zeros(shape, average.dtype), trainable=False, name=full)
