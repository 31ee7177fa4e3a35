"""What is seen. Here: the static forms, which a notebook shows without a kernel.

The types shown have no displays of their own; `install` registers these with IPython.
"""

from flowbook.widgets.displays import install

__all__ = ["install"]
