"""Steps of optimizers: graphs of training have them as single operations.

A sparse step is the same on some rows of the variables: on those that its indices name, which
differ, as optimizers see to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from flowbook.graph.building.scopes import control_dependencies
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.gathering import gather
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.filling import zeros_like
from flowbook.graph.ops.math.arithmetic import maximum
from flowbook.graph.ops.math.complex import abs, sign
from flowbook.graph.ops.math.elementwise import exp, rsqrt, sqrt, square
from flowbook.graph.ops.math.powers import pow
from flowbook.graph.ops.state.variables import assign_op
from flowbook.graph.ops.state.writing import assign_sub_op, scatter_sub_op, scatter_update_op
from flowbook.tensorflow.node import Node, Reference, Rule, Rules, value_of


class _Step(NamedTuple):
    """What a type of step does.

    Attributes:
        slots: how many variables it has beside the one that it trains.
        gradient: which of what else it takes is the gradient.
        formula: from the node, the slots' values and what else the step takes, what is subtracted
            from the variable, and the slots' new values. One that `is_nearing` gets the
            variable's value before them, and gives its new one.
        is_nearing: see above.
    """

    slots: int
    gradient: int
    formula: Callable[..., list[Any]]
    is_nearing: bool = False

    def new(self, n: Node, variable: Callable[[], Tensor], *inputs: Any) -> list[Any]:
        """What is subtracted from the variable, and the slots' new values."""
        if not self.is_nearing:
            return self.formula(n, *inputs)
        before = variable()
        new, *slots = self.formula(n, before, *inputs)
        return [before - new, *slots]


def _dense(step: _Step) -> Rule:
    def rule(n: Node, variable: Reference, *inputs: Any) -> Any:
        held, others = inputs[: step.slots], map(value_of, inputs[step.slots :])
        change, *new = step.new(n, variable.value, *(s.value() for s in held), *others)
        writes = [
            assign_op(slot.handle, each, **slot.typed) for slot, each in zip(held, new, strict=True)
        ]
        with control_dependencies(writes):
            written = assign_sub_op(variable.handle, change, **variable.typed, name=n.scope)
        return replace(variable, written=written)

    return rule


def _sparse(step: _Step) -> Rule:
    def rule(n: Node, variable: Reference, *inputs: Any) -> Any:
        held, others = inputs[: step.slots], [value_of(each) for each in inputs[step.slots :]]
        indices = others.pop(step.gradient + 1)
        rows = [gather(slot.variable, indices) for slot in held]
        change, *new = step.new(n, lambda: gather(variable.variable, indices), *rows, *others)
        writes = [
            scatter_update_op(slot.handle, indices, each, **slot.typed)
            for slot, each in zip(held, new, strict=True)
        ]
        with control_dependencies(writes):
            written = scatter_sub_op(
                variable.handle, indices, change, **variable.typed, name=n.scope
            )
        return replace(variable, written=written)

    return rule


def _mean(kept: Any, new: Any, decay: Any) -> Any:
    """A running mean after one value more."""
    return kept + (new - kept) * (1 - decay)


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


def _corrected(rate: Any, beta1_power: Any, beta2_power: Any) -> Any:
    """Adam's rate, which makes up for moments that start from zero."""
    return rate * sqrt(1 - beta2_power) / (1 - beta1_power)


def _adam(n: Node, m: Any, v: Any, *numbers: Any) -> list[Any]:
    beta1_power, beta2_power, rate, beta1, beta2, epsilon, grad = numbers
    m, v = _mean(m, grad, beta1), _mean(v, square(grad), beta2)
    ahead = grad * (1 - beta1) + beta1 * m if n.flag("use_nesterov") else m
    return [ahead * _corrected(rate, beta1_power, beta2_power) / (sqrt(v) + epsilon), m, v]


def _rms_prop(n: Node, ms: Any, mom: Any, *numbers: Any) -> list[Any]:
    rate, rho, momentum, epsilon, grad = numbers
    ms = _mean(ms, square(grad), rho)
    mom = mom * momentum + rate * grad * rsqrt(ms + epsilon)
    return [mom, ms, mom]


def _centred_rms_prop(n: Node, mg: Any, ms: Any, mom: Any, *numbers: Any) -> list[Any]:
    rate, rho, momentum, epsilon, grad = numbers
    ms, mg = _mean(ms, square(grad), rho), _mean(mg, grad, rho)
    mom = mom * momentum + rate * grad * rsqrt(ms - square(mg) + epsilon)
    return [mom, mg, ms, mom]


def _adagrad_v2(n: Node, accum: Any, rate: Any, epsilon: Any, grad: Any) -> list[Any]:
    new = accum + square(grad) if n.flag("update_slots", True) else accum
    return [rate * grad / (sqrt(new) + epsilon), new]


def _amsgrad(n: Node, m: Any, v: Any, most: Any, *numbers: Any) -> list[Any]:
    beta1_power, beta2_power, rate, beta1, beta2, epsilon, grad = numbers
    m, v = _mean(m, grad, beta1), _mean(v, square(grad), beta2)
    most = maximum(most, v)
    return [m * _corrected(rate, beta1_power, beta2_power) / (sqrt(most) + epsilon), m, v, most]


def _ada_max(n: Node, m: Any, v: Any, *numbers: Any) -> list[Any]:
    beta1_power, rate, beta1, beta2, epsilon, grad = numbers
    m, v = _mean(m, grad, beta1), maximum(beta2 * v, abs(grad))
    return [rate / (1 - beta1_power) * (m / (v + epsilon)), m, v]


def _add_sign(n: Node, m: Any, rate: Any, *numbers: Any) -> list[Any]:
    alpha, decay, beta, grad = numbers
    m = m * beta + grad * (1 - beta)
    return [rate * (alpha + decay * sign(grad) * sign(m)) * grad, m]


def _power_sign(n: Node, m: Any, rate: Any, *numbers: Any) -> list[Any]:
    logbase, decay, beta, grad = numbers
    m = m * beta + grad * (1 - beta)
    return [rate * exp(logbase * decay * sign(grad) * sign(m)) * grad, m]


def _keras_momentum(n: Node, accum: Any, rate: Any, grad: Any, momentum: Any) -> list[Any]:
    new = accum * momentum - rate * grad
    return [rate * grad - momentum * new if n.flag("use_nesterov") else -new, new]


def _shrunk(x: Any, by: Any) -> Any:
    """What is nearer to zero, by as much; zero if it is no farther."""
    return sign(x) * maximum(abs(x) - by, 0)


def _proximal(n: Node, var: Any, rate: Any, l1: Any, l2: Any, grad: Any) -> list[Any]:
    return [_shrunk(var - rate * grad, rate * l1) / (1 + rate * l2)]


def _proximal_adagrad(
    n: Node, var: Any, accum: Any, rate: Any, l1: Any, l2: Any, grad: Any
) -> list[Any]:
    new = accum + square(grad)
    return [*_proximal(n, var, rate * rsqrt(new), l1, l2, grad), new]


def _dual_averaging(n: Node, var: Any, total: Any, squares: Any, *numbers: Any) -> list[Any]:
    grad, rate, l1, l2, global_step = numbers
    total, squares = total + grad, squares + square(grad)
    steps = cast(global_step, grad.dtype)
    new = -rate * _shrunk(total, l1 * steps) / (l2 * steps * rate + sqrt(squares))
    return [new, total, squares]


def _ftrl(n: Node, var: Any, accum: Any, linear: Any, *numbers: Any) -> list[Any]:
    *others, l2, power = numbers
    return _ftrl_shrinking(n, var, accum, linear, *others, l2, zeros_like(l2), power)


def _ftrl_shrinking(n: Node, var: Any, accum: Any, linear: Any, *numbers: Any) -> list[Any]:
    grad, rate, l1, l2, shrinkage, power = numbers
    new = accum + square(grad)
    shrunk = grad + 2 * shrinkage * var
    before, after = pow(accum, -power), pow(new, -power)
    if n.flag("multiply_linear_by_lr"):
        linear = linear + shrunk * rate - (after - before) * var
        return [-_shrunk(linear, l1 * rate) / (after + 2 * l2 * rate), new, linear]
    linear = linear + shrunk - (after - before) / rate * var
    return [-_shrunk(linear, l1) / (after / rate + 2 * l2), new, linear]


_STEPS = {
    "Adadelta": _Step(2, 3, _adadelta),
    "Adagrad": _Step(1, 1, _adagrad),
    "AdagradDA": _Step(2, 0, _dual_averaging, is_nearing=True),
    "AdagradV2": _Step(1, 2, _adagrad_v2),
    "CenteredRMSProp": _Step(3, 4, _centred_rms_prop),
    "Ftrl": _Step(2, 0, _ftrl, is_nearing=True),
    "FtrlV2": _Step(2, 0, _ftrl_shrinking, is_nearing=True),
    "KerasMomentum": _Step(1, 1, _keras_momentum),
    "Momentum": _Step(1, 1, _momentum),
    "ProximalAdagrad": _Step(1, 3, _proximal_adagrad, is_nearing=True),
    "ProximalGradientDescent": _Step(0, 3, _proximal, is_nearing=True),
    "RMSProp": _Step(2, 4, _rms_prop),
}
# TensorFlow has no sparse steps of these.
_DENSE_STEPS = {
    "AdaMax": _Step(2, 5, _ada_max),
    "Adam": _Step(2, 7, _adam),
    "AdamWithAmsgrad": _Step(3, 7, _amsgrad),
    "AddSign": _Step(1, 4, _add_sign),
    "GradientDescent": _Step(0, 1, lambda n, rate, grad: [rate * grad]),
    "PowerSign": _Step(1, 4, _power_sign),
}

RULES: Rules = {
    f"{prefix}{what}{name}": rule(step)
    for prefix in ("", "Resource")
    for what, rule, steps in (
        ("Apply", _dense, {**_STEPS, **_DENSE_STEPS}),
        ("SparseApply", _sparse, _STEPS),
    )
    for name, step in steps.items()
}
