"""Recurrent layers, unrolled: RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.math.arithmetic import like
from flowbook.onnx.reading.operators.nn.activations import BY_NUMBERS
from flowbook.onnx.reading.operators.types import Table

Step = Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]


_BY_NUMBERS = {name.lower(): found for name, found in BY_NUMBERS.items()}
_OTHERS = {
    "relu": fb.nn.relu,
    "sigmoid": fb.sigmoid,
    "softplus": fb.nn.softplus,
    "softsign": fb.nn.softsign,
    "tanh": fb.tanh,
}


def _activation(name: str, alpha: float | None, beta: float | None) -> Callable[[Any], Any]:
    found = name.lower()
    if found in _BY_NUMBERS:
        function, defaults = _BY_NUMBERS[found]
        given = {"alpha": alpha, "beta": beta}
        numbers = [value if given[k] is None else given[k] for k, value in defaults.items()]
        return lambda x: function(x, *numbers)
    if found in _OTHERS:
        return _OTHERS[found]
    raise fb.errors.UnimplementedError(f"there is no activation {name!r}")


def _activations(node: Node, direction: int, defaults: list[str]) -> list[Any]:
    count = len(defaults)
    names = node.get("activations", defaults * 2)[direction * count : (direction + 1) * count]
    alphas, betas = node.get("activation_alpha", []), node.get("activation_beta", [])
    found = []
    for i, name in enumerate(names):
        at = direction * count + i
        alpha = alphas[at] if at < len(alphas) else None
        beta = betas[at] if at < len(betas) else None
        found.append(_activation(name, alpha, beta))
    return found


def _clipped(node: Node, x: Any) -> Any:
    limit = node.get("clip")
    return x if limit is None else fb.clip_by_value(x, like(x, -limit), like(x, limit))


def _reversed(x: Any, lengths: Any) -> Any:
    """Sequences from their last step to their first: [time, batch, ...]."""
    if lengths is None:
        return fb.reverse(x, [0])
    return fb.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)


def _through_time(
    parts: list[Any], states: tuple[Any, ...], lengths: Any, step: Step
) -> tuple[list[Any], tuple[Any, ...]]:
    """The outputs of a direction's steps, and its last states.

    Where a sequence has ended, outputs are zero and states stay.
    """
    found = []
    for t, part in enumerate(parts):
        new = step(part, states)
        output = new[0]
        if lengths is not None:
            runs = fb.expand_dims(lengths > fb.constant(t, lengths.dtype), 1)
            output = fb.where(runs, output, fb.zeros_like(output))
            new = tuple(fb.where(runs, n, o) for n, o in zip(new, states, strict=True))
        states = new
        found.append(output)
    return found, states


def _layer(
    node: Node,
    x: Any,
    w: Any,
    gates: int,
    bias: Any,
    lengths: Any,
    starts: tuple[Any, ...],
    make_step: Callable[[int, Any], Step],
) -> list[Any]:
    """All directions of a layer.

    Args:
        x: [time, batch, inputs], or [batch, time, inputs] by `layout`.
        w: [directions, gates * width, inputs].
        bias: [directions, 2 * gates * width], or None.
        lengths: [batch], or None.
        starts: initial states [directions, batch, width], None for zeros.
        make_step: gives for a direction and the recurrent bias the function of a step, from what
            the inputs contribute and the states to the new states, of which the first is the
            output.

    Returns:
        The outputs, and each state's last value, laid out as ONNX has them.
    """
    by_batch = bool(node.get("layout", 0))
    if by_batch:
        x = fb.transpose(x, (1, 0, 2))
        starts = tuple(None if s is None else fb.transpose(s, (1, 0, 2)) for s in starts)
    steps = x.shape.dims[0]
    if steps is None:
        raise node.refuse("unrolling an unknown number of steps")
    directions, rows, _ = node.dims(w)
    node.spend(steps * directions)
    width = rows // gates
    batch = x.shape.dims[1] if x.shape.dims[1] is not None else fb.shape(x)[1]
    outputs, lasts = [], []
    for d in range(directions):
        backward = node.get("direction", "forward") == "reverse" or d == 1
        data = _reversed(x, lengths) if backward else x
        contributed = fb.matmul(data, fb.transpose(w[d], (1, 0)))
        recurrent_bias = None
        if bias is not None:
            contributed = contributed + bias[d][:rows]
            recurrent_bias = bias[d][rows:]
        states = tuple(fb.zeros([batch, width], x.dtype) if s is None else s[d] for s in starts)
        parts = fb.unstack(contributed, steps) if steps else []
        found, states = _through_time(parts, states, lengths, make_step(d, recurrent_bias))
        whole = fb.stack(found) if found else fb.zeros([0, batch, width], x.dtype)
        outputs.append(_reversed(whole, lengths) if backward else whole)
        lasts.append(states)
    y = fb.stack(outputs, axis=1)
    finals = [fb.stack([s[i] for s in lasts]) for i in range(len(starts))]
    if by_batch:
        y = fb.transpose(y, (2, 0, 1, 3))
        finals = [fb.transpose(f, (1, 0, 2)) for f in finals]
    return [y, *finals]


def _rnn(
    node: Node, x: Any, w: Any, r: Any, bias: Any = None, lengths: Any = None, h: Any = None
) -> Any:
    def make_step(d: int, recurrent_bias: Any) -> Step:
        [f] = _activations(node, d, ["Tanh"])
        weights = fb.transpose(r[d], (1, 0))

        def step(part: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
            total = part + fb.matmul(states[0], weights)
            if recurrent_bias is not None:
                total = total + recurrent_bias
            return (f(_clipped(node, total)),)

        return step

    return _layer(node, x, w, 1, bias, lengths, (h,), make_step)


def _gru(
    node: Node, x: Any, w: Any, r: Any, bias: Any = None, lengths: Any = None, h: Any = None
) -> Any:
    reset_after = bool(node.get("linear_before_reset", 0))

    def make_step(d: int, recurrent_bias: Any) -> Step:
        f, g = _activations(node, d, ["Sigmoid", "Tanh"])
        width = node.dims(r)[2]
        weights = fb.transpose(r[d], (1, 0))
        gate_weights, new_weights = weights[:, : 2 * width], weights[:, 2 * width :]

        def step(part: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
            [old] = states
            gates = part[:, : 2 * width] + fb.matmul(old, gate_weights)
            if recurrent_bias is not None:
                gates = gates + recurrent_bias[: 2 * width]
            gates = f(_clipped(node, gates))
            update, reset = gates[:, :width], gates[:, width:]
            if reset_after:
                carried = fb.matmul(old, new_weights)
            else:
                carried = fb.matmul(reset * old, new_weights)
            if recurrent_bias is not None:
                carried = carried + recurrent_bias[2 * width :]
            if reset_after:
                carried = reset * carried
            new = g(_clipped(node, part[:, 2 * width :] + carried))
            return ((like(update, 1) - update) * new + update * old,)

        return step

    return _layer(node, x, w, 3, bias, lengths, (h,), make_step)


def _lstm(
    node: Node,
    x: Any,
    w: Any,
    r: Any,
    bias: Any = None,
    lengths: Any = None,
    h: Any = None,
    c: Any = None,
    peepholes: Any = None,
) -> Any:
    coupled = bool(node.get("input_forget", 0))

    def make_step(d: int, recurrent_bias: Any) -> Step:
        f, g, k = _activations(node, d, ["Sigmoid", "Tanh", "Tanh"])
        weights = fb.transpose(r[d], (1, 0))
        looks = [None] * 3 if peepholes is None else fb.split(peepholes[d], 3)

        def seen(total: Any, look: Any, cell: Any) -> Any:
            return _clipped(node, total if look is None else total + look * cell)

        def step(part: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
            hidden, cell = states
            total = part + fb.matmul(hidden, weights)
            if recurrent_bias is not None:
                total = total + recurrent_bias
            into, out, forget, new = fb.split(total, 4, axis=1)
            taken = f(seen(into, looks[0], cell))
            kept = like(taken, 1) - taken if coupled else f(seen(forget, looks[2], cell))
            now = kept * cell + taken * g(_clipped(node, new))
            return f(seen(out, looks[1], now)) * k(now), now

        return step

    return _layer(node, x, w, 4, bias, lengths, (h, c), make_step)


TABLE: Table = {"GRU": _gru, "LSTM": _lstm, "RNN": _rnn}
