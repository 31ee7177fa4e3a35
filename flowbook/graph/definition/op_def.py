"""What an operation type is: signature, inference, kernel, gradient, and what the passes must know.

One `OpDef` is the public function, the registry's row and the documentation of an operation:

>>> import numpy as np
>>> import flowbook as fb
>>> cube = fb.OpDef(
...     "Cube", "x: T -> y: T", T=fb.FLOATS,
...     infer=lambda x: x.shape,
...     kernel=lambda xp, x: x * x * x,
...     grad=lambda op, dy: dy * 3.0 * op.inputs[0] * op.inputs[0],
... )
>>> with fb.Session(graph=fb.Graph()) as sess, sess.graph.as_default():
...     print(sess.run(cube([1.0, 2.0])))
[1. 8.]

Signatures read `inputs -> outputs`, each `name: dtype`. A dtype is a type variable (given as a
keyword with the dtypes that it admits), the name of a dtype, or the name of an attribute that holds
one. `values: N*T` is a list of one dtype, `values: *Tin` one of any dtypes; `outputs: *Tout` are as
many outputs as the attribute `Tout` names dtypes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from types import EllipsisType, MappingProxyType
from typing import TYPE_CHECKING, Any, Generic

from flowbook.graph.building.flow import Flow
from flowbook.graph.building.graph import Graph, get_default_graph, mixed_graphs
from flowbook.graph.definition.arguments import Argument, Resolver
from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.descriptions import with_name
from flowbook.graph.definition.expression import Expression
from flowbook.graph.definition.keywords import REQUIRED, misfit, misnamed, signature_of_init
from flowbook.graph.definition.packing import tensors_in
from flowbook.graph.definition.run_axes import AxisInput
from flowbook.graph.definition.soundness import check_definition
from flowbook.graph.definition.standing import StandsFor
from flowbook.graph.model import dtypes, registry
from flowbook.graph.model.attributes import PLAIN_TYPES, check_alike, check_choice, fixed_value
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    OpError,
    without_internal_frames,
)
from flowbook.graph.model.mark import Mark
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Touch

__all__ = ["NO_GRADIENT", "OpDef", "REQUIRED"]

# What calling a definition builds: one tensor, unless its annotation says otherwise.
# Type checkers know defaults of type variables; Python does from 3.13 on.
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Built = TypeVar("Built", default=Tensor)
else:
    from typing import TypeVar

    Built = TypeVar("Built")

Function = TypeVar("Function", bound=Callable[..., Any])


# What an operation's function takes besides inputs and attributes.
_NAME = "the operation's name."

# What stands for the operation's name among what is given by places.
_PLACED_NAME: Any = object()

_WITHOUT_GRADIENTS = (dtypes.bool, dtypes.string)

_NONE: Mapping[int, int] = MappingProxyType({})

_NO_CHOICES: Mapping[str, tuple[str | None, ...]] = MappingProxyType({})

# The kinds of device for kernels that compute with NumPy itself, or on what only Python holds.
HOST = ("cpu",)


def NO_GRADIENT(op: Operation, *dys: Any) -> tuple[None, ...]:
    """The gradient function of operations through which no gradient flows."""
    return (None,) * len(op.inputs)


def _no_flops(_: Operation) -> int:
    """The cost of what only moves data."""
    return 0


class OpDef(Generic[Built]):
    """An operation type; called with tensors, it builds an operation.

    To type checkers it gives one tensor. Where the signature says otherwise, an annotation does
    too: `parts_op: OpDef[list[Tensor]] = OpDef(...)`.

    Args:
        type: the type's name, such as "MatMul".
        signature: see the module's text.
        infer: `infer(*inputs, **attributes)` gives the output's Shape, or a list of Shapes where
            the outputs are not exactly one. Raises InvalidArgumentError where inputs do not fit.
        kernel: `kernel(xp, *inputs, **attributes)` gives the output, or a tuple of them. It takes
            those attributes that it names. `xp` is NumPy or a module like it. If the operation
            computes, values of bfloat16 arrive as float32, and the results are rounded.
        expression: in place of a kernel, for elementwise operations: an expression of the inputs
            and of functions of `xp`, from which all code for it is generated, such as
            "logaddexp(x, 0)"; several outputs have one each, separated by commas. What takes
            several steps computes float16 in float32, and large arrays block by block, if the
            steps are universal functions, operators or `where`. Beside a kernel it says the same,
            for code that joins operations: the kernel is what is faster where the operation stands
            alone.
        grad: `grad(op, *dys)` gives the gradient for each input (one for a single input), None
            where there is none. `NO_GRADIENT` says that no gradient flows, and goes without saying
            where outputs are integers, bools or strings; otherwise asking for a gradient without
            `grad` is a LookupError. Zeros stand in for the gradients of outputs that nothing
            uses; a function with a keyword-only parameter `used` is told for each output whether
            something does.
        grad_takes_slices: whether `grad` takes gradients of a few rows as they are, as
            `IndexedSlices`; otherwise it gets tensors.
        attributes: default values by name; REQUIRED where there is none.
        choices: by names of attributes the strings of which each of them is one, such as
            `{"norm": ("backward", "forward")}`; others are refused, also where a graph is read.
            None is among them where it may be none.
        after_name: those attributes whose places are behind that of the operation's name.
        kinds: the kinds of device on which that kernel is right. By default every kind, as a
            kernel is that computes with `xp` alone; `("cpu",)` if it computes with NumPy itself. A
            device of another kind needs a kernel that is registered for it: see `register_kernel`.
        host_args: the names of those inputs that the kernel gets in host memory, whatever the
            device: shapes, axes, and what else decides what is computed.
        touches: the resource that running touches, and how: `Touch(Access.OUTSIDE)` for what acts
            outside the graph. Nothing by default: operations that touch nothing may be merged,
            computed before the run, or left out.
        owns: the kind of resource that each operation of this type owns. Without a kernel its
            handle is the output; with one, the kernel gets the resource after `xp`. What has an
            attribute `shared_name` shares the resource with others of the same, if that is not
            empty.
        reads_as: for an operation that reads a variable, the pure type that means the same on the
            variable's value, used where the variable is fed.
        needs_value: whether the resource that it reads or writes must have been initialised.
        initializes: `initializes(operation)`, of what writes a resource: whether that only gives it
            its first value, which is neither a use of it nor a step of a training. By default none
            does.
        aliases: {output: input} whose memory may be shared; None where it is not known. By default
            none is, if the type is one of Flowbook's own and has a kernel that does not wait; of
            others it is not known.
        pushes: {output: input} where the output is a stack that holds the input from then on.
        pops: {output: input} where the input is a stack that held the output.
        swaps: whether what it pushes and pops is held in host memory, whatever the device.
        is_async: the kernel gets an AsyncContext in place of `xp` and reports to it.
        fires_on_any: whether one input that is alive is enough to run it, as a Merge; the others
            are `fb.control_flow.DEAD` then.
        retag: into which iteration its outputs go, a `fb.control_flow.Retag`. What enters a frame
            has the attributes `frame_name`, and `is_constant`: whether they are there in each of
            its iterations.
        sees_dead: whether it runs, and is not passed by, where an input is dead.
        gives_dead: whether its kernel gives `fb.control_flow.DEAD` for one of its two outputs: its
            last input, a bool, names the other one, as that of a Switch does.
        runs_early: whether a device runs it as soon as what it takes is there, though it was built
            later: it makes room in the device's memory.
        runs_users_code: whether the kernel calls a Python function that an attribute holds.
        only_moves: whether it only moves, names or spells data: it computes with none of the
            numbers, and costs no floating-point operations.
        computes: whether it computes with the numbers that it takes, rather than to compare or
            choose them as they are.
        keeps_zeros: whether it is elementwise, of one argument, and zero where that is: of a
            sparse tensor it computes the elements alone, and gives a sparse tensor.
        batching: how it is built for all elements of a batch at once, as in `fb.vectorized_map`,
            which loops over the elements where it is not known: a `fb.control_flow.Batching`. It
            goes without saying of what has an expression or keeps zeros: that is elementwise.
        is_constant: whether its output is its attribute `value`, wherever it is not fed.
        must_be_fed: whether its output is what a run is fed, as a placeholder's: a run that needs
            it and is fed nothing for it is an error.
        computes_shapes: whether shapes are computed with it. Of a few integers that the graph
            determines it is computed while the graph is built, and what is built with its output
            knows of which shape it is.
        elements: what the graph tells of the elements of an integer output, where it does not
            determine all of them: `elements(op, known)` gives them row after row, None for each
            that only the run knows, or None if it does not even know how many there are.
            `known(tensor)` tells the same of an input.
        is_identity: whether its output is its input, where both are of one dtype: consumers of the
            output then take the input, and the operation drops out of the run.
        spreads_nonfinite: the names of those inputs of which each NaN, and each infinity, surely
            makes one in the output, whatever the other inputs hold: where the output is finite,
            they were.
        keeps_finite: whether the output is finite where all of the inputs are, for an operation
            that may hide what is not, as a maximum does.
        axis: the name of an attribute that is an axis, and may also be a tensor whose value only
            the run knows: that builds an operation of another type, `At` behind its name, of which
            it is the last input.
        axes: the same of an attribute that is a tuple of axes.
        vouches: whether its output is its input, of which it has checked the shape, and what is
            built later takes it in the place of the input (`building/known_shapes.py`).
        stands_for: of a call of a function: `stands_for(operation)` gives the operations that a run
            has in its place. It reserves as many ids as these need: a `fb.control_flow.StandsFor`.
        marks: what it says of other operations, if it computes nothing and only does so: a
            `fb.train.Mark`.
        summary: what its outputs are over the steps of a training, if runs give them for showing:
            "scalar", "histogram", "image" or "text". Its attribute `tag` is the name that they are
            shown under, or empty; images have numbers behind it, unless `max_outputs` is 1.
        for_strings: what does for strings what it does for numbers, for who gives it strings.
        fetched_as: makes what a fetch of its only output gives of the value, such as a handle's
            object of its text; by default the value itself.
        cost: `cost(operation)` estimates the floating-point operations (FLOPs) of one run, whatever
            the dtype: one for a sum, difference, product, quotient, comparison, selection or
            rounding, so two for a product that is added; 4 for a square root; 10 for an
            exponential, a logarithm or a function of angles. Where the number depends on the
            values, as in a decomposition, the leading terms count. It is 0 where it takes shapes
            that are not known, which `fb.forecast` says. What only moves data has none.
        doc: the documentation of the public function.
        function: its name, where it is not the type's in lower case.
        type_variables: the dtypes that each type variable admits.
    """

    def __init__(
        self,
        type: str,
        signature: str,
        *,
        infer: Callable[..., Any] | None = None,
        kernel: Callable[..., Any] | None = None,
        expression: str | None = None,
        grad: Callable[..., Any] | None = None,
        grad_takes_slices: bool = False,
        attributes: Mapping[str, Any] | None = None,
        choices: Mapping[str, tuple[str | None, ...]] = _NO_CHOICES,
        after_name: tuple[str, ...] = (),
        kinds: tuple[str, ...] | None = None,
        host_args: tuple[str, ...] = (),
        touches: Touch | None = None,
        owns: str | None = None,
        reads_as: OpDef[Any] | None = None,
        needs_value: bool = True,
        initializes: Callable[[Operation], bool] = lambda _: False,
        aliases: Mapping[int, int] | EllipsisType | None = ...,
        pushes: Mapping[int, int] = _NONE,
        pops: Mapping[int, int] = _NONE,
        swaps: bool = False,
        is_async: bool = False,
        fires_on_any: bool = False,
        retag: Retag = Retag.NONE,
        sees_dead: bool = False,
        gives_dead: bool = False,
        runs_early: bool = False,
        runs_users_code: bool = False,
        only_moves: bool = False,
        computes: bool = True,
        keeps_zeros: bool = False,
        batching: Batching | None = None,
        is_constant: bool = False,
        must_be_fed: bool = False,
        computes_shapes: bool = False,
        elements: Callable[..., Any] | None = None,
        is_identity: bool = False,
        spreads_nonfinite: tuple[str, ...] = (),
        keeps_finite: bool = False,
        axis: str | None = None,
        axes: str | None = None,
        vouches: bool = False,
        stands_for: StandsFor | None = None,
        marks: Mark | None = None,
        summary: str | None = None,
        for_strings: str | None = None,
        fetched_as: Callable[[Any], Any] | None = None,
        cost: Callable[[Operation], int] | None = None,
        doc: str | None = None,
        function: str | None = None,
        **type_variables: tuple[DType, ...],
    ) -> None:
        self.type = self.key = type
        self.signature = signature
        self.infer = infer
        self.expression: Expression | None = None
        self.is_inlined = False
        self.kernel = kernel
        # By kind of device; see `register_kernel`. A type that is defined again has none.
        self.registered: dict[str, tuple[registry.Registered, ...]] = {}
        # What executors have worked out of it, by what that depends on besides. It lives as long as
        # the definition, and no longer: a cell may make one after the other.
        self.worked_out: dict[Any, Any] = {}
        self.grad_takes_slices = grad_takes_slices
        defaults = {
            k: v if v is REQUIRED else self._fixed(k, v) for k, v in (attributes or {}).items()
        }
        self.attributes: Mapping[str, Any] = MappingProxyType(defaults)
        self.choices: Mapping[str, tuple[str | None, ...]] = MappingProxyType(dict(choices))
        self.after_name = after_name
        self.kinds = kinds
        self.host_args = host_args
        self.touches = touches
        self.owns = owns
        self.reads_as = reads_as
        self.needs_value = needs_value
        self.initializes = initializes
        self.pushes = pushes
        self.pops = pops
        self.swaps = swaps
        self.is_async = is_async
        self.fires_on_any = fires_on_any
        self.retag = retag
        self.sees_dead = sees_dead
        self.gives_dead = gives_dead
        self.routes = fires_on_any or gives_dead or retag is not Retag.NONE
        self.is_router = self.routes or sees_dead
        self.runs_early = runs_early
        self.runs_users_code = runs_users_code
        self.keeps_zeros = keeps_zeros
        if batching is None and (expression or keeps_zeros):
            batching = Batching.ELEMENTWISE
        self.batching = batching
        self.is_constant = is_constant
        self.must_be_fed = must_be_fed
        self.computes_shapes = computes_shapes
        self.elements = elements
        self.is_identity = is_identity
        self.spreads_nonfinite = spreads_nonfinite
        self.keeps_finite = keeps_finite
        self.vouches = vouches
        self.stands_for = stands_for
        self.marks = marks
        self.summary = summary
        self.for_strings = for_strings
        self.fetched_as = fetched_as
        self.cost = _no_flops if only_moves else cost
        self.type_variables = type_variables
        self.access = touches.access if touches is not None else None
        self.is_pure = touches is None and owns is None
        self.is_handle = owns is not None and kernel is None
        self.is_builtin = registry.defines_own()
        # Whether it may run at any time, and once more, as nobody can tell. Of users' kernels that
        # is not known, though nothing is said of what they touch: they may count or print.
        self.is_repeatable = self.is_pure and self.is_builtin and not is_async
        if isinstance(aliases, EllipsisType):
            # What is our own is tested to share nothing that it does not name.
            aliases = {} if self.is_builtin and kernel is not None and not is_async else None
        self.aliases = aliases
        inputs, arrow, outputs = signature.partition("->")
        if not arrow:
            raise InvalidArgumentError(f"the signature {signature!r} of {type} has no '->'")
        self.inputs = [Argument(text) for text in inputs.split(",") if text.strip()]
        self.outputs = [Argument(text) for text in outputs.split(",") if text.strip()]
        self.grad = grad
        self.gives_variant = any(argument.token == "variant" for argument in self.outputs)
        check_definition(self)
        if grad is None and not self._may_have_gradients():
            self.grad = NO_GRADIENT
        self.only_moves = only_moves
        self.computes = computes and not only_moves
        # What takes bfloat16, but by no type variable, as a user's function may, gets it as it is.
        takes_it = any(dtypes.bfloat16 in admitted for admitted in type_variables.values())
        self.widens = self.computes and takes_it
        if expression is not None:
            self.expression = Expression(
                expression, [a.name for a in self.inputs], list(self.attributes)
            )
            self.is_inlined = kernel is None
            self.kernel = kernel or self.expression.kernel()
            self.aliases = {}
        self.__name__ = function or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type).lower()
        self.__doc__ = with_name(doc, _NAME)
        self.public: Callable[..., Any] = self
        self._prepare_building()
        self._axis = axis or axes or ""
        self.with_axis_input: OpDef[Built] | None = None
        self.axis_input: AxisInput | None = None
        # Where the axis is an input: the type of which it is an attribute, and which.
        self.fixed_axis: tuple[OpDef[Any], str] | None = None
        if self._axis:
            self.axis_input = AxisInput(self, self._axis, axes is not None)
        registry.define(self)
        if self.axis_input is not None:
            self.with_axis_input = self.axis_input.define()
            self.with_axis_input.fixed_axis = self, self._axis

    def _may_have_gradients(self) -> bool:
        """Whether some output may be of a dtype that has gradients, or a handle."""
        admitted = [
            self.type_variables.get(a.token) or dtypes.BY_NAME.get(a.token) for a in self.outputs
        ]
        found = [t for d in admitted for t in (d if isinstance(d, tuple) else [d])]
        return any(t is None or not (t.is_integer or t in _WITHOUT_GRADIENTS) for t in found)

    def front(self, function: Function) -> Function:
        """Make `function` the public function of this type, as a decorator.

        If it takes a name, its docstring need not say that this is the operation's.
        """
        if "name" in inspect.signature(function).parameters:
            function.__doc__ = with_name(function.__doc__, _NAME)
        self.public = function
        self.__name__ = function.__name__
        return function

    # Building

    def _prepare_building(self) -> None:
        """Decide once what every operation that is built would ask."""
        inputs = [argument.name for argument in self.inputs]
        required = [name for name, value in self.attributes.items() if value is REQUIRED]
        # What it may be given, in order and as a set, and what it must be given.
        before = [name for name in self.attributes if name not in self.after_name]
        self._places = [*inputs, *before, _PLACED_NAME, *self.after_name]
        self._known = frozenset([*inputs, *self.attributes, _PLACED_NAME])
        self._needed = frozenset([*inputs, *required])
        self._defaults = None if required else dict(self.attributes)
        self._arity = len(self.inputs)
        # The kernel asked about last, and the attributes that it takes.
        self._attributes_of: tuple[Callable[..., Any], list[str]] | None = None
        self._output_dtypes = self._output_dtypes_by_input()

    def _output_dtypes_by_input(self) -> dict[str, tuple[DType, ...]]:
        """The common case, decided once: the outputs' dtypes by the name of that of all inputs.

        There are none where the signature has lists, or where the inputs are not all of one type
        variable.
        """
        tokens = {argument.token for argument in self.inputs}
        outputs = [dtypes.BY_NAME.get(argument.token) for argument in self.outputs]
        if (
            len(tokens) != 1
            or any(argument.is_list for argument in (*self.inputs, *self.outputs))
            or not all(d or a.token in tokens for a, d in zip(self.outputs, outputs, strict=True))
        ):
            return {}
        admitted = self.type_variables.get(tokens.pop(), ())
        return {dtype.name: tuple([d or dtype for d in outputs]) for dtype in admitted}

    def __call__(self, *args: Any, name: str | None = None, **kwargs: Any) -> Built:
        """Build one operation.

        Args:
            args: the inputs in the order of the signature, then attributes.
            name: the operation's name; by default its type's.
            kwargs: inputs and attributes by name.

        Returns:
            The output tensor, a tuple or list of them, or the Operation if it has none.

        Raises:
            InvalidTypeError: if a dtype does not fit.
            InvalidArgumentError: if shapes or attributes do not fit.
        """
        __tracebackhide__ = True
        attributes = self._defaults
        if kwargs or attributes is None or len(args) != self._arity:
            if self.with_axis_input is not None:
                along = self._along_tensor(args, kwargs, name)
                if along is not None:
                    return self.with_axis_input(*args[: len(self.inputs)], **along)
            args, attributes, name = self._bind(args, kwargs, name)
        if self.keeps_zeros and type(args[0]) is not Tensor and hasattr(args[0], "with_values"):
            return args[0].with_values(self(args[0].values, **attributes, name=name))  # type: ignore[no-any-return]
        graph, dtype = self._graph_and_dtype(args)
        scope = graph.scope
        site = scope.site or sites.capture()
        flow = scope.flow
        found = self._output_dtypes.get(dtype) if flow is None else None
        try:
            if found is not None:
                inputs: tuple[Tensor, ...] = args
                pending: Sequence[tuple[int, Operation, str]] = ()
            else:
                inputs, args, pending, found = self._resolve(graph, args, attributes, site, flow)
            shapes = self._infer(args, attributes, len(found))
        except OpError as error:
            # A name that ends with "/" is the whole name.
            full = name[:-1] if name and name.endswith("/") else f"{scope.prefix}{name}"
            what = f"{self.type} {full!r}" if name else self.type
            described = [a for a in args if isinstance(a, Tensor) and a.op.name]
            raise without_internal_frames(error.at(what, site, described)) from error.__cause__
        except Exception as error:  # Definitions take for granted what attributes hold.
            described = [a for a in args if isinstance(a, Tensor) and a.op.name]
            unfit = self._unfit(error).at(self.type, site, described)
            raise without_internal_frames(unfit) from error
        operation = graph.add(
            Operation(
                graph,
                self,
                inputs,
                self.attributes if attributes is self._defaults else MappingProxyType(attributes),
                found,
                shapes,
                site,
            ),
            name,
            pending,
            scope,
        )
        outputs = operation.outputs
        # `Built` is what the signature's text says.
        if len(self.outputs) == 1:
            return (list(outputs) or operation) if self.outputs[0].is_list else outputs[0]  # type: ignore[return-value]
        return outputs or operation  # type: ignore[return-value]

    def _along_tensor(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None
    ) -> dict[str, Any] | None:
        """What it is given behind its inputs, by names, if the axis is a tensor."""
        count = len(self.inputs)
        given: dict[Any, Any] = dict(zip(self._places[count:], args[count:], strict=False))
        is_named = _PLACED_NAME in given
        if len(args) > len(self._places) or given.keys() & kwargs.keys() or (is_named and name):
            return None  # That is an error, of which `_bind` tells.
        given = {"name": given.pop(_PLACED_NAME, name), **given, **kwargs}
        return given if isinstance(given.get(self._axis), Tensor) else None

    def _bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any], str | None]:
        """The inputs, the attributes and the name that it is given, by places and by names."""
        given: dict[Any, Any] = dict(zip(self._places, args, strict=False)) | kwargs
        attributes = {n: given.get(n, default) for n, default in self.attributes.items()}
        fits = (
            len(given) == len(args) + len(kwargs)
            and given.keys() <= self._known
            and given.keys() >= self._needed
            and (name is None or _PLACED_NAME not in given)
        )
        named = kwargs if name is None else {**kwargs, "name": name}
        error = None if fits else misfit(self, args, named)
        name = given.get(_PLACED_NAME, name)
        if error is None:
            error = misnamed(self, name, self._meant(given))
        if error is not None:
            raise error
        for key, value in attributes.items():
            if key in given:
                if type(value) not in PLAIN_TYPES:
                    attributes[key] = self._fixed(key, value)
                try:
                    self._check_value(key, value)
                except OpError as wrong:
                    wrong.at(self.type, sites.capture())
                    raise without_internal_frames(wrong) from None
        return tuple(given[a.name] for a in self.inputs), attributes, name

    def _meant(self, given: Mapping[Any, Any]) -> str | None:
        """The attribute that what stands in the place of the name may be meant for."""
        placed = given.get(_PLACED_NAME)
        if not isinstance(placed, str):
            return None
        found = [n for n, admitted in self.choices.items() if placed in admitted]
        return next((n for n in found if n not in given), None)

    def _fixed(self, name: str, value: Any) -> Any:
        try:
            return fixed_value(value)
        except OpError as error:
            error.message = f"{name!r}: {error.message}"
            raise without_internal_frames(error.at(self.type, sites.capture())) from None

    def _check_value(self, name: str, value: Any) -> None:
        if self.is_builtin:  # A user's kernel may take one thing or another.
            check_alike(name, value, self.attributes[name])
        if name in self.choices:
            check_choice(name, value, self.choices[name])

    def _unfit(self, error: Exception) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"attributes and inputs do not fit {self.type}: {type(error).__name__}: {error}"
        )

    def _graph_and_dtype(self, args: tuple[Any, ...]) -> tuple[Graph, str]:
        """The graph to build in, and the name of the dtype that all arguments have, or ""."""
        graph: Graph | None = None
        dtype: DType | None = None
        is_one = True
        for arg in args:
            if type(arg) is Tensor:
                if graph is None:
                    graph, dtype = arg.op.graph, arg.dtype
                elif arg.op.graph is not graph:
                    raise self._mixed(args)
                elif arg.dtype is not dtype:
                    is_one = False
            else:
                is_one = False
                for item in tensors_in(arg):
                    if graph is not None and item.graph is not graph:
                        raise self._mixed(args)
                    graph = item.graph
        if graph is None:
            graph = get_default_graph()
        return graph, dtype.name if is_one and dtype is not None else ""

    def _mixed(self, args: tuple[Any, ...]) -> InvalidArgumentError:
        owners = [(i.name, i.graph) for i in tensors_in(args)]
        error = mixed_graphs(owners)
        error.at(self.type, sites.capture())
        return error

    def _infer(
        self, args: tuple[Any, ...], attributes: Mapping[str, Any], count: int
    ) -> tuple[Shape, ...]:
        if self.infer is None:
            return (Shape(),) * count
        if not self.is_builtin:
            return self._checked_shapes(args, attributes, count)
        shapes = self.infer(*args, **attributes)
        return (shapes,) if type(shapes) is Shape else tuple(shapes)

    def _checked_shapes(
        self, args: tuple[Any, ...], attributes: Mapping[str, Any], count: int
    ) -> tuple[Shape, ...]:
        """What a user's `infer` gives, which may be anything."""
        assert self.infer is not None
        try:
            result = self.infer(*args, **attributes)
        except OpError:
            raise
        except Exception as error:
            raise InvalidArgumentError(
                f"its infer raised {type(error).__name__}: {error}"
            ) from without_internal_frames(error)
        shapes = (result,) if isinstance(result, Shape) else result
        if not isinstance(shapes, list | tuple) or not all(
            isinstance(shape, Shape | list | tuple) for shape in shapes
        ):
            raise InvalidTypeError(
                f"its infer gave {result!r:.80}, which is no Shape",
                hint="return a Shape such as x.shape, or a list of Shapes for several outputs",
            )
        if len(shapes) != count:
            raise InvalidArgumentError(
                f"its infer gave {counted(len(shapes), 'shape')} for {counted(count, 'output')}"
            )
        return tuple([Shape(shape) for shape in shapes])

    def _resolve(
        self,
        graph: Graph,
        args: Sequence[Any],
        attributes: Mapping[str, Any],
        site: sites.Site,
        flow: Flow | None = None,
    ) -> tuple[tuple[Tensor, ...], tuple[Any, ...], list[Any], tuple[DType, ...]]:
        """Tensors for all arguments and dtypes for all outputs."""
        resolver = Resolver(self, graph, attributes, site, flow)
        tensors = resolver.inputs(args)
        flat: list[Tensor] = []
        for argument, value in zip(self.inputs, tensors, strict=True):
            if argument.is_list:
                flat.extend(value)
            else:
                flat.append(value)
        return tuple(flat), tuple(tensors), resolver.pending, tuple(resolver.outputs())

    # What others ask of a definition

    @property
    def views(self) -> Mapping[int, int]:
        """{output: input} that surely share memory: what moves or writes data may name it alone."""
        if self.computes and self.is_pure:
            return {}  # Where it is named, memory is shared if there is nothing to compute.
        return self.aliases or {}

    @property
    def is_single(self) -> bool:
        """Whether it has exactly one output, which is what its kernel returns."""
        return len(self.outputs) == 1 and not self.outputs[0].is_list

    def grouped(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[Any]:
        """An operation's inputs by arguments of the signature: a list for each that takes one.

        Args:
            inputs: the tensors, or what stands for them, such as numbers of values in a plan.
            attributes: the operation's.

        Raises:
            InvalidArgumentError: if they are too few or too many.
        """
        count = len(inputs) - sum(not a.is_list for a in self.inputs)
        lengths = [self._length(a, attributes) for a in self.inputs if a.is_list]
        known = sum(n for n in lengths if n is not None)
        if count < known or lengths.count(None) > 1 or (None not in lengths and count != known):
            raise InvalidArgumentError(
                f"{counted(len(inputs), 'input')} cannot fit {self.signature!r}"
            )
        rest, sizes = iter(inputs), iter(count - known if n is None else n for n in lengths)
        return [list(islice(rest, next(sizes))) if a.is_list else next(rest) for a in self.inputs]

    @staticmethod
    def _length(argument: Argument, attributes: Mapping[str, Any]) -> int | None:
        """How many inputs a list takes, where an attribute says so."""
        found = attributes.get(argument.token) if argument.is_mixed else None
        return len(found) if isinstance(found, tuple) else None

    def complete(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The attributes in the order of the definition, with defaults for those not given.

        Raises:
            InvalidArgumentError: if one is missing that has no default, is not known, or is not of
                the kind of its default, or none of its choices.
        """
        attributes = {name: given.get(name, default) for name, default in self.attributes.items()}
        missing = [name for name, value in attributes.items() if value is REQUIRED]
        if missing or given.keys() - attributes.keys():
            raise InvalidArgumentError(
                f"the attributes are {', '.join(given) or 'none'}, "
                f"but {self.type} has {', '.join(attributes) or 'none'}"
            )
        for name, value in given.items():
            self._check_value(name, value)
        return MappingProxyType(attributes)

    def infer_outputs(
        self, graph: Graph, inputs: Sequence[Tensor], attributes: Mapping[str, Any]
    ) -> tuple[tuple[DType, ...], tuple[Shape, ...]]:
        """The dtypes and shapes of the outputs that an operation with these inputs has.

        Raises:
            InvalidArgumentError: if inputs or attributes do not fit the definition.
        """
        grouped = self.grouped(inputs, attributes)
        try:
            _, args, _, found = self._resolve(graph, grouped, attributes, sites.UNKNOWN_SITE)
            shapes = self._infer(args, attributes, len(found))
        except OpError:
            raise
        except Exception as error:  # Definitions take for granted what attributes hold.
            raise self._unfit(error) from error
        if len(shapes) != len(found):
            raise InvalidArgumentError(
                f"inference gives {counted(len(shapes), 'shape')} for "
                f"{counted(len(found), 'output')}"
            )
        for shape in shapes:
            if type(shape) is not Shape:  # It may be an attribute's value, whatever that is.
                raise InvalidArgumentError(f"attributes and inputs give {shape!r:.80} as a shape")
        return found, shapes

    def kernel_attributes(self, kernel: Callable[..., Any]) -> list[str]:
        """The attributes that a kernel takes, in the order of the definition."""
        if not self.attributes:
            return []
        asked = self._attributes_of
        if asked is None or asked[0] is not kernel:
            asked = self._attributes_of = kernel, self._attributes_taken(kernel)
        return asked[1]

    def _attributes_taken(self, kernel: Callable[..., Any]) -> list[str]:
        parameters = inspect.signature(kernel).parameters
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return list(self.attributes)
        return [name for name in self.attributes if name in parameters]

    @signature_of_init
    def __signature__(self) -> inspect.Signature:
        make, kind = inspect.Parameter, inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [make(a.name, kind) for a in self.inputs]
        seen_default = False
        for place in self._places[len(parameters) :]:
            is_name = place is _PLACED_NAME
            default = None if is_name else self.attributes[place]
            required = default is REQUIRED and not seen_default
            seen_default = seen_default or not required
            default = make.empty if required else default
            parameters.append(make("name" if is_name else place, kind, default=default))
        return inspect.Signature(parameters)

    def __repr__(self) -> str:
        return f"<OpDef {self.type}: {self.signature}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return registry.op_named, (self.type,)
