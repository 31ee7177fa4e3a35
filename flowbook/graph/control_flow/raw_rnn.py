"""A recurrent network whose every step a function decides: its input, its state, its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.graph.control_flow.dynamic_rnn import Cell, dims_of, require_cell, stepped
from flowbook.graph.control_flow.over_elements import noted
from flowbook.graph.control_flow.structure import leaves, mapped, packed_like, require_same
from flowbook.graph.control_flow.tensor_array import TensorArray
from flowbook.graph.control_flow.while_loop import while_loop
from flowbook.graph.definition.composed import composed
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.dtypes import int32, variant
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import zeros, zeros_like
from flowbook.graph.ops.math.comparison import logical_not, logical_or
from flowbook.graph.ops.nn.recurrent import chosen
from flowbook.graph.ops.reduction.reductions import reduce_any

__all__ = ["raw_rnn"]

Deciding = Callable[[Any, Any, Any, Any], tuple[Any, Any, Any, Any, Any]]


@composed("rnn")
def raw_rnn(
    cell: Cell,
    loop_fn: Deciding,
    parallel_iterations: int = 10,
    swap_memory: bool = False,
    name: str | None = None,
    *,
    recompute: bool = False,
) -> tuple[Any, Any, Any]:
    """Apply a cell in a loop, where a function says what comes next, as a decoder does.

    `dynamic_rnn` is simpler where all inputs are there before. The loop ends when all examples are
    finished; a finished one emits zeros and keeps its state.

    Args:
        cell: a function `cell(x, state)` that gives an output and the next state.
        loop_fn: a function `loop_fn(time, cell_output, cell_state, loop_state)` that gives
            `(finished, next_input, next_state, emit_output, loop_state)`. It is called before the
            loop with the time 0 and None for the rest, and then gives the first input and state,
            and as `emit_output` what each example will emit, by its shapes and dtypes, in its
            structure: None where that is what the cell has as its attribute `output_size`, of the
            dtype of the state. After each step it is called with the number of steps so far and
            what the cell gave. `finished` is bool [batch]. `loop_state` is a tensor, a nested
            structure or None, which only `loop_fn` reads; in a later call None leaves it as it is.
        parallel_iterations: how many steps may be under way at once.
        swap_memory: as for `while_loop`.
        recompute: as for `while_loop`.

    Returns:
        `(emitted, state, loop_state)`: a TensorArray of what was emitted at each step, or a
        structure of them; each example's last state; and the last `loop_state`.

    Raises:
        InvalidTypeError: if `cell` or `loop_fn` is no function, or gives another structure or dtype
            than it gave first.
        InvalidArgumentError: if shapes do not go together.

    >>> import flowbook as fb
    >>> def doubling(time, output, state, _):  # Each example, until it is over 100.
    ...     state = fb.constant([[1.0], [30.0]]) if output is None else state
    ...     emitted = fb.zeros([1]) if output is None else output
    ...     return state[:, 0] > 100, state, state, emitted, None
    >>> emitted, last, _ = fb.nn.raw_rnn(lambda x, state: (x, 2 * x), doubling)
    >>> with fb.Session() as sess:
    ...     print(*sess.run([fb.shape(emitted.stack()), last]))
    [7 2 1] [[128.]
     [120.]]
    """
    require_cell(cell)
    if not callable(loop_fn):
        raise InvalidTypeError(f"loop_fn is a function of a time and more, not {loop_fn!r:.80}")
    begin = convert_to_tensor(0, int32)
    finished, x, start, wanted, noting = _decided(loop_fn, begin, None, None, None)
    start = mapped(convert_to_tensor, start)
    if not leaves(start):
        raise InvalidArgumentError("a state is a tensor, or a structure of them")
    wanted = _emitted(cell, wanted, leaves(start)[0])
    arrays = [
        TensorArray(
            leaf.dtype,
            dynamic_size=True,
            element_shape=finished.shape.concatenate(leaf.shape),
            name="emitted",
        )
        for leaf in leaves(wanted)
    ]
    # What is not there is no variable.
    told = () if noting is None else (mapped(convert_to_tensor, noting),)

    def body(time: Tensor, finished: Tensor, x: Any, state: Any, arrays: Any, told: Any) -> Any:
        output, following = stepped(cell, x, state)
        is_over, following_x, following, emitted, noting = _decided(
            loop_fn, time + 1, output, following, told[0] if told else None
        )
        require_same(start, following, "loop_fn first", "loop_fn then")
        require_same(wanted, emitted, "emit_output first", "loop_fn then")
        emitted = [
            chosen(finished, zeros_like(t), t) for t in map(convert_to_tensor, leaves(emitted))
        ]
        pairs = zip(leaves(state), leaves(following), strict=True)
        state = packed_like(start, [_kept(finished, old, new) for old, new in pairs])
        arrays = noted(arrays, time, emitted)
        if noting is not None:
            told = (noting,)
        return time + 1, logical_or(finished, is_over), following_x, state, arrays, told

    _, _, _, state, arrays, told = while_loop(
        lambda time, finished, *_: reduce_any(logical_not(finished)),
        body,
        (begin, finished, mapped(convert_to_tensor, x), start, arrays, told),
        parallel_iterations=parallel_iterations,
        swap_memory=swap_memory,
        recompute=recompute,
    )
    return packed_like(wanted, arrays), state, told[0] if told else None


def _decided(loop_fn: Deciding, *known: Any) -> tuple[Tensor, Any, Any, Any, Any]:
    """What a function says comes next; whether each example is finished, as a tensor."""
    given = loop_fn(*known)
    if not isinstance(given, list | tuple) or len(given) != 5:
        raise InvalidTypeError(
            "loop_fn gives (finished, next_input, next_state, emit_output, loop_state), not "
            f"{given!r:.80}"
        )
    finished, x, state, emitted, noting = given
    finished = convert_to_tensor(finished)
    if finished.dtype is not bool_:
        raise InvalidTypeError(f"finished is bool [batch], not {finished.dtype.name}")
    if finished.shape.rank not in (None, 1):
        raise InvalidArgumentError(f"finished is bool [batch]; its shape is {finished.shape}")
    return finished, x, state, emitted, noting


def _emitted(cell: Cell, wanted: Any, first: Tensor) -> Any:
    """Tensors of the shapes and dtypes of what an example emits, in their structure."""
    if wanted is not None:
        return mapped(convert_to_tensor, wanted)
    size = getattr(cell, "output_size", None)
    if size is None:
        raise InvalidTypeError(
            "what is emitted is not said, and the cell has no output_size",
            hint="loop_fn gives it first: fb.zeros([units]), or a structure of such",
        )
    return mapped(lambda each: zeros(dims_of(each), first.dtype), size)


def _kept(finished: Tensor, old: Tensor, new: Any) -> Any:
    """The old state of the examples that are finished; arrays and scalars are of no example."""
    if old.dtype is variant or old.shape.rank == 0:
        return new
    return chosen(finished, old, new)
