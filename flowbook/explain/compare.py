"""The same subgraph under two settings, tensor by tensor, with the error that rounding predicts.

White paper, section 6: turning the learning rate to zero, and holding two implementations of one
subsection against each other, is how wrong models are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from flowbook.exec.report import Report, Table
from flowbook.exec.session.session import Session
from flowbook.explain.twin import Source, Twin, source_of
from flowbook.graph.model.context import context_of, is_everywhere
from flowbook.graph.model.dtypes import SMALL, as_dtype, float64, widened
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin.called import tensor_called
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.math.elementwise import sin
from flowbook.graph.ops.random.random_numbers import random_uniform

__all__ = ["compare", "observe"]

# Twins with simulated rounding that a prediction is the largest deviation of.
SAMPLES = 5

# Rounding inside of a kernel, as in long sums, is not simulated step by step.
PATIENCE = 8.0

_MOST_ROWS = 40

# The sine of so large a multiple of a value is as good as random.
_SCATTER = 1e7

# Simulated errors stay well above float64's own.
_LEAST_NOISE = 2.0**-40


class ObservedRun:
    """What `fb.observe` saw: the value of every tensor that a run computes.

    Attributes:
        values: by tensor, in the order of construction.
        setting: what it was run under, in words.
    """

    def __init__(self, source: Source, values: dict[Tensor, Any], setting: str) -> None:
        self.source = source
        self.values = values
        self.setting = setting

    def __getitem__(self, tensor: Any) -> Any:
        name = tensor if isinstance(tensor, str) else tensor.name
        name = name if ":" in name else f"{name}:0"
        for each, value in self.values.items():
            if each.name == name:
                return value
        raise KeyError(name)

    def __repr__(self) -> str:
        return f"<ObservedRun of {len(self.values)} tensors, {self.setting}>"


def observe(
    sess: Session,
    fetches: Any,
    feeds: Mapping[Any, Any] | None = None,
    *,
    dtype: Any = None,
    executor: str = "reference",
) -> ObservedRun:
    """See the value of every tensor that a run would compute, without leaving a trace.

    Of loops and branches these are the results: what is inside has many values, or maybe none.

    A copy of the subgraph is run, from the values that the session's variables have now. The
    session's variables and random states stay as they are; random operations draw the same in all
    observations. What touches the world outside, as `py_func` may, does so here too.

    Args:
        sess: the session; variables without values get their initial ones.
        fetches: as for `sess.run`.
        feeds: as for `sess.run`.
        dtype: compute everything that is floating-point in this dtype instead.
        executor: "reference", kernel by kernel, or "compiled", as generated code.

    Raises:
        OpError: as `Session.run` does.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [3], name="x")
    >>> y = fb.reduce_sum(fb.square(x), name="y")
    >>> sess = fb.Session()
    >>> print(fb.observe(sess, y, {x: [1, 2, 3]})["y"])
    14.0
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is not None and not wanted.is_floating:
        raise InvalidTypeError(f"dtype is a floating-point dtype, not {wanted.name}")
    source = source_of(sess, fetches, feeds)
    setting = f"{'own dtypes' if wanted is None else wanted.name}, {executor} executor"
    return ObservedRun(source, Twin(source, wanted, executor).run(), setting)


@dataclass(frozen=True)
class Difference:
    """How one tensor differs between two runs.

    Attributes:
        name: the tensor's.
        tensor: in the first run.
        error: the largest absolute difference; for other than numbers how many elements differ.
        predicted: how large rounding makes it.
        scale: the largest absolute value.
        shapes: of both values.
    """

    name: str
    tensor: Tensor
    error: float
    predicted: float
    scale: float
    shapes: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def is_expected(self) -> bool:
        """Whether rounding explains it."""
        return self.shapes[0] == self.shapes[1] and self.error <= PATIENCE * self.predicted

    @property
    def verdict(self) -> str:
        """What to think of it, in words."""
        if self.shapes[0] != self.shapes[1]:
            return f"other shapes: {list(self.shapes[0])}, {list(self.shapes[1])}"
        if self.error == 0:
            return "equal"
        return "rounding" if self.is_expected else "MORE than rounding"


class Comparison(Report):
    """Two runs, tensor by tensor.

    Attributes:
        differences: one for each tensor that both have, in the order of construction.
        missing: the names of tensors that only one of them has.
    """

    def __init__(
        self, differences: list[Difference], missing: list[str], settings: tuple[str, str]
    ) -> None:
        self.differences = differences
        self.missing = missing
        self._settings = settings

    @property
    def first_unexpected(self) -> Difference | None:
        """The first tensor that differs by more than rounding explains; where to look."""
        return next((d for d in self.differences if not d.is_expected), None)

    def __getitem__(self, name: str) -> Difference:
        wanted = name if ":" in name else f"{name}:0"
        for difference in self.differences:
            if difference.name == wanted:
                return difference
        raise KeyError(name)

    @property
    def table(self) -> Table:
        """A row for each tensor that differs."""
        differing = [d for d in self.differences if d.error or not d.is_expected]
        shown = differing
        if len(shown) > _MOST_ROWS:
            shown = sorted(shown, key=lambda d: d.is_expected)[:_MOST_ROWS]
        rows = [
            (
                tensor_called(d.tensor),
                d.tensor.op.site.place,
                f"{d.scale:.3g}",
                f"{d.error:.1e}",
                f"{d.predicted:.1e}",
                d.verdict,
            )
            for d in shown
        ]
        first = self.first_unexpected
        equal = len(self.differences) - len(differing)
        notes = [f"{equal} of {len(self.differences)} tensors are equal."]
        if len(shown) < len(differing):
            notes.append(f"{len(differing) - len(shown)} more differ.")
        if self.missing:
            notes.append(f"Only one run has {', '.join(self.missing[:8])}.")
        if first is not None:
            notes.append(
                f"Look first at {tensor_called(first.tensor)}, defined at {first.tensor.op.site}."
            )
        verdict = (
            "every difference is what rounding predicts"
            if first is None and differing
            else "equal"
            if first is None
            else f"{sum(not d.is_expected for d in differing)} tensors differ by more than rounding"
        )
        return Table(
            f"{self._settings[0]} against {self._settings[1]}: {verdict}",
            ("tensor", "defined at", "largest value", "error", "predicted", "verdict"),
            rows,
            notes,
            (2, 3, 4),
        )


def compare(run_a: ObservedRun, run_b: ObservedRun) -> Comparison:
    """Hold two observed runs against each other, tensor by tensor.

    The predicted error is measured: the first run's subgraph is computed in float64 several times
    with random relative errors, of the size of the coarser dtype's rounding, in everything that a
    kernel takes and gives. It is the largest deviation that this causes. Rounding inside a kernel,
    as in a long sum, may exceed it by a small factor, which is allowed for.

    Args:
        run_a: what `fb.observe` gave.
        run_b: the same under another setting: a dtype, an executor, a feed such as a learning rate
            of 0, another session, or a graph built differently with the same names.

    Returns:
        The comparison. Its `first_unexpected` is where to look first.

    Source: white paper, section 6. The prediction is a form of stochastic arithmetic: J. Vignes,
    "Discrete stochastic arithmetic for validating results of numerical software", 2004.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [1000], name="x")
    >>> y = fb.reduce_sum(fb.exp(x), name="y")
    >>> sess = fb.Session()
    >>> feeds = {x: [0.001 * k for k in range(1000)]}
    >>> found = fb.compare(fb.observe(sess, y, feeds), fb.observe(sess, y, feeds, dtype=fb.float64))
    >>> print(found.first_unexpected)
    None
    """
    for run in (run_a, run_b):
        if not isinstance(run, ObservedRun):
            raise InvalidTypeError(f"{run!r} is not what fb.observe gives")
    others = {tensor.name: tensor for tensor in run_b.values}
    common = [tensor for tensor in run_a.values if tensor.name in others]
    if not common:
        raise InvalidArgumentError("the two runs have no tensor of one name")
    predicted = _predicted(run_a, run_b, others)
    differences = [
        _difference(
            tensor, run_a.values[tensor], run_b.values[others[tensor.name]], predicted[tensor]
        )
        for tensor in common
    ]
    names = {tensor.name for tensor in run_a.values}
    return Comparison(
        differences, sorted(names.symmetric_difference(others)), (run_a.setting, run_b.setting)
    )


def _difference(tensor: Tensor, a: Any, b: Any, predicted: float) -> Difference:
    a, b = np.asarray(a), np.asarray(b)
    error = _error(a, b) if a.shape == b.shape else np.inf
    numbers = _as_numbers(a)
    finite = numbers[np.isfinite(numbers)] if numbers is not None else np.zeros(0)
    scale = float(np.max(np.abs(finite), initial=0.0))
    return Difference(tensor.name, tensor, error, predicted, scale, (a.shape, b.shape))


def _as_numbers(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    if value.dtype.hasobject:
        return None
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def _error(a: Any, b: Any) -> float:
    """The largest absolute difference; infinite where only one is finite."""
    a, b = widened(np.asarray(a)), widened(np.asarray(b))
    if a.dtype.kind not in "fcV" or b.dtype.kind not in "fcV":
        return float(np.sum(a != b))
    x, y = _as_numbers(a), _as_numbers(b)
    assert x is not None
    assert y is not None
    with np.errstate(all="ignore"):
        apart = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
    return float(np.max(np.where(np.isnan(apart), np.inf, apart), initial=0.0))


def _predicted(a: ObservedRun, b: ObservedRun, others: Mapping[str, Tensor]) -> dict[Tensor, float]:
    """For each tensor of the first run how far rounding moves it."""
    rounding = max(
        [_unit_roundoff(np.asarray(v)) for v in (*a.values.values(), *b.values.values())]
    )
    noise = max(rounding, _LEAST_NOISE)
    exact = Twin(a.source, float64).run()
    noisy = _noisy(a.source.with_draws(exact), noise)
    found = dict.fromkeys(exact, 0.0)
    for _ in range(SAMPLES):
        for tensor, value in noisy.run().items():
            found[tensor] = max(found[tensor], _error(value, exact[tensor]))
    scaled = rounding / noise
    return {
        tensor: error * scaled + _representation(exact[tensor], rounding)
        for tensor, error in found.items()
    }


def _unit_roundoff(value: np.ndarray[Any, Any]) -> float:
    # What has few bits is stored so in either run; nothing is rounded to it.
    if value.dtype.kind not in "fcV" or as_dtype(value.dtype) in SMALL:
        return 0.0
    return float(ml_dtypes.finfo(value.real.dtype).eps) / 2  # type: ignore[no-untyped-call]


def _representation(value: Any, rounding: float) -> float:
    """What rounding a value itself costs, as storing a constant in another dtype does."""
    value = np.asarray(value)
    if value.dtype.kind not in "fc":
        return 0.0
    finite = np.abs(value[np.isfinite(value)])
    return rounding * float(np.max(finite, initial=0.0))


def _noisy(source: Source, noise: float) -> Twin:
    """A float64 twin in which everything that kernels take and give is off by a little."""
    exact = {op for op in source.operations if not op.inputs or not op.op_def.computes}

    def moved(tensor: Tensor) -> Tensor:
        if tensor.dtype is not float64:
            return tensor
        if context_of(tensor) is None:
            errors = random_uniform(shape_of(tensor), -noise, noise, float64)
        else:  # What is drawn outside is not there inside, and the same in all iterations.
            errors = sin(tensor * _SCATTER) * noise
        return tensor * (errors + 1.0)

    def taken(operation: Operation, tensor: Tensor) -> Tensor:
        # A constant is everywhere; what is computed from it is not inside of a loop.
        is_inside = operation.context is not None
        return tensor if is_inside and is_everywhere(tensor.op) else moved(tensor)

    return Twin(
        source,
        float64,
        given=lambda op, inputs: inputs if op in exact else [taken(op, t) for t in inputs],
        made=lambda original, copy: copy if original.op in exact else moved(copy),
    )
