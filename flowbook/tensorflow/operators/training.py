"""Steps of optimizers: graphs of training have them as single operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flowbook.graph.building.scopes import control_dependencies
from flowbook.graph.ops.math.elementwise import rsqrt, sqrt, square
from flowbook.graph.ops.state.variables import assign_op, assign_sub_op
from flowbook.tensorflow.node import Node, Reference, Rule, Rules
from flowbook.tensorflow.operators.state import value


def _step(slots: int, formula: Callable[..., list[Any]]) -> Rule:
    """The rule of an optimizer's step.

    Args:
        slots: how many variables it has beside the one that it trains.
        formula: from the node, the slots' values and what else the step takes, what is subtracted
            from the variable, and the slots' new values.
    """

    def rule(n: Node, variable: Reference, *inputs: Any) -> Any:
        held = inputs[:slots]
        change, *new = formula(n, *(s.value() for s in held), *map(value, inputs[slots:]))
        writes = [
            assign_op(slot.handle, each, **slot.typed) for slot, each in zip(held, new, strict=True)
        ]
        with control_dependencies(writes):
            written = assign_sub_op(variable.handle, change, **variable.typed, name=n.scope)
        return replace(variable, written=written)

    return rule


def _momentum(n: Node, accum: Any, rate: Any, grad: Any, momentum: Any) -> list[Any]:
    new = accum * momentum + grad
    if n.flag("use_nesterov"):
        return [rate * (grad + momentum * new), new]
    return [rate * new, new]


def _adagrad(n: Node, accum: Any, rate: Any, grad: Any) -> list[Any]:
    new = accum + square(grad) if n.flag("update_slots", True) else accum
    return [rate * grad * rsqrt(new), new]


def _adadelta(
    n: Node, accum: Any, updates: Any, rate: Any, rho: Any, epsilon: Any, grad: Any
) -> list[Any]:
    new = accum * rho + square(grad) * (1 - rho)
    change = sqrt(updates + epsilon) * rsqrt(new + epsilon) * grad
    return [rate * change, new, updates * rho + square(change) * (1 - rho)]


def _adam(
    n: Node,
    m: Any,
    v: Any,
    beta1_power: Any,
    beta2_power: Any,
    rate: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
) -> list[Any]:
    scaled = rate * sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (square(grad) - v) * (1 - beta2)
    ahead = grad * (1 - beta1) + beta1 * m if n.flag("use_nesterov") else m
    return [ahead * scaled / (sqrt(v) + epsilon), m, v]


def _rms_prop(
    n: Node, ms: Any, mom: Any, rate: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> list[Any]:
    ms = ms + (square(grad) - ms) * (1 - rho)
    mom = mom * momentum + rate * grad * rsqrt(ms + epsilon)
    return [mom, ms, mom]


def _centred_rms_prop(
    n: Node,
    mg: Any,
    ms: Any,
    mom: Any,
    rate: Any,
    rho: Any,
    momentum: Any,
    epsilon: Any,
    grad: Any,
) -> list[Any]:
    ms = ms + (square(grad) - ms) * (1 - rho)
    mg = mg + (grad - mg) * (1 - rho)
    mom = mom * momentum + rate * grad * rsqrt(ms - square(mg) + epsilon)
    return [mom, mg, ms, mom]


_STEPS: dict[str, tuple[int, Callable[..., list[Any]]]] = {
    "Adadelta": (2, _adadelta),
    "Adagrad": (1, _adagrad),
    "Adam": (2, _adam),
    "CenteredRMSProp": (3, _centred_rms_prop),
    "GradientDescent": (0, lambda n, rate, grad: [rate * grad]),
    "Momentum": (1, _momentum),
    "RMSProp": (2, _rms_prop),
}

RULES: Rules = {
    f"{prefix}Apply{what}": _step(slots, formula)
    for prefix in ("", "Resource")
    for what, (slots, formula) in _STEPS.items()
}
