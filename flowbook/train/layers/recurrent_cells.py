"""Cells of recurrent networks that have variables of their own.

A cell is a function of a step and a state, as `fb.nn.dynamic_rnn` takes it, and as those of `fb.nn`
that stack and wrap cells. The first call makes its variables, and all others use them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.graph.building.scopes import init_scope
from flowbook.graph.definition.descriptions import arguments_as
from flowbook.graph.functions.template import template
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.math.elementwise import tanh
from flowbook.graph.ops.nn import recurrent
from flowbook.graph.ops.nn.cells import Cell, sized
from flowbook.graph.ops.nn.recurrent import LSTMState
from flowbook.train.layers import initializers
from flowbook.train.layers.initializers import Initializer
from flowbook.train.layers.weights import channels_of, layer_input, or_default, positive, weights

__all__ = ["gru_cell", "lstm_cell", "rnn_cell"]

Activation = Callable[[Any], Any]


class _Weights:
    """What a cell's kernels begin with.

    Args:
        units: the width of the state.
        initializer: of the kernels.
    """

    def __init__(self, units: int, initializer: Initializer | None) -> None:
        self._units = units
        self._initializer = or_default(initializer, initializers.glorot_uniform())

    def __call__(
        self, x: Tensor, columns: int, prefix: str = "", bias: Initializer | None = None
    ) -> tuple[Tensor, Tensor]:
        """A kernel and a bias for the input beside the state, read once, before all steps."""
        shape = [channels_of(x) + self._units, columns]
        start = or_default(bias, initializers.zeros())
        with init_scope():
            return (
                convert_to_tensor(weights(f"{prefix}kernel", shape, x.dtype, self._initializer)),
                convert_to_tensor(weights(f"{prefix}bias", [columns], x.dtype, start)),
            )


def rnn_cell(
    units: int,
    activation: Activation = tanh,
    kernel_initializer: Initializer | None = None,
    name: str | None = None,
) -> Cell:
    """A cell of the plain recurrent network, with variables of its own; see `fb.nn.rnn_cell`.

    Args:
        units: the width of the state.
        activation: a function of a tensor.
        kernel_initializer: what the kernel starts with; by default Glorot's uniform.
        name: the name scope; by default "rnn_cell".

    Returns:
        A function `cell(x, state)` that gives an output and the next state.
    """
    units = positive("units", units)
    made = _Weights(units, kernel_initializer)

    def cell(x: Any, state: Any) -> tuple[Tensor, Any]:
        x = layer_input(x, "rnn_cell", 2)
        return recurrent.rnn_cell(x, state, *made(x, units), activation, name="step")

    return sized(template(cell, name or "rnn_cell"), units, units)


@arguments_as(rnn_cell)
def lstm_cell(
    units: int,
    forget_bias: float = 1.0,
    activation: Activation = tanh,
    kernel_initializer: Initializer | None = None,
    name: str | None = None,
) -> Cell:
    """A cell of long short-term memory, with variables of its own; see `fb.nn.lstm_cell`.

    Args:
        forget_bias: what is added to the forget gate.
        name: the name scope; by default "lstm_cell".

    Returns:
        A function `cell(x, state)` that gives an output and the next state, an `fb.nn.LSTMState`.

    >>> import flowbook as fb
    >>> cell = fb.nn.stacked_cell([fb.layers.lstm_cell(8) for _ in range(2)])
    >>> start = fb.nn.zero_state(cell, 5)
    >>> x = fb.placeholder(fb.float32, [5, None, 3])
    >>> outputs, state = fb.nn.dynamic_rnn(cell, x, start)
    >>> outputs.shape, state[-1].h.shape
    (Shape([5, None, 8]), Shape([5, 8]))
    """
    units = positive("units", units)
    made = _Weights(units, kernel_initializer)

    def cell(x: Any, state: Any) -> tuple[Tensor, Any]:
        x = layer_input(x, "lstm_cell", 2)
        kernel, bias = made(x, 4 * units)
        return recurrent.lstm_cell(x, state, kernel, bias, forget_bias, activation, name="step")

    return sized(template(cell, name or "lstm_cell"), LSTMState(units, units), units)


def gru_cell(
    units: int,
    activation: Activation = tanh,
    kernel_initializer: Initializer | None = None,
    name: str | None = None,
) -> Cell:
    """A cell of gated recurrent units, with variables of its own; see `fb.nn.gru_cell`.

    Args:
        units: the width of the state.
        activation: a function of a tensor.
        kernel_initializer: what the kernels start with; by default Glorot's uniform. The gates'
            bias starts with ones, the candidate's with zeros.
        name: the name scope; by default "gru_cell".

    Returns:
        A function `cell(x, state)` that gives an output and the next state.
    """
    units = positive("units", units)
    made = _Weights(units, kernel_initializer)

    def cell(x: Any, state: Any) -> tuple[Tensor, Any]:
        x = layer_input(x, "gru_cell", 2)
        gates = made(x, 2 * units, "gate_", initializers.ones())
        candidate = made(x, units, "candidate_")
        return recurrent.gru_cell(x, state, *gates, *candidate, activation, name="step")

    return sized(template(cell, name or "gru_cell"), units, units)
