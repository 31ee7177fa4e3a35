"""One step in each of the executors, on state of its own each time."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import flowbook as fb
from flowbook.exec.engine.runner import Runner
from flowbook.exec.local.failed import located
from flowbook.exec.plan.failure import StepFailed, deadline_after
from flowbook.exec.signature.fetches import flatten
from flowbook.exec.signature.signature import Signature


def _generated(runner: Runner, feeds: list[Any]) -> Any:
    runner.write()
    return runner.run(feeds)


def _timed(runner: Runner, feeds: list[Any]) -> Any:
    runner.write()
    return runner.run(feeds, deadline_after(100.0))


EXECUTORS: dict[str, Callable[[Runner, list[Any]], Any]] = {
    "reference": Runner.run_reference,
    "checked": Runner.run_checked,
    "regions": Runner.run_regions,
    "generated": _generated,
    "timed": _timed,
}


def runner_of(
    sess: fb.Session, fetches: Any, feeds: Mapping[Any, Any] | None = None
) -> tuple[Any, Runner]:
    """What a session has prepared for fetches and feeds, with its variables initialised."""
    given = {(k.handle if isinstance(k, fb.Variable) else k): v for k, v in (feeds or {}).items()}
    sess.extend()
    flat = flatten(sess.graph, fetches)
    signature = Signature(tuple(flat.tensors), tuple(flat.targets), tuple(given))
    prepared = sess._master.prepare(signature)
    prepared, kept, _ = sess._master._initialized(prepared, list(given.values()), None)
    return prepared, kept.runner


def run_in(
    kind: str, sess: fb.Session, fetches: Any, feeds: Mapping[Any, Any] | None = None
) -> Any:
    """Run one step of a session in the executor of that name."""
    prepared, runner = runner_of(sess, fetches, feeds)
    try:
        found = EXECUTORS[kind](runner, list((feeds or {}).values()))
    except StepFailed as failed:
        error, cause = located(failed.failure, prepared), failed.__cause__
    else:
        return flatten(sess.graph, fetches).rebuild(found)
    try:
        raise error from cause
    finally:
        del error, cause  # They hold this frame.


def everywhere(
    graph: fb.Graph, fetches: Any, feeds: Mapping[Any, Any] | None = None
) -> Iterator[tuple[str, fb.Session, Any]]:
    """The name of each executor, a session that ran one step in it, and what that returned."""
    for kind in EXECUTORS:
        with fb.Session(graph) as sess:
            yield kind, sess, run_in(kind, sess, fetches, feeds)
