"""Whether a page shows what the running cell gives, so that somebody looks at a live view.

Programs run notebooks too (nbclient, and with it `jupyter nbconvert --execute`). They keep the
state of every widget that they hear of, and a page made of that shows nothing without a network. A
front end says which cell it runs; they do not.
"""

from __future__ import annotations

from typing import Any


def is_looked_at(shell: Any) -> bool:
    """Whether a front end asked for what runs now.

    Args:
        shell: IPython's shell, or None.
    """
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return False
    try:
        request = kernel.get_parent("shell")
    except LookupError:
        return False
    # A callback of a widget runs for a message of the page that has the widget.
    return request.get("msg_type") != "execute_request" or "cellId" in request.get("metadata", {})
