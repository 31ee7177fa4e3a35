"""The front end as it was built: where it can run, and the pages that carry it with them.

A live view is made only where something runs it; a page needs neither a kernel nor a network.
Beside every live view stands its picture, so that no page is without one.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flowbook.graph.model.errors import FailedPreconditionError, OpError
from flowbook.graph.model.origin import site as sites
from flowbook.graph.storing import files
from flowbook.widgets.page import is_looked_at
from flowbook.widgets.shown_text import shown_text

BUNDLE = Path(__file__).parent / "static" / "flowbook.js"

# A live view, for Flowbook's extension of JupyterLab, which shows the picture where the view is no
# more. It is not called a widget: a front end that knows widgets shows an error for one that it
# does not find, and not what is stored beside it. One that knows nothing of this shows a picture.
LIVE_VIEW = "application/vnd.flowbook.view+json"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

# The forms of an output, and what is said of each.
Forms = tuple[dict[str, Any], dict[str, Any]]


def forms(text: str, draw: Callable[[], str], live: Mapping[str, Any]) -> Forms:
    """All forms of what is shown; where nothing draws the picture, the text says so.

    Args:
        text: what a terminal shows.
        draw: makes the picture, SVG.
        live: what `live_form` gives.
    """
    from flowbook.widgets.svg_png import svg_png  # Pillow takes a while.

    try:
        svg = draw()
    except OpError as error:
        return {**live, "text/plain": f"{text}\n{error}"}, {}
    png, width = svg_png(svg)
    data = {**live, "image/svg+xml": svg, "image/png": png, "text/plain": text}
    return data, {"image/png": {"width": width}}


def live_form(make: Callable[[], Any]) -> dict[str, Any]:
    """A live view as a part of an output; empty where there is nothing to run it.

    Args:
        make: makes the widget. It is closed when the cell that shows it runs again.
    """
    if not _has_notebook():
        return {}
    view = make()
    author = sites.capture().author
    if author is not None:
        author.own(view)
    form = {"version_major": 2, "version_minor": 0, "model_id": view.model_id}
    # VS Code, which says so to what it starts, takes no extensions of JupyterLab; where it finds no
    # widget it goes on to the next form.
    kinds = [LIVE_VIEW, WIDGET_VIEW] if "VSCODE_PID" in os.environ else [LIVE_VIEW]
    return dict.fromkeys(kinds, form)


def _has_notebook() -> bool:
    """Whether a page shows this, with the packages for widgets and a front end that was built."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return (
        is_looked_at(shell)
        and importlib.util.find_spec("anywidget") is not None
        and BUNDLE.exists()
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
#view > div {{ height: calc(100vh - 32px) !important; max-height: none !important; }}
</style>
</head>
<body>
<div id="view">{picture}</div>
<script type="text/plain" id="code">{code}</script>
<script type="module">
const code = document.getElementById("code").textContent;
const place = document.getElementById("view");
const picture = place.firstElementChild;
const url = URL.createObjectURL(new Blob([code], {{ type: "text/javascript" }}));
const {{ {renderer} }} = await import(url);
await {renderer}("{payload}", place, {options});
picture.remove();
</script>
</body>
</html>
"""


def write_page(
    path: Any,
    title: str,
    picture: str,
    renderer: str,
    payload: bytes,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Write a page that shows a static picture, which its script replaces by the live one.

    Args:
        path: the file. An existing one is replaced whole or not at all.
        title: of the page, as text.
        picture: SVG.
        renderer: what the front end calls the function that renders the payload.
        payload: what is shown.
        options: how it is shown at first.

    Raises:
        FailedPreconditionError: if the front end has not been built.
        OSError: if the file cannot be written.
    """
    if not BUNDLE.exists():
        raise FailedPreconditionError(
            "the front end has not been built", hint="run `make front-end` in Flowbook's source"
        )
    page = _PAGE.format(
        title=shown_text(title),
        picture=picture,
        code=BUNDLE.read_text(encoding="utf-8").replace("</script", "<\\/script"),
        renderer=renderer,
        payload=base64.b64encode(payload).decode(),
        # In a script "<" could end it.
        options=json.dumps(dict(options or {})).replace("<", "\\u003c"),
    )
    with files.written_whole(files.as_path(path)) as file:
        file.write(page.encode())
