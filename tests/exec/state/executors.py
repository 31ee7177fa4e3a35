"""One step in each of the executors, on state of its own each time."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import flowbook as fb
from flowbook.exec.engine.executable import Executable, deadline_after
from flowbook.exec.engine.instrument import Signature
from flowbook.exec.signature.fetches import flatten


def _reference(executable: Executable, feeds: list[Any]) -> Any:
    return executable.run_reference(feeds)


def _regions(executable: Executable, feeds: list[Any]) -> Any:
    return executable.run_regions(feeds)


def _generated(executable: Executable, feeds: list[Any]) -> Any:
    executable._has_run = True
    return executable.run(feeds)


def _timed(executable: Executable, feeds: list[Any]) -> Any:
    executable._has_run = True
    return executable.run(feeds, deadline_after(100.0))


EXECUTORS: dict[str, Callable[[Executable, list[Any]], Any]] = {
    "reference": _reference,
    "regions": _regions,
    "generated": _generated,
    "timed": _timed,
}


def run_in(
    kind: str, sess: fb.Session, fetches: Any, feeds: Mapping[Any, Any] | None = None
) -> Any:
    """Run one step of a session in the executor of that name."""
    given = {(k.handle if isinstance(k, fb.Variable) else k): v for k, v in (feeds or {}).items()}
    sess.extend()
    flat = flatten(sess.graph, fetches)
    signature = Signature(tuple(flat.tensors), tuple(flat.targets), tuple(given))
    executable = sess._master.executable(signature)
    sess._master.initialize(executable, given, None)
    return flat.rebuild(EXECUTORS[kind](executable, list(given.values())))


def everywhere(
    graph: fb.Graph, fetches: Any, feeds: Mapping[Any, Any] | None = None
) -> Iterator[tuple[str, fb.Session, Any]]:
    """The name of each executor, a session that ran one step in it, and what that returned."""
    for kind in EXECUTORS:
        with fb.Session(graph) as sess:
            yield kind, sess, run_in(kind, sess, fetches, feeds)
