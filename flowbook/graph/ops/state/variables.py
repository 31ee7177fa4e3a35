"""Variables: state that survives runs (white paper, section 2).

A variable is a resource. Its `Variable` operation produces a handle; reads and writes take the
handle. There are no reference dtypes: a read gives a value, and the order of reads and writes
within a step is fixed by rule (`graph/rewrite/order_state.py`), not by chance. What writes is in
`writing.py`, but for the operation that gives a variable its initial value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any, NoReturn

from flowbook.graph.building.graph import Graph, get_default_graph, mixed_graphs
from flowbook.graph.building.names import name_from
from flowbook.graph.building.scopes import device, init_scope, name_scope, within
from flowbook.graph.definition.arguments import value_of
from flowbook.graph.definition.inference import scalar
from flowbook.graph.definition.keywords import signature_of_init
from flowbook.graph.definition.op_def import NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.definition.packing import packed
from flowbook.graph.model.convert import to_array
from flowbook.graph.model.dtypes import DType, as_dtype
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.model.touch import READS, VARIABLE, WRITES
from flowbook.graph.ops.basis.constants import constant, identity
from flowbook.graph.redefinition.definition_digest import definition_digest

__all__ = ["Variable", "is_variable_initialized"]

# What each read and write says of its variable.
TYPED = {"dtype": REQUIRED, "shape": UNKNOWN}

variable_op = OpDef(
    "Variable",
    "-> handle: resource",
    attributes={**TYPED, "trainable": True, "initial_digest": ""},
    infer=scalar,
    owns=VARIABLE.name,
    only_moves=True,
)


def _variable_shape(*_: Any, shape: Shape, **__: Any) -> Shape:
    return shape


read_variable = OpDef(
    "ReadVariable",
    "variable: resource -> value: dtype",
    attributes=TYPED,
    infer=_variable_shape,
    kernel=lambda xp, variable: variable.read(),
    grad=lambda op, dy: dy,
    touches=READS,
    reads_as=identity,
    aliases={0: 0},
    grad_takes_slices=True,
    only_moves=True,
)

is_initialized_op = OpDef(
    "IsInitialized",
    "variable: resource -> is_initialized: bool",
    infer=scalar,
    kernel=lambda xp, variable: xp.asarray(variable.is_initialized),
    touches=READS,
    needs_value=False,
    only_moves=True,
)


def written_shape(variable: Tensor, value: Tensor, *, shape: Shape, **_: Any) -> Shape:
    """The shape of a variable that is given a value."""
    if not shape.is_compatible_with(value.shape):
        raise InvalidArgumentError(
            f"a value of shape {value.shape} does not fit the variable of shape {shape}"
        )
    return shape


assign_op = OpDef(
    "Assign",
    "variable: resource, value: dtype -> new_value: dtype",
    attributes={**TYPED, "is_initializer": False},
    infer=written_shape,
    kernel=lambda xp, variable, value: variable.assign(value),
    grad=NO_GRADIENT,
    touches=WRITES,
    needs_value=False,
    initializes=lambda op: op.attributes["is_initializer"],
    aliases={0: 0},
    only_moves=True,
)


# What TensorFlow 1 has as methods, of which there is one way here.
_ELSEWHERE = {
    "assign": "fb.assign(variable, value)",
    "assign_add": "fb.assign_add(variable, value)",
    "assign_sub": "fb.assign_sub(variable, value)",
    "batch_scatter_update": "fb.scatter_nd_update(variable, indices, updates)",
    "count_up_to": "fb.count_up_to(variable, limit)",
    "eval": "sess.run(variable)",
    "gather_nd": "fb.gather_nd(variable, indices)",
    "get_shape": "variable.shape",
    "grad": "fb.gradients(loss, [variable])",
    "item": "sess.run(variable)",
    "initialized_value": "variable.value",
    "is_initialized": "fb.is_variable_initialized(variable)",
    "load": "sess.run(fb.assign(variable, value))",
    "numpy": "sess.run(variable)",
    "read_value": "fb.identity(variable)",
    "scatter_nd_add": "fb.scatter_nd_add(variable, indices, updates)",
    "scatter_nd_sub": "fb.scatter_nd_sub(variable, indices, updates)",
    "scatter_nd_update": "fb.scatter_nd_update(variable, indices, updates)",
    "ref": "the variable itself, which may be a key",
    "scatter_add": "fb.scatter_add(variable, indices, updates)",
    "scatter_div": "fb.scatter_div(variable, indices, updates)",
    "scatter_max": "fb.scatter_max(variable, indices, updates)",
    "scatter_min": "fb.scatter_min(variable, indices, updates)",
    "scatter_mul": "fb.scatter_mul(variable, indices, updates)",
    "scatter_sub": "fb.scatter_sub(variable, indices, updates)",
    "scatter_update": "fb.scatter_update(variable, indices, updates)",
    "sparse_read": "fb.gather(variable, indices)",
    "to_proto": "graph.save(path)",
}


@variable_op.front
@elsewhere(_ELSEWHERE)
class Variable(Arithmetic):
    """State that survives runs: a tensor's worth of values that operations read and write.

    Used where a tensor is wanted, it stands for its value at that point of the step. Fetching it
    reads it; feeding it replaces every read of it in that run.

    Args:
        initial_value: what it starts with: a tensor, anything array-like, or a function without
            arguments that gives one. It is computed on first use, in a step of its own.
        trainable: whether optimizers update it by default.
        name: the variable's name; by default "Variable".
        dtype: the dtype that array-like initial values get.
        validate_shape: whether it keeps the shape of its initial value; if not, nothing is known
            of its shape, and each assignment may give it another.
        caching_device: the device on which its value is read, such as one that many operations
            need it on; by default where it lies.
        constraint: a function from its value to the value that it is given in its place after each
            step of an optimizer. A stored graph keeps to it in the steps that it has; for new ones
            it has to be given again, as the error of an optimizer says.

    Attributes:
        op: the operation that produces its handle.
        handle: the handle, which reads and writes take.
        initial_value: the tensor that it starts with.
        initializer: the operation that (re)initialises it.
        value: the read that was built with it, which waits for no control dependencies;
            `fb.identity(variable)` is its value where that is built.
        constraint: see above; None if there is none.

    Raises:
        InvalidTypeError: if the initial value has no dtype, or another than `dtype`.

    Source: white paper, section 2, "Variables".

    >>> import flowbook as fb
    >>> W = fb.Variable(fb.zeros([2]), name="W")
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.assign_add(W, [1.0, 2.0])), sess.run(W))
    [1. 2.] [1. 2.]
    """

    def __new__(
        cls,
        initial_value: Any = None,
        trainable: bool = True,
        name: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Variable:
        """A new one; where a template is called again, the one that its first call made."""
        scope = get_default_graph().scope
        if scope.sharing is None:
            return super().__new__(cls)
        made = partial(super().__new__, cls)
        return scope.sharing.variable(scope.prefix, name or "Variable", made)  # type: ignore[no-any-return]

    def __init__(
        self,
        initial_value: Any,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        *,
        validate_shape: bool = True,
        caching_device: str | None = None,
        constraint: Callable[[Tensor], Any] | None = None,
    ) -> None:
        # A value that cannot be an initial one is refused before the name is taken.
        given, graph = self._checked(initial_value, dtype)
        if self._is_made:
            # What is named after it gets the same name in each call.
            graph.enter_name(name or "Variable")
            self._check_shared(given, dtype)
            return
        with (
            graph.as_default(),
            init_scope(),
            name_scope(name or "Variable") as scope,
        ):
            initial = self._initial(given, dtype)
            if initial.op.context is not None:
                raise InvalidArgumentError(
                    f"the initial value {initial.name!r} is inside of a loop, a branch or a "
                    "function, and the variable outside",
                    hint="give a function that builds it: fb.Variable(lambda: fb.zeros([3]))",
                )
            if initial.graph is not graph:
                raise mixed_graphs([(initial.name, initial.graph), (scope[:-1], graph)])
            typed = {"dtype": initial.dtype, "shape": initial.shape if validate_shape else UNKNOWN}
            handle = variable_op(
                **typed,
                trainable=bool(trainable),
                initial_digest=definition_digest(initial),
                name=scope,
            )
            initializer = assign_op(handle, initial, **typed, is_initializer=True, name="Assign").op
            with nullcontext() if caching_device is None else device(caching_device):
                value = read_variable(handle, **typed, name="read")
            self._set(handle.op, initial, initializer, value, constraint)
        self.graph.members.register_variable(self, is_named=name is not None)

    # Of the two it is __init__ that says what is given.
    __signature__ = signature_of_init()

    @property
    def _is_made(self) -> bool:
        """Whether it is there already, as that of a template's first call."""
        return hasattr(self, "op")

    def _check_shared(self, given: Any, dtype: Any) -> None:
        """See that it can stand for what another call of its template asks for.

        Args:
            given: an initial value, from `_checked`; a function is not called.
            dtype: the dtype that is asked for, or None.
        """
        if callable(given):
            asked, shape = as_dtype(dtype or self.dtype), self.shape
        else:
            asked, shape = as_dtype(given.dtype), Shape(given.shape)
        if asked is not self.dtype or not self.shape.is_compatible_with(shape):
            raise InvalidArgumentError(
                f"the variable {self.name!r} of the template's first call is {self.dtype.name} "
                f"{self.shape}, and this call asks for {asked.name} {shape}",
                self.op,
                hint="a template whose variables are others is another template",
            )

    @staticmethod
    def _checked(value: Any, dtype: Any) -> tuple[Any, Graph]:
        """An initial value that can be one (a function is not called yet), and its graph."""
        wanted = None if dtype is None else as_dtype(dtype)
        value = value_of(value) if isinstance(value, Tensor) else packed(value)
        if isinstance(value, Tensor) or hasattr(value, "as_tensor"):
            if wanted is not None and value.dtype is not wanted:
                raise InvalidTypeError(
                    f"the initial value {getattr(value, 'name', value)} is {value.dtype.name}, "
                    f"not {wanted.name}",
                    hint=f"fb.cast(initial_value, fb.{wanted.name})",
                )
            return value, value.graph
        if callable(value):
            return value, get_default_graph()
        return to_array(value, wanted), get_default_graph()

    @staticmethod
    def _initial(given: Any, dtype: Any) -> Tensor:
        """The initial value, built under the variable's name."""
        if callable(given):
            given, _ = Variable._checked(given(), dtype)
        if hasattr(given, "as_tensor"):
            given = given.as_tensor(False)
        return given if isinstance(given, Tensor) else constant(given, name="initial_value")

    def _set(
        self,
        op: Operation,
        initial: Tensor,
        initializer: Operation,
        value: Tensor,
        constraint: Callable[[Tensor], Any] | None = None,
    ) -> None:
        self.op = op
        self.handle: Tensor = op.outputs[0]
        self.initial_value = initial
        self.initializer = initializer
        self.value = value
        self.constraint = constraint

    @classmethod
    def of(cls, op: Operation, among: Iterable[Operation] | None = None) -> Variable:
        """The variable of an existing `Variable` operation, as when a graph was loaded.

        Args:
            op: the operation that produces its handle.
            among: where to look for what reads and initialises it; by default in the graph.

        Raises:
            InvalidArgumentError: if nothing reads or initialises it.
        """
        known = op.graph.variable_of(op)
        if known is not None:
            return known  # type: ignore[no-any-return]
        consumers = op.graph.consumers(op.outputs[0]) if among is None else list(among)
        assignments = (c for c in consumers if c.op_def is assign_op)
        initializer = next((c for c in assignments if c.op_def.initializes(c)), None)
        read = next((c for c in consumers if c.op_def is read_variable), None)
        if initializer is None or read is None:
            raise InvalidArgumentError("the variable has no initializer or no read", op)
        self = object.__new__(cls)
        self._set(op, initializer.inputs[1], initializer, read.outputs[0])
        op.graph.members.register_variable(self)
        return self

    @property
    def name(self) -> str:
        """The handle's name, such as "W:0"."""
        return self.handle.name

    @property
    def name_prefix(self) -> str:
        """The name scope of what is built about it; a retired one's name is no name for that."""
        return name_from(self.op.name) + "/"

    @property
    def dtype(self) -> DType:
        """The type of its elements."""
        return self.op.attributes["dtype"]  # type: ignore[no-any-return]

    @property
    def shape(self) -> Shape:
        """What is known of its shape."""
        return self.op.attributes["shape"]  # type: ignore[no-any-return]

    @property
    def trainable(self) -> bool:
        """Whether optimizers update it by default."""
        return self.op.attributes["trainable"]  # type: ignore[no-any-return]

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        return self.op.graph

    @property
    def device(self) -> str:
        """The device that was requested for it, or an empty string."""
        return self.op.device

    def as_tensor(self, handle: bool) -> Tensor:
        """Its handle, or its value at this point of the step."""
        if handle:
            return self.handle
        scope = self.graph.scope
        if not scope.control_inputs and scope.flow is None:
            # Without control dependencies every read means the same: one is enough.
            return self.value
        # A later read asks for nothing of what is around it: what is known of the variable decides.
        asked = self.value.device if self.value.device != self.device else ""
        where = within(
            self.graph, lambda scope: scope._replace(device=asked, choosers=(), colocation=())
        )
        with self.graph.as_default(), name_scope(self.name_prefix), where:
            return read_variable(self.handle, dtype=self.dtype, shape=self.shape, name="read")

    def __iter__(self) -> Any:
        return iter(self.as_tensor(False))

    def __len__(self) -> int:
        return len(self.as_tensor(False))

    def __bool__(self) -> NoReturn:
        self.value.__bool__()

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.value.__array__()

    def __repr__(self) -> str:
        return f"<Variable '{self.op.name}' shape={self.shape} dtype={self.dtype.name}>"


def is_variable_initialized(ref: Variable, name: str | None = None) -> Tensor:
    """Whether a variable has a value: a bool scalar. Asking does not initialise it."""
    if not isinstance(ref, Variable):
        raise InvalidTypeError(f"{ref!r} is not a variable")
    with ref.graph.as_default():
        return is_initialized_op(ref.handle, name=name)
