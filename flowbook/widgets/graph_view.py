"""A graph as it is shown: a live view where there is a notebook, and static forms everywhere.

The live view works in the page alone. The static forms are what a notebook shows without a kernel:
they are deterministic and fetch nothing.
"""

from __future__ import annotations

import base64
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flowbook.exec.feeds import feedable
from flowbook.exec.fetches import flatten
from flowbook.graph import files
from flowbook.graph import site as sites
from flowbook.graph.dtypes import resource
from flowbook.graph.errors import FailedPreconditionError, InvalidTypeError
from flowbook.graph.graph import Graph, get_default_graph
from flowbook.graph.rewrite.prune import closure
from flowbook.widgets.graph_payload import Needed, graph_payload
from flowbook.widgets.graph_svg import graph_svg
from flowbook.widgets.page import is_looked_at
from flowbook.widgets.shown_text import shown_text

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

_BUNDLE = Path(__file__).parent / "static" / "flowbook.js"


class GraphView:
    """A picture of a graph, in which name scopes open and close.

    A graph at the end of a cell is shown like this too. In JupyterLab the picture is live: it
    follows the graph as cells extend it, and it works while the kernel is busy. Elsewhere, and
    without a kernel, it is a static one of the outermost scopes.

    Args:
        graph: the graph, or something that has one as a session has; None is the default graph.
        fetches: what a run would fetch. What it needs then stands out, the rest is faint (white
            paper, figure 6).
        feeds: the tensors, variables or names that the run would feed.

    Raises:
        NotFoundError: if a name is not in the graph.
        InvalidArgumentError: if something belongs to another graph.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [2], name="x")
    >>> fb.GraphView(fetches=x * 2, feeds=[x])
    <GraphView of 3 operations, 2 of them needed>
    """

    def __init__(self, graph: Any = None, fetches: Any = None, feeds: Iterable[Any] = ()) -> None:
        found = get_default_graph() if graph is None else getattr(graph, "graph", graph)
        if not isinstance(found, Graph):
            raise InvalidTypeError(f"{graph!r} is neither a graph nor has one")
        self.graph = found
        self.needed = None if fetches is None else needed_for(found, fetches, feeds)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        forms = {"text/plain": repr(self), "image/svg+xml": graph_svg(self.graph)}
        return {**live_form(self.graph, self.needed), **forms}

    def export_html(self, path: Any) -> None:
        """Write the picture as a page of its own, which needs neither a kernel nor a network.

        Args:
            path: the file, such as "graph.html". An existing one is replaced whole or not at all.

        Raises:
            FailedPreconditionError: if the front end has not been built.
            OSError: if the file cannot be written.
        """
        page = graph_page(self.graph, self.needed)
        with files.written_whole(files.as_path(path)) as file:
            file.write(page.encode())

    def __repr__(self) -> str:
        count = f"<GraphView of {len(self.graph.operations)} operations"
        if self.needed is None:
            return f"{count}>"
        return f"{count}, {len(self.needed.operations)} of them needed>"


def needed_for(graph: Graph, fetches: Any, feeds: Iterable[Any]) -> Needed:
    """What a run of the fetches needs, given the feeds."""
    flat = flatten(graph, fetches)
    fed = {feedable(graph, key) for key in feeds}
    handles = {tensor for tensor in fed if tensor.dtype is resource}
    return Needed(
        frozenset(closure(flat.tensors, flat.targets, fed, handles)),
        frozenset(tensor.op for tensor in fed),
        frozenset([*(tensor.op for tensor in flat.tensors), *flat.targets]),
    )


def live_form(graph: Graph, needed: Needed | None = None) -> dict[str, Any]:
    """The live view as a part of an output; empty where there is nothing to run it."""
    if not _has_notebook():
        return {}
    from flowbook.widgets import live_graph

    view = live_graph.LiveGraph(graph, needed)
    author = sites.capture().author
    if author is not None:
        author.own(view)
    form = {"version_major": 2, "version_minor": 0, "model_id": view.model_id}
    return {WIDGET_VIEW: form}


def _has_notebook() -> bool:
    """Whether a page shows this, with the packages for widgets and a front end that was built."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return (
        is_looked_at(shell)
        and importlib.util.find_spec("anywidget") is not None
        and _BUNDLE.exists()
    )


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline' \
blob:; worker-src blob:; style-src 'unsafe-inline'; img-src data: blob:">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 0; padding: 16px; background: light-dark(#fff, #111418); }}
.fb-graph {{ height: calc(100vh - 32px) !important; }}
</style>
</head>
<body>
<div id="graph">{picture}</div>
<script type="text/plain" id="code">{code}</script>
<script type="module">
const code = document.getElementById("code").textContent;
const place = document.getElementById("graph");
const picture = place.firstElementChild;
const url = URL.createObjectURL(new Blob([code], {{ type: "text/javascript" }}));
const {{ renderExported }} = await import(url);
await renderExported("{payload}", place);
picture.remove();
</script>
</body>
</html>
"""


def graph_page(graph: Graph, needed: Needed | None = None) -> str:
    """A page that shows the graph: the static picture, which its script replaces by the live one.

    Raises:
        FailedPreconditionError: if the front end has not been built.
    """
    if not _BUNDLE.exists():
        raise FailedPreconditionError(
            "the front end has not been built", hint="run `make front-end` in Flowbook's source"
        )
    code = _BUNDLE.read_text(encoding="utf-8").replace("</script", "<\\/script")
    return _PAGE.format(
        title=shown_text(repr(graph)[1:-1].partition(",")[0]),
        picture=graph_svg(graph),
        code=code,
        payload=base64.b64encode(graph_payload(graph, needed)).decode(),
    )
