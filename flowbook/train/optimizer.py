"""What all optimizers share: they compute gradients and build the operations that apply them.

Each optimizer is composed from operations that any user could write; its state lies in variables
("slots") beside the variables that they belong to: on the same device, in the same container.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np

from flowbook.graph.building.graph import Graph, get_default_graph
from flowbook.graph.building.scopes import control_dependencies, name_scope, within
from flowbook.graph.building.surroundings import Scope
from flowbook.graph.definition.public import public
from flowbook.graph.gradients.backward import gradients
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, group
from flowbook.graph.ops.basis.filling import fill, zeros_like
from flowbook.graph.ops.state.marks import mark_as_training
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.ops.state.writing import assign, assign_add
from flowbook.train.part import Part, Rows, Whole
from flowbook.train.remembered import Remembered

__all__ = ["Optimizer"]

GradientAndVariable = tuple[Tensor | IndexedSlices | None, Variable]
Built = TypeVar("Built")


class Step:
    """One application of an optimizer: what is built once for it, whatever the variables.

    Args:
        graph: where it is built, in the current scope.

    Attributes:
        changes: what was built that changes something; an optimizer adds to it what it changes
            once a step.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.changes: list[Any] = []
        self._scope = graph.scope
        self._built: dict[Hashable, Any] = {}

    def once(self, key: Hashable, build: Callable[[], Built]) -> Built:
        """What `build` builds, beside no variable, for all that ask with this key."""
        if key not in self._built:
            with within(self.graph, lambda _: self._scope):
                self._built[key] = build()
        return self._built[key]  # type: ignore[no-any-return]

    def number(self, name: str, value: Any, dtype: DType) -> Tensor:
        """A hyperparameter in a dtype: a constant, or a tensor that is cast."""
        return self.once((name, dtype), lambda: as_number(value, dtype, name))

    def rest(self, name: str, value: Any, dtype: DType) -> Tensor:
        """What a decay leaves, `1 - value`, in a dtype."""
        return self.once((f"rest of {name}", dtype), lambda: complement(value, dtype, name))


def as_number(value: Any, dtype: DType, name: str | None = None) -> Tensor:
    """A hyperparameter as a scalar tensor.

    Args:
        value: a number, a scalar tensor or variable, or a function that gives one of them.
        dtype: what it becomes.
        name: what it is.

    Raises:
        InvalidArgumentError: if it has dimensions.
        InvalidTypeError: if it is no number.
    """
    value = _given(value)
    what = name or "a hyperparameter"
    if isinstance(value, Tensor | Variable):
        number: Tensor = convert_to_tensor(value)
        number = number if number.dtype is dtype else cast(number, dtype, name=name)
    elif value is None or np.asarray(value).dtype.kind not in "iuf":
        raise InvalidTypeError(f"{what} is a number, a scalar tensor or a function, not {value!r}")
    else:
        number = convert_to_tensor(value, dtype, name=name)
    if number.shape.rank:
        raise InvalidArgumentError(f"{what} is one number, not {value!r}")
    return number


def complement(value: Any, dtype: DType, name: str | None = None) -> Tensor:
    """`1 - value` as a tensor; of a Python number without rounding that first."""
    value = _given(value)
    if isinstance(value, float | int | np.floating):
        return as_number(1.0 - float(value), dtype, name)
    return 1.0 - as_number(value, dtype, name)


def _given(value: Any) -> Any:
    return value() if callable(value) else value


# What optimizers of TensorFlow 1 and PyTorch have.
_ELSEWHERE = {
    "get_name": "type(optimizer).__name__",
    "state_dict": "fb.train.Saver(), which saves slots as it saves all variables",
    "step": "sess.run(optimizer.minimize(loss), feeds)",
    "zero_grad": "nothing: each run computes its gradients anew",
}


@elsewhere(_ELSEWHERE)
class Optimizer:
    """Finds variables, their gradients and slots, and puts one step together as an operation.

    A subclass says in `update` how a part of one variable changes: all of it, or the rows that a
    sparse gradient names.

    Args:
        name: the name scope of what is built, and part of the names of slots.

    >>> import flowbook as fb
    >>> class SignDescent(fb.train.Optimizer):
    ...     def update(self, part, variable, step):
    ...         rate = step.number("learning_rate", 0.25, variable.dtype)
    ...         part.subtract(variable, rate * fb.sign(part.gradient))
    >>> x = fb.Variable([4.0, -4.0])
    >>> train = SignDescent("SignDescent").minimize(fb.reduce_sum(fb.square(x)))
    >>> with fb.Session() as sess:
    ...     sess.run(train)
    ...     print(sess.run(x))
    [ 3.75 -3.75]
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._slots = Remembered()
        self._others = Remembered()
        self._used: list[Variable] = []

    @public
    def minimize(
        self,
        loss: Tensor | Variable,
        global_step: Variable | None = None,
        var_list: Sequence[Variable] | Variable | None = None,
        grad_loss: Any = None,
        name: str | None = None,
        *,
        recompute: Any = None,
        swap: Any = None,
    ) -> Operation:
        """An operation that makes one step towards a smaller loss.

        It runs the updates that belong to the loss too, which `graph.updates(of=loss)` lists.

        Args:
            loss: what to minimise, a tensor or variable of floating-point dtype; one with
                dimensions is summed.
            global_step: a variable to count the steps in, or None.
            var_list: the variables to change, or one; by default the graph's trainable ones.
            grad_loss: the gradient of the loss, of its shape; by default ones.
            name: the operation's name.
            recompute: tensors that are kept for the gradients; see `fb.gradients`.
            swap: tensors that wait in host memory for their gradients; see `fb.gradients`.

        Raises:
            InvalidArgumentError: if the loss depends on none of the variables.
        """
        loss = _as_loss(loss)
        pairs = self.compute_gradients(loss, var_list, grad_loss, recompute=recompute, swap=swap)
        if all(gradient is None for gradient, _ in pairs):
            raise InvalidArgumentError(
                f"{loss.name} depends on none of the variables to train: {_names(pairs)}",
                hint="pass var_list, or build the loss from the variables",
            )
        return self._apply(pairs, global_step, name, loss.graph.updates(of=loss))

    @public
    def compute_gradients(
        self,
        loss: Tensor | Variable,
        var_list: Sequence[Variable] | Variable | None = None,
        grad_loss: Any = None,
        *,
        recompute: Any = None,
        swap: Any = None,
    ) -> list[GradientAndVariable]:
        """The gradients of a loss, paired with their variables.

        Args:
            loss: what to differentiate.
            var_list: the variables, or one; by default the graph's trainable ones.
            grad_loss: the gradient of the loss, of its shape; by default ones.
            recompute: tensors that are kept for the gradients; see `fb.gradients`.
            swap: tensors that wait in host memory for their gradients; see `fb.gradients`.

        Returns:
            Pairs of a gradient (None where the loss does not depend on it) and a variable.
        """
        loss = _as_loss(loss)
        if isinstance(var_list, Variable):
            var_list = [var_list]
        variables = list(var_list) if var_list is not None else loss.graph.variables(True)
        for variable in variables:
            if not isinstance(variable, Variable):
                raise InvalidTypeError(
                    f"var_list holds variables, not {variable!r}",
                    hint="fb.gradients(loss, tensors) differentiates by tensors too",
                )
        start = None if grad_loss is None else [grad_loss]
        found = gradients(loss, variables, start, recompute=recompute, swap=swap)
        return list(zip(found, variables, strict=True))

    @public
    def apply_gradients(
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """An operation that changes variables by gradients.

        It knows no loss: where the loss has updates, group them with it:
        `fb.group(train, *graph.updates(of=loss))`.

        Args:
            grads_and_vars: pairs as `compute_gradients` gives them; those without gradient are
                left alone. A gradient may also be a variable, in which gradients were added up,
                or anything else that can be a tensor of the variable's dtype.
            global_step: a variable to count the steps in, or None.
            name: the operation's name.

        Raises:
            InvalidArgumentError: if no variable has a gradient, one is listed twice, or a gradient
                has another shape than its variable.
        """
        return self._apply(grads_and_vars, global_step, name, [])

    def _apply(
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None,
        name: str | None,
        others: Sequence[Operation],
    ) -> Operation:
        given = list(_checked(grads_and_vars))
        pairs = [(g, v) for g, v in given if g is not None]
        if not pairs:
            raise InvalidArgumentError(
                f"there is no gradient to apply to the variables: {_names(given)}"
            )
        graph: Graph = pairs[0][1].graph
        with graph.as_default(), name_scope(name or self.name) as scope:
            step = Step(graph)
            step.changes += others
            self._used = []
            for gradient, variable in pairs:
                label = variable.name_prefix[:-1]
                with beside(variable), name_scope(f"update_{label}"):
                    changes = self.changes(gradient, variable, step)
                    step.changes += _constrained(variable, changes)
            if global_step is not None:
                with control_dependencies(step.changes):
                    step.changes.append(assign_add(global_step, 1))
            train: Operation = group(*step.changes, name=scope)
        self._keep_together()
        mark_as_training(train, None if global_step is None else global_step.op)
        return train

    def _keep_together(self) -> None:
        """Have slots renewed together that share a state, as one that counts their steps."""
        author = sites.capture().author
        shared = {variable for _, variable in self._others.items()}
        if author is not None and not shared.isdisjoint(self._used):
            author.together.append([variable.op for variable in self._used])

    # What a subclass says

    def changes(
        self, gradient: Tensor | IndexedSlices, variable: Variable, step: Step
    ) -> Sequence[Any]:
        """Build the change of one variable, and return what does it.

        Of a sparse gradient only the rows that it names change, and their rows of the slots. Rows
        that are named several times are summed first.
        """
        part: Part = Rows(gradient) if isinstance(gradient, IndexedSlices) else Whole(gradient)
        self.update(part, variable, step)
        return part.changes

    def update(self, part: Part, variable: Variable, step: Step) -> None:
        """Build the change of a part of one variable."""
        raise NotImplementedError

    # State

    def slot(
        self,
        variable: Variable,
        name: str,
        initial: float = 0.0,
        build: Callable[[], Any] | None = None,
    ) -> Variable:
        """The variable that keeps something for `variable`, made on first use.

        Args:
            variable: whose state it is.
            name: which of the optimizer's slots.
            initial: what its elements start with; its shape and dtype are the variable's.
            build: in place of `initial`, a function that gives what it starts with.
        """

        def make() -> Variable:
            with beside(variable), name_scope(None):
                return Variable(
                    build or (lambda: _filled(variable, initial)),
                    trainable=False,
                    name=f"{variable.name_prefix}{self.name}/{name}",
                )

        return self._use(self._slots.get((variable.op, name), make))

    def shared(
        self, graph: Graph, name: str, dtype: DType, initial: Callable[[], Tensor]
    ) -> Variable:
        """A variable of the optimizer's own, beside no other variable, made on first use.

        Args:
            graph: where.
            name: what it is for.
            dtype: its dtype; each has its own.
            initial: builds what it starts with.
        """

        def make() -> Variable:
            with name_scope(None):
                return Variable(initial, trainable=False, name=f"{self.name}/{name}")

        return self._use(self._others.get((graph, name, dtype), make))

    def _use(self, variable: Variable) -> Variable:
        self._used.append(variable)
        return variable

    def get_slot(self, variable: Variable, name: str) -> Variable | None:
        """The variable that keeps something for `variable`, or None if there is none.

        Args:
            variable: whose state it is.
            name: which of the optimizer's slots.
        """
        return self._slots.find((variable.op, name))

    def get_slot_names(self) -> list[str]:
        """The names of the slots that exist, sorted."""
        return sorted({key[1] for key, _ in self._slots.items()})  # type: ignore[index]

    def variables(self) -> list[Variable]:
        """What the optimizer keeps in the default graph: slots, powers, counters; by name."""
        graph = get_default_graph()
        made = [variable for _, variable in (*self._slots.items(), *self._others.items())]
        return sorted((v for v in made if v.graph is graph), key=lambda variable: variable.name)


def beside(variable: Variable) -> AbstractContextManager[Scope]:
    """Build on a variable's device and in its container, whatever was requested around."""
    return within(
        variable.graph,
        lambda scope: scope._replace(
            device="",
            choosers=(),
            colocation=(variable.op,),
            container=variable.op.container,
        ),
    )


def _constrained(variable: Variable, changes: Sequence[Any]) -> Sequence[Any]:
    """The changes of a variable, and after them what keeps it within its constraint."""
    if variable.constraint is None:
        return changes
    with control_dependencies(changes):
        value = variable.as_tensor(False)
        return [*changes, assign(variable, variable.constraint(value))]


def _names(pairs: Iterable[GradientAndVariable]) -> str:
    return ", ".join(repr(variable.op.name) for _, variable in pairs) or "there are none"


def _checked(pairs: Iterable[Any]) -> Iterable[GradientAndVariable]:
    """Pairs as `compute_gradients` gives them, or an error that shows what is not one.

    Raises:
        InvalidTypeError: if something is not such a pair, or cannot be trained.
        InvalidArgumentError: if a variable comes twice, or a gradient has another shape.
    """
    seen: set[Operation] = set()
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidTypeError(f"pairs of a gradient and a variable are applied, not {pair!r}")
        gradient, variable = pair
        if not isinstance(variable, Variable):
            raise InvalidTypeError(f"gradients are applied to variables, not {variable!r}")
        if gradient is not None and not isinstance(gradient, IndexedSlices):
            gradient = _as_gradient(gradient, variable)
        if gradient is not None and not variable.dtype.is_floating:
            raise InvalidTypeError(
                f"{variable.op.name!r} is {variable.dtype.name}: only floating-point variables "
                "are trained"
            )
        if gradient is not None:
            _check_shape(gradient, variable)
        if variable.op in seen:
            raise InvalidArgumentError(
                f"{variable.op.name!r} is listed twice", hint="add its gradients: fb.add_n([a, b])"
            )
        seen.add(variable.op)
        yield gradient, variable


def _as_loss(loss: Any) -> Tensor:
    if isinstance(loss, Variable):
        return loss.value
    if not isinstance(loss, Tensor):
        raise InvalidTypeError(f"the loss is a tensor, not {loss!r}")
    return loss


def _as_gradient(gradient: Any, variable: Variable) -> Tensor:
    """A gradient as a tensor, whatever it was given as."""
    try:
        with variable.graph.as_default():
            return convert_to_tensor(gradient, variable.dtype)
    except InvalidTypeError as error:
        error.message = f"the gradient of {variable.op.name!r}: {error.message}"
        raise


def _check_shape(gradient: Tensor | IndexedSlices, variable: Variable) -> None:
    """Refuse what would be spread over the variable, or over its rows."""
    if isinstance(gradient, IndexedSlices):
        given, wanted = gradient.values.shape, Shape([None]).concatenate(variable.shape[1:])
    else:
        given, wanted = gradient.shape, variable.shape
    if not wanted.is_compatible_with(given):
        raise InvalidArgumentError(
            f"the gradient of {variable.op.name!r} has the shape {given}, not {wanted}"
        )


def _filled(variable: Variable, value: float) -> Tensor:
    """A tensor of a variable's shape that holds one value."""
    number = convert_to_tensor(value, variable.dtype)
    if variable.shape.is_fully_defined:
        filled: Tensor = fill(variable.shape.as_list(), number)
    else:
        # Of its value, as computing its initial value again would draw other numbers.
        filled = zeros_like(variable.value) + number
    return filled
