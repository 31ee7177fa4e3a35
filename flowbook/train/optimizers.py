"""Optimizers: they compute gradients and build the operations that apply them.

Each is composed from operations that any user could write; their state lies in variables ("slots")
beside the variables that they belong to, on the same device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flowbook.graph.dtypes import DType
from flowbook.graph.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.gradients import gradients
from flowbook.graph.graph import Graph
from flowbook.graph.indexed_slices import IndexedSlices
from flowbook.graph.operation import Operation
from flowbook.graph.ops.constants import convert_to_tensor, group
from flowbook.graph.ops.elementwise import cast, sqrt, square
from flowbook.graph.ops.filling import zeros, zeros_like
from flowbook.graph.ops.variables import Variable, assign, assign_add, assign_sub, scatter_sub
from flowbook.graph.scopes import colocate_with, control_dependencies, name_scope
from flowbook.graph.tensor import Tensor

GradientAndVariable = tuple[Tensor | IndexedSlices | None, Variable]


class Optimizer:
    """What all optimizers share: finding the variables, gradients, slots, and one operation.

    A subclass says in `update` how one variable changes.

    Args:
        name: the name scope of what is built.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._slots: dict[tuple[Operation, str], Variable] = {}

    def minimize(
        self,
        loss: Tensor,
        global_step: Variable | None = None,
        var_list: Sequence[Variable] | None = None,
        *,
        name: str | None = None,
    ) -> Operation:
        """An operation that makes one step towards a smaller loss.

        Args:
            loss: what to minimise, of floating-point dtype; a loss with dimensions is summed.
            global_step: a variable to count the steps in, or None.
            var_list: the variables to change; by default the graph's trainable ones.
            name: the operation's name.

        Raises:
            InvalidArgumentError: if the loss depends on none of the variables.
        """
        __tracebackhide__ = True
        pairs = self.compute_gradients(loss, var_list)
        if all(gradient is None for gradient, _ in pairs):
            names = ", ".join(repr(v.op.name) for _, v in pairs) or "there are none"
            raise InvalidArgumentError(
                f"{loss.name} depends on none of the variables to train: {names}",
                hint="pass var_list, or build the loss from the variables",
            )
        return self.apply_gradients(pairs, global_step, name=name)

    def compute_gradients(
        self, loss: Tensor, var_list: Sequence[Variable] | None = None
    ) -> list[GradientAndVariable]:
        """The gradients of a loss, paired with their variables.

        Args:
            loss: what to differentiate.
            var_list: the variables; by default the graph's trainable ones.

        Returns:
            Pairs of a gradient (None where the loss does not depend on it) and a variable.
        """
        __tracebackhide__ = True
        if not isinstance(loss, Tensor):
            raise InvalidTypeError(f"the loss is a tensor, not {loss!r}")
        variables = list(var_list) if var_list is not None else loss.graph.variables(True)
        for variable in variables:
            if not isinstance(variable, Variable):
                raise InvalidTypeError(f"var_list holds variables, not {variable!r}")
        return list(zip(gradients(loss, variables), variables, strict=True))

    def apply_gradients(
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None = None,
        *,
        name: str | None = None,
    ) -> Operation:
        """An operation that changes variables by gradients.

        Args:
            grads_and_vars: pairs as `compute_gradients` gives them; those without gradient are
                left alone.
            global_step: a variable to count the steps in, or None.
            name: the operation's name.
        """
        __tracebackhide__ = True
        pairs = [(g, v) for g, v in _checked(grads_and_vars) if g is not None]
        if not pairs:
            raise InvalidArgumentError("there is no gradient to apply")
        graph: Graph = pairs[0][1].graph
        with graph.as_default(), name_scope(name or self.name) as scope:
            updates: list[Any] = list(self.begin([variable for _, variable in pairs]))
            for gradient, variable in pairs:
                with colocate_with(variable.op), name_scope(f"update_{variable.op.name}"):
                    updates.append(self.update(gradient, variable))
            if global_step is not None:
                with control_dependencies(updates):
                    updates.append(assign_add(global_step, 1))
            return group(*updates, name=scope)  # type: ignore[no-any-return]

    def begin(self, variables: list[Variable]) -> Iterable[Any]:
        """Build what a step needs once, whatever the number of variables."""
        return ()

    def update(self, gradient: Tensor | IndexedSlices, variable: Variable) -> Any:
        """Build the change of one variable, and return what does it."""
        raise NotImplementedError

    def slot(self, variable: Variable, name: str) -> Variable:
        """The variable that keeps something for `variable`, zero at first, made on first use.

        Args:
            variable: whose state it is.
            name: which of the optimizer's slots.
        """
        key = (variable.op, name)
        if key not in self._slots:
            prefix = f"{variable.op.name}/{self.name}"
            with name_scope(None), colocate_with(variable.op), control_dependencies(None):
                self._slots[key] = Variable(
                    lambda: _zeros_for(variable), trainable=False, name=f"{prefix}/{name}"
                )
        return self._slots[key]

    def get_slot(self, variable: Variable, name: str) -> Variable | None:
        """The variable that keeps something for `variable`, or None if there is none.

        Args:
            variable: whose state it is.
            name: which of the optimizer's slots.
        """
        return self._slots.get((variable.op, name))

    def get_slot_names(self) -> list[str]:
        """The names of the slots that exist."""
        return sorted({name for _, name in self._slots})


def _checked(pairs: Iterable[Any]) -> Iterable[GradientAndVariable]:
    """Pairs as `compute_gradients` gives them, or an error that shows what is not one.

    Raises:
        InvalidTypeError: if something is not such a pair.
    """
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidTypeError(f"pairs of a gradient and a variable are applied, not {pair!r}")
        gradient, variable = pair
        if not isinstance(variable, Variable):
            raise InvalidTypeError(f"gradients are applied to variables, not {variable!r}")
        if gradient is not None and not isinstance(gradient, Tensor | IndexedSlices):
            raise InvalidTypeError(
                f"the gradient of {variable.op.name!r} is not a tensor: {gradient!r}"
            )
        yield gradient, variable


def _zeros_for(variable: Variable) -> Tensor:
    """Zeros of a variable's shape."""
    if variable.shape.is_fully_defined:
        zeroes: Tensor = zeros(variable.shape, variable.dtype)
    else:
        # Of its value, as computing its initial value again would draw other numbers.
        zeroes = zeros_like(variable.value)
    return zeroes


def _as(value: Any, variable: Variable) -> Tensor:
    """A hyperparameter in the variable's dtype."""
    if isinstance(value, Tensor | Variable):
        return cast(value, variable.dtype)  # type: ignore[no-any-return]
    return convert_to_tensor(value, variable.dtype)


def _dense(gradient: Tensor | IndexedSlices) -> Tensor:
    return gradient.as_tensor() if isinstance(gradient, IndexedSlices) else gradient


class GradientDescentOptimizer(Optimizer):
    """Gradient descent: `variable -= learning_rate * gradient`.

    Args:
        learning_rate: a number or a scalar tensor.
        name: the name scope of what is built.
    """

    def __init__(self, learning_rate: Any, name: str = "GradientDescent") -> None:
        super().__init__(name)
        self.learning_rate = learning_rate

    def update(self, gradient: Tensor | IndexedSlices, variable: Variable) -> Any:
        """Build the change of one variable; of a sparse gradient only the rows it names."""
        rate = _as(self.learning_rate, variable)
        if isinstance(gradient, IndexedSlices):
            return scatter_sub(variable, gradient.indices, rate * gradient.values)
        return assign_sub(variable, rate * gradient)


class MomentumOptimizer(Optimizer):
    """Gradient descent with momentum, plain or Nesterov's.

    `accumulator = momentum * accumulator + gradient; variable -= learning_rate * accumulator`;
    Nesterov's form uses `gradient + momentum * accumulator` for the last.

    Args:
        learning_rate: a number or a scalar tensor.
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

    def update(self, gradient: Tensor | IndexedSlices, variable: Variable) -> Any:
        """Build the change of one variable; a sparse gradient counts as a dense one."""
        gradient = _dense(gradient)
        rate, momentum = _as(self.learning_rate, variable), _as(self.momentum, variable)
        accumulator = self.slot(variable, "momentum")
        moved = assign(accumulator, momentum * accumulator + gradient)
        step = gradient + momentum * moved if self.use_nesterov else moved
        return assign_sub(variable, rate * step)


class AdamOptimizer(Optimizer):
    """Adam: steps scaled by running estimates of the gradient's first two moments.

    With t the number of the step, `rate = learning_rate * sqrt(1 - beta2**t) / (1 - beta1**t)`,
    and `variable -= rate * m / (sqrt(v) + epsilon)`.

    Args:
        learning_rate: a number or a scalar tensor.
        beta1: the decay of the first moment `m`.
        beta2: the decay of the second moment `v`.
        epsilon: what keeps the divisor from zero.
        name: the name scope of what is built, and of the slots.

    Source: Kingma, Ba, "Adam: a method for stochastic optimization", 2015 (the form before
    section 2.1 there, with its epsilon hat).
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        name: str = "Adam",
    ) -> None:
        super().__init__(name)
        self.learning_rate = learning_rate
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self._powers: dict[Any, tuple[Tensor, Tensor]] = {}
        self._power_variables: dict[tuple[Graph, str, DType], Variable] = {}

    def begin(self, variables: list[Variable]) -> Iterable[Any]:
        """Build the powers of the decays, one pair per dtype."""
        self._powers = {}
        for variable in variables:
            if variable.dtype not in self._powers:
                self._powers[variable.dtype] = tuple(  # type: ignore[assignment]
                    self._power(name, beta, variable)
                    for name, beta in (("beta1_power", self.beta1), ("beta2_power", self.beta2))
                )
        return [power.op for pair in self._powers.values() for power in pair]

    def _power(self, name: str, beta: float, variable: Variable) -> Tensor:
        """`beta ** t` for this step, t counted from 1, kept in a variable."""
        key = (variable.graph, name, variable.dtype)
        if key not in self._power_variables:
            with name_scope(None):
                self._power_variables[key] = Variable(
                    lambda: convert_to_tensor(1.0, variable.dtype),
                    trainable=False,
                    name=f"{self.name}/{name}",
                )
        power = self._power_variables[key]
        return assign(power, power * _as(beta, variable))

    def update(self, gradient: Tensor | IndexedSlices, variable: Variable) -> Any:
        """Build the change of one variable; a sparse gradient counts as a dense one."""
        gradient = _dense(gradient)
        power1, power2 = self._powers[variable.dtype]
        beta1, beta2 = _as(self.beta1, variable), _as(self.beta2, variable)
        one = _as(1.0, variable)
        m, v = self.slot(variable, "m"), self.slot(variable, "v")
        new_m = assign(m, beta1 * m + (one - beta1) * gradient)
        new_v = assign(v, beta2 * v + (one - beta2) * square(gradient))
        rate = _as(self.learning_rate, variable) * sqrt(one - power2) / (one - power1)
        return assign_sub(variable, rate * new_m / (sqrt(new_v) + _as(self.epsilon, variable)))
