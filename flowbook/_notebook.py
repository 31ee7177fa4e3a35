"""Connects to the notebook that imports flowbook, if one does."""

from __future__ import annotations

import sys


def connect() -> None:
    """Inside IPython, follow its cells and display graphs; elsewhere do nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    from flowbook import _help, cells, widgets

    cells.install(shell)
    widgets.install(shell)
    _help.install(shell)
