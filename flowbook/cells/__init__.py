"""Which notebook cell built what, what re-running it redefines, and how errors read.

`import flowbook` inside IPython turns this on. Where there is no IPython, nothing here is imported.
"""

from typing import Any

from flowbook.cells import tracebacks, tracker

__all__ = ["install"]


def install(shell: Any) -> tracker.Tracker:
    """Follow the cells of an IPython shell, and show their errors without Flowbook's frames.

    Args:
        shell: the `InteractiveShell`. Installing twice changes nothing.
    """
    tracebacks.install(shell)
    return tracker.install(shell)
