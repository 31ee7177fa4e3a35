"""The live view of a graph: widgets, and the code that the page runs for them, sent once.

A hidden `Runtime` holds the code of the front end. Each view carries only a loader, which fetches
the code from it and keeps it for the page: twenty pictures in a notebook send it once.

ipywidgets and anywidget are imported here only, when the first view is made.
"""

from __future__ import annotations

import hashlib
import weakref
from functools import cache
from pathlib import Path

import anywidget
import traitlets

from flowbook.graph.graph import Graph
from flowbook.widgets.graph_payload import Needed, graph_payload

BUNDLE = Path(__file__).parent / "static" / "flowbook.js"

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
  async render({ model, el, host }) {
    return (await imported(model, host)).renderGraph(model, el);
  },
};
"""


class Runtime(anywidget.AnyWidget):
    """Holds the front end's code for all views of the page; shows nothing itself."""

    _esm = "export default {};"
    code = traitlets.Unicode().tag(sync=True)


class LiveGraph(anywidget.AnyWidget):
    """One picture of a graph, which follows it as cells extend it.

    Args:
        graph: the graph; it is held weakly.
        needed: what stands out; None if nothing does.
    """

    _esm = _LOADER
    runtime = traitlets.Unicode().tag(sync=True)
    digest = traitlets.Unicode().tag(sync=True)
    payload = traitlets.Bytes().tag(sync=True)

    def __init__(self, graph: Graph, needed: Needed | None = None) -> None:
        self._graph = weakref.ref(graph)
        self._needed = needed
        self._version = graph.version
        shared = _runtime()
        super().__init__(
            runtime=f"anywidget:{shared.model_id}",
            digest=_digest(shared.code),
            payload=_packed(graph, needed),
        )
        _views.add(self)

    @property
    def closed(self) -> bool:
        """Whether its cell has run again, so that nobody sees it."""
        return self.comm is None

    def close(self) -> None:
        """End it: the page has it no longer."""
        _views.discard(self)
        self.layout.close()
        super().close()

    def follow(self) -> None:
        """Send the graph anew if it has changed."""
        graph = self._graph()
        if graph is not None and graph.version != self._version and not self.closed:
            self._version = graph.version
            self.payload = _packed(graph, self._needed)


_views: weakref.WeakSet[LiveGraph] = weakref.WeakSet()
_shared: list[Runtime] = []
_payloads: weakref.WeakKeyDictionary[Graph, tuple[int, bytes]] = weakref.WeakKeyDictionary()


def follow_all() -> None:
    """Have every view show its graph as it is now: a cell has run."""
    for view in list(_views):
        view.follow()


def _packed(graph: Graph, needed: Needed | None) -> bytes:
    """The graph as pages get it; several views of one state share it."""
    if needed is not None:
        return graph_payload(graph, needed)
    version = graph.version
    known = _payloads.get(graph)
    if known is None or known[0] != version:
        known = _payloads[graph] = version, graph_payload(graph)
    return known[1]


def _runtime() -> Runtime:
    if not _shared or _shared[0].comm is None:
        _shared[:] = [Runtime(code=BUNDLE.read_text(encoding="utf-8"))]
    return _shared[0]


@cache
def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()[:16]
