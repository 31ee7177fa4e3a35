"""Live views: widgets, and the code that the page runs for them, sent once.

A hidden `Runtime` holds the code of the front end. Each view carries only a loader, which fetches
the code from it and keeps it for the page: twenty pictures in a notebook send it once.

ipywidgets and anywidget are imported here only, when the first view is made.
"""

from __future__ import annotations

import hashlib
import secrets
import weakref
from functools import cache
from typing import Any

import anywidget
import traitlets

from flowbook.graph.building.graph import Graph
from flowbook.graph.model.origin import site as sites
from flowbook.widgets import front_end

_LOADER = """
async function imported(model, host) {
  const known = (globalThis.__flowbook_runtimes ??= new Map());
  const digest = model.get("digest");
  if (!known.has(digest)) {
    const code = (await host.getModel(model.get("runtime"))).get("code");
    const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    known.set(digest, import(url).finally(() => URL.revokeObjectURL(url)));
  }
  return known.get(digest);
}
export default {
  // JupyterLab keeps the models of widgets that are closed for as long as the page lives, and each
  // its state of before the last change too: let these be small.
  initialize({ model }) {
    return () => [1, 2].forEach(() => model.set({ payload: null, begun: null }));
  },
  async render({ model, el, host }) {
    return (await imported(model, host))[model.get("renderer")](model, el);
  },
};
"""


class Runtime(anywidget.AnyWidget):
    """Holds the front end's code for all views of the page; shows nothing itself."""

    _esm = "export default {};"
    code = traitlets.Unicode().tag(sync=True)


class LiveView(anywidget.AnyWidget):
    """One view in the page.

    Args:
        renderer: what the front end calls the function that renders it.
        state: the traits that a kind of view has beside.

    Attributes:
        payload: what it shows, or begins with; all that is large about it.
    """

    _esm = _LOADER
    payload = traitlets.Bytes().tag(sync=True)
    runtime = traitlets.Unicode().tag(sync=True)
    digest = traitlets.Unicode().tag(sync=True)
    renderer = traitlets.Unicode().tag(sync=True)

    def __init__(self, renderer: str, **state: Any) -> None:
        shared = _runtime()
        self._author = sites.capture().author
        super().__init__(
            runtime=f"anywidget:{shared.model_id}",
            digest=_digest(shared.code),
            renderer=renderer,
            **state,
        )

    @property
    def closed(self) -> bool:
        """Whether its cell has run again, so that nobody sees it."""
        return self.comm is None

    def ended(self, what: str) -> str:
        """What it says once that has ended which it shows: `what`, and which cell makes another."""
        again = f"; re-run {self._author.cell.label}" if self._author is not None else ""
        return f"{what} that this shows has ended{again}"

    def close(self) -> None:
        """End it, and what ipywidgets made with it: the page has it no longer."""
        self.layout.close()
        super().close()


class LiveViewOfGraph(LiveView):
    """A view that goes along with the others of its graph: what is selected in one is so in all.

    Args:
        renderer: as of `LiveView`.
        graph: the graph; None if it is of none.
        state: as of `LiveView`.
    """

    graph_name = traitlets.Unicode().tag(sync=True)  # By which views of one graph find each other.

    def __init__(self, renderer: str, graph: Graph | None, **state: Any) -> None:
        name = "" if graph is None else _name_of(graph)
        super().__init__(renderer, graph_name=name, **state)


def _name_of(graph: Graph) -> str:
    """A name that no other graph has; a page may have views of several kernels."""
    return _names.setdefault(graph, secrets.token_hex(8))


_names: weakref.WeakKeyDictionary[Graph, str] = weakref.WeakKeyDictionary()
_shared: list[Runtime] = []


def _runtime() -> Runtime:
    if not _shared or _shared[0].comm is None:
        _shared[:] = [Runtime(code=front_end.BUNDLE.read_text(encoding="utf-8"))]
    return _shared[0]


@cache
def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()[:16]
