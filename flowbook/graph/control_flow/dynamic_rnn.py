"""Recurrent networks over a number of steps that only the run knows: a cell in a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowbook.graph.control_flow.over_elements import Elements, counted, noted
from flowbook.graph.control_flow.structure import (
    leaves,
    mapped,
    packed_like,
    parts_of,
    require_same,
)
from flowbook.graph.control_flow.tensor_array import TensorArray
from flowbook.graph.control_flow.while_loop import while_loop
from flowbook.graph.definition.composed import composed
from flowbook.graph.model.dtypes import as_dtype, float32, int32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.arrays.reversing import reverse, reverse_sequence
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import zeros, zeros_like
from flowbook.graph.ops.basis.joining import concat
from flowbook.graph.ops.basis.permuting import transpose
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.math.arithmetic import minimum
from flowbook.graph.ops.math.comparison import less_equal
from flowbook.graph.ops.nn.recurrent import chosen, lengths_of, one_each
from flowbook.graph.ops.reduction.reductions import reduce_max

__all__ = ["bidirectional_dynamic_rnn", "dynamic_rnn", "zero_state"]

Cell = Callable[[Any, Any], tuple[Any, Any]]


@composed
def dynamic_rnn(
    cell: Cell,
    inputs: Any,
    initial_state: Any = None,
    sequence_length: Any = None,
    time_major: bool = False,
    dtype: Any = None,
    parallel_iterations: int = 10,
    swap_memory: bool = False,
    name: str | None = None,
    *,
    recompute: bool = False,
) -> tuple[Any, Any]:
    """Apply a cell to each step of sequences, from state to state, in a loop.

    The number of steps need not be known; `static_rnn` unrolls a known one. What a cell of `fb.nn`
    makes of its input alone is computed for all steps at once, before the loop, where its weights
    are there then: a variable is read before it by `fb.identity`, and in each step otherwise.

    Args:
        cell: a function `cell(x, state)` that gives an output, a tensor [batch, ...] or a nested
            structure of them, and the next state.
        inputs: [batch, steps, ...], or a nested structure of such.
        initial_state: a tensor [batch, ...], or a nested structure of them. By default zeros of
            `dtype`, of the size that the cell has as its attribute `state_size`: an int, a Shape
            without the batch, or a nested structure of these.
        sequence_length: int32 or int64 [batch]; after so many steps an example's outputs are zero
            and its state stays, and after the most of them the loop ends. By default all take all
            steps.
        time_major: whether `inputs` and outputs are [steps, batch, ...], which saves transposing.
        dtype: the dtype of the outputs; by default that of `initial_state`. A cell that gives a
            structure of them has an attribute `output_size` of that structure, or else `dtype` is
            one of their dtypes.
        parallel_iterations: how many steps may be under way at once.
        swap_memory: as for `while_loop`.
        recompute: as for `while_loop`. Nothing is computed before the loop then, as that would be
            kept; so sums are rounded otherwise.

    Returns:
        `(outputs, state)`: the outputs [batch, steps, ...], and the last state.

    Raises:
        InvalidTypeError: if `cell` is no function, gives a state of another structure or dtype, or
            outputs of another structure or dtype, or if there is nothing to begin with.
        InvalidArgumentError: if shapes do not go together.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [None, None, 3])
    >>> kernel = fb.ones([3 + 2, 2])
    >>> start = fb.zeros([fb.shape(x)[0], 2])
    >>> outputs, state = fb.nn.dynamic_rnn(lambda x, h: fb.nn.rnn_cell(x, h, kernel), x, start)
    >>> outputs.shape, state.shape
    (Shape([None, None, 2]), Shape([None, 2]))
    """
    require_cell(cell)
    sequences = mapped(convert_to_tensor, inputs)
    if not time_major:
        sequences = mapped(_swapped, sequences)
    sequences, steps = counted(sequences, "inputs")
    if initial_state is None:
        start = zeros_for(cell, leaves(sequences)[0], 1, dtype)
    else:
        start = mapped(convert_to_tensor, initial_state)
    if not leaves(start):
        raise InvalidArgumentError("a state is a tensor, or a structure of them")
    first: Tensor = leaves(start)[0]
    wanted = _output_dtypes(cell, dtype, first)
    arrays = [TensorArray(d, steps, name="outputs") for d in leaves(wanted)]
    lengths = None
    if sequence_length is not None:
        lengths = cast(one_each(lengths_of(sequence_length), first), int32)
        # A single step, if there is one, tells of which shape outputs are.
        longest = minimum(steps, reduce_max(concat([lengths, [1]], 0)))
        # What comes after it is not looked at, even where all steps are computed at once.
        sequences = mapped(lambda t: t[:longest], sequences)
        # Arrays that are zero where nothing is written: after the longest sequence.
        arrays = [array.grad() for array in arrays]
    elements = Elements(sequences, "inputs")

    def body(step: Tensor, state: Any, outputs: list[TensorArray]) -> Any:
        output, following = _called(cell, elements.at(step), state, wanted)
        require_same(start, following, "initial_state", "the cell")
        if lengths is not None:
            is_over = less_equal(lengths, step)
            output = mapped(lambda t: chosen(is_over, zeros_like(t), t), output)
            pairs = zip(leaves(state), leaves(following), strict=True)
            following = packed_like(start, [chosen(is_over, a, b) for a, b in pairs])
        return step + 1, following, noted(outputs, step, output)

    _, state, arrays = while_loop(
        lambda step, state, outputs: step < elements.count,
        body,
        (0, start, arrays),
        parallel_iterations=parallel_iterations,
        swap_memory=swap_memory,
        recompute=recompute,
    )
    stacked = [array.stack() for array in arrays]
    return packed_like(wanted, stacked if time_major else [*map(_swapped, stacked)]), state


@composed("bidirectional_rnn")
def bidirectional_dynamic_rnn(
    cell_fw: Cell,
    cell_bw: Cell,
    inputs: Any,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    sequence_length: Any = None,
    time_major: bool = False,
    dtype: Any = None,
    parallel_iterations: int = 10,
    swap_memory: bool = False,
    name: str | None = None,
    *,
    recompute: bool = False,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Apply a cell to sequences from their begin, and another one from their end.

    Args:
        cell_fw: the cell that goes forwards; see `dynamic_rnn`.
        cell_bw: the cell that goes backwards, from the end of each example's sequence.
        inputs: [batch, steps, ...], or a nested structure of such.
        initial_state_fw: the state that `cell_fw` begins with; see `dynamic_rnn`.
        initial_state_bw: the state that `cell_bw` begins with.
        sequence_length: int32 or int64 [batch]; by default all examples take all steps.
        time_major: whether `inputs` and outputs are [steps, batch, ...].
        dtype: as for `dynamic_rnn`, of both cells.
        parallel_iterations: how many steps may be under way at once.
        swap_memory: as for `while_loop`.
        recompute: as for `while_loop`.

    Returns:
        `((outputs_fw, outputs_bw), (state_fw, state_bw))`. Both outputs are in the order of
        `inputs`: `fb.concat(outputs, 2)` joins what the two say of a step.

    Source: Schuster and Paliwal, "Bidirectional Recurrent Neural Networks", 1997.
    """
    axis = 0 if time_major else 1

    def turned(tensor: Any) -> Tensor:
        if sequence_length is None:
            return reverse(tensor, axis)
        return reverse_sequence(tensor, lengths_of(sequence_length), axis, 1 - axis)

    options: dict[str, Any] = {
        "sequence_length": sequence_length,
        "time_major": time_major,
        "dtype": dtype,
        "parallel_iterations": parallel_iterations,
        "swap_memory": swap_memory,
        "recompute": recompute,
    }
    forwards, last = dynamic_rnn(cell_fw, inputs, initial_state_fw, name="fw", **options)
    backwards, first = dynamic_rnn(
        cell_bw, mapped(turned, inputs), initial_state_bw, name="bw", **options
    )
    return (forwards, mapped(turned, backwards)), (last, first)


def zeros_for(cell: Cell, inputs: Tensor, axis: int, dtype: Any) -> Any:
    """Zeros of the size that a cell says, for each of the examples along an axis of the inputs."""
    if getattr(cell, "state_size", None) is None or dtype is None:
        missing = "the cell has no state_size" if dtype is not None else "no dtype is given either"
        raise InvalidTypeError(
            f"there is no initial_state, and {missing}",
            hint="initial_state=fb.zeros([batch, units]) is what a state begins with",
        )
    if parts_of(dtype) is not None:
        raise InvalidTypeError(
            f"the outputs have several dtypes, {dtype!r:.80}, none of which is the state's",
            hint="give an initial_state",
        )
    if inputs.shape.rank is not None and inputs.shape.rank <= axis:
        raise InvalidArgumentError(
            f"there is no initial_state, and {inputs.name!r} of the shape {inputs.shape} tells no "
            "number of examples"
        )
    known = inputs.shape[axis]
    return zero_state(cell, shape_of(inputs)[axis] if known is None else known, dtype)


def zero_state(cell: Cell, batch_size: Any, dtype: Any = float32) -> Any:
    """Zeros for a cell to begin with.

    Args:
        cell: one that tells the size of its state, as those of `fb.layers` do, and those of `fb.nn`
            that are made of such. Others have an attribute `state_size`: see `dynamic_rnn`.
        batch_size: the number of examples: an int, or a scalar of dtype int32.
        dtype: the dtype of the state.

    Returns:
        A tensor [batch_size, ...], or a nested structure of them, as the cell's state is one.

    Raises:
        InvalidTypeError: if the cell does not tell the size.
    """
    size = getattr(cell, "state_size", None)
    if size is None:
        raise InvalidTypeError(
            f"{cell!r:.80} does not tell the size of its state",
            hint="its attribute state_size would, such as cell.state_size = 128",
        )
    return mapped(lambda each: zeros([batch_size, *dims_of(each)], as_dtype(dtype)), size)


def dims_of(size: Any) -> Sequence[int | None]:
    return [size] if isinstance(size, int) else Shape(size).as_list()


def _output_dtypes(cell: Cell, dtype: Any, first: Tensor) -> Any:
    """The dtypes of what a cell gives, in its structure."""
    if parts_of(dtype) is not None:
        return mapped(as_dtype, dtype)
    each = first.dtype if dtype is None else as_dtype(dtype)
    size = getattr(cell, "output_size", None)
    return each if size is None else mapped(lambda _: each, size)


def require_cell(cell: Any) -> None:
    """Refuse what is no function."""
    if not callable(cell):
        raise InvalidTypeError(f"a cell is a function of a step and a state, not {cell!r:.80}")


def stepped(cell: Cell, x: Any, state: Any) -> tuple[Any, Any]:
    """What a cell gives, which is an output and the next state."""
    given = cell(x, state)
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise InvalidTypeError(f"a cell gives an output and the next state, not {given!r:.80}")
    output, following = given
    return output, following


def _called(cell: Cell, x: Any, state: Any, wanted: Any) -> tuple[Any, Any]:
    """The output of a cell, of tensors, and the next state."""
    output, following = stepped(cell, x, state)
    for leaf in leaves(output):
        if not isinstance(leaf, Arithmetic):
            raise InvalidTypeError(f"the output of a cell is a tensor, not {leaf!r:.80}")
    hint = "dtype says by its structure what the cell gives, or its output_size does"
    require_same(wanted, output, "dtype", "the cell", hint=hint)
    return mapped(convert_to_tensor, output), following


def _swapped(tensor: Tensor) -> Tensor:
    """Steps first instead of examples, or the other way round."""
    rank = tensor.shape.rank
    if rank is None or rank < 2:
        raise InvalidArgumentError(
            f"{tensor.name!r} is no batch of sequences, [batch, steps, ...]: its shape is "
            f"{tensor.shape}"
        )
    return transpose(tensor, [1, 0, *range(2, rank)])
