"""Recurrent networks over a list of steps: a cell as often as there are steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowbook.graph.control_flow.dynamic_rnn import (
    Cell,
    require_cell,
    stepped,
    zeros_for,
)
from flowbook.graph.control_flow.structure import leaves, mapped, packed_like, require_same
from flowbook.graph.definition.composed import composed
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.arrays.reversing import reverse_sequence
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import zeros_like
from flowbook.graph.ops.basis.joining import concat, stack, unstack
from flowbook.graph.ops.math.comparison import less
from flowbook.graph.ops.nn.recurrent import chosen, lengths_of, one_each

__all__ = ["static_bidirectional_rnn", "static_rnn"]


@composed
def static_rnn(
    cell: Cell,
    inputs: Sequence[Any],
    initial_state: Any = None,
    sequence_length: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> tuple[list[Any], Any]:
    """Apply a cell to each of a list of inputs, from state to state.

    The cell is built once for each step; `dynamic_rnn` builds it once, for any number of them.

    Args:
        cell: a function `cell(x, state)` that gives an output, a tensor [batch, ...] or a nested
            structure of them, and the next state.
        inputs: a list with an input for each step: a tensor [batch, ...], or a nested structure of
            such.
        initial_state: a tensor [batch, ...], or a nested structure of them. By default zeros of
            `dtype`, of the size that the cell has as its attribute `state_size`: an int, a Shape
            without the batch, or a nested structure of these.
        sequence_length: int32 or int64 [batch]; after so many steps an example's outputs are zero
            and its state stays. By default all take all steps.
        dtype: the dtype of the state that there is by default.

    Returns:
        `(outputs, state)`: a list with an output for each step, and the last state.

    Raises:
        InvalidTypeError: if `cell` is no function, gives a state of another structure, or outputs
            of structures that differ, or if there is nothing to begin with.
        InvalidArgumentError: if there are no steps, or not as many lengths as examples.

    >>> import flowbook as fb
    >>> kernel = fb.ones([3 + 2, 2])
    >>> cell = lambda x, h: fb.nn.rnn_cell(x, h, kernel)
    >>> outputs, state = fb.nn.static_rnn(cell, [fb.ones([4, 3])] * 5, fb.zeros([4, 2]))
    >>> len(outputs), state.shape
    (5, Shape([4, 2]))
    """
    require_cell(cell)
    _require_steps(inputs)
    lengths = None if sequence_length is None else lengths_of(sequence_length)
    if initial_state is None:
        state = zeros_for(cell, convert_to_tensor(leaves(inputs[0])[0]), 0, dtype)
    else:
        state = mapped(convert_to_tensor, initial_state)
    outputs: list[Any] = []
    for step, x in enumerate(inputs):
        output, following = stepped(cell, mapped(convert_to_tensor, x), state)
        require_same(state, following, "initial_state", "the cell")
        if outputs:
            require_same(outputs[0], output, "the first step", "another step")
        output = mapped(convert_to_tensor, output)
        if lengths is not None:
            if not step:
                lengths = one_each(lengths, leaves(output)[0])
            is_over = less(lengths, step + 1)
            zeros = mapped(zeros_like, output)
            output = _chosen_each(is_over, zeros, output)
            following = _chosen_each(is_over, state, following)
        outputs.append(output)
        state = following
    return outputs, state


@composed
def static_bidirectional_rnn(
    cell_fw: Cell,
    cell_bw: Cell,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    sequence_length: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> tuple[list[Any], Any, Any]:
    """Apply a cell to a list of inputs from its begin, and another one from its end.

    Args:
        cell_fw: the cell that goes forwards; see `static_rnn`.
        cell_bw: the cell that goes backwards, from the end of each example's sequence.
        inputs: a list with an input for each step: a tensor [batch, ...], or a nested structure of
            such.
        initial_state_fw: the state that `cell_fw` begins with; see `static_rnn`.
        initial_state_bw: the state that `cell_bw` begins with.
        sequence_length: int32 or int64 [batch]; by default all examples take all steps.
        dtype: the dtype of the states that there are by default.

    Returns:
        `(outputs, state_fw, state_bw)`: a list with what the cells say of each step, joined along
        axis 1, and the last state of each cell.

    Raises:
        InvalidTypeError: as `static_rnn`, or if the cells give outputs of structures that differ.
        InvalidArgumentError: if there are no steps, or not as many lengths as examples.

    Source: Schuster and Paliwal, "Bidirectional Recurrent Neural Networks", 1997.

    >>> import flowbook as fb
    >>> kernel = fb.ones([3 + 2, 2])
    >>> cell = lambda x, h: fb.nn.rnn_cell(x, h, kernel)
    >>> steps, zero = [fb.ones([4, 3])] * 5, fb.zeros([4, 2])
    >>> outputs, _, _ = fb.nn.static_bidirectional_rnn(cell, cell, steps, zero, zero)
    >>> len(outputs), outputs[0].shape
    (5, Shape([4, 4]))
    """
    _require_steps(inputs)
    options = {"sequence_length": sequence_length, "dtype": dtype}
    forwards, last = static_rnn(cell_fw, inputs, initial_state_fw, **options, name="fw")
    reversed_inputs = _reversed(inputs, sequence_length)
    backwards, first = static_rnn(cell_bw, reversed_inputs, initial_state_bw, **options, name="bw")
    outputs = []
    for one, other in zip(forwards, _reversed(backwards, sequence_length), strict=True):
        require_same(one, other, "cell_fw", "cell_bw")
        pairs = zip(leaves(one), leaves(other), strict=True)
        outputs.append(packed_like(one, [concat(pair, 1) for pair in pairs]))
    return outputs, last, first


def _require_steps(inputs: Any) -> None:
    if isinstance(inputs, Arithmetic) or not isinstance(inputs, Sequence):
        raise InvalidTypeError(
            f"inputs are a list with a tensor for each step, not {inputs!r:.80}",
            hint="fb.unstack(inputs, axis=...) makes one of a tensor",
        )
    if not inputs:
        raise InvalidArgumentError("an empty list of inputs has no steps")


def _chosen_each(condition: Tensor, xs: Any, ys: Any) -> Any:
    pairs = zip(leaves(xs), leaves(ys), strict=True)
    return packed_like(ys, [chosen(condition, x, y) for x, y in pairs])


def _reversed(steps: Sequence[Any], sequence_length: Any) -> list[Any]:
    """Steps in the opposite order; of sequences that end before, only those up to the end."""
    if sequence_length is None:
        return list(reversed(steps))
    lengths = lengths_of(sequence_length)
    by_leaf = [
        unstack(reverse_sequence(stack(list(each)), lengths, 0, 1), len(steps))
        for each in zip(*map(leaves, steps), strict=True)
    ]
    return [packed_like(steps[0], list(each)) for each in zip(*by_leaf, strict=True)]
