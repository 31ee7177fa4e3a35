"""Text: joining, splitting, parts, patterns, and conversion from and to numbers."""

from flowbook.graph.ops.printing import string_format as format

__all__ = [
    "format",
]
