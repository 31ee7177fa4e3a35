"""Recurrent layers: unrolled where the number of steps is known, in a loop where it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.control_flow.dynamic_rnn import dynamic_rnn
from flowbook.graph.control_flow.static_rnn import static_rnn
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.descriptions import arguments_as
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import zeros
from flowbook.graph.ops.basis.joining import stack, unstack
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.nn import recurrent
from flowbook.train.layers import initializers
from flowbook.train.layers.initializers import Initializer
from flowbook.train.layers.regularizers import Regularizer
from flowbook.train.layers.weights import channels_of, layer_input, or_default, positive, weights

__all__ = ["gru", "lstm"]

Cell = Callable[[Any, Any], tuple[Any, Any]]


def _is_unrolled(inputs: Tensor, unroll: bool | None) -> bool:
    """Whether each step has operations of its own."""
    known = inputs.shape[1]
    if unroll and not known:
        raise InvalidArgumentError(
            f"what is unrolled has a known number of steps, at least one, and not {inputs!r}",
            hint="unroll=False makes it a loop",
        )
    return bool(known) if unroll is None else unroll


def _over_steps(
    inputs: Tensor, cell: Cell, state: Any, sequence_length: Any, unroll: bool
) -> tuple[Tensor, Any]:
    if not unroll:
        return dynamic_rnn(cell, inputs, state, sequence_length, name="steps")
    steps = unstack(inputs, axis=1)
    outputs, state = static_rnn(cell, steps, state, sequence_length)
    return stack(outputs, axis=1), state


def _initial(inputs: Tensor, units: int) -> Tensor:
    batch = inputs.shape[0]
    return zeros([shape_of(inputs)[0] if batch is None else batch, units], inputs.dtype)


@composed
def lstm(
    inputs: Any,
    units: int,
    initial_state: tuple[Any, Any] | None = None,
    sequence_length: Any = None,
    forget_bias: float = 1.0,
    kernel_initializer: Initializer | None = None,
    bias_initializer: Initializer | None = None,
    kernel_regularizer: Regularizer | None = None,
    trainable: bool = True,
    kernel: Any = None,
    bias: Any = None,
    unroll: bool | None = None,
    name: str | None = None,
) -> tuple[Tensor, recurrent.LSTMState]:
    """A layer of long short-term memory.

    Args:
        inputs: [batch, steps, width], of a floating-point dtype.
        units: the width of the state.
        initial_state: `(c, h)`, each [batch, units]; by default zeros.
        sequence_length: [batch], int: how many steps of each example count. Beyond them outputs
            are zero and the state stays.
        forget_bias: what is added to the forget gate.
        kernel_initializer: what the kernel starts with; by default Glorot's uniform.
        bias_initializer: what the bias starts with; by default zeros.
        kernel_regularizer: a penalty on the kernel (see `regularization_loss`).
        trainable: whether optimizers update the variables by default.
        kernel: [width + units, 4 units], the gates in the order i, j, f, o, to share a variable
            instead of making `name/kernel`.
        bias: [4 units], likewise for `name/bias`.
        unroll: whether each step has operations of its own, which runs faster and is built slower
            than a loop; by default where the number of steps is known.

    Returns:
        `(outputs, state)`: the outputs [batch, steps, units], and the `fb.nn.LSTMState`, `(c, h)`,
        after the last step.

    Source: Hochreiter, Schmidhuber, "Long short-term memory", 1997; the forget gate: Gers et al.,
    "Learning to forget", 2000.
    """
    inputs = layer_input(inputs, "lstm", 3)
    units = positive("units", units)
    unroll = _is_unrolled(inputs, unroll)
    kernel = weights(
        "kernel",
        [channels_of(inputs) + units, 4 * units],
        inputs.dtype,
        or_default(kernel_initializer, initializers.glorot_uniform()),
        kernel,
        kernel_regularizer,
        trainable,
    )
    initial = or_default(bias_initializer, initializers.zeros())
    bias = weights("bias", [4 * units], inputs.dtype, initial, bias, None, trainable)
    # Read once, before all steps.
    kernel, bias = convert_to_tensor(kernel), convert_to_tensor(bias)
    if initial_state is None:
        start = _initial(inputs, units)
        initial_state = (start, start)
    initial_state = recurrent.LSTMState(*initial_state)

    def cell(x: Any, state: Any) -> tuple[Any, Any]:
        return recurrent.lstm_cell(x, state, kernel, bias, forget_bias)

    return _over_steps(inputs, cell, initial_state, sequence_length, unroll)


@arguments_as(lstm)
def gru(
    inputs: Any,
    units: int,
    initial_state: Any = None,
    sequence_length: Any = None,
    kernel_initializer: Initializer | None = None,
    kernel_regularizer: Regularizer | None = None,
    trainable: bool = True,
    gate_kernel: Any = None,
    gate_bias: Any = None,
    candidate_kernel: Any = None,
    candidate_bias: Any = None,
    unroll: bool | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """A layer of gated recurrent units.

    Args:
        initial_state: [batch, units]; by default zeros.
        sequence_length: [batch], int: how many steps of each example count.
        kernel_initializer: what the kernels start with; by default Glorot's uniform. The gates'
            biases start with ones, the candidates' with zeros.
        kernel_regularizer: a penalty on the kernels (see `regularization_loss`).
        gate_kernel: [width + units, 2 units], the gates in the order r, u, to share a variable.
        gate_bias: [2 units], likewise.
        candidate_kernel: [width + units, units], likewise.
        candidate_bias: [units], likewise.
        name: the name scope; by default "gru".

    Returns:
        `(outputs, state)`: the outputs [batch, steps, units], and the state after the last step.

    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical
    machine translation", 2014.
    """
    inputs = layer_input(inputs, "gru", 3)
    units = positive("units", units)
    unroll = _is_unrolled(inputs, unroll)
    width, dtype = channels_of(inputs) + units, inputs.dtype
    initial = or_default(kernel_initializer, initializers.glorot_uniform())

    def made(count: int, kernel: Any, start: Initializer, bias: Any) -> tuple[Any, Any]:
        shape = [width, count]
        kernel = weights("kernel", shape, dtype, initial, kernel, kernel_regularizer, trainable)
        bias = weights("bias", [count], dtype, start, bias, None, trainable)
        # Read once, before all steps.
        return convert_to_tensor(kernel), convert_to_tensor(bias)

    with inputs.graph.as_default(), name_scope(name or "gru"):
        with name_scope("gates"):
            gates = made(2 * units, gate_kernel, initializers.ones(), gate_bias)
        with name_scope("candidate"):
            candidate = made(units, candidate_kernel, initializers.zeros(), candidate_bias)
        state = _initial(inputs, units) if initial_state is None else initial_state

        def cell(x: Any, h: Any) -> tuple[Any, Any]:
            return recurrent.gru_cell(x, h, *gates, *candidate)

        return _over_steps(inputs, cell, state, sequence_length, unroll)
