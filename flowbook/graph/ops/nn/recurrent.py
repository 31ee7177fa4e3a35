"""Cells of recurrent networks, as functions of explicit weights.

A cell maps an input [batch, width] and a state to an output and the next state. The kernels are
applied to the input and the state side by side: the first rows belong to the input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flowbook.graph.building.scopes import within
from flowbook.graph.building.surroundings import Scope
from flowbook.graph.definition.composed import composed
from flowbook.graph.model.dtypes import INDICES
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.joining import concat, split
from flowbook.graph.ops.basis.shaping import expand_dims, reshape
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.linalg.matrix_products import matmul
from flowbook.graph.ops.math.comparison import where
from flowbook.graph.ops.math.elementwise import sigmoid, tanh
from flowbook.graph.ops.nn.activations import bias_add
from flowbook.graph.ops.nn.clipping import clip_by_value

__all__ = ["LSTMState", "gru_cell", "lstm_cell", "rnn_cell"]

Activation = Callable[[Any], Any]


class LSTMState(NamedTuple):
    """The state of a long short-term memory; a plain pair `(c, h)` will do, too.

    Attributes:
        c: the memory.
        h: the last output.
    """

    c: Any
    h: Any


def _linear(x: Any, h: Any, kernel: Any, bias: Any) -> Tensor:
    """The input and the state, side by side, times the kernel, plus the bias.

    In a loop over the inputs, what does not depend on the state is computed for all of them at
    once, before it: a large product takes half the time of many small ones, and so do gradients.
    """
    kernel = convert_to_tensor(kernel)
    if bias is not None:
        bias = convert_to_tensor(bias, kernel.dtype)
    from_input = _before_the_loop(x, kernel, bias)
    if from_input is not None:
        product, of_state = from_input
        return product + matmul(h, of_state)
    columns = kernel.shape.with_rank(2).dims[1]
    product = matmul(concat([x, h], 1), kernel)
    if product.shape.rank is None and columns is not None:
        product = reshape(product, [-1, columns])
    return product if bias is None else bias_add(product, bias)


def _before_the_loop(x: Any, kernel: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor] | None:
    """What an input adds, if it can be computed before the loop, and the kernel for the state."""
    asked, flow = kernel.graph.scope, kernel.graph.scope.flow
    taken = flow.taken(x) if flow is not None and isinstance(x, Tensor) else None
    if flow is None or taken is None or taken.whole.shape.rank != 3:
        return None
    rows, width = kernel.shape.with_rank(2)[0], taken.whole.shape[2]
    if rows is None or width is None or rows < width:
        return None
    if not flow.is_outside(kernel) or not (bias is None or flow.is_outside(bias)):
        return None

    def there(scope: Scope) -> Scope:
        """As the cell asks, also where it is not."""
        return scope._replace(
            device=asked.device, choosers=asked.choosers, colocation=asked.colocation
        )

    with flow.outside(), within(kernel.graph, there):
        of_input, of_state = split(kernel, [width, rows - width])
        products = matmul(taken.whole, of_input)
        if bias is not None:
            products = bias_add(products, bias)
    return taken.instead(products), of_state


@composed
def rnn_cell(
    x: Any,
    h: Any,
    kernel: Any,
    bias: Any = None,
    activation: Activation = tanh,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """A step of the plain recurrent network: `activation([x, h] kernel + bias)`.

    Args:
        x: [batch, width], of a floating-point dtype.
        h: [batch, units], the state.
        kernel: [width + units, units].
        bias: [units], or None.
        activation: a function of a tensor.

    Returns:
        `(output, state)`, which are the same tensor [batch, units].
    """
    output = activation(_linear(x, h, kernel, bias))
    return output, output


@composed
def lstm_cell(
    x: Any,
    state: tuple[Any, Any],
    kernel: Any,
    bias: Any = None,
    forget_bias: float = 1.0,
    activation: Activation = tanh,
    peepholes: tuple[Any, Any, Any] | None = None,
    cell_clip: float | None = None,
    projection: Any = None,
    projection_clip: float | None = None,
    name: str | None = None,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """A step of the long short-term memory.

    With the gates i, j, f, o, the columns of `[x, h] kernel + bias` in this order:
    `c' = sigmoid(f + forget_bias) * c + sigmoid(i) * activation(j)` and
    `h' = sigmoid(o) * activation(c')`.

    Args:
        x: [batch, width], of a floating-point dtype.
        state: `(c, h)`, such as an `LSTMState`: the memory [batch, units] and the last output
            [batch, outputs]; there are as many outputs as units, unless they are projected.
        kernel: [width + outputs, 4 * units].
        bias: [4 * units], or None.
        forget_bias: added to the forget gate, so that it begins open.
        activation: a function of a tensor.
        peepholes: weights [units] by which the gates f, i (of the last memory) and o (of the new
            one) see the memory, in this order; None for none.
        cell_clip: the largest magnitude of the memory, or None.
        projection: [units, outputs], by which the output is multiplied, or None.
        projection_clip: the largest magnitude of the projected output, or None.

    Returns:
        `(h', (c', h'))`, of which the state is an `LSTMState` if the last one was.

    Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997; Gers et al., 2000; with
    peepholes and projection Sak et al., 2014.

    >>> import flowbook as fb
    >>> x, c, h = fb.ones([2, 3]), fb.zeros([2, 4]), fb.zeros([2, 4])
    >>> output, state = fb.nn.lstm_cell(x, (c, h), kernel=fb.ones([7, 16]), bias=fb.zeros([16]))
    >>> output.shape
    Shape([2, 4])
    """
    if not isinstance(state, list | tuple) or len(state) != 2:
        raise InvalidTypeError(f"the state of an LSTM is a pair (c, h), not {state!r:.80}")
    c, h = state
    i, j, f, o = split(_linear(x, h, kernel, bias), 4, axis=1)
    if not isinstance(forget_bias, int | float) or forget_bias:
        f = f + forget_bias
    if peepholes is not None:
        f, i = f + c * peepholes[0], i + c * peepholes[1]
    c = sigmoid(f) * c + sigmoid(i) * activation(j)
    if cell_clip is not None:
        c = clip_by_value(c, -cell_clip, cell_clip)
    if peepholes is not None:
        o = o + c * peepholes[2]
    h = sigmoid(o) * activation(c)
    if projection is not None:
        h = matmul(h, projection)
        if projection_clip is not None:
            h = clip_by_value(h, -projection_clip, projection_clip)
    return h, (LSTMState(c, h) if isinstance(state, LSTMState) else (c, h))


@composed
def gru_cell(
    x: Any,
    h: Any,
    gate_kernel: Any,
    gate_bias: Any,
    candidate_kernel: Any,
    candidate_bias: Any,
    activation: Activation = tanh,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """A step of the gated recurrent unit.

    With the gates r, u, the columns of `sigmoid([x, h] gate_kernel + gate_bias)` in this order:
    `h' = u * h + (1 - u) * activation([x, r * h] candidate_kernel + candidate_bias)`.

    Args:
        x: [batch, width], of a floating-point dtype.
        h: [batch, units], the state.
        gate_kernel: [width + units, 2 * units].
        gate_bias: [2 * units], or None; TensorFlow's cell begins with ones.
        candidate_kernel: [width + units, units].
        candidate_bias: [units], or None.
        activation: a function of a tensor.

    Returns:
        `(output, state)`, which are the same tensor [batch, units].

    Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", 2014.
    """
    r, u = split(sigmoid(_linear(x, h, gate_kernel, gate_bias)), 2, axis=1)
    candidate = activation(_linear(x, r * h, candidate_kernel, candidate_bias))
    # As a step towards the candidate it takes one product less.
    h = candidate + u * (h - candidate)
    return h, h


def lengths_of(sequence_length: Any) -> Tensor:
    """The numbers of steps that examples take.

    Raises:
        InvalidTypeError: if they are no integers.
        InvalidArgumentError: if they are no vector.
    """
    lengths = convert_to_tensor(sequence_length, name="sequence_length")
    if lengths.dtype not in INDICES:
        raise InvalidTypeError(f"sequence_length is integer, not {lengths.dtype.name}")
    lengths.shape.with_rank(1)
    return lengths


def one_each(lengths: Tensor, output: Tensor) -> Tensor:
    """The lengths, of which there is one for each example: one for all would broadcast."""
    batch = output.shape.dims[0] if output.shape.dims else None
    given = lengths.shape.dims[0] if lengths.shape.dims else None
    if batch is None or given is None:
        return reshape(lengths, shape_of(output)[:1])
    if given != batch:
        raise InvalidArgumentError(f"sequence_length has {given} lengths for {batch} examples")
    return lengths


def chosen(condition: Tensor, x: Any, y: Any) -> Tensor:
    """Examples of `x` where the condition holds, of `y` elsewhere."""
    rank = y.shape.rank
    if rank is None:
        raise InvalidArgumentError("sequence_length needs outputs and states of known rank")
    for _ in range(rank - 1):
        condition = expand_dims(condition, -1)
    return where(condition, x, y)
