"""L-BFGS, driven from Python: each evaluation of the loss and its gradient is one run.

The search itself is SciPy's L-BFGS-B, loaded when it is first used. Its line search (Moré and
Thuente's, for the strong Wolfe conditions) and its safeguards have been in use for decades, and it
keeps bounds; what could be gained by writing it here is only time between two evaluations, which
is small beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from flowbook.exec.session.session import Session
from flowbook.graph.building.scopes import control_dependencies, name_scope
from flowbook.graph.gradients.backward import gradients
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.basis.constants import group, placeholder
from flowbook.graph.ops.basis.filling import zeros_like
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.ops.state.writing import assign

__all__ = ["LBFGSOptimizer", "LBFGSResult"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class LBFGSResult:
    """How a minimisation ended.

    Attributes:
        loss: the loss at the variables' new values.
        iterations: how many steps were taken.
        evaluations: how often the loss and its gradient were computed.
        converged: whether one of the tolerances was met.
        message: why it ended, in words.
    """

    loss: float
    iterations: int
    evaluations: int
    converged: bool
    message: str


class LBFGSOptimizer:
    """Minimises a loss that is the same at every evaluation, as over a whole data set.

    While it searches, the variables are fed, not written; at its end they get the best values
    found, also when it is interrupted or a run fails. Values travel as float64 whatever the
    variables' dtype.

    Args:
        loss: a floating-point scalar.
        var_list: the variables to change; by default the graph's trainable ones.
        max_iterations: how many steps to take at most.
        history: how many steps the curvature is estimated from.
        gradient_tolerance: it has converged when no element of the gradient is larger.
        loss_tolerance: it has converged when a step improves the loss by no more than this part
            of it; by default ten times the resolution of the coarsest dtype involved.
        var_to_bounds: for some variables a pair of a least and a largest value, numbers or arrays
            that broadcast to the variable's shape; one of them may be None for none.
        name: the name scope of what is built.

    Raises:
        InvalidArgumentError: if the loss is no scalar, or depends on none of the variables, or a
            number or a bound is none that can be meant.
        InvalidTypeError: if something is not of the kind that it should be.

    Source: Byrd, Lu, Nocedal, Zhu, "A limited memory algorithm for bound constrained
    optimization", 1995; Moré, Thuente, "Line search algorithms with guaranteed sufficient
    decrease", 1994.

    >>> import flowbook as fb
    >>> x = fb.Variable([5.0, -3.0], dtype=fb.float64)
    >>> optimizer = fb.train.LBFGSOptimizer(fb.reduce_sum(fb.square(x - [1.0, 2.0])))
    >>> with fb.Session() as sess:
    ...     print(optimizer.minimize(sess).converged, sess.run(x))
    True [1. 2.]
    """

    def __init__(
        self,
        loss: Tensor,
        var_list: Sequence[Variable] | None = None,
        max_iterations: int = 1000,
        history: int = 10,
        gradient_tolerance: float = 1e-8,
        loss_tolerance: float | None = None,
        var_to_bounds: Mapping[Variable, tuple[Any, Any]] | None = None,
        name: str = "LBFGS",
    ) -> None:
        if not isinstance(loss, Tensor):
            raise InvalidTypeError(f"the loss is a tensor, not {loss!r}")
        if loss.shape.rank not in (None, 0):
            raise InvalidArgumentError(
                f"the loss {loss.name} {loss.shape} is no scalar", hint="fb.reduce_sum(loss)"
            )
        self.loss = loss
        self.variables = list(var_list) if var_list is not None else loss.graph.variables(True)
        for variable in self.variables:
            if not isinstance(variable, Variable) or not variable.dtype.is_floating:
                raise InvalidTypeError(f"floating-point variables are trained, not {variable!r}")
        for what, count in (("max_iterations", max_iterations), ("history", history)):
            if not count >= 1:
                raise InvalidArgumentError(f"{what} is at least 1, not {count!r}")
        self.max_iterations = max_iterations
        self.history = history
        self.gradient_tolerance = gradient_tolerance
        self.loss_tolerance = loss_tolerance
        self.bounds = dict(var_to_bounds or {})
        for variable, pair in self.bounds.items():
            if variable not in self.variables:
                raise InvalidArgumentError(
                    f"bounds are given for {variable!r}, which is not changed"
                )
            if variable.shape.is_fully_defined:
                _bounds_of(variable, pair, variable.shape.as_list())
        with loss.graph.as_default(), name_scope(name), control_dependencies(None):
            self._gradients = self._built_gradients()
            self._values = [placeholder(v.dtype, v.shape) for v in self.variables]
            pairs = zip(self.variables, self._values, strict=True)
            self._assign = group(*[assign(variable, value) for variable, value in pairs])

    def _built_gradients(self) -> list[Tensor]:
        found = gradients(self.loss, self.variables)
        if all(gradient is None for gradient in found):
            names = ", ".join(repr(v.op.name) for v in self.variables) or "there are none"
            raise InvalidArgumentError(
                f"{self.loss.name} depends on none of the variables to train: {names}",
                hint="pass var_list, or build the loss from the variables",
            )
        dense = []
        for gradient, variable in zip(found, self.variables, strict=True):
            if isinstance(gradient, IndexedSlices):
                dense.append(gradient.as_tensor())
            else:
                dense.append(zeros_like(variable) if gradient is None else gradient)
        return dense

    def minimize(
        self,
        sess: Session,
        feeds: Mapping[Any, Any] | None = None,
        *,
        callback: Callable[[int, float], Any] | None = None,
    ) -> LBFGSResult:
        """Search from the variables' present values, and leave them at the best found.

        Args:
            sess: where the variables have their values.
            feeds: for every run of the loss, as for `sess.run`.
            callback: called after each step with its number, from 1, and the loss.

        Returns:
            How it ended. Not converged are a search that ran out of iterations, one whose line
            search found no better point, as when the loss is not smooth, and one that begins where
            the loss is not finite.
        """
        from scipy.optimize import minimize

        start = [np.asarray(v) for v in sess.run(self.variables, feeds)]
        shapes = [v.shape for v in start]
        search = _Search(self, sess, dict(feeds or {}), shapes, callback)
        if not search.begins_at(_flat(start)):
            loss = search.accepted.loss
            message = f"Where the search begins the loss, {loss}, or its gradient is not finite"
            return LBFGSResult(loss, 0, 1, False, message)
        options = {
            "maxiter": self.max_iterations,
            "maxfun": max(15000, 20 * self.max_iterations),
            "maxcor": self.history,
            "gtol": self.gradient_tolerance,
            "ftol": 0.0,  # SciPy's is a part of 1 where the loss is below 1; `accept` sees to it.
        }
        try:
            found = minimize(
                search.evaluate,
                search.accepted.place,
                method="L-BFGS-B",
                jac=True,
                bounds=self._flat_bounds(shapes),
                callback=search.accept,
                options=options,
            )
        finally:
            values = search.values(search.accepted.place)
            sess.run(self._assign, dict(zip(self._values, values, strict=True)))
        message = str(found.message).capitalize()
        if search.is_settled:
            message = (
                f"Convergence: a step improved the loss by {self._tolerance():.1g} of it or less"
            )
        converged = search.is_settled or bool(found.success)
        return LBFGSResult(
            search.accepted.loss, search.steps, search.evaluations, converged, message
        )

    def _tolerance(self) -> float:
        if self.loss_tolerance is not None:
            return self.loss_tolerance
        kinds = {tensor.dtype for tensor in (self.loss, *self.variables)}
        return 10 * max(float(ml_dtypes.finfo(kind.numpy).eps) for kind in kinds)  # type: ignore[no-untyped-call]

    def _flat_bounds(self, shapes: Sequence[tuple[int, ...]]) -> Any:
        if not self.bounds:
            return None
        from scipy.optimize import Bounds

        least, largest = [], []
        for variable, shape in zip(self.variables, shapes, strict=True):
            low, high = _bounds_of(variable, self.bounds.get(variable, (None, None)), shape)
            least.append(low)
            largest.append(high)
        return Bounds(_flat(least), _flat(largest))


def _bounds_of(variable: Variable, pair: Any, shape: Sequence[int | None]) -> tuple[Array, Array]:
    """The least and the largest values of a variable's elements."""
    try:
        low, high = pair
        least = np.broadcast_to(np.asarray(-np.inf if low is None else low, float), shape)  # type: ignore[arg-type]
        largest = np.broadcast_to(np.asarray(np.inf if high is None else high, float), shape)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"the bounds of {variable.op.name!r} are a least and a largest value for {shape}, not "
            f"{pair!r:.80}"
        ) from None
    if not (least <= largest).all():
        raise InvalidArgumentError(
            f"the least values of {variable.op.name!r} are not below the largest: {pair!r:.80}"
        )
    return least, largest


@dataclass(frozen=True)
class _Point:
    """Where the loss was computed, and what it is."""

    place: Array
    loss: float
    slope: Array


class _Search:
    """One minimisation: the loss as a function of one flat vector.

    Attributes:
        accepted: the point that the last step led to.
        steps: how many were taken.
        evaluations: how often the loss was computed.
        is_settled: whether the last step improved the loss by no more than is to count.
    """

    accepted: _Point

    def __init__(
        self,
        optimizer: LBFGSOptimizer,
        sess: Session,
        feeds: dict[Any, Any],
        shapes: list[tuple[int, ...]],
        callback: Callable[[int, float], Any] | None,
    ) -> None:
        self.optimizer = optimizer
        self.sess = sess
        self.feeds = feeds
        self.shapes = shapes
        self.callback = callback
        self.steps = 0
        self.evaluations = 0
        self.is_settled = False
        self._latest: _Point

    def values(self, flat: Array) -> list[Array]:
        """The vector as a value for each variable."""
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        parts = np.split(flat, np.cumsum(sizes)[:-1])
        return [
            part.reshape(shape).astype(variable.dtype.numpy)
            for part, shape, variable in zip(
                parts, self.shapes, self.optimizer.variables, strict=True
            )
        ]

    def begins_at(self, place: Array) -> bool:
        """Begin; whether the loss and its gradient are finite there."""
        self._latest = self.accepted = self._computed(place)
        return _is_finite(self.accepted)

    def evaluate(self, place: Array) -> tuple[float, Array]:
        """The loss and its gradient, as the search sees them."""
        is_known = np.array_equal(place, self._latest.place)  # As where it begins.
        point = self._latest if is_known else self._computed(place)
        if not _is_finite(point):
            # The line search has gone too far. It is shown a wall as steep as the descent was, so
            # that it goes back by a fixed part, and can never accept the point.
            before = self.accepted
            rise = abs(float(before.slope @ (place - before.place)))
            return before.loss + rise, -before.slope
        self._latest = point
        return point.loss, point.slope

    def _computed(self, place: Array) -> _Point:
        fed = dict(zip(self.optimizer.variables, self.values(place), strict=True))
        fetches = [self.optimizer.loss, *self.optimizer._gradients]
        loss, *found = self.sess.run(fetches, {**self.feeds, **fed})
        self.evaluations += 1
        return _Point(np.array(place), float(loss), _flat(found))

    def accept(self, intermediate_result: Any) -> None:
        """Note a step that was taken: to the point that was computed last.

        Raises:
            StopIteration: if it improved the loss so little that it has converged.
        """
        before, now = self.accepted.loss, self._latest.loss
        self.accepted = self._latest
        self.steps += 1
        if self.callback is not None:
            self.callback(self.steps, now)
        if before - now <= self.optimizer._tolerance() * max(abs(before), abs(now)):
            self.is_settled = True
            raise StopIteration


def _is_finite(point: _Point) -> bool:
    return bool(np.isfinite(point.loss) and np.isfinite(point.slope).all())


def _flat(values: Sequence[Any]) -> Array:
    parts = [np.asarray(value, np.float64).reshape(-1) for value in values]
    return np.concatenate(parts) if parts else np.zeros(0)
