"""Which notebook cell built what, and what re-running it redefines (DESIGN 8).

`import flowbook` inside IPython turns this on. Where there is no IPython, nothing here is imported.
"""

from flowbook.cells.tracker import install

__all__ = ["install"]
