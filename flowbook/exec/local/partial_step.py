"""A step under way in this process whose feeds arrive one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from flowbook.exec.engine.runnable import Runnable, Step
from flowbook.exec.plan.failure import Failure, StepFailed
from flowbook.exec.plan.pipeline import Prepared
from flowbook.exec.resources.random_state import Draws
from flowbook.graph.model.errors import OpError
from flowbook.graph.model.operation import Operation

Result = TypeVar("Result")


class LocalPartialStep(Generic[Step]):
    """A step under way in this process whose feeds arrive one by one; see `PartialStep`."""

    def __init__(
        self,
        prepared: Prepared,
        runner: Runnable[Step],
        error_of: Callable[[Failure], OpError],
    ) -> None:
        self._prepared = prepared
        self._error_of = error_of
        self._runner = runner
        self._begun: Step | None = runner.begin()
        self._draws = Draws()

    @property
    def _step(self) -> Step:
        assert self._begun is not None  # Whoever has closed it does not go on with it.
        return self._begun

    def feed(self, place: int, value: Any) -> None:
        """Give the feed of that place in the signature its value."""
        self._runner.feed(self._step, place, value)

    def advance(self, places: Sequence[int], targets: Sequence[Operation]) -> None:
        """See `PartialStep`."""

        def has_all() -> bool:
            runner, step = self._runner, self._step
            return all(runner.is_there(step, place) for place in places) and all(
                self.has_run(target) for target in targets
            )

        advance = self._draws.during, self._runner.advance, self._step, has_all
        self._called(self._runner.whole.going_on, *advance)

    def fetched(self, place: int) -> Any:
        """The value of the fetch of that place; None if it is not there yet."""
        return self._called(self._runner.fetched, self._step, place)

    def _called(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function of the step; its errors name the operation."""
        try:
            return function(*arguments)
        except StepFailed as failed:
            error, cause = self._error_of(failed.failure), failed.__cause__
        # Outside of the handler: what is raised there keeps all that the step had.
        try:
            raise error from cause
        finally:
            del error, cause  # They hold this frame.

    def has_run(self, operation: Operation) -> bool:
        """Whether an operation has run, or nothing of it is left to run."""
        runner, step = self._runner, self._step
        return all(runner.has_run(step, each) for each in self._prepared.runs_as[operation])

    def close(self, is_complete: bool) -> None:
        """See `PartialStep`."""
        if self._begun is not None:  # An interrupt may have come where it was closed.
            try:
                self._begun.close(is_complete)
            except BaseException:
                self._begun.close(is_complete)  # An interrupt leaves some.
                raise
            self._begun = None
