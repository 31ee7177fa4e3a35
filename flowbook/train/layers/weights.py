"""The variables of a layer: made in its scope, or given by whoever shares them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.keywords import hint_for
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.model.whole_numbers import as_whole
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.nn.activations import bias_add
from flowbook.graph.ops.state.variables import Variable
from flowbook.train.layers import initializers
from flowbook.train.layers.initializers import Initializer, glorot_uniform, zeros
from flowbook.train.layers.regularizers import Regularizer, penalize

Activation = Callable[[Any], Tensor]
# Of a variable's value the one that it is given in its place after each step of an optimizer.
Constraint = Callable[[Tensor], Any]


def weights(
    name: str,
    shape: Sequence[int],
    dtype: DType,
    initializer: Initializer,
    given: Any = None,
    regularizer: Regularizer | None = None,
    trainable: bool = True,
    constraint: Constraint | None = None,
) -> Any:
    """A layer's variable, made under a name in the current scope; or the given one.

    Raises:
        InvalidArgumentError: if it has another shape, or another constraint.
        InvalidTypeError: if the given one is no variable or tensor, or of another dtype.
    """
    if not callable(initializer):
        raise InvalidTypeError(
            f"an initializer is a function of a shape and a dtype, not {initializer!r}",
            hint="such as fb.initializers.zeros()",
        )
    kind = getattr(initializer, "__name__", "")
    # By name: what users reach by fb.initializers may be wrapped.
    if initializer.__module__ == initializers.__name__ and hasattr(initializers, kind):
        raise InvalidTypeError(
            f"fb.initializers.{kind} makes initializers, and is none itself",
            hint=f"fb.initializers.{kind}()",
        )
    made = given
    if given is None:
        made = Variable(
            lambda: initializer(shape, dtype), trainable, name, dtype, constraint=constraint
        )
    elif not isinstance(given, Arithmetic):
        raise InvalidTypeError(f"{name} is a variable or a tensor, not {given!r}")
    if made.dtype is not dtype:
        raise InvalidTypeError(f"{name} is {dtype.name} here, not {made!r}")
    if not made.shape.is_compatible_with(shape):
        raise InvalidArgumentError(f"{name} has the shape {list(shape)} here, not {made!r}")
    if constraint is not None and getattr(made, "constraint", None) is not constraint:
        raise InvalidArgumentError(
            f"{name} is given, and has its constraint from where it is made",
            hint="fb.Variable(..., constraint=...)",
        )
    if regularizer is not None:
        if not isinstance(made, Variable):
            raise InvalidTypeError(f"a penalty is put on a variable, not {made!r}")
        penalize(made, regularizer)
    return made


def or_default(initializer: Any, default: Initializer) -> Any:
    """An initializer that was given, were it 0, which is none; or else the default."""
    return default if initializer is None else initializer


# What those layers take whose variables these are.
_OF_LAYERS = ("units", "filters", "kernel_size", "strides", "padding", "dilations", "activation")


class KernelAndBias:
    """What the variables of a layer are made of: the options that all such layers take.

    Args:
        use_bias: whether there is a bias.
        kernel_initializer: what the kernel starts with; by default Glorot's uniform.
        bias_initializer: what the bias starts with; by default zeros.
        kernel_regularizer: a penalty on the kernel (see `regularization_loss`).
        bias_regularizer: a penalty on the bias.
        kernel_constraint: a function from the kernel to what takes its place after each step of an
            optimizer, as `fb.Variable` takes it.
        bias_constraint: likewise from the bias.
        trainable: whether optimizers update the variables by default.
        kernel: a variable to share instead of making `name/kernel`.
        bias: likewise for `name/bias`.
    """

    def __init__(
        self,
        use_bias: bool = True,
        kernel_initializer: Initializer | None = None,
        bias_initializer: Initializer | None = None,
        kernel_regularizer: Regularizer | None = None,
        bias_regularizer: Regularizer | None = None,
        trainable: bool = True,
        kernel_constraint: Constraint | None = None,
        bias_constraint: Constraint | None = None,
        kernel: Any = None,
        bias: Any = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise InvalidTypeError(
                f"a layer has no argument {next(iter(unknown))!r}: variables are made anew, with "
                "the options kernel_initializer, bias_initializer, kernel_regularizer, "
                "bias_regularizer, kernel_constraint, bias_constraint and trainable, or shared by "
                "kernel and bias",
                hint=hint_for(next(iter(unknown)), _OF_LAYERS),
            )
        self._use_bias = use_bias
        self._kernel = (
            or_default(kernel_initializer, glorot_uniform()),
            kernel,
            kernel_regularizer,
            trainable,
            kernel_constraint,
        )
        self._bias = (
            or_default(bias_initializer, zeros()),
            bias,
            bias_regularizer,
            trainable,
            bias_constraint,
        )

    def kernel(self, shape: Sequence[int], dtype: DType, name: str = "kernel") -> Any:
        """The kernel, in the current scope."""
        return weights(name, shape, dtype, *self._kernel)

    def with_bias(self, product: Tensor, units: int, data_format: str = "NHWC") -> Tensor:
        """The product plus the bias, if there is one; see `bias_add`."""
        if not self._use_bias:
            return product
        bias = weights("bias", [units], product.dtype, *self._bias)
        return bias_add(product, bias, data_format)


def layer_input(inputs: Any, what: str, rank: int | None = None, axis: int = -1) -> Tensor:
    """A layer's input as a tensor whose dimension of channels, by default the last, is known.

    Raises:
        InvalidArgumentError: if that dimension is unknown or not there, or its rank another.
        InvalidTypeError: if it is not floating-point.
    """
    inputs = convert_to_tensor(inputs)
    if not inputs.dtype.is_floating:
        raise InvalidTypeError(
            f"{what} is applied to floating-point values, not {inputs!r}",
            hint="fb.cast(inputs, fb.float32)",
        )
    dims = inputs.shape.dims or ()
    is_there = -len(dims) <= axis < len(dims) and dims[axis] is not None
    if not is_there or (rank is not None and len(dims) != rank):
        wanted = f"of rank {rank} " if rank is not None else ""
        which = "last dimension" if axis == -1 else f"dimension {axis}"
        raise InvalidArgumentError(
            f"{what} is applied to inputs {wanted}whose {which} is known, not {inputs!r}",
            hint=_how_to_shape(inputs, rank) if axis == -1 else None,
        )
    return inputs  # type: ignore[no-any-return]


def _how_to_shape(inputs: Tensor, rank: int | None) -> str:
    if rank is not None and inputs.shape.rank != rank:
        sizes = ("length",) if rank == 3 else ("depth", "height", "width")[5 - rank :]
        return f"fb.reshape(inputs, [-1, {', '.join(sizes)}, channels])"
    if inputs.shape.rank == 1:
        return "fb.expand_dims(inputs, 1) makes of each value an example with one feature"
    if inputs.shape.dims:
        return "say it where the inputs are made, as in fb.placeholder(fb.float32, [None, 784])"
    if inputs.shape.rank == 0:
        return "fb.reshape(inputs, [1, 1]) makes one example of it"
    return "say it: fb.reshape(inputs, [-1, width])"


def channels_of(inputs: Tensor, axis: int = -1) -> int:
    """The dimension of channels of what `layer_input` gave."""
    found = Shape(inputs.shape)[axis]
    assert isinstance(found, int)
    return found


def positive(name: str, value: Any) -> int:
    """A number of units, filters and the like.

    Raises:
        InvalidArgumentError: if it is not a positive integer.
    """
    number = as_whole(value)
    if number is None or number < 1:
        raise InvalidArgumentError(f"{name} is a positive integer, not {value!r}")
    return number


def check_training(training: Any) -> None:
    """See that a layer is told whether it trains, and nothing else.

    Raises:
        InvalidTypeError: if it is neither a bool nor a tensor.
    """
    if not isinstance(training, Arithmetic | bool | np.bool_) and training not in (0, 1):
        raise InvalidTypeError(f"training is a bool or a bool tensor, not {training!r}")


def check_activation(activation: Any) -> None:
    """See that an activation is a function or None, before variables are made.

    Raises:
        InvalidTypeError: if it is neither.
    """
    if activation is not None and not callable(activation):
        raise InvalidTypeError(
            f"an activation is a function of a tensor, not {activation!r}",
            hint="such as fb.nn.relu",
        )


def activated(x: Tensor, activation: Activation | None) -> Tensor:
    """The activation of a tensor; None is none."""
    return x if activation is None else activation(x)
