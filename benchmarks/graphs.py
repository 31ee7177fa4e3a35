"""Steps of graphs that Flowbook and TensorFlow 1 build in the same words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from benchmarks import tf1
from benchmarks.case import Case, MakeCase

# Gets a library with its default graph, and gives what a step fetches and feeds.
Build = Callable[[Any], tuple[Any, Mapping[Any, Any] | None]]
# Gets a library and a graph.
SessionOn = Callable[[Any, Any], Any]


def flowbook_session(fb: Any, graph: Any) -> Any:
    """A Session of Flowbook's on a graph."""
    return fb.Session(graph=graph)


def running(build: Build, session_on: SessionOn) -> MakeCase:
    """A case whose step is a run."""

    def make(lib: Any) -> Case:
        session, fetches, feeds = _built(lib, build, session_on)
        return Case(step=lambda: session.run(fetches, feeds), value=session.run(fetches, feeds))

    return make


def calling(build: Build, session_on: SessionOn) -> MakeCase:
    """A case whose step is a call of what `make_callable` gives."""

    def make(lib: Any) -> Case:
        session, fetches, feeds = _built(lib, build, session_on)
        call, values = session.make_callable(fetches, list(feeds)), list(feeds.values())
        return Case(step=lambda: call(*values), value=call(*values))

    return make


def _built(lib: Any, build: Build, session_on: SessionOn) -> tuple[Any, Any, Any]:
    graph = lib.Graph()
    with graph.as_default():
        fetches, feeds = build(lib)
    return session_on(lib, graph), fetches, feeds


def in_both(
    build: Build,
    make: Callable[[Build, SessionOn], MakeCase] = running,
    variant: str = "",
    **options: bool,
) -> dict[str, MakeCase]:
    """The cases of both systems, by their labels.

    Args:
        build: builds the graph.
        make: what a step is.
        variant: the end of the labels.
        options: of `tf1.session`.
    """
    return {
        f"flowbook{variant}": make(build, flowbook_session),
        f"tf1{variant}": make(build, partial(tf1.session, **options)),
    }
