"""Cells of recurrent networks that are made of other cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.nn.regularization import dropout

__all__ = ["dropout_cell", "residual_cell", "stacked_cell"]

Cell = Callable[[Any, Any], tuple[Any, Any]]


def stacked_cell(cells: Sequence[Cell], name: str | None = None) -> Cell:
    """A cell of several, each of which takes what the one before gives.

    Args:
        cells: functions `cell(x, state)` that give an output and the next state.
        name: the name scope of each step; by default "stacked_cell".

    Returns:
        Such a function, whose state is a tuple of theirs.

    >>> import flowbook as fb
    >>> wide, narrow = fb.ones([3 + 4, 4]), fb.ones([4 + 2, 2])
    >>> cell = fb.nn.stacked_cell([
    ...     lambda x, h: fb.nn.rnn_cell(x, h, wide), lambda x, h: fb.nn.rnn_cell(x, h, narrow)
    ... ])
    >>> output, states = cell(fb.ones([5, 3]), (fb.zeros([5, 4]), fb.zeros([5, 2])))
    >>> [state.shape for state in states]
    [Shape([5, 4]), Shape([5, 2])]
    """
    if not isinstance(cells, list | tuple) or not all(map(callable, cells)):
        raise InvalidTypeError(f"a list of cells is wanted, not {cells!r:.80}")
    if not cells:
        raise InvalidArgumentError("there is no cell")

    @composed("stacked_cell")
    def cell(x: Any, states: Any) -> tuple[Any, Any]:
        if not isinstance(states, list | tuple) or len(states) != len(cells):
            raise InvalidArgumentError(
                f"the state is a tuple of the states of {len(cells)} cells, not {states!r:.80}"
            )
        following = []
        for each, state in zip(cells, states, strict=True):
            x, new = each(x, state)
            following.append(new)
        packed = getattr(type(states), "_make", type(states))
        return x, packed(following)

    states = [_sizes_of(each)[0] for each in cells]
    is_known = all(size is not None for size in states)
    return sized(cell, tuple(states) if is_known else None, _sizes_of(cells[-1])[1])


def residual_cell(cell: Cell, name: str | None = None) -> Cell:
    """A cell whose input is added to its output, which has its shape.

    Args:
        cell: a function `cell(x, state)` that gives an output and the next state.
        name: the name scope of each step; by default "residual_cell".

    Source: Wu et al., "Google's Neural Machine Translation System", 2016, section 3.1.
    """

    @composed("residual_cell")
    def with_input(x: Any, state: Any) -> tuple[Tensor, Any]:
        output, following = cell(x, state)
        return x + output, following

    return sized(with_input, *_sizes_of(cell))


def dropout_cell(
    cell: Cell,
    *,
    input_rate: Any = 0.0,
    output_rate: Any = 0.0,
    seed: int | None = None,
    name: str | None = None,
) -> Cell:
    """A cell some of whose inputs and outputs are set to zero at random, others in each step.

    Args:
        cell: a function `cell(x, state)` that gives an output and the next state.
        input_rate: the probability that an element of the input is dropped; see `dropout`.
        output_rate: the probability that an element of the output is dropped. The state keeps it.
        seed: an int that makes the choices reproducible, see `set_random_seed`.
        name: the name scope of each step; by default "dropout_cell".

    Source: Zaremba et al., "Recurrent Neural Network Regularization", 2014.
    """

    @composed("dropout_cell")
    def with_dropout(x: Any, state: Any) -> tuple[Any, Any]:
        output, following = cell(_dropped(x, input_rate, seed), state)
        return _dropped(output, output_rate, seed), following

    return sized(with_dropout, *_sizes_of(cell))


def _sizes_of(cell: Cell) -> tuple[Any, Any]:
    """What a cell tells of the sizes of its state and its output; None where it tells nothing."""
    return getattr(cell, "state_size", None), getattr(cell, "output_size", None)


def sized(cell: Any, state_size: Any, output_size: Any) -> Cell:
    """A cell that tells these sizes, which `dynamic_rnn` asks for."""
    if state_size is not None:
        cell.state_size = state_size
    if output_size is not None:
        cell.output_size = output_size
    return cell  # type: ignore[no-any-return]


def _dropped(x: Any, rate: Any, seed: int | None) -> Any:
    return x if isinstance(rate, int | float) and not rate else dropout(x, rate=rate, seed=seed)
